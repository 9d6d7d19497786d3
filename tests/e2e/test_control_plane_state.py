"""slurmctld whose state is gone while jobs run: it is noticed, nobody is removed, and workers come back."""

import pytest
from control_plane_rig import ControlPlane, control_plane
from job_ledger import Ledger
from operator_rig import install, until

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

# While this is there, a worker does not register again on its own.
HOLD = "/run/slurm-operator-leaving"


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    install(cluster, operator_image)
    with control_plane(cluster, workers=2) as made:
        yield made


def on_worker(slurm: ControlPlane, worker: str, *command: str) -> None:
    slurm.cluster.kubectl("exec", "-n", slurm.namespace, worker, "-c", "slurmd", "--", *command)


def lose_state(slurm: ControlPlane) -> None:
    """The directory is emptied under slurmctld, which then has no chance to save anything."""
    script = "rm -rf /var/spool/slurmctld/*/*; kill -KILL $(pidof slurmctld)"
    slurm.answers("sh", "-c", script)
    until(slurm.is_up, what=lambda: slurm.heads())


def test_nobody_is_removed_until_all_workers_are_back(slurm):
    until(lambda: slurm.status().get("workersKnownSince"), what=slurm.told)
    job = Ledger(slurm, "--nodelist=cpu-1")
    before = slurm.pods()
    for worker in before:
        on_worker(slurm, worker, "touch", HOLD)

    lose_state(slurm)
    until(lambda: slurm.status().get("stateLostSince"), what=slurm.told)
    assert slurm.condition("Degraded")["reason"] == "StateLost"
    assert "Not back yet: cpu-0, cpu-1" in slurm.condition("Degraded")["message"]
    slurm.cluster.kubectl("scale", "nodeset/cpu", "--replicas=0", "-n", slurm.namespace)
    assert job.is_running()

    on_worker(slurm, "cpu-0", "rm", HOLD)
    until(lambda: slurm.states().get("cpu-0") == "idle", 180, lambda: f"{slurm.states()} {slurm.told()}")
    told = lambda: slurm.condition("Progressing", "nodeset", "cpu")  # noqa: E731
    until(lambda: told().get("message", "").startswith("cpu-0: slurmctld lost its state"), what=told)
    assert told()["reason"] == "StateLost"
    assert slurm.pods() == before, "one is back and idle, but what is said of jobs is worth nothing yet"
    assert job.is_running()
    assert slurm.status().get("stateLostSince")

    on_worker(slurm, "cpu-1", "rm", HOLD)
    # A worker with a job stays unknown until that is over: slurmctld would end it as an orphan.
    job.wait_ended_by_itself()
    until(lambda: not slurm.status().get("stateLostSince"), 180, slurm.told)
    until(lambda: slurm.pods() == {}, 180, lambda: f"{slurm.pods()} {slurm.states()}")
