"""What a NodeSetPowerState says of its workers."""

from datetime import datetime
from typing import Final

from slurm_operator.api.nebius.powerstate import NodePowerState, PodPhase
from slurm_operator.api.schema import codec
from slurm_operator.listing import first_few
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan import failing
from slurm_operator.plan.conditions import READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nebius.powerstate.decide import reasons, wanted_numbers
from slurm_operator.reconcilers.nebius.powerstate.observe import Seen, Worker
from slurm_operator.slurm.snapshot import Unreachable

SCALING: Final = "ScalingInProgress"
RECONCILED: Final = "ActiveNodesReconciled"

_TOLD: Final = 3


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    return StatusReport(
        conditions=_conditions(seen, outcome),
        fields={
            "observedGeneration": seen.meta.generation,
            "activeCount": len(wanted_numbers(seen)) if seen.is_followed else 0,
            "nodeStates": node_states(seen),
        },
    )


def node_states(seen: Seen) -> dict[str, Manifest]:
    """Workers that run, that should, or that have something to tell; the others are switched off."""
    why = reasons(seen, seen.now)
    told = [
        worker
        for worker in seen.workers
        if worker.is_active or worker.pod is not None or worker.slurm_node in why
    ]
    return {str(one.ordinal): _node_state(one, why.get(one.slurm_node, ""), seen.now) for one in told}


def _node_state(worker: Worker, why: str, now: datetime) -> Manifest:
    phase = _phase(worker)
    is_as_before = worker.said is not None and worker.said.phase is phase
    since = worker.said.last_transition_time if is_as_before and worker.said is not None else None
    state = NodePowerState(
        phase=phase,
        pod_name=worker.pod.metadata.name if worker.pod is not None else "",
        slurm_state=str(worker.record.state) if worker.record is not None else "",
        last_transition_time=since or now.replace(microsecond=0),
        message=why,
    )
    plain: Manifest = codec.plain(state)
    return plain


def _phase(worker: Worker) -> PodPhase:
    if worker.pod is None:
        return PodPhase.PENDING
    known = {str(phase): phase for phase in PodPhase}
    return known.get(worker.pod.status.phase, PodPhase.PENDING)


def _conditions(seen: Seen, outcome: Outcome) -> list[Condition]:
    if not seen.is_followed:
        return [false(READY, "Ignored", seen.why_ignored), false(SCALING, "Ignored", seen.why_ignored)]
    wanted = set(wanted_numbers(seen))
    missing = [one for one in seen.workers if one.ordinal in wanted and not _is_up(one)]
    leaving = [one for one in seen.workers if one.ordinal not in wanted and one.pod is not None]
    return [_ready(seen, outcome, missing, leaving), _scaling(missing, leaving)]


def _is_up(worker: Worker) -> bool:
    return worker.pod is not None and worker.pod.is_ready and not worker.pod.metadata.is_terminating


def _ready(seen: Seen, outcome: Outcome, missing: list[Worker], leaving: list[Worker]) -> Condition:
    if outcome.failed:
        return false(READY, "Retrying", failing.retried(outcome))
    why = reasons(seen, seen.now)
    told = [f"{one.slurm_node}: {why[one.slurm_node]}" for one in seen.workers if one.slurm_node in why]
    if told:
        return false(READY, "WorkersNotStarting", f"{first_few(told, _TOLD, separator='; ')}.")
    if isinstance(seen.slurm, Unreachable):
        message = f"What Slurm waits for cannot be seen: {seen.slurm.why}. Workers stay as they are."
        return false(READY, "SlurmUnreachable", message)
    if missing or leaving:
        return false(READY, SCALING, _moving(missing, leaving))
    return true(READY, RECONCILED, f"{len(wanted_numbers(seen))} of {seen.replicas} workers run.")


def _scaling(missing: list[Worker], leaving: list[Worker]) -> Condition:
    if missing or leaving:
        return true(SCALING, "WorkersChanging", _moving(missing, leaving))
    return false(SCALING, RECONCILED)


def _moving(missing: list[Worker], leaving: list[Worker]) -> str:
    told = [
        f"{len(workers)} {'worker is' if len(workers) == 1 else 'workers are'} {word}"
        for workers, word in ((missing, "starting"), (leaving, "stopping"))
        if workers
    ]
    return f"{' and '.join(told)}."
