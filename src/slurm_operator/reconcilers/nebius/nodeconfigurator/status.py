"""What a NodeConfigurator says of its pods."""

from typing import Final

from slurm_operator.api.shared.conditions import Truth
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.plan.conditions import DEGRADED, READY, Condition, false, true
from slurm_operator.plan.failing import degraded, errors
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nebius.nodeconfigurator.decide import binding_command
from slurm_operator.reconcilers.nebius.nodeconfigurator.observe import Seen

_NOT_MADE: Final = Reason.NOT_MADE
_STARTING: Final = Reason.STARTING
_RUNNING: Final = Reason.RUNNING


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    ready = _ready(seen, plan)
    fields: Manifest = {
        "observedGeneration": seen.meta.generation,
        "updateStatus": "failed"
        if outcome.failed
        else "succeeded"
        if ready.status is Truth.TRUE
        else "updating",
        "reason": errors(outcome) or next((wait.message for wait in plan.waits), ""),
    }
    return StatusReport([ready, degraded(outcome, false(DEGRADED, Reason.AS_EXPECTED))], fields)


def _ready(seen: Seen, plan: Plan) -> Condition:
    if plan.waits:
        return false(READY, plan.waits[0].reason, " ".join(wait.message for wait in plan.waits))
    there = seen.daemon_set
    if there is None:
        return false(READY, _NOT_MADE, "The DaemonSet is being made.")
    wanted, ready = _counts(there)
    message = f"{ready} of {wanted} pods are ready.{_rights(seen)}"
    return true(READY, _RUNNING, message) if _is_whole(there) else false(READY, _STARTING, message)


def _rights(seen: Seen) -> str:
    """Who may drain and reboot nodes is said by a person, not by whoever writes a NodeConfigurator."""
    if not seen.has_own_account:
        return ""
    return f" If nobody has given them their rights yet, an administrator runs once: {binding_command(seen)}"


def _counts(daemon_set: Child) -> tuple[int, int]:
    told: Manifest = daemon_set.body.get("status") or {}
    return told.get("desiredNumberScheduled", 0), told.get("numberReady", 0)


def _is_whole(daemon_set: Child) -> bool:
    told: Manifest = daemon_set.body.get("status") or {}
    wanted, ready = _counts(daemon_set)
    is_seen = told.get("observedGeneration", 0) >= daemon_set.metadata.generation
    return is_seen and ready >= wanted and told.get("updatedNumberScheduled", 0) >= wanted
