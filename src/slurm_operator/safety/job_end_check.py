"""Whether a job may still be ended for a worker that leaves: asked in the moment in which that is sent.

Between the decision and that moment the writer may have been busy for a minute, and somebody may have wanted
the worker back. Then nothing is sent, and the next pass decides again.
"""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.safety.gate import Candidate, is_record_of, jobs_on, old_answer
from slurm_operator.slurm.snapshot import Snapshot


class Ending(wire.Record):
    """For whose sake a job is ended. `drained_for` is the reason of our drain, word for word, by which its
    time ran out; it is empty where somebody deleted the pod, and the job would end with that.
    """

    pod: ObjectKey
    pod_uid: str
    slurm_node: str
    drained_for: str = ""


def why_not_ended(ending: Ending, job_id: int, worker: Candidate, now: datetime) -> str | None:
    """What speaks against ending the job, by what Slurm said a moment ago; None if nothing does."""
    name, slurm = worker.slurm_node, worker.slurm
    if not isinstance(slurm, Snapshot):
        return f"cannot see whether it is still on {name}: {slurm.why}"
    if (old := old_answer(name, slurm, now)) is not None:
        return old.message
    if not slurm.is_settled:
        return "the operator before this one may have asked for that; Slurm is read again"
    if not any(job.job_id == job_id and not job.is_on_its_way_out for job in jobs_on(name, slurm)):
        return f"it is not on {name} any more"
    record = slurm.nodes.get(name)
    if record is None or not is_record_of(record, worker.pod):
        return f"Slurm's record of {name} is about another pod by now"
    if not ending.drained_for:
        return None if worker.pod.metadata.is_terminating else f"pod {worker.pod.metadata.name} stays"
    is_same_drain = record.state.is_drain and record.reason == ending.drained_for
    return None if is_same_drain else f"{name} is not drained for that any more"
