"""Workers that stay: drained while there is a cause, protected and back in service when there is none."""

from datetime import datetime

from slurm_operator.api.shared import names
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, PatchObject, WriteSlurm
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset.annotations import stays, without_others_cordon
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker import unresponsive
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Staying, staying_cause
from slurm_operator.reconcilers.nodeset.worker.protection import protect, release
from slurm_operator.reconcilers.nodeset.worker.rejoin import comes_back
from slurm_operator.reconcilers.nodeset.worker.removal import (
    Stages,
    drain,
    is_drained_for_something_else,
    is_marked_by_others,
    told_to_drain,
)
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import (
    Drained,
    Ended,
    Forgotten,
    NeverStarted,
    NotRunning,
    Shut,
    ShutFor,
    Unreported,
    gate,
)
from slurm_operator.slurm.reasons import is_our_reason
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import ResumeNodes

# Drains that last as long as something is so on a machine.
OF_MACHINES = {Staying.NODE_CORDON, Staying.NODE_TAINT}


def stages_of_staying_worker(worker: Worker, seen: Seen, now: datetime) -> Stages:
    """What a worker that stays needs now. Nobody is resumed whom a delete that was sent may still meet."""
    steps = _kept(worker, seen, now)
    void = stays(worker)
    return [[*void], *steps] if void else steps


def look_again(seen: Seen, now: datetime) -> Step:
    """One that crashed or went silent is judged by the time. Somebody waits for others to be free of jobs."""
    unready = [worker for worker in seen.workers if not worker.is_ready]
    crashed = [worker.ready_again_in(now) for worker in unready if worker.has_crashed]
    silent = [unresponsive.next_look(worker, seen.slurmctld_since, now) for worker in unready]
    is_awaited = any(_awaits_release(worker, seen, now) for worker in seen.workers)
    return look([*crashed, *silent], asks_slurm=is_awaited)


def _awaits_release(worker: Worker, seen: Seen, now: datetime) -> bool:
    """Out of service for whatever cause, it is let go as soon as its jobs are done, and somebody waits.

    Others may have drained it long before, so that nothing in Slurm changes by that.
    """
    record = worker.record or worker.last_record
    is_out = record is not None and record.state.is_drain and _is_awaited(worker, seen, now)
    return (is_out or worker.is_node_cordoned) and names.LABEL_POD_PROTECT in worker.pod.metadata.labels


def _is_awaited(worker: Worker, seen: Seen, now: datetime) -> bool:
    """Somebody took it out of service. Nobody waits for one that only does not answer: it stays."""
    cause = staying_cause(worker, seen.nodeset, seen.propagated_conditions, seen.slurmctld_since, now)
    return cause is not None and cause.kind is not Staying.UNRESPONSIVE


def _kept(worker: Worker, seen: Seen, now: datetime) -> Stages:
    cause = staying_cause(worker, seen.nodeset, seen.propagated_conditions, seen.slurmctld_since, now)
    if worker.has_others_cordon:
        return [[*without_others_cordon(worker)]]
    if cause is not None:
        return _held(worker, cause, seen, now)
    protection: list[Action] = [*protect(worker, seen)]
    return [stage for stage in (protection, _resume(worker, seen)) if stage]


def _held(worker: Worker, cause: Cause, seen: Seen, now: datetime) -> Stages:
    """Drained for a cordon: when it is free and stays so, the one who cordoned may also evict it.

    Whoever was let go and has a job after all, because somebody lifted the drain, is protected again. One
    that only does not answer stays protected: nobody wants it gone.
    """
    is_silent = cause.kind is Staying.UNRESPONSIVE
    match gate(worker, now):
        case Shut(reason=reason):
            return _held_with_jobs(worker, cause, reason, seen)
        case Drained() if worker.drain is not None and not worker.is_drained_itself:
            return [[drain(worker, cause, seen.controller_key)]]
        case Drained() if is_silent:
            return _only(protect(worker, seen))
        case Drained() | Ended():
            return _only(release(worker))
        case NotRunning() if worker.last_record is not None and worker.last_record.state.is_drain:
            return _only(release(worker))
        case NotRunning() | NeverStarted() | Unreported() | Forgotten():
            return []  # A job may start there in the next moment.


def _held_with_jobs(worker: Worker, cause: Cause, reason: ShutFor, seen: Seen) -> Stages:
    """The gate is shut: it has jobs, may get some, or nobody can tell."""
    is_open = reason in (ShutFor.NOT_DRAINING, ShutFor.OLD_ANSWER)
    if is_open and cause.kind is Staying.UNRESPONSIVE and _is_given_up(worker):
        return _only(protect(worker, seen))
    if is_open and is_marked_by_others(worker):
        told = told_to_drain(worker, "it may be evicted when its jobs are done")
        return [[*protect(worker, seen), told]]
    match reason:
        case ShutFor.NOT_DRAINING:
            return [[*protect(worker, seen), drain(worker, cause, seen.controller_key)]]
        case ShutFor.OLD_ANSWER:
            return [[drain(worker, cause, seen.controller_key)]] if _takes_jobs_still(worker) else []
        case ShutFor.DRAINING if is_drained_for_something_else(worker, cause):
            return [[*protect(worker, seen), drain(worker, cause, seen.controller_key)]]
        case ShutFor.DRAINING | ShutFor.CRASHED | ShutFor.STARTING:
            return _only(protect(worker, seen))
        case ShutFor.SLURM_UNREACHABLE | ShutFor.UNKNOWN_TO_SLURM | ShutFor.STATE_LOST:
            return []
        case ShutFor.ANOTHER_WORKER:
            return []


def _only(actions: list[PatchObject]) -> Stages:
    """Just these; nothing at all when there are none."""
    return [[*actions]] if actions else []


def _is_given_up(worker: Worker) -> bool:
    """Slurm has called it DOWN, or somebody marked it. It takes no jobs, and whether it comes back
    hangs on the reason that is there.
    """
    record = worker.record
    return record is not None and (record.state.is_down or is_marked_by_others(worker))


def _takes_jobs_still(worker: Worker) -> bool:
    """As far as is known, from however long ago. A drain needs no proof: whoever sends it looks at the node.

    To wait for a fresh answer would be to wait for something else to change: an equal one wakes nobody.
    """
    slurm, record = worker.slurm, worker.record
    is_asked_already = isinstance(slurm, Snapshot) and not slurm.is_current(worker.slurm_node)
    return record is not None and not record.state.is_drain and not is_asked_already


def _resume(worker: Worker, seen: Seen) -> list[Action]:
    """Lift our own drain, and what slurmctld noted about the worker before this one. Never a human's."""
    record = worker.record
    is_back = comes_back(worker)
    if record is None or not (record.state.is_drain or is_back) or _may_be_held(worker, seen):
        return []
    if not (record.is_drained_by_us or is_back or _is_about_an_earlier_pod(worker)):
        return []
    over = frozenset[str]() if is_our_reason(record.reason) else frozenset({record.reason})
    why = (
        f"Slurm kept it {record.state} for the worker before it, and this one has registered"
        if is_back
        else "nothing holds it back any more"
    )
    return [
        WriteSlurm(
            controller=seen.controller_key,
            write=ResumeNodes(nodes=(worker.slurm_node,), over=over, from_down=is_back),
            reason=Reason.RESUMED,
            message=f"{worker.slurm_node} takes jobs again: {why}",
        )
    ]


def _may_be_held(worker: Worker, seen: Seen) -> bool:
    """Drained for its machine, which cannot be seen now: it may be cordoned as before.

    Or it is no Node any more, and Kubernetes takes its pods away within a minute or so.
    """
    ours = worker.drain
    is_about_machine = ours is not None and ours.cause in OF_MACHINES and worker.is_drained_itself
    return is_about_machine and (worker.kube_node is None or not seen.sees_machines)


def _is_about_an_earlier_pod(worker: Worker) -> bool:
    record, created = worker.record, worker.pod.metadata.creation_timestamp
    return (
        record is not None
        and record.is_drained_by_slurm
        and record.reason_changed_at is not None
        and created is not None
        and record.reason_changed_at < created
    )
