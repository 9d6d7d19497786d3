"""What a container that keeps ending said last, where the kubelet has not kept it: its log knows."""

import re
from collections.abc import Iterator, Mapping

from slurm_operator import wire
from slurm_operator.insight.logs.choice import Stream
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.objects import ContainerState, ContainerStatus, Pod

# Lines of a log that are read; the cause stands among the last.
TAIL = 20

_CAUSE = re.compile(r"\b(fatal|panic|error)\b:?", re.IGNORECASE)


def silent(picture: Picture) -> Iterator[Stream]:
    """Containers that ended, are not ready again, and left no word."""
    for pod in picture.all(Pod):
        for one in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            if _is_silent(one):
                yield Stream(pod.metadata.namespace, pod.metadata.name, one.name)


def put(picture: Picture, logs: Mapping[Stream, str]) -> None:
    """Let these containers have said the line of their log that names the cause."""
    for pod in picture.all(Pod):
        heard = {
            stream.container: cause(text)
            for stream, text in logs.items()
            if (stream.namespace, stream.pod) == (pod.metadata.namespace, pod.metadata.name)
        }
        if any(heard.values()):
            status = wire.replace(
                pod.status,
                container_statuses=_with(pod.status.container_statuses, heard),
                init_container_statuses=_with(pod.status.init_container_statuses, heard),
            )
            picture.put(wire.replace(pod, status=status))


def cause(log: str) -> str:
    """The last line that speaks of an error, else the last one; daemons end with the worst."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    bad = [line for line in lines if _CAUSE.search(line)]
    return (bad or lines or [""])[-1]


def _is_silent(one: ContainerStatus) -> bool:
    ended = one.last_state.terminated
    return not one.ready and ended is not None and not ended.message.strip()


def _with(statuses: tuple[ContainerStatus, ...], heard: Mapping[str, str]) -> tuple[ContainerStatus, ...]:
    return tuple(_with_last_words(one, heard[one.name]) if heard.get(one.name) else one for one in statuses)


def _with_last_words(one: ContainerStatus, words: str) -> ContainerStatus:
    ended = one.last_state.terminated
    if ended is None or not _is_silent(one):
        return one
    return wire.replace(one, last_state=ContainerState(terminated=wire.replace(ended, message=words)))
