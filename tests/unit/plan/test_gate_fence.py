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
from slurm_operator.plan.gate import Drained, Worker, gate, why_no_longer
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import NodeState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STARTED = NOW - timedelta(hours=1)


def worker(*words: str, behind=()) -> Worker:
    slurmd = ContainerStatus(
        name="slurmd", state=ContainerState(running=ContainerStateRunning(started_at=STARTED))
    )
    pod = Pod(
        metadata=Meta(name="gpu-3", uid="pod-uid"),
        status=PodStatus(phase="Running", pod_ip="10.0.0.3", container_statuses=[slurmd]),
    )
    node = SlurmNode(name="gpu-3", state=NodeState.of(*words), address="10.0.0.3", slurmd_start_time=STARTED)
    nodes = {"gpu-3": node} if words else {}
    snapshot = Snapshot(nodes=nodes, jobs={}, nodes_asked_at=NOW, jobs_asked_at=NOW, behind=frozenset(behind))
    return Worker(pod, "gpu-3", snapshot)


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

    objection = why_no_longer(proof, now_known, NOW, is_fenced=is_fenced)

    assert (objection is None) is holds


def test_a_fence_does_not_keep_a_proof_young():
    proof = gate(worker("IDLE", "DRAIN"), NOW)

    assert why_no_longer(proof, worker(), NOW + timedelta(seconds=6), is_fenced=True) is not None
