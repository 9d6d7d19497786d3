"""What the conditions of a Kubernetes node become: one ordered list; what an earlier rule says of one stands.

The rebooter on the node answers wishes in the reasons of `SlurmNodeDrain` and `SlurmNodeReboot`. A wish is
made when all workers are drained and idle, and taken back when one of them takes jobs again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.reconcilers.nebius.kubenode.braking import Brake, may_tell
from slurm_operator.reconcilers.nebius.kubenode.observe import Mark, Seen, Tells
from slurm_operator.reconcilers.nebius.kubenode.rules import Do, Step
from slurm_operator.reconcilers.nebius.kubenode.troubles import Trouble


class Wish(NamedTuple):
    """What a condition has to say."""

    type: str
    tells: Tells
    reason: str
    message: str


@dataclass(frozen=True)
class Case:
    """One Kubernetes node, with what the rules say of its workers."""

    seen: Seen
    steps: tuple[Step, ...]
    brake: Brake
    empties: Tells  # Whether all its workers are drained and idle.

    def has(self, *does: Do) -> bool:
        return any(step.do in does for step in self.steps)

    def mark(self, type_: str) -> Mark:
        return self.seen.mark(type_)

    @property
    def is_empty(self) -> bool:
        return self.empties is Tells.YES

    @property
    def is_to_be_emptied(self) -> bool:
        """Also by somebody else's suspicion, but not where none of our workers ever was."""
        is_suspected = self.mark(names.HARDWARE_SUSPECTED).is_on and bool(self.seen.workers)
        return self.mark(names.MAINTENANCE).is_on or is_suspected

    @property
    def is_not_to_be_emptied(self) -> bool:
        """Known not to be: a condition that is Unknown says neither."""
        return self.mark(names.MAINTENANCE).is_off and self.mark(names.HARDWARE_SUSPECTED).is_off


def rebooted(case: Case) -> Iterator[Wish]:
    """The rebooter is back: what led to the reboot is over."""
    reboot, degraded = case.mark(names.REBOOT), case.mark(names.DEGRADED)
    if not (reboot.is_on and reboot.reason == names.REBOOTED):
        return
    yield Wish(names.REBOOT, Tells.NO, names.REBOOTED, "The Kubernetes node was rebooted.")
    is_about_later = bool(degraded.since and reboot.since and degraded.since > reboot.since)
    if degraded.is_on and not is_about_later:
        yield Wish(names.DEGRADED, Tells.NO, names.REBOOTED, "The Kubernetes node was rebooted.")
    if case.mark(names.DRAIN).is_on and case.is_not_to_be_emptied:
        yield Wish(names.DRAIN, Tells.NO, names.REBOOTED, "The Kubernetes node was rebooted.")


def maintenance(case: Case) -> Iterator[Wish]:
    seen, mark = case.seen, case.mark(names.MAINTENANCE)
    if seen.call is Tells.YES and mark.is_off and seen.workers and case.is_empty:
        message = "All workers on this Kubernetes node are drained and idle."
        yield Wish(names.MAINTENANCE, Tells.YES, names.DRAINING, message)
    if seen.call is Tells.NO and mark.is_on:
        message = "Maintenance is over, or was cancelled."
        yield Wish(names.MAINTENANCE, Tells.NO, names.UNDRAINED, message)


def reboot_needed(case: Case) -> Iterator[Wish]:
    """Whoever is drained for it is idle, and so are the workers beside it."""
    is_due = case.has(Do.ASK_FOR_REBOOT) and not case.has(Do.DRAIN_FOR_REBOOT)
    if is_due and case.is_empty and case.mark(names.DEGRADED).is_off:
        reasons = [
            step.worker.record.reason
            for step in case.steps
            if step.do is Do.ASK_FOR_REBOOT and step.worker.record
        ]
        message = f"A worker was drained with the reason {reasons[0]!r}; all workers here are idle."
        yield Wish(names.DEGRADED, Tells.YES, names.NEED_REBOOT, message)


def reboot_not_needed(case: Case) -> Iterator[Wish]:
    """A person resumed the worker that it was for, and no rebooter has begun."""
    degraded, reboot, workers = case.mark(names.DEGRADED), case.mark(names.REBOOT), case.seen.workers
    is_ours = degraded.is_on and degraded.reason == names.NEED_REBOOT
    is_begun = reboot.is_on and reboot.reason != names.NEED_REBOOT
    if not is_ours or is_begun or reboot.tells is Tells.UNKNOWN or not all(one.is_known for one in workers):
        return
    still = any(one.trouble in (Trouble.KILL_TASK_FAILED, Trouble.REBOOT) for one in workers)
    if any(one.takes_jobs for one in workers) and not still:
        message = "The workers here take jobs again."
        yield Wish(names.DEGRADED, Tells.NO, names.CANCELLED, message)
        if reboot.is_on:
            yield Wish(names.REBOOT, Tells.NO, names.CANCELLED, message)


def hardware_suspected(case: Case) -> Iterator[Wish]:
    blamed = [step.worker.record for step in case.steps if step.do is Do.SUSPECT_HARDWARE]
    if blamed and blamed[0] is not None and case.is_empty and not case.brake.is_on:
        message = blamed[0].comment or blamed[0].reason
        yield Wish(names.HARDWARE_SUSPECTED, Tells.YES, names.HEALTH_CHECK_FAILED, message)


def drain(case: Case) -> Iterator[Wish]:
    mark, reboot = case.mark(names.DRAIN), case.mark(names.REBOOT)
    is_wanted = case.is_to_be_emptied and not case.seen.is_ignored
    if is_wanted and mark.is_off and case.is_empty:
        message = "The Kubernetes node is to be emptied; all its workers are drained and idle."
        yield Wish(names.DRAIN, Tells.YES, names.NEED_DRAIN, message)
    if mark.is_on and mark.reason == names.NEED_DRAIN and case.empties is Tells.NO:
        message = "A worker here takes jobs again, or still has one."
        yield Wish(names.DRAIN, Tells.NO, names.CANCELLED, message)
    if mark.is_on and case.is_not_to_be_emptied and reboot.is_off:
        yield Wish(names.DRAIN, Tells.NO, names.UNDRAINED, "Nobody asks for it any more.")


def reboot_asked(case: Case) -> Iterator[Wish]:
    mark, degraded = case.mark(names.REBOOT), case.mark(names.DEGRADED)
    # A request that was taken back before the rebooter began is no reboot.
    was_done = mark.reason != names.CANCELLED
    is_later = not (was_done and degraded.since and mark.since and degraded.since < mark.since)
    if degraded.is_on and mark.is_off and is_later and case.is_empty and not case.is_to_be_emptied:
        message = "The Kubernetes node is to be rebooted; all its workers are drained and idle."
        yield Wish(names.REBOOT, Tells.YES, names.NEED_REBOOT, message)
    if mark.is_on and mark.reason == names.NEED_REBOOT and case.empties is Tells.NO:
        message = "A worker here takes jobs again, or still has one."
        yield Wish(names.REBOOT, Tells.NO, names.CANCELLED, message)


def braked(case: Case) -> Iterator[Wish]:
    mark = case.mark(names.BRAKED)
    if case.brake.is_on:
        yield Wish(names.BRAKED, Tells.YES, names.BRAKE_ON, case.brake.text)
    elif mark.is_there and not mark.is_off and may_tell(case.seen):
        yield Wish(names.BRAKED, Tells.NO, names.BRAKE_OFF, "")


OF_SLURM: Final[tuple[Callable[[Case], Iterator[Wish]], ...]] = (
    maintenance,
    reboot_needed,
    reboot_not_needed,
    hardware_suspected,
    braked,
)
OF_CONDITIONS: Final[tuple[Callable[[Case], Iterator[Wish]], ...]] = (rebooted, drain, reboot_asked)


def wishes(case: Case) -> list[Wish]:
    """What has to change, by what is there now."""
    options = case.seen.options
    rules = [
        *(OF_CONDITIONS[:1] if options.follows_conditions else ()),
        *(OF_SLURM if options.follows_slurm else ()),
        *(OF_CONDITIONS[1:] if options.follows_conditions else ()),
    ]
    found: dict[str, Wish] = {}
    for one in rules:
        for wish in one(case):
            found.setdefault(wish.type, wish)
    return [wish for wish in found.values() if not _is_so(wish, case.mark(wish.type))]


def _is_so(wish: Wish, mark: Mark) -> bool:
    return mark.is_there and (mark.tells, mark.reason, mark.message) == wish[1:]


def operations(wanted: list[Wish], seen: Seen, now: datetime) -> tuple[dict[str, object], ...]:
    """The JSON patch for the status of this very version of the Kubernetes node: others write there, too."""
    there = [one.type for one in seen.kube_node.status.conditions]
    at = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    found: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": seen.meta.resource_version}
    ]
    if not there:
        found.append({"op": "add", "path": "/status/conditions", "value": []})
    for wish in wanted:
        mark = seen.mark(wish.type)
        since = (
            f"{mark.since:%Y-%m-%dT%H:%M:%SZ}"
            if mark.since and mark.tells is wish.tells and mark.is_there
            else at
        )
        condition = {
            "type": wish.type,
            "status": str(wish.tells),
            "reason": wish.reason,
            "message": wish.message,
            "lastTransitionTime": since,
            "lastHeartbeatTime": at,
        }
        if wish.type in there:
            found.append(
                {"op": "replace", "path": f"/status/conditions/{there.index(wish.type)}", "value": condition}
            )
        else:
            found.append({"op": "add", "path": "/status/conditions/-", "value": condition})
    return tuple(found)
