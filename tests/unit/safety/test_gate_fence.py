"""A proof in the moment of sending: what our own removal of the record changes about it, and what it does not."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
)
from slurm_operator.safety.gate import Candidate, Drained, gate, why_no_longer, why_not_fenced
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=6)  # When a proof of now has run out.
STARTED = NOW - timedelta(hours=1)
OURS = "slurm-operator: ScaleIn: leaving the NodeSet"


def worker(
    *words: str, behind=(), read_at=NOW, jobs=(), reserved=(), address="10.0.0.3", reason=OURS
) -> Candidate:
    slurmd = ContainerStatus(
        name="slurmd", state=ContainerState(running=ContainerStateRunning(started_at=STARTED))
    )
    pod = Pod(
        metadata=Meta(name="gpu-3", uid="pod-uid"),
        status=PodStatus(phase="Running", pod_ip="10.0.0.3", container_statuses=[slurmd]),
    )
    node = SlurmNode(
        name="gpu-3",
        state=NodeState.of(*words),
        address=address,
        slurmd_start_time=STARTED,
        reason=reason if "DRAIN" in words else "",
    )
    snapshot = Snapshot(
        nodes={"gpu-3": node} if words else {},
        jobs={job.job_id: job for job in jobs},
        jobs_by_node=jobs_by_node(jobs),
        reservations={one.name: one for one in reserved},
        nodes_asked_at=read_at,
        jobs_asked_at=read_at,
        behind=frozenset(behind),
    )
    return Candidate(pod, "gpu-3", snapshot)


@pytest.mark.parametrize(
    ("now_known", "is_fenced", "holds"),
    [
        pytest.param(worker("IDLE", "DRAIN"), False, True, id="nothing happened"),
        pytest.param(worker("IDLE", "DRAIN", behind=["gpu-3"]), False, False, id="written to since, and not read"),
        pytest.param(worker("IDLE", "DRAIN", behind=["gpu-3"]), True, True, id="that was our own removal of the record"),
        pytest.param(worker(), True, True, id="removed, and read since"),
        pytest.param(worker("IDLE"), True, False, id="removed, but it has registered again: a job may start"),
    ],
)  # fmt: skip
def test_a_removed_record_is_a_fence(now_known, is_fenced, holds):
    proof = gate(worker("IDLE", "DRAIN"), NOW)
    assert isinstance(proof, Drained)

    objection = why_no_longer(proof, now_known, NOW, fenced_at=NOW if is_fenced else None)

    assert (objection is None) is holds


@pytest.mark.parametrize("now_known", [worker(), worker("IDLE", "DRAIN", behind=["gpu-3"])])
@pytest.mark.parametrize(
    ("fenced", "sent", "holds"),
    [
        pytest.param(None, 6, False, id="nobody removed its record for us"),
        pytest.param(2, 6, True, id="an old proof: the fence was put up by a newer one"),
        pytest.param(2, 8, False, id="a worker without a record registers again in the end"),
        pytest.param(2, -50, False, id="the clock was set back"),
    ],
)
def test_a_fence_lives_as_long_as_a_proof(now_known, fenced, sent, holds):
    proof = gate(worker("IDLE", "DRAIN"), NOW)
    fenced_at = NOW + timedelta(seconds=fenced) if fenced is not None else None

    objection = why_no_longer(proof, now_known, NOW + timedelta(seconds=sent), fenced_at=fenced_at)

    assert (objection is None) is holds


@pytest.mark.parametrize(
    ("now_known", "holds"),
    [
        pytest.param(worker("IDLE", "DRAIN", read_at=LATER), True, id="read again: a proof of now"),
        pytest.param(worker("IDLE", "DRAIN"), False, id="not read again"),
        pytest.param(worker("MIXED", "DRAIN", read_at=LATER), False, id="read again: busy"),
        pytest.param(worker("IDLE", read_at=LATER), False, id="read again: the drain was lifted"),
        pytest.param(worker(read_at=LATER), False, id="read again: Slurm has forgotten it"),
    ],
)
def test_a_proof_that_ran_out_holds_only_if_it_can_be_made_again(now_known, holds):
    proof = gate(worker("IDLE", "DRAIN"), NOW)

    objection = why_no_longer(proof, now_known, LATER + timedelta(seconds=1))

    assert (objection is None) is holds


JOB = SlurmJob(job_id=7, state=JobState.of("SUSPENDED"), nodes=("gpu-3",))
WISH = SlurmJob(job_id=8, state=JobState.of("PENDING"), required_nodes=("gpu-3",))
HELD = Reservation(name="maintenance", nodes=("gpu-3",), start_time=NOW, end_time=LATER)


@pytest.mark.parametrize(
    ("now_known", "may_go"),
    [
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", read_at=LATER), True, id="drained and idle"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM"), False, id="an old answer"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", behind=["gpu-3"], read_at=LATER), False, id="written to since"),
        pytest.param(worker("IDLE", "DYNAMIC_NORM", read_at=LATER), False, id="takes jobs again"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", jobs=[JOB], read_at=LATER), False, id="a suspended job, which slurmctld would not mind"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", jobs=[WISH], read_at=LATER), False, id="a job that insists on it"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", reserved=[HELD], read_at=LATER), False, id="reserved"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", reason="bad fan", read_at=LATER), False, id="a human drained it"),
        pytest.param(worker("IDLE", "DRAIN", "DYNAMIC_NORM", address="10.0.0.9", read_at=LATER), False, id="the record of another pod"),
        pytest.param(worker(read_at=LATER), False, id="no record"),
    ],
)  # fmt: skip
def test_a_record_goes_by_a_proof_of_that_moment_alone(now_known, may_go):
    assert (why_not_fenced(now_known, LATER + timedelta(seconds=1)) is None) is may_go
