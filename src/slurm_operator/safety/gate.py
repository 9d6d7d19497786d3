"""The gate: no worker is removed without a proof that no job can be on it, and only this file makes proofs.

It opens on positive, fresh knowledge alone. No answer, an old answer, an answer about somebody else, a name
that Slurm does not know: the gate stays shut, and says why in words that reach the status.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.names import POD_LEAVING, POD_NO_STEPS
from slurm_operator.listing import first_few
from slurm_operator.manifests.objects import ContainerStatus, Pod
from slurm_operator.manifests.worker_names import registers_from
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import CLOCK_SLACK, Snapshot, Unreachable

SLURMD = "slurmd"

# A proof rests on answers of Slurm; this is how old they may be when the delete is sent.
PROOF_LIFETIME = timedelta(seconds=5)

# What was so half a minute ago is likely to be so again: reading Slurm takes seconds on a slow machine.
WORTH_ASKING_WITHIN = timedelta(seconds=30)

# Pods are dated by the API server and jobs by slurmctld, whose clock is known to us as it compares with ours.
# That of the API server may differ from ours by this much.
CLOCKS_DIFFER_BY = timedelta(minutes=1)

# How many jobs a message names before it says "and so many more".
JOBS_TOLD = 5


class Drained(wire.Record, tag="Drained"):
    """DRAIN is set, nothing is busy, and no unfinished job names the node: all read after our last write."""

    pod_uid: str
    slurm_node: str
    asked_at: datetime


class NeverStarted(wire.Record, tag="NeverStarted"):
    """No slurmd has ever run in this pod, so no job can have. Good only for this version of the pod."""

    pod_uid: str
    resource_version: str


class Unreported(wire.Record, tag="Unreported"):
    """A machine has the pod, but neither has its kubelet said that slurmd runs, nor has Slurm a job there.

    Either may say so in the next moment. So this is good only for asking the pod to end: a slurmd that runs
    after all drains itself, and its jobs have the whole grace period. Good only for this version of the pod.
    """

    pod_uid: str
    resource_version: str


class NotRunning(wire.Record, tag="NotRunning"):
    """slurmd has crashed and is not up again, and Slurm, freshly asked, has no job there and starts none.

    Its container took every process along. Good only for this version of the pod: the next one may run. It
    may run before its kubelet tells: then either the node drains, or Slurm has no record of it.
    """

    pod_uid: str
    resource_version: str
    asked_at: datetime


class Ended(wire.Record, tag="Ended"):
    """Every container of the pod has ended for good, as its kubelet reports."""

    pod_uid: str


class Forgotten(wire.Record, tag="Forgotten"):
    """slurmd runs, Slurm, freshly asked, has no record of it and no job there, and no step runs in the pod.

    Somebody looked for slurmstepd in this very container, while Slurm did not know it. Without a record
    slurmctld starts nothing there, so none can have come since. Good only for this version of the pod, and
    only for asking it to end: should it have registered in this moment, its jobs have the grace period.
    """

    pod_uid: str
    resource_version: str
    asked_at: datetime


Proof = Drained | NeverStarted | Unreported | NotRunning | Forgotten | Ended

# Proofs about one version of a pod: the delete names it, and fails when there is a newer one.
OF_ONE_VERSION = (NeverStarted, Unreported, NotRunning, Forgotten)


class ShutFor(StrEnum):
    """Why the gate is shut. Whoever asks what to do then has an answer for each, or does not type-check."""

    SLURM_UNREACHABLE = "SlurmUnreachable"
    OLD_ANSWER = "OldAnswer"
    UNKNOWN_TO_SLURM = "UnknownToSlurm"
    STATE_LOST = "StateLost"
    ANOTHER_WORKER = "AnotherWorker"  # Slurm's record is about another pod.
    STARTING = "Starting"  # Slurm counts jobs there, and no kubelet has said that slurmd runs.
    CRASHED = "Crashed"  # With jobs.
    NOT_DRAINING = "NotDraining"
    DRAINING = "Draining"


class Shut(wire.Record, tag="Shut"):
    """Why a worker may not be removed now. `jobs` are those that hold it up, as far as we know."""

    reason: ShutFor
    message: str
    jobs: tuple[int, ...] = ()


class Candidate(wire.Record, kw_only=False):
    """A slurmd pod, and what is known of the Slurm cluster it serves.

    `state_lost_since`: slurmctld has forgotten its jobs, and not all of its workers are back.
    """

    pod: Pod
    slurm_node: str
    slurm: Snapshot | Unreachable
    state_lost_since: datetime | None = None

    @property
    def slurmd(self) -> ContainerStatus | None:
        return slurmd_of(self.pod)

    @property
    def has_crashed(self) -> bool:
        """slurmd ran, and now its container is down, until the kubelet starts it again."""
        slurmd = self.slurmd
        return slurmd is not None and slurmd.has_ever_started and slurmd.state.running is None

    @property
    def is_unreported(self) -> bool:
        """A machine has taken it, and what became of slurmd there has not been said yet."""
        has_started = self.slurmd is not None and self.slurmd.has_ever_started
        return bool(self.pod.spec.node_name) and not self.pod.has_ended and not has_started


def gate(worker: Candidate, now: datetime) -> Proof | Shut:
    """The proof that this worker may be removed, or why it may not."""
    pod = worker.pod
    if pod.has_ended:
        return Ended(pod_uid=pod.metadata.uid)
    if worker.slurmd is None or not worker.slurmd.has_ever_started:
        return _not_started(worker, now)
    match worker.slurm:
        case Unreachable(since=since, why=why):
            return Shut(
                reason=ShutFor.SLURM_UNREACHABLE,
                message=f"cannot see its jobs since {since:%H:%M:%S} UTC: {why}",
            )
        case Snapshot() as snapshot:
            return _ask_slurm(worker, snapshot, now)


def _not_started(worker: Candidate, now: datetime) -> NeverStarted | Unreported | Shut:
    """What a kubelet has not reported may be so all the same, since a moment ago; Slurm may know it.

    A pod that a machine has is only ever asked to end, however long nothing is heard of it: the machine may
    be cut off, and a job start there tomorrow. A kubelet ends a pod without a process at once.
    """
    meta, slurm = worker.pod.metadata, worker.slurm
    if worker.is_unreported and isinstance(slurm, Snapshot):
        if (old := old_answer(worker.slurm_node, slurm, now)) is not None:
            return old
        if jobs := [job for job in jobs_on(worker.slurm_node, slurm) if _may_be_in(job, worker.pod, slurm)]:
            return Shut(
                reason=ShutFor.STARTING,
                message="its kubelet has not said that slurmd runs, "
                f"but Slurm counts {jobs_text(jobs)} there",
                jobs=tuple(job.job_id for job in jobs),
            )
    if worker.is_unreported:
        return Unreported(pod_uid=meta.uid, resource_version=meta.resource_version)
    return NeverStarted(pod_uid=meta.uid, resource_version=meta.resource_version)


def _may_be_in(job: SlurmJob, pod: Pod, slurm: Snapshot) -> bool:
    """A job that began before the pod was made is in an earlier one of its name."""
    made_at, began_at = pod.metadata.creation_timestamp, job.start_time
    if made_at is None or began_at is None:
        return True
    return began_at + slurm.clock_behind >= made_at - CLOCKS_DIFFER_BY


def old_answer(name: str, snapshot: Snapshot, now: datetime) -> Shut | None:
    if not snapshot.is_fresh(now, PROOF_LIFETIME):
        age_s = (now - snapshot.asked_at).total_seconds()
        told = f"is {age_s:.0f} s old" if age_s > 0 else "was read before the clock was set back"
        return Shut(reason=ShutFor.OLD_ANSWER, message=f"Slurm data {told}; refreshing")
    if not snapshot.is_current(name):
        return Shut(
            reason=ShutFor.OLD_ANSWER, message="Slurm has not been read since our last write to the node"
        )
    return None


def _ask_slurm(
    worker: Candidate, snapshot: Snapshot, now: datetime
) -> Drained | NotRunning | Forgotten | Shut:
    name = worker.slurm_node
    if (old := old_answer(name, snapshot, now)) is not None:
        return old
    jobs = jobs_on(name, snapshot)
    slurm_node = snapshot.nodes.get(name)
    if worker.has_crashed:
        return _crashed(worker, slurm_node, jobs, snapshot.asked_at)
    if slurm_node is None and not jobs and has_no_steps(worker.pod):
        meta = worker.pod.metadata
        return Forgotten(pod_uid=meta.uid, resource_version=meta.resource_version, asked_at=snapshot.asked_at)
    if slurm_node is None:
        return Shut(
            reason=ShutFor.UNKNOWN_TO_SLURM,
            message=f"Slurm does not know {name}, though slurmd has run: a job may still be there. "
            "The worker registers again automatically",
        )
    if worker.state_lost_since is not None:
        return Shut(
            reason=ShutFor.STATE_LOST,
            message=f"slurmctld lost its state at {worker.state_lost_since:%H:%M:%S} UTC, its jobs with it: "
            "one may still run here. Nothing is removed until every worker has registered again",
        )
    if not is_record_of(slurm_node, worker.pod):
        return Shut(
            reason=ShutFor.ANOTHER_WORKER,
            message=f"Slurm's record of {name} is about another pod ({slurm_node.address or 'no address'}); "
            "this one has not registered yet",
        )
    return _drained(worker, slurm_node, jobs, snapshot.asked_at)


def _crashed(
    worker: Candidate, slurm_node: SlurmNode | None, jobs: Sequence[SlurmJob], asked_at: datetime
) -> NotRunning | Shut:
    """Its next slurmd may be up before anybody tells, and with the record it left get a job at once."""
    meta = worker.pod.metadata
    if jobs:
        return Shut(
            reason=ShutFor.CRASHED,
            message=f"slurmd is down and restarts automatically; Slurm still counts {jobs_text(jobs)} there",
            jobs=tuple(job.job_id for job in jobs),
        )
    if (
        slurm_node is not None
        and not slurm_node.state.is_drain
        and is_record_of_crashed_worker(slurm_node, worker)
    ):
        return Shut(
            reason=ShutFor.NOT_DRAINING,
            message="slurmd is down and restarts automatically; then new jobs may start there",
        )
    return NotRunning(pod_uid=meta.uid, resource_version=meta.resource_version, asked_at=asked_at)


def _drained(
    worker: Candidate, slurm_node: SlurmNode, jobs: Sequence[SlurmJob], asked_at: datetime
) -> Drained | Shut:
    job_ids = tuple(job.job_id for job in jobs)
    if not slurm_node.state.is_drain:
        return Shut(reason=ShutFor.NOT_DRAINING, message="new jobs may still start there", jobs=job_ids)
    if jobs:
        return Shut(reason=ShutFor.DRAINING, message=f"waiting for {jobs_text(jobs)}", jobs=job_ids)
    if not slurm_node.state.is_drained:
        return Shut(reason=ShutFor.DRAINING, message=f"Slurm still calls it {slurm_node.state}")
    return Drained(pod_uid=worker.pod.metadata.uid, slurm_node=worker.slurm_node, asked_at=asked_at)


def was_open(worker: Candidate, now: datetime) -> Drained | None:
    """The proof as of when Slurm was last asked, if that is not too long ago to be worth asking again.

    Alone it opens nothing any more: before anything is removed, Slurm is read again and the gate asked again.
    """
    slurm = worker.slurm
    if not isinstance(slurm, Snapshot) or not slurm.is_fresh(now, WORTH_ASKING_WITHIN):
        return None
    verdict = gate(worker, slurm.asked_at)
    return verdict if isinstance(verdict, Drained) else None


def why_not_fenced(worker: Candidate, now: datetime) -> str | None:
    """Asked right before the record of a worker is removed: what speaks against that; None if nothing does.

    The proof it was decided by may have run out since. What counts is the one that can be made now.
    """
    match gate(worker, now):
        case Shut(message=message):
            return message
        case Drained() if may_delete_record(worker.slurm_node, worker.slurm):
            return None
        case _:
            return "its state has changed since that was decided; re-evaluating"


def why_no_longer(
    proof: Proof, worker: Candidate, now: datetime, *, fenced_at: datetime | None = None
) -> str | None:
    """Asked in the moment of sending: what has happened since that takes the proof away; None if it holds.

    A proof that has run out holds if the gate is open by a newer answer of Slurm: that is a proof as well. A
    record that is gone is no objection: retiring a worker removes it right before the pod. `fenced_at` says
    when that was done, by a proof of that moment: slurmctld would have refused it while a job was there, and
    can start none without a record, so that it was not read since is no objection either. A fence lives as
    long as a proof: a worker that nobody knows registers again in the end.
    """
    match proof:
        case NeverStarted() | Unreported() | NotRunning() | Ended():
            return None  # The delete names the version of the pod that it was decided about, or it has ended.
        case Forgotten():
            match gate(worker, now):
                case Shut(message=message):
                    return message
                case Forgotten():
                    return None
                case _:
                    return "its state has changed since that was decided; re-evaluating"
        case Drained(asked_at=asked_at, slurm_node=name):
            slurm = worker.slurm if isinstance(worker.slurm, Snapshot) else None
            is_behind = fenced_at is not None and slurm is not None and not slurm.is_current(name)
            if slurm is not None and name in slurm.nodes and not is_behind:
                verdict = gate(worker, now)
                return verdict.message if isinstance(verdict, Shut) else None
            age = now - (fenced_at or asked_at)
            is_old = not -CLOCK_SLACK <= age <= PROOF_LIFETIME
            return f"what was known of Slurm is {age.total_seconds():.0f} s old by now" if is_old else None


def version_to_delete(proof: Proof, pod: Pod) -> str | None:
    """The version of the pod that the delete names; None when it may not be sent by what is known now.

    An API server may carry a delete out long after nobody waits for it any more. So the worker is marked
    first, the delete names a marked version, and the mark is taken away before the worker takes jobs again:
    then that version is no more, whoever sent the delete.
    """
    match proof:
        case NeverStarted(resource_version=version) | Unreported(resource_version=version):
            return version
        case NotRunning(resource_version=version) | Forgotten(resource_version=version):
            return version
        case Ended():
            return pod.metadata.resource_version
        case Drained():
            return marked_version(pod.metadata)


def no_steps_mark(pod: Pod) -> str:
    """What the annotation says of a pod in whose present slurmd no step was seen; empty while none runs."""
    slurmd = slurmd_of(pod)
    running = slurmd.state.running if slurmd is not None else None
    if running is None or running.started_at is None:
        return ""
    return f"{pod.metadata.uid} {running.started_at.isoformat()}"


def has_no_steps(pod: Pod) -> bool:
    """Whether somebody looked into this container, of this pod, and saw no step. Another one says nothing."""
    mark = no_steps_mark(pod)
    return bool(mark) and pod.metadata.annotations.get(POD_NO_STEPS) == mark


def marked_version(pod: Meta) -> str | None:
    """The version of a pod that is marked as leaving; None where it is not."""
    return pod.resource_version if pod.annotations.get(POD_LEAVING) == pod.uid else None


def jobs_on(name: str, snapshot: Snapshot) -> list[SlurmJob]:
    """Unfinished jobs whose node list has it, or whose batch host it is. Suspended ones are there, too.

    A pending job that merely insists on the node is not on it, and would wait for it as it waits for the job.
    """
    return [job for job in snapshot.jobs_naming(name) if name in job.own_nodes]


def slurmd_of(pod: Pod) -> ContainerStatus | None:
    for status in pod.status.container_statuses:
        if status.name == SLURMD:
            return status
    return None


def is_record_of(slurm_node: SlurmNode, pod: Pod) -> bool:
    """Whether the record is this pod's own: its address, and a slurmd not older than the container.

    Both are set again by every registration. `instance_id` and `extra` are not: they keep their first values.
    """
    if not registers_from(slurm_node.address, pod):
        return False
    slurmd = slurmd_of(pod)
    running = slurmd.state.running if slurmd is not None else None
    if running is None or running.started_at is None or slurm_node.slurmd_start_time is None:
        return False
    return slurm_node.slurmd_start_time >= running.started_at.replace(microsecond=0)


def is_record_of_crashed_worker(slurm_node: SlurmNode, worker: Candidate) -> bool:
    """Whether a crashed worker registered by this record: where it speaks from is all that is left of it."""
    return worker.has_crashed and registers_from(slurm_node.address, worker.pod)


def jobs_text(jobs: Sequence[SlurmJob]) -> str:
    """Jobs by id, owner and state, the first few of them."""
    told = [f"job {job.job_id} of {job.user or job.user_id} ({job.state})" for job in jobs]
    return first_few(told, JOBS_TOLD)
