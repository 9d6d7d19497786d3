"""Every verb of the Kubernetes API that this operator uses, and nothing else."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import envelope, errors
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.exec_channels import CHANNELS, output
from slurm_operator.kube.request import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    Request,
    Selection,
    listing,
    on_object,
    watching,
)
from slurm_operator.kube.transport import Call as Call
from slurm_operator.kube.transport import Pool, Transport
from slurm_operator.kube.watch.lines import lines
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.meta import Manifest

T = TypeVar("T")

FIELD_MANAGER = "slurm-operator"
_VERSION = "/metadata/resourceVersion"

# Reads one object's JSON. Raises when it does not fit.
Decode = Callable[[memoryview], T]

Propagation = Literal["Background", "Foreground", "Orphan"]

# Connecting for a watch; what comes after has its own limits.
_CONNECT_SECONDS = 10.0

# A command in a pod may print megabytes.
_COMMAND_SECONDS = 120.0

# A log may be silent for as long as nothing happens.
_NEVER_SECONDS = 10 * 365 * 86400.0


def _always() -> bool:
    return True


class Deletion(TypedDict, total=False):
    """How an object is deleted, beside which one it has to be.

    `still` is asked when the request leaves, which may be long after the call: NotLeader if it says no.
    """

    resource_version: str
    grace_seconds: int | None
    propagation: Propagation
    still: Callable[[], bool]
    deadline_seconds: float | None


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
        self.access = access
        self.may_write = may_write
        self.deadline_seconds = deadline_seconds
        self._transport = Transport(access, on_call, connections)

    async def __aenter__(self) -> Self:
        self._transport.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._transport.close()

    async def send(
        self,
        request: Request,
        *,
        pool: Pool = Pool.CALLS,
        deadline_seconds: float | None = None,
        still: Callable[[], bool] = _always,
    ) -> bytes:
        """The body of the answer to any request; every call goes through here.

        The Lease's own pool asks nobody: a lease is written by those who do not have it yet. What may be sent
        only `still` goes before all others: it may not wait for long.
        """
        is_held_back = request.is_write and pool is not Pool.LEASE
        may_send = self.may_write if is_held_back else _always
        if not may_send():
            raise errors.NotLeader(f"{request} was not sent: the lease is not ours")
        return await self._transport.send(
            request,
            pool=pool,
            deadline_seconds=deadline_seconds or self.deadline_seconds,
            may_send=lambda: may_send() and still(),
            in_a_hurry=still is not _always,
        )

    async def relay(self, request: Request, *, deadline_seconds: float | None = None) -> tuple[int, bytes]:
        """The code and body of an answer that another server gave through this one, whatever they are."""
        may_send = self.may_write if request.is_write else _always
        if not may_send():
            raise errors.NotLeader(f"{request} was not sent: nothing may be written")
        deadline_seconds = deadline_seconds or self.deadline_seconds
        return await self._transport.relay(request, deadline_seconds=deadline_seconds, may_send=may_send)

    async def request(
        self, method: str, path: str, *, body: object = None, params: Mapping[str, str] | None = None
    ) -> Any:
        """Any other call: the decoded JSON of the answer. A write unless it is a GET or asks for a review."""
        request = Request(
            verb=method.lower(),
            method=method,
            path=path,
            resource=path.rsplit("/", 1)[-1],
            params=params or {},
            body=None if body is None else wire.encode(body),
            is_question=path.endswith("reviews"),
        )
        return _manifest(await self.send(request))

    async def text(self, path: str, *, params: Mapping[str, str] | None = None) -> bytes:
        """The body of an answer that is no JSON: a log, or metrics."""
        return await self.send(_plain(path, params))

    @asynccontextmanager
    async def follow(
        self, path: str, *, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A text as it grows, piece by piece, until the server ends it. Silence is no error."""
        async with self._transport.stream(
            _plain(path, params), idle_seconds=_NEVER_SECONDS, connect_seconds=_CONNECT_SECONDS
        ) as content:
            yield content

    async def printed(self, pod: ObjectKey, container: str, command: Sequence[str]) -> bytes:
        """What a command prints in a container. It must change nothing: nobody asks whether we may write.

        Raises CommandFailed with what it complained about.
        """
        words = [("command", word) for word in command]
        query = urlencode([("container", container), ("stdout", "true"), ("stderr", "true"), *words])
        request = on_object("exec", "GET", POD, pod, subresource="exec")
        request = replace(request, path=f"{request.path}?{query}", accept="*/*")
        found = await self._transport.messages(request, CHANNELS, deadline_seconds=_COMMAND_SECONDS)
        return output(found, str(request))

    async def get(self, kind: Kind, key: ObjectKey) -> Manifest:
        """The object as it is now. Raises NotFound."""
        return _manifest(await self.send(on_object("get", "GET", kind, key)))

    async def read(self, kind: Kind, key: ObjectKey, decode: Decode[T]) -> T:
        """The object as it is now, as one of our records. Raises NotFound, or what `decode` raises."""
        return decode(memoryview(await self.send(on_object("get", "GET", kind, key))))

    async def list_pages(self, selection: Selection, *, limit: int = 500) -> AsyncIterator[envelope.Page]:
        """All objects that match, in pages of one consistent version; `limit` 0 is one page.

        Raises Gone when the version expires before the last page.
        """
        token = ""
        while True:
            page = envelope.page(await self.send(listing(selection, limit=limit, continue_token=token)))
            yield page
            token = page.next_page
            if not token:
                return

    @asynccontextmanager
    async def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Entered when the server has accepted the watch. Gives its lines as they arrive, several at once.

        Ends when the server ends it. Raises Timeout after `idle_seconds` without a byte.
        """
        request = watching(selection, resource_version=resource_version, timeout_seconds=timeout_seconds)
        async with self._transport.stream(
            request, idle_seconds=idle_seconds, connect_seconds=_CONNECT_SECONDS
        ) as content:
            yield lines(content)

    async def apply(self, kind: Kind, manifest: Manifest, *, force: bool = True) -> Manifest:
        """Server-side apply: the object afterwards has these fields, and they are ours."""
        return await self._apply(kind, manifest, "", force)

    async def apply_status(
        self, kind: Kind, manifest: Manifest, *, force: bool = True, manager: str = FIELD_MANAGER
    ) -> Manifest:
        """Server-side apply of `status` alone."""
        return await self._apply(kind, manifest, "status", force, manager)

    async def _apply(
        self, kind: Kind, manifest: Manifest, subresource: str, force: bool, manager: str = FIELD_MANAGER
    ) -> Manifest:
        request = on_object(
            "apply",
            "PATCH",
            kind,
            _key(manifest),
            subresource=subresource,
            params={"fieldManager": manager, "force": "true" if force else "false"},
            body=_whole(kind, manifest),
            content_type=APPLY_PATCH,
        )
        return _manifest(await self.send(request))

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """A new object. Raises AlreadyExists."""
        return _manifest(await self.create_undecoded(kind, manifest))

    async def create_undecoded(self, kind: Kind, manifest: Manifest) -> bytes:
        """`create` for those who make thousands of objects and know how to read the answer."""
        collection = ObjectKey(_key(manifest).namespace, "")
        return await self._write("create", "POST", kind, collection, _whole(kind, manifest))

    async def replace(self, kind: Kind, manifest: Manifest, *, subresource: str = "") -> Manifest:
        """Replace the whole object; Conflict if it carries a `resourceVersion` that has been overtaken."""
        whole = _whole(kind, manifest)
        return _manifest(
            await self._write("update", "PUT", kind, _key(manifest), whole, subresource=subresource)
        )

    async def delete(
        self, kind: Kind, key: ObjectKey, *, uid: str = "", **how: Unpack[Deletion]
    ) -> Manifest | None:
        """The object while it still terminates, None when it is gone at once.

        Raises Conflict when it is not the one of that uid and resource version, NotFound when there is none.
        """
        left = await self.delete_undecoded(kind, key, uid=uid, **how)
        return _manifest(left) if left is not None else None

    async def delete_undecoded(
        self,
        kind: Kind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation = "Background",
        still: Callable[[], bool] = _always,
        deadline_seconds: float | None = None,
    ) -> bytes | None:
        """`delete` for those who delete thousands and know how to read the answer."""
        options = _delete_options(uid, resource_version, grace_seconds) | {"propagationPolicy": propagation}
        request = on_object("delete", "DELETE", kind, key, body=options)
        answer = await self.send(request, deadline_seconds=deadline_seconds, still=still)
        return answer if envelope.is_terminating(answer) else None

    async def evict(self, key: ObjectKey, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Ask for a pod's removal the polite way. Raises BudgetRefused while a budget forbids it."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": key.namespace, "name": key.name},
            "deleteOptions": _delete_options(uid, "", grace_seconds),
        }
        await self.send(on_object("create", "POST", POD, key, subresource="eviction", body=eviction))

    async def json_patch(
        self,
        kind: Kind,
        key: ObjectKey,
        operations: Sequence[Mapping[str, Any]],
        *,
        uid: str = "",
        subresource: str = "",
    ) -> Manifest:
        """RFC 6902, all or nothing; with a uid, only if the object is still that one (else Conflict)."""
        return _manifest(
            await self.json_patch_undecoded(kind, key, operations, uid=uid, subresource=subresource)
        )

    async def json_patch_undecoded(
        self,
        kind: Kind,
        key: ObjectKey,
        operations: Sequence[Mapping[str, Any]],
        *,
        uid: str = "",
        subresource: str = "",
        deadline_seconds: float | None = None,
    ) -> bytes:
        """`json_patch` for those who patch thousands and know how to read the answer."""
        test = [{"op": "test", "path": "/metadata/uid", "value": uid}] if uid else []
        try:
            return await self._write(
                "patch",
                "PATCH",
                kind,
                key,
                [*test, *operations],
                subresource=subresource,
                content_type=JSON_PATCH,
                deadline_seconds=deadline_seconds,
            )
        except errors.Invalid:
            # The server does not say which operation failed, so ask whether it was our test.
            if uid and (other := _other_than((await self.get(kind, key))["metadata"], uid, operations)):
                raise errors.conflict(f"{kind.kind} {key} {other}") from None
            raise

    async def merge_patch(
        self, kind: Kind, key: ObjectKey, patch: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """RFC 7386: the given fields, None removes one."""
        return _manifest(
            await self._write(
                "patch", "PATCH", kind, key, patch, subresource=subresource, content_type=MERGE_PATCH
            )
        )

    async def _write(
        self,
        verb: str,
        method: str,
        kind: Kind,
        key: ObjectKey,
        body: object,
        *,
        subresource: str = "",
        content_type: str = JSON,
        deadline_seconds: float | None = None,
    ) -> bytes:
        request = on_object(
            verb,
            method,
            kind,
            key,
            subresource=subresource,
            params={"fieldManager": FIELD_MANAGER},
            body=body,
            content_type=content_type,
        )
        return await self.send(request, deadline_seconds=deadline_seconds)


def _plain(path: str, params: Mapping[str, str] | None) -> Request:
    return Request(
        verb="get",
        method="GET",
        path=path,
        resource=path.rsplit("/", 1)[-1],
        params=params or {},
        accept="*/*",
    )


def _other_than(found: Mapping[str, Any], uid: str, operations: Sequence[Mapping[str, Any]]) -> str:
    """In which way an object is not the one that these operations are about; empty when it is."""
    if found["uid"] != uid:
        return f"is no longer the one with uid {uid}"
    tests = [one["value"] for one in operations if one["op"] == "test" and one["path"] == _VERSION]
    return "has changed since it was read" if any(one != found["resourceVersion"] for one in tests) else ""


def _manifest(body: bytes) -> Manifest:
    try:
        manifest: Manifest = wire.decode_any(body)
    except (wire.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Unreadable(f"the answer is no object that we can read: {error}") from error
    return manifest


def _whole(kind: Kind, manifest: Manifest) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind} | manifest


def _key(manifest: Manifest) -> ObjectKey:
    metadata = manifest["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata.get("name", ""))


def _delete_options(uid: str, resource_version: str, grace_seconds: int | None) -> Manifest:
    wanted = {"uid": uid, "resourceVersion": resource_version}
    options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := {name: value for name, value in wanted.items() if value}:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options
