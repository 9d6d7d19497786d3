"""Reads logs from the API server: of several containers, one after the other or all at once."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence

from slurm_operator import wire
from slurm_operator.api.controller import Controller
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.meta import Meta
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.kubectl.logs import Line, LoggedPod, Stream, Wanted
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


async def parts(client: Client, namespace: str) -> dict[str, set[str]]:
    """For each Controller the names of what belongs to it. Slurm itself is not asked: it may be away."""
    decode = wire.decoder(_Part)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for type_ in (Controller, RestApi, LoginSet, NodeSet):
        # Who may not list one kind still finds the logs of the others.
        with contextlib.suppress(Forbidden, NotFound):
            async for page in client.list_pages(Selection(kind=type_.KIND, namespace=namespace)):
                for part in map(decode, page.items):
                    cluster = part.spec.controller_ref.name or part.metadata.name
                    found[cluster] |= {part.metadata.name, part.spec.accounting_ref.name} - {""}
    return dict(found)


async def lines(client: Client, streams: Sequence[Stream], wanted: Wanted) -> AsyncIterator[Line]:
    """The lines of all logs: one log after the other, or as they come when they are followed."""
    if not wanted.follow:
        for stream in streams:
            async for line in _whole(client, stream, wanted):
                yield line
        return
    queue: asyncio.Queue[Line | None] = asyncio.Queue(maxsize=1000)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_follow(client, stream, wanted, queue)) for stream in streams]
        ended = 0
        try:
            while ended < len(streams):
                said = await queue.get()
                ended += said is None
                if said is not None:
                    yield said
        finally:
            for task in tasks:
                task.cancel()


async def _whole(client: Client, stream: Stream, wanted: Wanted) -> AsyncIterator[Line]:
    try:
        body = await client.text(stream.path, params=wanted.params(stream.container))
    except KubeError as error:
        yield _silent(stream, error)
        return
    for line in _split(body):
        yield _line(stream, line)


async def _follow(client: Client, stream: Stream, wanted: Wanted, queue: asyncio.Queue[Line | None]) -> None:
    rest = b""
    try:
        async with client.follow(stream.path, params=wanted.params(stream.container)) as pieces:
            async for piece in pieces:
                *complete, rest = (rest + piece).split(b"\n")
                for line in complete:
                    await queue.put(_line(stream, line))
    except KubeError as error:
        await queue.put(_silent(stream, error))
    if rest:
        await queue.put(_line(stream, rest))
    await queue.put(None)


def _split(body: bytes) -> Iterator[bytes]:
    if body:
        yield from body.removesuffix(b"\n").split(b"\n")


def _line(stream: Stream, line: bytes) -> Line:
    return Line(pod=stream.pod, container=stream.container, text=line.decode(errors="replace"))


def _silent(stream: Stream, error: KubeError) -> Line:
    """A container that has no log (yet) is no reason to keep quiet about the others."""
    return Line(pod=stream.pod, container=stream.container, text=f"[no log: {error}]")
