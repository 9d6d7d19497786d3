"""What the promises look away from: just the moment that limits.md names, and nothing beside it."""

from datetime import timedelta

import pytest

from simulation.apiserver import OPERATOR
from simulation.deeds import Deeds
from simulation.jobs import Job
from simulation.machines import SLURMD, Process
from simulation.promises import UNREPORTED_SECONDS, Promises
from simulation.scenes import WORKERS_ONLY
from simulation.whole_promises import UNSEEN_SECONDS, forgotten
from simulation.world import World
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from testing.virtual_time import EPOCH, SimulatedLoop


def job(submitted_at: float = 0.0, **fields) -> Job:
    return Job(1, 1, 60.0, EPOCH + timedelta(seconds=submitted_at), **fields)


@pytest.mark.parametrize(
    ("one", "replaced_at", "is_missed"),
    [
        pytest.param(job(0.0), 100.0, True, id="it was there when Slurm was asked"),
        pytest.param(job(100.0 - UNSEEN_SECONDS), 100.0, True, id="it was there just in time"),
        pytest.param(
            job(100.5 - UNSEEN_SECONDS), 100.0, False, id="it came between the answer and the delete"
        ),
        pytest.param(job(101.0), 100.0, False, id="it came after the delete, before slurmctld ended"),
        pytest.param(job(99.0), None, True, id="nobody of ours replaced slurmctld"),
        pytest.param(job(0.0, state="SUSPENDED"), 100.0, True, id="suspended"),
        pytest.param(job(0.0, state="COMPLETED"), 100.0, False, id="over"),
    ],
)
def test_only_a_job_that_nobody_could_see_may_go_with_slurmctld(one, replaced_at, is_missed):
    moment = EPOCH + timedelta(seconds=replaced_at) if replaced_at is not None else None

    assert forgotten([one], moment) == ([1] if is_missed else [])


@pytest.mark.parametrize(
    ("grace", "ran_for", "is_broken"),
    [
        pytest.param(None, UNREPORTED_SECONDS - 1, False, id="asked to end before the report could come"),
        pytest.param(None, UNREPORTED_SECONDS, True, id="the report must have come by then"),
        pytest.param(30, UNREPORTED_SECONDS - 1, True, id="without its whole time to end"),
        pytest.param(0, UNREPORTED_SECONDS - 1, True, id="without any"),
    ],
)
def test_only_a_job_that_no_kubelet_reported_may_be_in_a_pod_that_is_asked_to_end(grace, ran_for, is_broken):
    loop = SimulatedLoop()
    loop.close()  # No time passes here.
    world, key = World(loop, 1, 0.0, WORKERS_ONLY), ObjectKey("ns", "gpu-0")
    Promises(world, Deeds(world, ObjectKey("ns", "gpu")))
    spec = {"nodeName": "m0", "terminationGracePeriodSeconds": 3600, "containers": []}
    world.server.create(
        kinds.POD, {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}, "x"
    )
    uid = world.server.get(kinds.POD, key)["metadata"]["uid"]
    world.machines.add("m0")
    running = {"state": "RUNNING", "nodes": ("gpu-0",), "processes": {"gpu-0": uid}}
    world.ctld.jobs[1] = job(started_at=EPOCH - timedelta(seconds=ran_for), **running)
    world.machines.processes[uid] = Process(
        uid, "gpu-0", "m0", SLURMD, "gpu-0", "10.0.0.1", 8, (), started_at=EPOCH, registers_at=EPOCH
    )

    world.server.delete(kinds.POD, key, OPERATOR, grace=grace)
    assert (world.violation is not None) is is_broken

    world.machines.kill(world.machines.processes[uid], "its time is over")
    assert "ends under job 1" in (world.violation or "") or is_broken
