"""`logs`: which containers of which pods are meant, and how much of each log."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from slurm_operator import wire
from slurm_operator.api.registry import name_of
from slurm_operator.api.shared import belonging, names
from slurm_operator.insight.clusters import DAEMONS as DAEMONS_OF
from slurm_operator.insight.typed_names import did_you_mean, of_kubernetes
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Meta

# What one may write before the slash, and the daemons whose pods it then means.
KINDS: Mapping[str, tuple[str, ...]] = {
    name_of(type_.KIND).lower(): daemons for type_, daemons in DAEMONS_OF.items()
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
        return belonging.daemon_of(self.metadata.labels)

    @property
    def owner(self) -> str:
        """The object of ours that it belongs to."""
        return belonging.owner_of(self.metadata.labels)

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
    word = of_kubernetes(kind.partition(".")[0])
    if slash and word == "pod":
        return pod.metadata.name == name
    if slash and word in ("cluster", "clusters", "scl"):
        return pod.owner in parts.get(name, ())
    if slash:
        return pod.owner == name and pod.daemon in KINDS.get(_singular(word), ())
    own = (pod.metadata.name, labels.get(names.LABEL_POD_HOSTNAME, ""), pod.spec.hostname)
    return target in ("", *own, pod.owner) or pod.owner in parts.get(target, ())


def _singular(kind: str) -> str:
    """The name of a kind, for its short name and its plural too."""
    for type_ in DAEMONS_OF:
        if kind in (type_.KIND.plural, *type_.CRD.short_names):
            return name_of(type_.KIND).lower()
    return kind


def _nothing(pods: Sequence[LoggedPod], target: str) -> str:
    if not pods:
        return "No daemon of Slurm runs here. Look in every namespace with -A."
    there = sorted({pod.metadata.name for pod in pods})
    question = did_you_mean(target.rpartition("/")[2], [*there, *(pod.owner for pod in pods)])
    return f"Nothing here is called {target!r}. There are these pods: {first_few(there, 8)}.{question}"
