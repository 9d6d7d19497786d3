"""Reads logs from the API server: of several containers, each line once, in the order of their times."""

import asyncio
import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.insight.logs.choice import Line, LoggedPod, Stream, Wanted
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds
from slurm_operator.operator import OUR_CHILDREN


async def pods(client: Client, namespace: str, labels: str = OUR_CHILDREN) -> list[LoggedPod]:
    """Every pod with a daemon of Slurm in it, or with these labels."""
    decode = wire.decoder(LoggedPod)
    selection = Selection(kind=kinds.POD, namespace=namespace, label_selector=labels)
    return [decode(item) async for page in client.list_pages(selection) for item in page.items]


class _Ref(wire.CamelRecord):
    name: str = ""


class _PartSpec(wire.CamelRecord):
    controller_ref: _Ref = _Ref()
    accounting_ref: _Ref = _Ref()


class _Part(wire.CamelRecord):
    """An object of ours, as far as it says which cluster it belongs to."""

    metadata: Meta
    spec: _PartSpec = _PartSpec()


# Several Controllers may share an Accounting: each of them names it.
_OF_ONE_CONTROLLER = [
    one.kind for one in registry.DEFAULT if one.use is registry.Use.MAKE and one.model is not Accounting
]


async def parts(client: Client, namespace: str) -> dict[str, set[str]]:
    """For each Controller the names of what belongs to it. Slurm itself is not asked: it may be away."""
    decode = wire.decoder(_Part)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for kind in _OF_ONE_CONTROLLER:
        # Readers who may not list one kind still find the logs of the others.
        with contextlib.suppress(Forbidden, NotFound):
            async for page in client.list_pages(Selection(kind=kind, namespace=namespace)):
                for part in map(decode, page.items):
                    cluster = part.spec.controller_ref.name or part.metadata.name
                    found[cluster] |= {part.metadata.name, part.spec.accounting_ref.name} - {""}
    return dict(found)


# What arrives within this time is put in order.
_ORDERED_WITHIN_SECONDS = 0.5

# Two containers of a pod that say the same within this time say one thing: a daemon, and who reads its file.
_SAME_WITHIN = timedelta(seconds=10)

# So many lines are remembered of logs that are followed for days.
_REMEMBERED = 20_000

_STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d) ?")

# How a daemon begins a line on its terminal, and in its file.
_HEAD = re.compile(r"^(?:\[[\d:.T-]+\]\s*)?(?:slurm\w*:\s*)?")


async def lines(client: Client, streams: Sequence[Stream], wanted: Wanted) -> AsyncIterator[Line]:
    """The lines of all logs, each once, in the order of their times; as they come when they are followed."""
    seen = Once()
    if not wanted.follow:
        every = [line async for stream in _each(streams) for line in await _whole(client, stream, wanted)]
        for line in sorted(every, key=_when):
            if seen.is_new(line):
                yield line.shown(timestamps=wanted.timestamps)
        return
    queue: asyncio.Queue[Timed | None] = asyncio.Queue(maxsize=1000)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_follow(client, stream, wanted, queue)) for stream in streams]
        ended = 0
        try:
            while ended < len(streams):
                batch = await _batch(queue)
                ended += sum(1 for one in batch if one is None)
                for line in sorted((one for one in batch if one is not None), key=_when):
                    if seen.is_new(line):
                        yield line.shown(timestamps=wanted.timestamps)
        finally:
            for task in tasks:
                task.cancel()


class Timed(NamedTuple):
    """A line with the time at which its container wrote it; without one it stands where it was read."""

    line: Line
    at: datetime | None
    stamp: str = ""

    def shown(self, *, timestamps: bool) -> Line:
        return (
            wire.replace(self.line, text=f"{self.stamp} {self.line.text}")
            if timestamps and self.stamp
            else self.line
        )


def _when(line: Timed) -> datetime:
    return line.at or datetime.min.replace(tzinfo=UTC)


class Once:
    """Knows what was said by which container of which pod, and when."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], tuple[datetime, Counter[str]]] = {}

    def is_new(self, line: Timed) -> bool:
        """False for what another container of the same pod has said a moment ago, and as often."""
        text = _HEAD.sub("", line.line.text.rstrip())
        if line.at is None or not text:
            return True
        if len(self._said) > _REMEMBERED:
            self._said.clear()
        at, said = self._said.get((line.line.pod, text), (line.at, Counter()))
        if abs(line.at - at) > _SAME_WITHIN:
            said = Counter()
        said[line.line.container] += 1
        self._said[line.line.pod, text] = (line.at, said)
        others = [times for container, times in said.items() if container != line.line.container]
        return said[line.line.container] > max(others, default=0)


async def _each(streams: Sequence[Stream]) -> AsyncIterator[Stream]:
    for stream in streams:
        yield stream


async def _batch(queue: asyncio.Queue[Timed | None]) -> list[Timed | None]:
    """What there is, and what comes within a moment."""
    found = [await queue.get()]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ORDERED_WITHIN_SECONDS):
            while True:
                found.append(await queue.get())
    return found


def _params(stream: Stream, wanted: Wanted) -> dict[str, str]:
    """Always with times: they are needed to put lines in order."""
    return wanted._replace(timestamps=True).params(stream.container)


async def _whole(client: Client, stream: Stream, wanted: Wanted) -> list[Timed]:
    try:
        body = await client.text(stream.path, params=_params(stream, wanted))
    except KubeError as error:
        return [Timed(_silent(stream, error), None)]
    return [_line(stream, line) for line in _split(body)]


async def _follow(client: Client, stream: Stream, wanted: Wanted, queue: asyncio.Queue[Timed | None]) -> None:
    rest = b""
    try:
        async with client.follow(stream.path, params=_params(stream, wanted)) as pieces:
            async for piece in pieces:
                *complete, rest = (rest + piece).split(b"\n")
                for line in complete:
                    await queue.put(_line(stream, line))
    except KubeError as error:
        await queue.put(Timed(_silent(stream, error), None))
    if rest:
        await queue.put(_line(stream, rest))
    await queue.put(None)


def _split(body: bytes) -> Iterator[bytes]:
    if body:
        yield from body.removesuffix(b"\n").split(b"\n")


def _line(stream: Stream, line: bytes) -> Timed:
    """The API server puts the time before each line, in nanoseconds."""
    found = _STAMPED.match(line)
    text = line[found.end() :] if found else line
    said = Line(pod=stream.pod, container=stream.container, text=text.decode(errors="replace"))
    return Timed(said, _moment(found), found[0].decode().strip()) if found else Timed(said, None)


def _moment(found: re.Match[bytes]) -> datetime:
    seconds, _, fraction = found[1].decode().partition(".")
    zone = found[2].decode().replace("Z", "+00:00")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}{zone}")


def _silent(stream: Stream, error: KubeError) -> Line:
    """A container that has no log (yet) is no reason to keep quiet about the others."""
    return Line(pod=stream.pod, container=stream.container, text=f"[no log: {error}]")
