"""What goes wrong in Slurm: daemons, nodes and jobs. Each is made for real, named, and repaired afterwards."""

from collections.abc import Iterator

from operator_rig import until
from patient import CONF, PATIENCE_S, Patient

from slurm_local.image.images import SLURM_SERIES

WORKER = "demo-odd-0"


def slurmctld_crash(it: Patient) -> Iterator[str]:
    """A file of its state is damaged: slurmctld rather ends than forgets jobs."""
    file = it.volume("statesave-demo-controller-0") / "job_state"
    until(file.exists, PATIENCE_S, lambda: f"{file}")
    good = file.read_bytes()
    file.write_bytes(b"spoilt")
    it.inside("demo-controller-0", "slurmctld", "pkill", "-KILL", "slurmctld")
    yield "cluster/demo"
    file.write_bytes(good)


def config_refused(it: Patient) -> Iterator[str]:
    it.wants(extraConf=CONF + "SchedulerTyp=sched/backfill\n")
    yield "cluster/demo"
    it.wants()


def does_not_register(it: Patient) -> Iterator[str]:
    """slurmctld has lost the record of a worker, and who would register it again does not move."""
    it.inside(WORKER, "slurmd", "pkill", "-STOP", "-f", "slurm-operator/entry")
    it.run("scontrol", "delete", f"NodeName={WORKER}")
    yield "nodeset/demo-odd"
    it.inside(WORKER, "slurmd", "pkill", "-CONT", "-f", "slurm-operator/entry")


def gres_mismatch(it: Patient) -> Iterator[str]:
    """Four GPUs by the manifest, and not one device in the pod."""
    it.wants(odd={"extraConf": "Gres=gpu:4"})
    yield "nodeset/demo-odd"
    it.wants()


def drained_by_human(it: Patient) -> Iterator[str]:
    it.run("scontrol", "update", f"NodeName={WORKER}", "State=DRAIN", "Reason=fan is loud")
    yield f"node/{WORKER}"
    it.run("scontrol", "update", f"NodeName={WORKER}", "State=RESUME")


def held_job(it: Patient) -> Iterator[str]:
    job = it.submit("true", "--hold")
    yield f"job/{job}"
    it.run("scontrol", "release", str(job))
    it.wait_over(job)


def impossible_job(it: Patient) -> Iterator[str]:
    """It was possible when it was submitted: the node with that feature has lost it since."""
    it.run(
        "scontrol", "update", "NodeName=demo-cpu-0", "AvailableFeatures=cpu,rare", "ActiveFeatures=cpu,rare"
    )
    job = it.submit("true", "--hold", "--constraint=rare")
    it.run("scontrol", "update", "NodeName=demo-cpu-0", "AvailableFeatures=cpu", "ActiveFeatures=cpu")
    it.run("scontrol", "release", str(job))
    yield f"job/{job}"
    it.run("scontrol", "update", f"JobId={job}", "Features=cpu")
    it.wait_over(job)


def full_queue(it: Patient) -> Iterator[str]:
    running = it.submit("sleep 600", "--nodes=3", "--exclusive", "--time=20")
    until(lambda: it.job_state(running) == "RUNNING", PATIENCE_S, lambda: it.job_state(running))
    first, second = (it.submit("true", "--nodes=3", "--exclusive", "--time=1") for _ in range(2))
    yield f"job/{second}"
    it.run("scancel", str(running))
    it.wait_over(first)
    it.wait_over(second)


def stuck_completing(it: Patient) -> Iterator[str]:
    """The job is cancelled, but who should end its processes does not move: as behind a dead file server."""
    job = it.submit("sleep 3600", f"--nodelist={WORKER}")
    until(lambda: it.job_state(job) == "RUNNING", PATIENCE_S, lambda: it.job_state(job))
    it.inside(WORKER, "slurmd", "pkill", "-STOP", "slurmstepd")
    it.run("scancel", str(job))
    yield f"job/{job}"
    it.inside(WORKER, "slurmd", "pkill", "-CONT", "slurmstepd")
    it.wait_over(job)


def version_skew(it: Patient) -> Iterator[str]:
    """slurmd says that it is a year newer: the same program, with another version written into it."""
    newer = f"{int(SLURM_SERIES[:2]) + 1}{SLURM_SERIES[2:]}"
    pretend = f"sed -i 's/{SLURM_SERIES}\\./{newer}./g' /usr/sbin/slurmd"
    entry = '/usr/lib/slurm-operator/entry slurmd "$@"'
    command = ["sh", "-c", f"{pretend} && exec tini -- {entry}", "sh"]
    it.wants(odd={"slurmd": {"command": command}})
    yield "nodeset/demo-odd"
    it.wants()


def expired_token(it: Patient) -> Iterator[str]:
    spec = {"username": "ada", "controllerRef": {"name": "demo"}, "refresh": False, "lifetime": "2s"}
    it.make("Token", "ada", spec)
    yield "token/ada"
    it.make("Token", "ada", {**spec, "refresh": True, "lifetime": "1h"})
    it.wait_well("token/ada")
    it.kubectl("delete", "token.slinky.slurm.net", "ada")


NODES = "demo-cpu-[0-1],demo-odd-0"


def all_drained(it: Patient) -> Iterator[str]:
    it.run("scontrol", "update", f"NodeName={NODES}", "State=DRAIN", "Reason=bad NIC")
    yield "cluster/demo"
    it.run("scontrol", "update", f"NodeName={NODES}", "State=RESUME")


def array_task(it: Patient) -> Iterator[str]:
    """As squeue prints the tasks that wait."""
    job = it.submit("true", "--hold", "--array=0-3")
    yield f"job/{job}_[0-3]"
    it.run("scancel", str(job))
    it.wait_over(job)


def lacks_memory(it: Patient) -> Iterator[str]:
    """Every node has CPUs to spare, and no memory."""
    running = it.submit("sleep 600", "--nodes=3", "--ntasks-per-node=1", "--mem=0", "--time=20")
    until(lambda: it.job_state(running) == "RUNNING", PATIENCE_S, lambda: it.job_state(running))
    job = it.submit("true", "--ntasks=1", "--mem=100", "--time=1")
    yield f"job/{job}"
    it.run("scancel", str(running))
    it.wait_over(job)


def failed_job(it: Patient) -> Iterator[str]:
    job = it.submit("exit 3")
    until(lambda: it.job_state(job) in ("FAILED", "FORGOTTEN"), PATIENCE_S, lambda: it.job_state(job))
    yield f"job/{job}"
