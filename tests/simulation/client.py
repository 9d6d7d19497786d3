"""The operator's way to the API server: slow, sometimes broken, and now and then ambiguous."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from typing import Any

from simulation import apiserver
from simulation.apiserver import OPERATOR, ApiServer, Object, key_of, refused
from simulation.weather import Weather
from simulation.wires import arriving
from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.envelope import Page
from slurm_operator.kube.request import Request, Selection
from slurm_operator.kube.transport import Pool
from slurm_operator.manifests import kinds
from testing.virtual_time import PROCESS, Process

DEADLINE_SECONDS = 20.0  # For whatever has none of its own.

# What may be carried out late. What a status says is written again as soon as it is seen to differ.
LATE_VERBS = ("apply", "create", "delete", "patch")

# How long after the client gave up a late write is carried out, at least and at most: a real API server that was
# stopped meanwhile did so.
LATE_SECONDS = (20.0, 60.0)


class SimulatedClient:
    """The verbs of `kube.client.Client`, without HTTP. `notes` hears of every write that reached the server,
    `calls` of every call and every line of a watch.
    """

    def __init__(
        self, server: ApiServer, weather: Weather, notes: Callable[[str], None], calls: Callable[[], None]
    ) -> None:
        self.server = server
        self.calls = calls
        self.weather = weather
        self.notes = notes
        self.is_away = False
        self.late = 0  # Writes that nobody waits for any more, and that are yet to be carried out.
        self.carried_out_late = ""  # The one that is carried out in this moment.
        self.on_late: Callable[[str, float], None] = lambda attempt, deadline: None
        self.refuses: Callable[[str, Kind, ObjectKey, Any, bool], errors.ApiError | None] = lambda *_: None
        self.may_write: Callable[[Process | None], bool] = lambda process: True
        self.is_cut_off: Callable[[Process | None], bool] = lambda process: False
        self.arrived: Callable[[Process | None, str], None] = lambda process, attempt: None
        self.has_no_room: errors.ApiError | None = None  # What every write is answered with.

    # ---- Reading

    async def get(self, kind: Kind, key: ObjectKey) -> Object:
        return await self._call(f"get {kind.kind} {key.name}", lambda: self.server.get(kind, key), reads=True)

    async def read(self, kind: Kind, key: ObjectKey, decode: Callable[[memoryview], Any]) -> Any:
        return decode(memoryview(wire.encode(await self.get(kind, key))))

    async def printed(self, pod: ObjectKey, container: str, command: Sequence[str]) -> bytes:
        """The optional right to look into pods is not granted here."""
        raise refused(403, "Forbidden", f"exec in {pod.name} is forbidden")

    async def request(self, method: str, path: str, **more: Any) -> Any:
        """Of kinds that are not played there are none."""
        raise refused(404, "NotFound", f"{method} {path}: nothing is there")

    async def send(
        self,
        request: Request,
        *,
        pool: Pool = Pool.CALLS,
        deadline_seconds: float = DEADLINE_SECONDS,
        still: Callable[[], bool] = lambda: True,
    ) -> bytes:
        """The Lease: the one thing that is asked for in this way."""
        assert pool is Pool.LEASE, f"nobody plays {request}"
        key = ObjectKey(*request.path.split("/namespaces/")[1].partition("/leases/")[::2])
        body = wire.decode_any(request.body or b"{}")
        effects = {
            "get": lambda: self.server.get(kinds.LEASE, key),
            "create": lambda: self._with_room(lambda: self.server.create(kinds.LEASE, body, OPERATOR)),
            "update": lambda: self._with_room(lambda: self.server.replace(kinds.LEASE, body, OPERATOR)),
        }
        lease = self._call(str(request), effects[request.verb], deadline=deadline_seconds)
        try:
            async with asyncio.timeout(deadline_seconds):
                return wire.encode(await lease)
        except TimeoutError as error:
            raise errors.Timeout(f"{request}: no answer in time", may_have_happened=True) from error

    def _with_room(self, effect: Callable[[], Object]) -> Object:
        if self.has_no_room is not None:
            raise self.has_no_room
        return effect()

    async def list_pages(self, selection: Selection, *, limit: int = 500) -> AsyncIterator[Page]:
        def listed() -> Page:
            found = self.server.listed(selection)
            items = [memoryview(wire.encode(apiserver.narrowed(selection, thing))) for thing in found]
            return Page(items=items, resource_version=str(self.server.version))

        yield await self._call(f"list {selection.kind.plural}", listed, reads=True)

    @asynccontextmanager
    async def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        if self.is_away or self.is_cut_off(PROCESS.get()):
            raise errors.Unreachable("nobody answers")
        since = int(resource_version)
        if self.weather.strikes(f"expired {selection.kind.plural}"):
            raise refused(410, "Expired", "too old resource version")
        watch = _Watch(self, selection)
        for change in self.server.history[selection.kind]:
            if change[0] > since:
                watch.hear(change)
        watchers = self.server.watchers[selection.kind]
        watchers.append(watch.hear)
        try:
            yield watch.batches()
        finally:
            watchers.remove(watch.hear)

    # ---- Writing

    async def apply(self, kind: Kind, manifest: Object, *, force: bool = True) -> Object:
        key = key_of(manifest)
        return await self._write("apply", kind, key, lambda: self.server.apply(kind, manifest), said=manifest)

    async def apply_status(self, kind: Kind, manifest: Object, *, force: bool = True) -> Object:
        key = key_of(manifest)
        return await self._write("status", kind, key, lambda: self.server.apply_status(kind, manifest))

    async def create(self, kind: Kind, manifest: Object) -> Object:
        key = key_of(manifest)
        made = partial(self.server.create, kind, manifest, OPERATOR)
        return await self._write("create", kind, key, made, said=manifest)

    async def create_undecoded(self, kind: Kind, manifest: Object) -> bytes:
        return wire.encode(await self.create(kind, manifest))

    async def json_patch_undecoded(
        self,
        kind: Kind,
        key: ObjectKey,
        operations: Any,
        *,
        uid: str = "",
        subresource: str = "",
        deadline_seconds: float | None = None,
    ) -> bytes:
        def patch() -> Object:
            if uid and self.server.get(kind, key)["metadata"]["uid"] != uid:
                raise errors.conflict(f"{kind.kind} {key} is no longer the one with uid {uid}")
            return self.server.patch(kind, key, operations, OPERATOR)

        patched = await self._write(
            "patch", kind, key, patch, said=list(operations), deadline=deadline_seconds
        )
        return wire.encode(patched)

    async def delete_undecoded(
        self,
        kind: Kind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "Background",
        still: Callable[[], bool] = lambda: True,
        deadline_seconds: float | None = None,
    ) -> bytes | None:
        def sent() -> None:
            if not still():
                raise errors.NotLeader(f"delete {kind.kind} {key.name} was not sent")

        def delete() -> Object | None:
            return self.server.delete(
                kind,
                key,
                OPERATOR,
                uid=uid,
                resource_version=resource_version,
                grace=grace_seconds,
                orphans=propagation == "Orphan",
            )

        left = await self._write("delete", kind, key, delete, sent, deadline=deadline_seconds)
        return wire.encode(left) if left is not None else None

    async def _write(
        self,
        verb: str,
        kind: Kind,
        key: ObjectKey,
        effect: Callable[[], Any],
        sent: Callable[[], None] = lambda: None,
        deadline: float | None = None,
        said: Any = None,
    ) -> Any:
        attempt = f"{'status of' if verb == 'status' else verb} {kind.kind} {key.name}"
        process = PROCESS.get()

        def leaves() -> None:
            if not self.may_write(process):
                raise errors.NotLeader(f"{attempt} was not sent: the lease is not ours")
            sent()

        def noted(is_heard: bool = True) -> Any:
            if is_heard:
                self.arrived(process, attempt)
            if self.has_no_room is not None:
                raise self.has_no_room
            if (refusal := self.refuses(verb, kind, key, said, is_heard)) is not None:
                raise refusal
            before = self.server.version
            answer = effect()
            if self.server.version != before:
                self.notes(attempt)
            return answer

        return await self._call(
            attempt, noted, leaves, deadline or DEADLINE_SECONDS, unheard=lambda: noted(is_heard=False)
        )

    async def _call(
        self,
        attempt: str,
        effect: Callable[[], Any],
        sent: Callable[[], None] = lambda: None,
        deadline: float = DEADLINE_SECONDS,
        *,
        reads: bool = False,
        unheard: Callable[[], Any] | None = None,
    ) -> Any:
        """Some time passes on the way there and on the way back, and either way may be the end of it.

        Whether it may be `sent` is asked when it leaves: what arrives later has been decided about by then.
        `unheard` is the effect where nobody waits for its answer any more.
        """
        weather, process = self.weather, PROCESS.get()
        self.calls()
        await asyncio.sleep(0.001 + weather.seconds("a free connection", 0.1))
        sent()
        is_late = False

        def arrive() -> Any:
            nonlocal is_late
            if self.is_away or self.is_cut_off(process) or weather.strikes(f"lost {attempt}"):
                raise errors.Unreachable(f"{attempt}: nobody answers")
            if weather.strikes(f"refused {attempt}"):
                raise refused(500, "InternalError", f"{attempt}: something went wrong")
            is_late = attempt.startswith(LATE_VERBS) and weather.delays(attempt)
            return None if is_late else effect()

        answer = await arriving(weather.seconds("way to the API server", 0.3), arrive)
        if is_late:
            await self._give_up(attempt, unheard or effect, deadline)
        await asyncio.sleep(0.001 + weather.seconds("way from the API server", 0.2))
        if self.is_cut_off(process) or (not reads and weather.strikes(f"answer to {attempt}")):
            raise errors.Timeout(f"{attempt}: no answer in time", may_have_happened=True)
        return answer

    async def _give_up(self, attempt: str, effect: Callable[[], Any], deadline: float) -> None:
        """The server takes its time. Nobody hears of it when the write is carried out after all."""

        def carry_out() -> None:
            self.late, self.carried_out_late = self.late - 1, attempt
            with contextlib.suppress(errors.ApiError):
                effect()
            self.carried_out_late = ""

        least, most = LATE_SECONDS
        after = deadline + least + (most - least) * self.weather.share(f"how late {attempt}")
        self.late += 1
        asyncio.get_running_loop().call_later(after, carry_out, context=Context())
        self.on_late(attempt, deadline)
        await asyncio.sleep(deadline)
        raise errors.Timeout(f"{attempt}: no answer in time", may_have_happened=True)


class _Watch:
    """Lines in order, each some time after it happened. A broken one ends without a word."""

    def __init__(self, client: SimulatedClient, selection: Selection) -> None:
        self._client = client
        self._selection = selection
        self._lines: deque[tuple[float, bytes]] = deque()
        self._stir = asyncio.Event()

    def hear(self, change: tuple[int, Object | None, Object | None]) -> None:
        line = apiserver.event(self._selection, change)
        if line is not None:
            late = self._client.weather.seconds(f"watch {self._selection.kind.plural}", 2.0)
            self._lines.append((asyncio.get_running_loop().time() + late, line))
            self._stir.set()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        clock = asyncio.get_running_loop().time
        while True:
            while not self._lines:
                self._stir.clear()
                await self._stir.wait()
            await asyncio.sleep(max(0.0, self._lines[0][0] - clock()))
            is_gone = self._client.is_away or self._client.is_cut_off(PROCESS.get())
            if is_gone or self._client.weather.strikes(f"end of {self._selection.kind.plural}"):
                return
            due = []
            while self._lines and self._lines[0][0] <= clock():
                due.append(self._lines.popleft()[1])
                self._client.calls()
            yield due
