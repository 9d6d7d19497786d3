"""Who goes first when workers have to go.

The choice is made again in every pass and remembered nowhere. What was begun is known by the drain in Slurm:
a worker that drains to leave is chosen again although jobs have ended elsewhere since.
"""

import re
from datetime import UTC, datetime

from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from slurm_operator.reconcilers.nodeset.workers import FOREVER, Worker
from slurm_operator.slurm.snapshot import Snapshot

# Drains of workers that are too many: in the NodeSet, or on one machine.
SURPLUS: frozenset[str] = frozenset({Leaving.SCALE_IN, Leaving.DUPLICATE})

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?(0|[1-9]\d{0,9})")


def victims_first(workers: list[Worker]) -> list[Worker]:
    """The documented order: first those whose loss costs least, among equals those whose jobs end soonest.

    Whoever drains as surplus stays chosen before the ends of jobs are compared. One that is free by now comes
    before all others: to resume it and drain another one would give up what was already waited for.
    """
    return sorted(workers, key=_rank)


def _rank(worker: Worker) -> tuple[object, ...]:
    pod = worker.pod
    return (
        not is_free_surplus(worker),
        bool(pod.spec.node_name),
        {"Unknown": 1, "Running": 2}.get(pod.status.phase, 0),
        worker.is_ready,
        deletion_cost(worker),
        _drains_as_surplus(worker),
        _deadline(worker),
        not (worker.is_user_cordoned or worker.is_node_cordoned),
        -(worker.ordinal if worker.ordinal is not None else -1),
        _newest_first(worker.ready_changed_at if worker.is_ready else None),
        _newest_first(pod.metadata.creation_timestamp),
        worker.name,
    )


def is_surplus(worker: Worker) -> bool:
    """It was chosen in an earlier pass; the drain says so."""
    ours = worker.drain
    return ours is not None and ours.cause in SURPLUS and worker.is_drained_itself


def is_free_surplus(worker: Worker) -> bool:
    """It was chosen, and its jobs are over."""
    record = worker.record
    return is_surplus(worker) and not worker.jobs and record is not None and record.state.is_drained


def _drains_as_surplus(worker: Worker) -> int:
    """0: it does; 2: it does not; 1: that is not known, because Slurm was not read since we wrote to it."""
    if is_surplus(worker):
        return 0
    slurm = worker.slurm
    return 1 if isinstance(slurm, Snapshot) and not slurm.is_current(worker.slurm_node) else 2


def deletion_cost(worker: Worker) -> int:
    """Lower goes first; what is not a plain 32-bit number counts as 0."""
    text = worker.pod.metadata.annotations.get(names.POD_DELETION_COST, "0")
    cost = int(text) if _COST.fullmatch(text) and text != "-0" else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _deadline(worker: Worker) -> datetime:
    """Idle workers before busy ones; a job without a time limit keeps its worker longest."""
    if not worker.jobs:
        return _LONG_AGO
    return worker.deadline or FOREVER


def _newest_first(moment: datetime | None) -> float:
    """A missing time sorts as the newest of all."""
    return -moment.timestamp() if moment is not None else float("-inf")
