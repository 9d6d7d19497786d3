"""What the promises look away from: just the moment that limits.md names, and nothing beside it."""

from datetime import timedelta

import pytest

from simulation.apiserver import OPERATOR
from simulation.deeds import Deeds
from simulation.jobs import Job
from simulation.machines import SLURMD, Process
from simulation.promises import FENCE_SECONDS, UNREPORTED_SECONDS, Promises
from simulation.scenes import WORKERS_ONLY
from simulation.whole_promises import UNSEEN_SECONDS, forgotten
from simulation.world import World
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from testing.virtual_time import EPOCH, SimulatedLoop

POD = ObjectKey("ns", "gpu-0")


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
    world, _ = watched()
    uid = running_worker(world, ran_for)

    world.server.delete(kinds.POD, POD, OPERATOR, grace=grace)
    assert (world.violation is not None) is is_broken

    world.machines.kill(world.machines.processes[uid], "its time is over")
    assert "ends under job 1" in (world.violation or "") or is_broken


FENCED = FENCE_SECONDS - 1


@pytest.mark.parametrize(
    ("lifted_ago", "ran_for", "is_broken"),
    [
        pytest.param(None, 1.0, True, id="nobody lifted a drain"),
        pytest.param(FENCED, FENCED, False, id="it started when the drain was lifted"),
        pytest.param(FENCED, 1.0, False, id="it started in the seconds after that"),
        pytest.param(FENCED, FENCE_SECONDS + 30, True, id="it was there before the drain was lifted"),
        pytest.param(FENCE_SECONDS, FENCE_SECONDS, True, id="the delete came too late to be unanswered"),
        pytest.param(-FENCE_SECONDS, 0.0, True, id="it started before a drain that is lifted later"),
    ],
)
def test_only_a_job_that_a_lifted_drain_let_in_may_be_in_a_pod_that_is_deleted(
    lifted_ago, ran_for, is_broken
):
    world, promises = watched()
    uid = running_worker(world, ran_for)
    if lifted_ago is not None:
        promises.deeds.lifted["gpu-0"] = world.loop.time() - lifted_ago

    world.server.delete(kinds.POD, POD, OPERATOR, grace=0)

    assert (world.violation is not None) is is_broken, world.violation
    assert uid in promises.deleted


@pytest.mark.parametrize(
    ("node", "lifted_ago", "ran_for", "is_broken"),
    [
        pytest.param("gpu-0", FENCED, FENCED, False, id="the lifted drain let it in"),
        pytest.param("gpu-0", FENCED, FENCE_SECONDS + 30, True, id="it was there before"),
        pytest.param("gpu-0", 60.0, 20.0, True, id="it came long after"),
        pytest.param("gpu-1", FENCED, FENCED, True, id="a drain of another node"),
    ],
)
def test_only_a_job_that_a_lifted_drain_let_in_may_be_ended_by_others(node, lifted_ago, ran_for, is_broken):
    world, promises = watched()
    running_worker(world, ran_for)
    promises.deeds.lifted[node] = world.loop.time() - lifted_ago

    for heard in world.on_slurm_write:
        heard("requeue job 1", (), 0.0)

    assert (world.violation is not None) is is_broken, world.violation


def watched() -> tuple[World, Promises]:
    """A world in which no time passes, and who looks after its promises."""
    loop = SimulatedLoop()
    loop.close()
    world = World(loop, 1, 0.0, WORKERS_ONLY)
    return world, Promises(world, Deeds(world, ObjectKey("ns", "gpu")))


def running_worker(world: World, ran_for: float) -> str:
    """A worker under a job that started so many seconds ago; gives the uid of its pod."""
    spec = {"nodeName": "m0", "terminationGracePeriodSeconds": 3600, "containers": []}
    world.server.create(
        kinds.POD, {"metadata": {"name": POD.name, "namespace": POD.namespace}, "spec": spec}, "x"
    )
    uid: str = world.server.get(kinds.POD, POD)["metadata"]["uid"]
    world.machines.add("m0")
    started_at = world.clock.now() - timedelta(seconds=ran_for)
    running = {"state": "RUNNING", "nodes": ("gpu-0",), "processes": {"gpu-0": uid}}
    world.ctld.jobs[1] = job(started_at=started_at, **running)
    world.machines.processes[uid] = Process(
        uid, "gpu-0", "m0", SLURMD, "gpu-0", "10.0.0.1", 8, (), started_at=EPOCH, registers_at=EPOCH
    )
    return uid
