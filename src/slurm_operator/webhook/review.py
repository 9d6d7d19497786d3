"""AdmissionReviews: what the API server asks, and how it is answered."""

import base64
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.schema.problems import Problem, Severity
from slurm_operator.printable import printable

VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")

# The API server shortens warnings, and drops the last ones, when there are more characters than these.
MOST_CHARACTERS: Final = 4096
LONGEST_WARNING: Final = 256


class Malformed(Exception):  # noqa: N818 - the caller's to fix, not an error of ours
    """What was sent is no review that could be answered; the message says why."""


class GroupKind(wire.CamelRecord):
    group: str = ""
    version: str = ""
    kind: str = ""


class Request(wire.CamelRecord):
    """What somebody is about to do to an object."""

    uid: str
    kind: GroupKind = GroupKind()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None
    options: dict[str, Any] | None = None

    @property
    def manager(self) -> str:
        """What the program calls itself that writes; empty where it did not say."""
        return str((self.options or {}).get("fieldManager", ""))


class Review(wire.CamelRecord):
    api_version: str
    kind: str
    request: Request | None = None


class Verdict(wire.Record):
    """What the API server is told. Errors refuse the request, warnings are shown to whoever made it."""

    problems: tuple[Problem, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[str]:
        """As many as there is room for; of the others it is said how many they are, and which fields."""
        found = [problem for problem in self.problems if problem.severity is Severity.WARNING]
        texts = [_text(problem)[:LONGEST_WARNING] for problem in found]
        ends = list(accumulate(map(len, texts)))
        if not ends or ends[-1] <= MOST_CHARACTERS:
            return texts
        shown = bisect_right(ends, MOST_CHARACTERS - LONGEST_WARNING)
        fields = ", ".join(printable(problem.path) for problem in found[shown:])
        return [*texts[:shown], f"and {len(found) - shown} more warnings, about {fields}"[:LONGEST_WARNING]]


class Asked(wire.Record):
    """A review that can be answered, in the version that it came in."""

    version: str
    request: Request


_decode = wire.decoder(Review)


def read(body: bytes) -> Asked:
    """The question in a request's body. Raises Malformed."""
    try:
        review = _decode(body)
    except (wire.DecodeError, RecursionError, UnicodeError) as error:
        raise Malformed(f"This is no AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version not in VERSIONS:
        raise Malformed(
            f"Only AdmissionReviews of {' and '.join(VERSIONS)} are answered here, not "
            f"{_short(review.kind)} of {_short(review.api_version)}."
        )
    if review.request is None or not review.request.uid:
        raise Malformed("The AdmissionReview has no request with a uid, so nobody could match the answer.")
    return Asked(version=review.api_version, request=review.request)


def _short(text: str) -> str:
    return repr(text[:64])


def answer(asked: Asked, verdict: Verdict) -> bytes:
    """The body to send back: allowed, or every reason against it at once."""
    response: dict[str, Any] = {"uid": asked.request.uid, "allowed": not verdict.errors}
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    if verdict.errors:
        response["status"] = _status(verdict.errors)
    elif verdict.patch:
        patch = base64.b64encode(wire.encode(verdict.patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return wire.encode({"apiVersion": asked.version, "kind": "AdmissionReview", "response": response})


def _text(problem: Problem) -> str:
    """Where and what. It quotes the object, and kubectl prints it."""
    return printable(str(problem).removeprefix(": "))


def _status(errors: Sequence[Problem]) -> dict[str, Any]:
    causes = [
        {"reason": "FieldValueInvalid", "field": error.path, "message": printable(error.message)}
        for error in errors
    ]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "; ".join(map(_text, errors)),
        "details": {"causes": causes},
    }
