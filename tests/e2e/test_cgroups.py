"""cgroup v2, where almost every cluster runs: a kubelet, containerd and slurmd in a virtual machine.

The worker is the pod that the operator creates, with the text of a Cluster whose isolation is `cgroup`. It takes
some minutes for each driver, without the kernel's help for virtual machines.
"""

import json
import re
import time
from collections.abc import Iterator

import pytest

from slurm_local import image
from slurm_operator.api.slinky.cluster import Isolation
from slurm_operator.reconcilers.cluster.isolation import Chosen
from slurm_operator.reconcilers.controller.configuration.slurm_conf import CGROUP_CONF
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from testing.boxed import conf
from testing.guest.node import ADDRESS, NAME, Node, for_kubelet_alone
from testing.workers import controller, nodeset

pytestmark = [pytest.mark.full, pytest.mark.minutes, pytest.mark.timeout(1500)]

LIMITS = {"cpu": "2", "memory": "800Mi"}
LINES = ("NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu Default=YES State=UP")
DEVICE = "/dev/fake0"  # The kernel's /dev/full under another name: nothing else uses it.

# Takes so many MiB and keeps them for a while.
EATS = "python3 -c 'import time; held = bytearray({mib} << 20); time.sleep({seconds})'"


def files(cgroup_conf: str, settings: dict[str, str]) -> dict[str, str]:
    whole = {**settings, "SlurmdParameters": "", "MinJobAge": "900", "GresTypes": "gpu"}
    return {
        "slurm.conf": conf.slurm_conf(ADDRESS, whole, LINES),
        "cgroup.conf": cgroup_conf,
        "gres.conf": f"Name=gpu File={DEVICE}\n",
    }


def of_a_cluster() -> dict[str, str]:
    chosen = Chosen(Isolation.CGROUP, "")
    return files(chosen.file, dict(line.split("=", 1) for line in chosen.lines("")))


def of_a_controller_alone() -> dict[str, str]:
    """As Slinky's operator renders it; the plugins are Slurm's defaults."""
    return files(CGROUP_CONF, {"ProctrackType": "", "TaskPlugin": ""})


def worker() -> dict[str, object]:
    made = nodeset(
        slurmd={"image": image.slurm_image("slurmd"), "resources": {"limits": LIMITS}},
        template={"spec": {"hostNetwork": True}},
        extraConf="MemSpecLimit=200 Gres=gpu:1",
    )
    pods = WorkerPods(made, controller(), revisions.current(made, ()))
    return for_kubelet_alone(pods.pod(Slot("gpu-0", "gpu-0", 0)))


@pytest.fixture(scope="module", params=["cgroupfs", "systemd"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp(request.param), request.param) as made:
        made.machine.run(f"mknod -m 666 {DEVICE} c 1 7")
        made.run_slurmctld(of_a_cluster())
        made.put_pod("gpu-0", worker())
        wait_idle(made)
        yield made


def wait_idle(node: Node) -> None:
    node.machine.wait_for(
        lambda: node.slurm("sinfo --noheader --format=%T", check=False) == "idle", "the worker", 180
    )


def submitted(node: Node, script: str, *options: str) -> int:
    node.machine.write("/test/ctld/job", f"#!/bin/sh\n{script}\n")
    command = f"sbatch --parsable --chdir=/tmp --output=/dev/null {' '.join(options)} /etc/slurm/job"
    return int(node.slurm(command))


def state(node: Node, job: int) -> str:
    shown = node.slurm(f"scontrol --oneliner show job {job}")
    return next(word.removeprefix("JobState=") for word in shown.split() if word.startswith("JobState="))


def wait_state(node: Node, job: int, *states: str) -> None:
    node.machine.wait_for(lambda: state(node, job) in states, f"job {job} to be {states}", 120)


def process_id(node: Node, process: str) -> int:
    """The oldest with such a command line, as soon as there is one: a job runs a while before its commands do."""
    found = f"pgrep --oldest --full '{process}'"
    node.machine.wait_for(lambda: node.machine.tried(found).code == 0, process)
    return int(node.machine.run(found))


def cgroup_of(node: Node, process: str) -> str:
    return node.machine.run(f"sed s/^0::// /proc/{process_id(node, process)}/cgroup").strip()


def adjustment(node: Node, process: str) -> int:
    return int(node.machine.run(f"cat /proc/{process_id(node, process)}/oom_score_adj"))


def read(node: Node, path: str) -> str:
    return node.machine.run(f"cat /sys/fs/cgroup{path}").strip()


def pod_cgroup(node: Node) -> str:
    """The part of slurmd's path up to its pod: the systemd driver writes `kubepods-burstable-podUID.slice`."""
    found = re.match(r"(/.*?(?:/|-)pod[0-9a-f][^/]*)", cgroup_of(node, "slurmd --systemd"))
    assert found is not None
    return found[1]


def job_cgroup(node: Node, process: str) -> str:
    """The part up to the job of this process: 26.05 names it by its SLUID, 24.11 by its number."""
    found = re.match(r".*slurmstepd\.scope/[^/]+", cgroup_of(node, process))
    assert found is not None
    return found[0]


def test_jobs_live_in_the_pods_cgroup_beside_the_container(node: Node) -> None:
    """So limits of the container, and CPUs that a CPU manager gives to it, do not bind them."""
    job = submitted(node, "sleep 600", "--mem=50")
    wait_state(node, job, "RUNNING")
    inside = job_cgroup(node, "^sleep 600")

    assert inside.startswith(f"{pod_cgroup(node)}/")
    assert read(node, f"{inside}/memory.max") == str(50 << 20)
    node.slurm(f"scancel {job}")
    wait_state(node, job, "CANCELLED")


def test_the_kernel_ends_a_job_before_slurmd(node: Node) -> None:
    """Else a node that is short of memory would take the container of slurmd, and with it every job there."""
    job = submitted(node, "sleep 600", "--mem=50")
    wait_state(node, job, "RUNNING")

    for kept in (
        "^tini -- .*entry slurmd",
        "^/usr/bin/python3 -I .*entry slurmd",
        "^slurmd --systemd",
        "^slurmstepd: .*batch",
    ):
        assert adjustment(node, kept) == -999
    assert adjustment(node, "^sleep 600") == 0
    node.slurm(f"scancel {job}")
    wait_idle(node)


def test_a_step_over_its_memory_is_ended_and_its_sibling_goes_on(node: Node) -> None:
    eater = EATS.format(mib=150, seconds=1)
    script = f"srun --overlap --exact --ntasks=1 --mem=100 sleep 20 & srun --overlap --exact --ntasks=1 --mem=100 {eater}; wait %1"
    job = submitted(node, script, "--mem=300", "--ntasks=2")

    wait_state(node, job, "COMPLETED", "FAILED", "OUT_OF_MEMORY")
    assert state(node, job) == "COMPLETED", "the sibling ended well"


def test_a_job_over_its_memory_is_out_of_memory(node: Node) -> None:
    job = submitted(node, EATS.format(mib=300, seconds=5), "--mem=100")

    wait_state(node, job, "COMPLETED", "FAILED", "OUT_OF_MEMORY")
    assert state(node, job) == "OUT_OF_MEMORY"
    assert node.slurm("sinfo --noheader --format=%T") == "idle"


def test_a_job_has_the_cpus_that_it_asked_for(node: Node) -> None:
    allowed = "sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status"
    one = node.slurm(f"srun --mem=50 --cpus-per-task=1 --exact {allowed}")
    moved = node.slurm("srun --mem=50 --cpus-per-task=1 --exact taskset -c 0-1 " + allowed, check=False)

    assert one in {"0", "1"}
    assert moved != "0-1", "it cannot take others"


def test_a_job_sees_the_devices_that_it_asked_for(node: Node) -> None:
    opened = f"sh -c 'head -c 1 {DEVICE} > /dev/null && echo read'"

    assert node.slurm(f"srun --mem=50 --gres=gpu:1 {opened}") == "read"
    refused = node.slurm(f"srun --mem=50 {opened}", check=False)
    assert "Operation not permitted" in refused
    assert "read" not in refused.split()


def test_a_cancelled_job_leaves_no_process_behind(node: Node) -> None:
    job = submitted(node, "(setsid sh -c 'sleep 4711 & sleep 4712' &) ; sleep 600", "--mem=50")
    wait_state(node, job, "RUNNING")
    node.machine.wait_for(lambda: node.machine.tried("pgrep --full 'sleep 4711'").code == 0, "its processes")

    node.slurm(f"scancel {job}")
    wait_state(node, job, "CANCELLED")
    gone = ("sleep 4711", "sleep 4712")
    node.machine.wait_for(
        lambda: all(node.machine.tried(f"pgrep --full '^{one}'").code for one in gone), "their end"
    )
    assert node.machine.run(f"find /sys/fs/cgroup{pod_cgroup(node)} -name 'step_*'") == "", (
        "no cgroup of it is left"
    )


def test_a_job_goes_on_through_reconfigures(node: Node) -> None:
    job = submitted(node, "sleep 600", "--mem=50")
    wait_state(node, job, "RUNNING")
    for _ in range(2):
        node.slurm("scontrol reconfigure")
        time.sleep(5)
    assert state(node, job) == "RUNNING"
    assert node.slurm(f"srun --overlap --jobid={job} echo here") == "here"
    node.slurm(f"scancel {job}")
    wait_idle(node)


def test_what_the_kubelet_tells_is_what_doctor_reads(node: Node) -> None:
    told = json.loads(node.ask_kubelet("configz"))["kubeletconfig"]

    assert told["cgroupDriver"] in ("cgroupfs", "systemd")
    assert told["cpuManagerPolicy"] == "none"
    assert not told.get("singleProcessOOMKill", False), "it stays away where nobody set it"
    assert "kubelet_cgroup_version 2" in node.ask_kubelet("metrics")


def test_a_pod_that_is_asked_to_end_waits_for_its_job(node: Node) -> None:
    pod = pod_cgroup(node)
    job = submitted(node, "sleep 25", "--mem=50")
    wait_state(node, job, "RUNNING")
    node.take_pod("gpu-0")

    wait_state(node, job, "COMPLETED", "FAILED", "NODE_FAIL", "PENDING")
    assert state(node, job) == "COMPLETED"
    gone = f"test -e /sys/fs/cgroup{pod}"
    node.machine.wait_for(
        lambda: node.machine.tried(gone).code != 0, "the kubelet to remove the pod's cgroup", 120
    )


def test_the_default_of_a_controller_constrains_nothing(node: Node) -> None:
    """As with Slinky's operator; `kubectl slurm doctor` says so."""
    node.take_pod("ctld")
    node.machine.wait_for(lambda: node.machine.tried("pgrep slurmctld").code != 0, "slurmctld to end", 60)
    node.run_slurmctld(of_a_controller_alone())
    node.put_pod("gpu-0", worker())
    wait_idle(node)
    job = submitted(node, EATS.format(mib=300, seconds=2), "--mem=60")

    wait_state(node, job, "COMPLETED", "FAILED", "OUT_OF_MEMORY")
    assert state(node, job) == "COMPLETED"
    assert NAME in node.slurm("sinfo --noheader --Node --format=%N")
