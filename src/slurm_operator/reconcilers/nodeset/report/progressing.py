"""Whether anything is under way with the workers, and what previous ones wait for where nothing is."""

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset_updates import UpdateType
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Action, Create, DeleteWorker, WriteSlurm
from slurm_operator.plan.conditions import PROGRESSING, Condition, false, true
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nodeset.departures import maintenance, rollout
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.snapshot import Snapshot

# So many workers are named; of the others their number is told.
MOST_NAMED = 5


def progressing(seen: Seen, plan: Plan, facts: Manifest) -> Condition:
    """What it waits for, or that it is at work. What only somebody else can set going is no progress."""
    if waits := plan.waits:
        first, more = waits[0], f" (and {len(waits) - 1} more)" if len(waits) > 1 else ""
        way_out = _way_out(seen) if seen.nodeset.metadata.is_terminating else ""
        return true(PROGRESSING, first.reason, f"{first.subject}: {first.message}{more}{way_out}")
    strategy = seen.nodeset.spec.update_strategy.effective_type
    if strategy is UpdateType.ROLLING_UPDATE and seen.former and (away := _away(seen, plan)):
        return true(PROGRESSING, Reason.AWAITS_WORKERS, _awaits_workers(away, seen, facts["desired"]))
    if _is_at_work(seen, plan, facts):
        return true(PROGRESSING, Reason.STARTING, "Workers are being started or replaced.")
    if facts["updatedReplicas"] >= facts["desired"]:
        return false(PROGRESSING, Reason.UP_TO_DATE)
    if strategy is UpdateType.ON_DELETE and seen.former:
        return false(PROGRESSING, Reason.AWAITS_DELETION, _awaits_deletion(seen, facts["desired"]))
    if strategy is UpdateType.SCHEDULED_UPDATE and seen.former and not maintenance.is_open(seen):
        return false(PROGRESSING, Reason.AWAITS_WINDOW, maintenance.awaits_window(seen))
    return true(PROGRESSING, Reason.STARTING, "Workers are being started or replaced.")


def _way_out(seen: Seen) -> str:
    """For people who cannot wait: what they can do about a deletion that is held up, and what it costs."""
    lost = "its pods are then deleted with their grace period, and jobs that run longer than that are lost"
    if not seen.workers:
        lost = "jobs that name its partition may then be lost"
    return (
        f". The deletion of NodeSet {seen.nodeset.metadata.name} waits for that. To force it, annotate the "
        f"NodeSet with {names.FORCE_DELETION}=true: {lost}"
    )


def _is_at_work(seen: Seen, plan: Plan, facts: Manifest) -> bool:
    is_short = facts["availableReplicas"] < facts["desired"]
    return is_short or _does(plan, Create) or any(map(_is_on_its_way, seen.workers))


def _does(plan: Plan, *kinds: type[Action]) -> bool:
    return any(isinstance(action, kinds) for action in plan.actions())


def _away(seen: Seen, plan: Plan) -> list[Worker]:
    """Whom an update waits for that does nothing itself: workers that take no jobs."""
    is_replacing = _does(plan, Create, DeleteWorker, WriteSlurm) or any(map(_is_on_its_way, seen.workers))
    if is_replacing or not isinstance(seen.slurm, Snapshot):
        return []
    return [m for m in seen.workers if not (m.is_ready and rollout.is_in_use(m)) and not m.is_terminating]


def _awaits_workers(away: list[Worker], seen: Seen, desired: int) -> str:
    told = first_few(sorted(worker.name for worker in away), MOST_NAMED)
    return (
        f"{_former(seen, desired)}, and the update waits for those "
        f"that take no jobs: {told}. updateStrategy.rollingUpdate.maxUnavailable lets "
        f"{rollout.budget(seen, desired)} be away at once, whatever the cause, and the first worker of the "
        "new revision has to register before the rest follows. kubectl slurm explain pod/NAME says what is "
        "the matter with one."
    )


def _former(seen: Seen, desired: int) -> str:
    """While a NodeSet is scaled in, there are more workers than it wants."""
    return f"{len(seen.former)} of {max(desired, len(seen.workers))} workers have a previous revision"


def _is_on_its_way(worker: Worker) -> bool:
    """Drained to leave, or about to take over from one that was. One that is only cordoned is neither."""
    ours = worker.drain
    return ours is not None and (ours.cause in LEAVING or not worker.is_drained_itself)


def _awaits_deletion(seen: Seen, desired: int) -> str:
    """A worker is protected while a job may start there, so a plain delete would be refused."""
    first = min(seen.former, key=lambda worker: worker.name).pod.metadata
    return (
        f"{_former(seen, desired)}. With updateStrategy.type OnDelete "
        "each stays until somebody asks for another one. To have one replaced when its jobs are done: "
        f"kubectl annotate pod -n {first.namespace} {first.name} {names.POD_REPLACE}=true"
    )
