"""What a SlurmCluster says about itself: a phase, how many pods are ready, and conditions."""

from typing import Final

from slurm_operator.api.shared.conditions import Truth
from slurm_operator.conditions import Reason
from slurm_operator.plan.conditions import READY, Condition
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nebius.slurmcluster.conditions import (
    conditions,
    ready_workers,
    writer_rollout,
)
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen

PENDING: Final = "Pending"
NOT_AVAILABLE: Final = "Not available"
AVAILABLE: Final = Reason.AVAILABLE


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    found = list(conditions(seen, plan, outcome))
    writer = writer_rollout(seen)
    return StatusReport(
        conditions=found,
        fields={
            "observedGeneration": seen.meta.generation,
            "phase": phase(seen, found),
            "readyLogin": seen.login.status.ready_replicas if seen.login is not None else 0,
            "readySConfigController": writer.ready if writer is not None else 0,
            "readyWorkers": ready_workers(seen),
        },
    )


def phase(seen: Seen, found: list[Condition]) -> str:
    """Available when the cluster works: not in maintenance, unlike Soperator's."""
    if seen.cluster.spec is None:
        return PENDING
    ready = next(condition for condition in found if condition.type == READY)
    return AVAILABLE if ready.status is Truth.TRUE else NOT_AVAILABLE
