"""Every verb of the Kubernetes API that this operator uses, and nothing else."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, Self, TypeVar

from slurm_operator import wire
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import ObjectKey
from slurm_operator.kube.access import Access
from slurm_operator.manifests.meta import Manifest

T = TypeVar("T")

FIELD_MANAGER = "slurm-operator"

# Reads one object's JSON. Raises wire.DecodeError when it does not fit.
Decode = Callable[[memoryview], T]

Propagation = Literal["Background", "Foreground", "Orphan"]


class Call(wire.Record):
    """One answered (or failed) request, for metrics. `code` is 0 when no answer came."""

    verb: str
    resource: str
    code: int
    seconds: float


class Page(wire.Record):
    """Part of a list: undecoded objects, and the version of the whole list."""

    items: list[wire.Raw]
    resource_version: str


class Client:
    """Talks to one API server. Watches, calls and the Lease have separate connections.

    `may_write` is asked before every write, once more in the moment of sending; a no raises NotLeader.
    `on_call` hears of every request. Every call ends within its deadline, waiting for 429s included.
    """

    def __init__(
        self,
        access: Access,
        *,
        may_write: Callable[[], bool] = lambda: True,
        on_call: Callable[[Call], None] = lambda call: None,
        deadline_seconds: float = 20.0,
        connections: int = 32,
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *exc: object) -> None:
        raise NotImplementedError

    async def get(self, kind: Kind, key: ObjectKey) -> Manifest:
        """The object as it is now. Raises NotFound."""
        raise NotImplementedError

    async def read(self, kind: Kind, key: ObjectKey, decode: Decode[T]) -> T:
        """The object as it is now, as one of our records."""
        raise NotImplementedError

    def list_pages(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        metadata_only: bool = False,
    ) -> AsyncIterator[Page]:
        """All objects that match, in pages of one consistent version. Raises Gone when it expires midway."""
        raise NotImplementedError

    def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int,
        idle_seconds: float,
        metadata_only: bool = False,
    ) -> AsyncIterator[list[bytes]]:
        """Lines of the watch as they arrive, split on newlines only. Ends when the server ends it."""
        raise NotImplementedError

    async def apply(self, kind: Kind, manifest: Manifest, *, force: bool = True) -> Manifest:
        """Server-side apply: the object afterwards has these fields, and they are ours."""
        raise NotImplementedError

    async def apply_status(self, kind: Kind, manifest: Manifest, *, force: bool = True) -> Manifest:
        """Server-side apply of `status` alone."""
        raise NotImplementedError

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """A new object. Raises AlreadyExists."""
        raise NotImplementedError

    async def replace(self, kind: Kind, manifest: Manifest, *, subresource: str = "") -> Manifest:
        """The whole object anew; Conflict if it carries a `resourceVersion` that has been overtaken."""
        raise NotImplementedError

    async def delete(
        self,
        kind: Kind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation = "Background",
    ) -> Manifest | None:
        """The object while it still terminates, None when it is gone at once.

        Raises Conflict when it is not the one of that uid and resource version, NotFound when there is none.
        """
        raise NotImplementedError

    async def evict(self, key: ObjectKey, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Ask for a pod's removal the polite way. Raises BudgetRefused while a budget forbids it."""
        raise NotImplementedError

    async def json_patch(
        self,
        kind: Kind,
        key: ObjectKey,
        operations: Sequence[dict[str, Any]],
        *,
        uid: str = "",
        subresource: str = "",
    ) -> Manifest:
        """RFC 6902, all or nothing; with a uid, only if the object is still that one (else Conflict)."""
        raise NotImplementedError

    async def merge_patch(
        self, kind: Kind, key: ObjectKey, patch: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """RFC 7386: the given fields, None removes one."""
        raise NotImplementedError

    async def request(
        self, method: str, path: str, *, body: object = None, params: dict[str, str] | None = None
    ) -> Any:
        """Any other call: the decoded JSON of the answer. Counts as a write unless it is a GET."""
        raise NotImplementedError
