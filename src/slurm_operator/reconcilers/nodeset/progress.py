"""Whether anything is under way with the workers, and what former ones wait for where nothing is."""

from slurm_operator.api import names
from slurm_operator.api.updates import UpdateType
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Create
from slurm_operator.plan.conditions import PROGRESSING, Condition, false, true
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nodeset import maintenance
from slurm_operator.reconcilers.nodeset.causes import LEAVING
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen


def progressing(seen: Seen, plan: Plan, facts: Manifest) -> Condition:
    """What it waits for, or that it is at work. What only somebody else can set going is no progress."""
    if waits := plan.waits:
        first, more = waits[0], f" (and {len(waits) - 1} more)" if len(waits) > 1 else ""
        return true(PROGRESSING, first.reason, f"{first.subject}: {first.message}{more}")
    if _is_at_work(seen, plan, facts):
        return true(PROGRESSING, "Starting", "Workers are being started or replaced.")
    if facts["updatedReplicas"] >= facts["desired"]:
        return false(PROGRESSING, "UpToDate")
    strategy = seen.nodeset.spec.update_strategy.effective_type
    if strategy is UpdateType.ON_DELETE and seen.former:
        return false(PROGRESSING, "AwaitsDeletion", _awaits_deletion(seen, facts["desired"]))
    if strategy is UpdateType.SCHEDULED_UPDATE and seen.former and not maintenance.is_open(seen):
        return false(PROGRESSING, "AwaitsWindow", maintenance.awaits_window(seen))
    return true(PROGRESSING, "Starting", "Workers are being started or replaced.")


def _is_at_work(seen: Seen, plan: Plan, facts: Manifest) -> bool:
    is_short = facts["availableReplicas"] < facts["desired"]
    is_making = any(isinstance(action, Create) for action in plan.actions())
    return is_short or is_making or any(map(_is_on_its_way, seen.members))


def _is_on_its_way(member: Member) -> bool:
    """Drained to leave, or about to take over from one that was. One that is only cordoned is neither."""
    ours = member.drain
    return ours is not None and (ours.cause in LEAVING or not member.is_drained_itself)


def _awaits_deletion(seen: Seen, desired: int) -> str:
    """A worker is protected while a job may start there, so a plain delete would be refused."""
    first = min(seen.former, key=lambda member: member.name).pod.metadata
    return (
        f"{len(seen.former)} of {desired} workers have a former revision. With updateStrategy.type OnDelete "
        "each stays until somebody asks for another one. To have one replaced when its jobs are done: "
        f"kubectl annotate pod -n {first.namespace} {first.name} {names.POD_REPLACE}=true"
    )
