"""Requests to the API server as data: which verb, on what, with which body."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.http.pool import READS

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Request:
    """One HTTP request; `verb`, `group`, `resource` and `subject` are how metrics and errors talk about it.

    `is_question` is a POST that changes nothing, such as a TokenReview.
    """

    verb: str
    method: str
    path: str
    group: str = ""
    resource: str = ""
    subject: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)  # May hold a Secret.
    content_type: str = JSON
    accept: str = JSON
    is_question: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # May hold a token.

    def __str__(self) -> str:
        return f"{self.verb} {self.subject or self.path}"

    @property
    def is_write(self) -> bool:
        return self.method not in READS and not self.is_question and self.params.get("dryRun") != "All"


class Selection(wire.Record):
    """Which objects of a kind: in one namespace or (empty) in all, by labels and fields."""

    kind: Kind
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    @property
    def params(self) -> dict[str, str]:
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in given.items() if value}

    def __str__(self) -> str:
        """As people say it: `pods in slurm with app=slurmd`."""
        place = f" in {self.namespace or 'all namespaces'}" if self.kind.namespaced else ""
        chosen = " ".join(part for part in (self.label_selector, self.field_selector) if part)
        return self.kind.plural + place + (f" with {chosen}" if chosen else "")


def on_object(
    verb: str,
    method: str,
    kind: Kind,
    key: ObjectKey,
    *,
    subresource: str = "",
    params: Mapping[str, str] | None = None,
    body: object = None,
    content_type: str = JSON,
) -> Request:
    """A request about one object; or, with an empty name, a POST into its collection."""
    return Request(
        verb=verb,
        method=method,
        path=kind.path(key.namespace, key.name, subresource),
        group=kind.group,
        resource=f"{kind.plural}/{subresource}" if subresource else kind.plural,
        subject=f"{kind.kind} {key}" + (f" ({subresource})" if subresource else ""),
        params=params or {},
        body=None if body is None else wire.encode(body),
        content_type=content_type,
    )


def listing(selection: Selection, *, limit: int, continue_token: str = "") -> Request:
    params = selection.params
    if limit:
        params["limit"] = str(limit)
    if continue_token:
        params["continue"] = continue_token
    return _on_collection("list", selection, params, _METADATA_LIST)


def watching(selection: Selection, *, resource_version: str, timeout_seconds: int) -> Request:
    params = selection.params | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(timeout_seconds),
    }
    return _on_collection("watch", selection, params, _METADATA)


def _on_collection(verb: str, selection: Selection, params: Mapping[str, str], metadata: str) -> Request:
    return Request(
        verb=verb,
        method="GET",
        path=selection.kind.path(selection.namespace),
        group=selection.kind.group,
        resource=selection.kind.plural,
        subject=str(selection),
        params=params,
        accept=metadata if selection.metadata_only else JSON,
    )
