"""`logs`: which containers of which pods are meant, and their lines as one stream."""

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.api.controller import Controller
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Meta
from slurm_operator.operator import OUR_CHILDREN

# What one may write before the slash, and the daemons whose pods it then means.
KINDS: Mapping[str, tuple[str, ...]] = {
    "controller": ("slurmctld",),
    "accounting": ("slurmdbd", "mariadb"),
    "restapi": ("slurmrestd",),
    "loginset": ("login",),
    "nodeset": ("slurmd",),
}
DAEMONS = tuple(daemon for daemons in KINDS.values() for daemon in daemons)

_SPAN = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Container(wire.CamelRecord):
    name: str


class LoggedSpec(wire.CamelRecord):
    hostname: str = ""
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()


class LoggedPod(wire.CamelRecord):
    """A pod with all its containers: sidecars stand among the init containers."""

    metadata: Meta
    spec: LoggedSpec = LoggedSpec()

    @property
    def daemon(self) -> str:
        return self.metadata.labels.get(names.APP_NAME, "")

    @property
    def owner(self) -> str:
        """The object of ours that it belongs to."""
        return self.metadata.labels.get(names.APP_INSTANCE, "")

    @property
    def containers(self) -> list[str]:
        return [one.name for one in (*self.spec.containers, *self.spec.init_containers)]


class Stream(NamedTuple):
    """One container's log."""

    namespace: str
    pod: str
    container: str

    @property
    def path(self) -> str:
        return kinds.POD.path(self.namespace, self.pod, "log")


class Wanted(NamedTuple):
    """How much of each log."""

    follow: bool = False
    previous: bool = False
    tail: int | None = None
    since: timedelta | None = None
    timestamps: bool = False

    def params(self, container: str) -> dict[str, str]:
        """As the API server takes them."""
        given = {
            "container": container,
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
            "tailLines": str(self.tail) if self.tail is not None else "",
            "sinceSeconds": str(max(1, int(self.since.total_seconds()))) if self.since is not None else "",
            "timestamps": "true" if self.timestamps else "",
        }
        return {name: value for name, value in given.items() if value}


class Line(wire.Record):
    pod: str
    container: str
    text: str


class NoSuchLog(Exception):  # noqa: N818 - it says what is the case
    """Nothing here has such a log."""


def span(text: str) -> timedelta:
    """10s, 5m, 1h30m, 2d. Raises ValueError."""
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no length of time, such as 10m or 1h30m")
    return timedelta(**{_UNITS[unit]: int(number) for number, unit in parts})


def chosen(
    pods: Sequence[LoggedPod],
    target: str,
    parts: Mapping[str, Iterable[str]],
    *,
    daemons: Sequence[str] = (),
    container: str = "",
) -> list[Stream]:
    """The logs that are meant, by pod. Raises NoSuchLog.

    `target` is empty for everything, KIND/NAME, `pod/NAME`, or the name of a pod, a Slurm node, a cluster or
    one of its parts. `parts` says for each cluster which objects belong to it.
    """
    found = [pod for pod in pods if _is_meant(pod, target, parts)]
    if not found:
        raise NoSuchLog(_nothing(pods, target))
    streams = [
        Stream(pod.metadata.namespace, pod.metadata.name, name)
        for pod in sorted(found, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
        if not daemons or pod.daemon in daemons
        for name in pod.containers
        if container in ("", name)
    ]
    if not streams:
        there = sorted({name for pod in found for name in (pod.daemon, *pod.containers)})
        raise NoSuchLog(f"None of them is such a daemon or container. There are: {', '.join(there)}.")
    return streams


def _is_meant(pod: LoggedPod, target: str, parts: Mapping[str, Iterable[str]]) -> bool:
    kind, slash, name = target.rpartition("/")
    labels = pod.metadata.labels
    if slash and kind == "pod":
        return pod.metadata.name == name
    if slash and kind == "cluster":
        return pod.owner in parts.get(name, ())
    if slash:
        return pod.owner == name and pod.daemon in KINDS.get(_singular(kind), ())
    own = (pod.metadata.name, labels.get(names.LABEL_POD_HOSTNAME, ""), pod.spec.hostname)
    return target in ("", *own, pod.owner) or pod.owner in parts.get(target, ())


def _singular(kind: str) -> str:
    return kind.lower().removesuffix("s") if kind.lower() not in KINDS else kind.lower()


def _nothing(pods: Sequence[LoggedPod], target: str) -> str:
    if not pods:
        return "No daemon of Slurm runs here. Look in every namespace with -A."
    there = sorted({pod.metadata.name for pod in pods})
    more = f" and {len(there) - 8} more" if len(there) > 8 else ""
    return f"Nothing here is called {target!r}. There are these pods: {', '.join(there[:8])}{more}."


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
