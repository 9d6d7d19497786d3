"""What slurmd answers to the probes of a kubelet, and what its silence does to jobs."""

import time

from testing.daemons import SlurmDaemons

# As a kubelet asks: within a second, from the same network.
ASK = """
import urllib.error, urllib.request
try:
    print(urllib.request.urlopen("http://127.0.0.1:6818/readyz", timeout=1).status)
except urllib.error.HTTPError as refused:
    print(refused.code)
except OSError:
    print(0)
"""


def readiness(slurm: SlurmDaemons, worker: str) -> int:
    """The status of the answer; 0 when there is none."""
    return int(slurm.workers[worker].box.run("python3", "-c", ASK).stdout)


def test_a_slurmd_is_ready_whatever_slurmctld_does(slurm):
    """Else every restart of slurmctld would look as if all workers had stopped answering."""
    assert readiness(slurm, "w-0") == 204
    slurm.slurmctld.pause()
    time.sleep(4)
    assert readiness(slurm, "w-0") == 204
    slurm.slurmctld.resume()
    slurm.slurmctld.stop()
    time.sleep(4)
    assert readiness(slurm, "w-0") == 204
    slurm.slurmctld.start()
    assert readiness(slurm, "w-0") == 204


def test_a_slurmd_that_is_stopped_does_not_answer_and_its_job_goes_on(slurm):
    job = slurm.submit("sleep 60", "--nodelist=w-0")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    slurm.workers["w-0"].slurmd.pause()

    assert readiness(slurm, "w-0") == 0
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", "reason=slurm-operator: Unresponsive: x")
    assert slurm.job_state(job) == "RUNNING"
    slurm.workers["w-0"].slurmd.resume()
    slurm.wait_for(lambda: readiness(slurm, "w-0") == 204, "slurmd to answer again")
    slurm.run("scontrol", "update", "nodename=w-0", "state=undrain")
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.node_states("w-0") & {"DRAIN", "DOWN"} == set()
