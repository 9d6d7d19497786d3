"""Why pods are not ready, in the words of the scheduler and the kubelet."""

from collections.abc import Iterable, Iterator

from slurm_operator.manifests.builders.workloads import rollout
from slurm_operator.manifests.events import FAILED_CREATE, Event
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ContainerStatus, Pod

# A container that waits for one of these does not start without help, or only to end again.
_BAD_WAITS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
}


def troubles(pods: Iterable[Pod]) -> list[str]:
    """What keeps pods from being ready, one line each; pods that are merely young have none."""
    found = {f"pod {pod.metadata.name} {trouble}" for pod in pods for trouble in _troubles(pod)}
    return sorted(found)


def refusals(workload: Child | None, events: Iterable[Event]) -> list[str]:
    """Why a StatefulSet has fewer pods than it wants: who refused them says so in an event, nowhere else."""
    state = rollout(workload)
    if workload is None or state is None or (state.is_observed and state.replicas >= state.wanted):
        return []
    complaints = [
        event
        for event in events
        if event.reason == FAILED_CREATE and event.regarding.uid == workload.metadata.uid
    ]
    newest = max(
        complaints, key=lambda event: event.last_seen.timestamp() if event.last_seen else 0.0, default=None
    )
    return [f"no pod can be made: {_refused(newest.note)}"] if newest is not None else []


def _refused(note: str) -> str:
    """The part of the note that says why: `create Pod x in StatefulSet y failed error: pods "x" is …`."""
    return note.partition("failed error: ")[2] or note


def _troubles(pod: Pod) -> Iterator[str]:
    scheduled = pod.status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        yield f"cannot be scheduled: {scheduled.message or scheduled.reason}"
    if pod.status.phase == "Failed":
        yield f"failed: {pod.status.message or pod.status.reason}"
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        yield from _container_troubles(container)


def _container_troubles(container: ContainerStatus) -> Iterator[str]:
    waiting = container.state.waiting
    if waiting is None or waiting.reason not in _BAD_WAITS:
        return
    ended = container.last_state.terminated
    if waiting.reason != "CrashLoopBackOff" or ended is None:
        yield f"cannot start container {container.name}: {waiting.reason}: {waiting.message}".rstrip(": ")
        return
    words = (ended.message.strip() or ended.reason).splitlines()
    last = f": {words[-1]}" if words else ""
    yield f"has a container {container.name} that keeps ending with exit code {ended.exit_code}{last}"
