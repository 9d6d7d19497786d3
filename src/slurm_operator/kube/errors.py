"""What can go wrong between us and the API server, in the server's own words."""

# ruff: noqa: N818  Errors are named for what happened: NotFound reads better than NotFoundError.

from slurm_operator import wire


class KubeError(Exception):
    """The root of everything this package raises."""


class ConfigProblem(KubeError):
    """We cannot tell where the API server is or who we are; the message says which file and what to do."""


class NotLeader(KubeError):
    """A write was held back: the lease is not ours, or may no longer be."""


class Unreadable(KubeError):
    """The server answered with something that is not what it should be."""


class CommandFailed(KubeError):
    """A command in a container did not end well; the message has what it complained about."""


class Unreachable(KubeError):
    """No answer. `may_have_happened` when the request could have left us before the connection broke."""

    def __init__(self, message: str, *, may_have_happened: bool = False) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class Timeout(Unreachable):
    """No answer before the deadline of the call."""


class Cause(wire.Record):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(wire.CamelRecord):
    name: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[Cause] = []
    retry_after_seconds: int = 0


class Status(wire.CamelRecord):
    """The body of every refusal."""

    status: str = "Failure"
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(KubeError):
    """The API server answered, and said no."""

    def __init__(self, status: Status, *, attempted: str = "", retry_after: float | None = None) -> None:
        said = status.message or status.reason or f"HTTP {status.code}"
        super().__init__(f"{attempted}: {said}" if attempted else said)
        self.status = status
        self.attempted = attempted
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def message(self) -> str:
        """The server's own sentence, without what we attempted."""
        return self.status.message

    @property
    def causes(self) -> list[Cause]:
        return self.status.details.causes if self.status.details else []


class BadRequest(ApiError):
    """The server could not make sense of the request."""


class Unauthorised(ApiError):
    """The server does not know who we are: the token expired or the certificate is not its own."""


class Forbidden(ApiError):
    """The server knows us and our rights do not cover this."""


class NamespaceEnding(Forbidden):
    """Nothing new is taken into a namespace that is being deleted."""


class NotFound(ApiError):
    """There is no such object, or no such kind."""


class Conflict(ApiError):
    """The object is no longer the one the request was decided about."""


class AlreadyExists(Conflict):
    """A create met an object of that name."""


class Gone(ApiError):
    """The resource version is too old to continue from: list again."""


class Invalid(ApiError):
    """The object breaks a rule of its schema; `causes` say which."""


class TooManyRequests(ApiError):
    """The server asks us to slow down, and kept doing so until our deadline."""


class BudgetRefused(TooManyRequests):
    """A PodDisruptionBudget does not allow this eviction now."""


class ServerError(ApiError):
    """The server failed at it: 5xx."""

    @property
    def may_have_happened(self) -> bool:
        """Unless the API server itself says that it took nothing in. A proxy cannot know that."""
        return not (self.code == 503 and self.reason == "ServiceUnavailable")


_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
    "Gone": Gone,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorised,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def conflict(message: str) -> Conflict:
    """For a precondition that the server could not check for us."""
    return Conflict(Status(code=409, reason="Conflict", message=message))


def from_status(status: Status, *, attempted: str = "", retry_after: float | None = None) -> ApiError:
    """The error for a Status."""
    if status.details is not None:
        retry_after = retry_after or status.details.retry_after_seconds or None
    return _type_of(status)(status, attempted=attempted, retry_after=retry_after)


def from_body(
    code: int, body: bytes, *, attempted: str = "", reason: str = "", retry_after: float | None = None
) -> ApiError:
    """The error for an HTTP answer; a body that is no Status (a proxy's page) is quoted."""
    try:
        status = wire.decode(body, Status)
    except (wire.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:300].decode(errors="replace").strip()
        status = Status(message=text or reason)
    if not status.code:
        status = wire.replace(status, code=code)
    if not status.message:
        status = wire.replace(status, message=status.reason or reason or f"HTTP {code}")
    return from_status(status, attempted=attempted, retry_after=retry_after)


def _type_of(status: Status) -> type[ApiError]:
    causes = {cause.reason for cause in status.details.causes} if status.details else set()
    if status.code == 429 and "DisruptionBudget" in causes:
        return BudgetRefused
    if status.code == 403 and "NamespaceTerminating" in causes:
        return NamespaceEnding
    if status.code >= 500:
        return ServerError
    return _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiError)
