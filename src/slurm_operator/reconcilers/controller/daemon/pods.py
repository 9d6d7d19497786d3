"""Replacing slurmctld pods: one at a time, standbys first, and never while that would cost jobs."""

from datetime import datetime

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.builders.workloads import rollout
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Action, DeleteDaemonPod, PatchObject
from slurm_operator.plan.step import NOTHING, Step, step, wait
from slurm_operator.reconcilers.controller.configuration import config_state, first_start
from slurm_operator.reconcilers.controller.configuration.jobs_at_risk import (
    is_persistent,
    started,
    unfinished,
)
from slurm_operator.reconcilers.controller.configuration.stakes import at_stake_now
from slurm_operator.reconcilers.controller.keys import stale_key
from slurm_operator.reconcilers.controller.observe import Seen

LOOK_SECONDS = 10.0


def next_step(seen: Seen, now: datetime) -> Step:
    """The next pod to be replaced, or why it has to wait."""
    if never_started := first_start.outdated(seen):
        why = "it refused the previous configuration, and has never started"
        return step([_replacement(pod, why) for pod in never_started], seconds=LOOK_SECONDS)
    outdated = {pod.metadata.name: why for pod in seen.pods if (why := why_replace(seen, pod))}
    refusing = stale_key.holder(seen)
    if refusing is not None and stale_key.is_due(seen, now):
        outdated.setdefault(refusing.metadata.name, "it refuses tokens signed with the present key")
    if not outdated:
        left = stale_key.due_in(seen, now)
        return Step(look_again=left) if left is not None else NOTHING
    head = active(seen)
    standby_first = sorted(seen.pods, key=lambda one: (one is head, one.metadata.name))
    pod = next(one for one in standby_first if one.metadata.name in outdated)
    subject, why = f"Pod {pod.metadata.name}", outdated[pod.metadata.name]
    if busy := [one.metadata.name for one in seen.pods if one is not pod and not _runs(one)]:
        message = f"It is replaced ({why}) when {', '.join(busy)} runs again."
        return wait(subject, Reason.ONE_AT_ATIME, message, seconds=LOOK_SECONDS)
    if (stake := at_stake_now(seen, now)) is not None:
        message = (
            f"It should be replaced ({why}), and would begin with the new configuration. {stake.message}"
        )
        return wait(subject, Reason.RESTART_POSTPONED, message, seconds=LOOK_SECONDS, asks_slurm=True)
    if trouble := why_not_replace(seen, pod, now):
        message = f"It should be replaced ({why}), but {trouble}."
        return wait(subject, Reason.RESTART_POSTPONED, message, seconds=LOOK_SECONDS, asks_slurm=True)
    return step([_replacement(pod, why)], seconds=LOOK_SECONDS, asks_slurm=True)


def why_replace(seen: Seen, pod: Pod) -> str:
    """What a running pod lacks; empty when nothing is lacking, or it is being deleted."""
    workload, state = seen.workload, rollout(seen.workload)
    if pod.metadata.is_terminating or workload is None or state is None or not state.is_observed:
        return ""
    if pod in config_state.restarts_due(seen):
        former, files = config_state.good(seen), config_state.held(seen)
        assert former is not None and files is not None  # noqa: PT018 - restarts are due between two
        keys = sorted({change.key for change in config_state.needs_restart(seen, former, files)})
        return f"changed in the configuration: {', '.join(keys)}"
    newest = (workload.body.get("status") or {}).get("updateRevision", "")
    revision = pod.metadata.labels.get(names.LABEL_REVISION, "")
    return "the pod template changed" if newest and revision and newest != revision else ""


def why_not_replace(seen: Seen, pod: Pod, now: datetime) -> str:
    """Why slurmctld in this pod must go on for now."""
    if not _has_something_to_lose(seen, pod):
        return ""
    if not is_persistent(seen) and (trouble := unfinished(seen, now)):
        return f"without persistence slurmctld would forget its jobs; {trouble}{_way_out(pod)}"
    if signs_otherwise(seen, pod) and (trouble := started(seen, now)):
        return f"with a new Slurm key it would not understand workers that still have the old one; {trouble}"
    return ""


def signs_otherwise(seen: Seen, pod: Pod) -> bool:
    """A pod without the ring has one key only. Its successor signs as the ring says."""
    notes, ring = pod.metadata.annotations, key_ring.ring_of(seen.ring)
    if names.KEY_RING in notes:
        return False
    return notes.get(names.SLURM_KEY_HASH, "") != (ring.signs if ring is not None else seen.slurm_key.digest)


def active(seen: Seen) -> Pod | None:
    """The pod in charge: of several slurmctlds only that one is ready.

    Standbys that the Slinky operator made are ready too; Slurm has the first that lives in charge.
    """
    return next(iter(seen.ready_pods), None)


def labels(seen: Seen) -> list[Action]:
    """Tools find the slurmctld in charge by a label. With one replica it stands in the template."""
    head = active(seen)
    if not seen.controller.spec.ha.enabled or head is None:
        return []
    return [_label(pod, pod is head) for pod in seen.pods if _is_labelled(pod) != (pod is head)]


def _has_something_to_lose(seen: Seen, pod: Pod) -> bool:
    """What runs is interrupted, and without a volume the state goes with the pod, not with its container."""
    status = config_state.slurmctld_of(pod)
    has_state = not is_persistent(seen) and status is not None and status.has_ever_started
    return has_state or config_state.started_at(pod) is not None


def _way_out(pod: Pod) -> str:
    """For people, when slurmctld itself may never answer again."""
    if config_state.started_at(pod) is not None:
        return ""
    return (
        "; it does not run at the moment, and has all of them again when it does. "
        f"To start over without them, delete pod {pod.metadata.name}"
    )


def _runs(pod: Pod) -> bool:
    """A pod that is asked to end may be gone at any moment, though its slurmctld still runs."""
    return config_state.started_at(pod) is not None and not pod.metadata.is_terminating


def _is_labelled(pod: Pod) -> bool:
    return names.LABEL_ACTIVE in pod.metadata.labels


def _label(pod: Pod, is_active: bool) -> PatchObject:
    path = f"/metadata/labels/{names.LABEL_ACTIVE.replace('/', '~1')}"
    operation: dict[str, object] = {"op": "remove", "path": path}
    if is_active:
        operation = {"op": "add", "path": path, "value": "true"}
    message = f"{pod.metadata.name} is in charge now" if is_active else f"{pod.metadata.name} stands by"
    return config_state.patch(pod, operation, Reason.ACTIVE_CHANGED, message)


def _replacement(pod: Pod, why: str) -> DeleteDaemonPod:
    return DeleteDaemonPod(
        key=key_of(pod),
        uid=pod.metadata.uid,
        app="slurmctld",
        reason=Reason.RESTARTED,
        message=f"restarted slurmctld in pod {pod.metadata.name}: {why}",
    )
