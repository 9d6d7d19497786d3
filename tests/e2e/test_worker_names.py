"""Users move about a cluster: workers have names, and ssh lets in who has a job there."""

import base64

import pytest
from operator_rig import PROCESS_CONF, Slurm, until
from test_slurm_workers import cluster_of, operator

from slurm_local.errors import LocalError
from slurm_local.image.images import slurm_image

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

# pam_slurm_adopt wants every job to have a step that ssh sessions can be put into.
CONF = (
    PROCESS_CONF + "PrologFlags=Contain\nPartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n"
)
SSHD_NEEDS = ["SYS_CHROOT", "AUDIT_WRITE", "DAC_OVERRIDE", "FOWNER", "NET_BIND_SERVICE"]
ALICE = ("setpriv", "--reuid=2001", "--regid=2001", "--clear-groups", "env", "HOME=/home/alice")


def login(slurm: Slurm) -> dict:
    security = {"privileged": False, "capabilities": {"add": ["AUDIT_WRITE"]}}
    container = {"image": slurm_image("login"), "imagePullPolicy": "Never", "securityContext": security}
    return slurm.kind("LoginSet", "login", {"controllerRef": {"name": "slurm"}, "login": container})


def door(slurm: Slurm) -> dict:
    """A worker that runs sshd."""
    made = slurm.nodeset("door", replicas=1, ssh={"enabled": True})
    made["spec"]["slurmd"]["securityContext"]["capabilities"]["add"] += SSHD_NEEDS
    return made


@pytest.fixture(scope="module")
def slurm(operator):
    with cluster_of(operator, login, door, extraConf=CONF) as made:
        made.wait_idle(3, 240)
        made.kubectl("wait", "--for=condition=Ready", "loginset/login", "--timeout=120s")
        yield made


def in_login(slurm: Slurm, *command: str) -> str:
    return slurm.cluster.kubectl(
        "exec", "-n", slurm.namespace, "deploy/login", "-c", "login", "--", *command, timeout_s=60
    )


def in_worker(slurm: Slurm, pod: str, *command: str) -> str:
    return slurm.cluster.kubectl(
        "exec", "-n", slurm.namespace, pod, "-c", "slurmd", "--", *command, timeout_s=60
    )


def test_names_of_workers_resolve_wherever_people_work(slurm):
    addresses = dict(
        line.split()
        for line in slurm.run(
            "sinfo", "--noheader", "--Node", "--Format=NodeList:60,NodeAddr:60"
        ).splitlines()
    )
    assert sorted(addresses) == ["cpu-0", "cpu-1", "door-0"]

    for name, address in addresses.items():
        lookup = ("getent", "ahostsv4", name)
        for told in (slurm.run(*lookup), in_login(slurm, *lookup), in_worker(slurm, "cpu-0", *lookup)):
            assert told.split()[0] == address

    for told in (
        slurm.run("srun", "-N3", "hostname"),
        in_login(slurm, "srun", "-N3", "hostname"),
        in_worker(slurm, "cpu-1", "srun", "-N3", "hostname"),
    ):
        assert sorted(told.split()) == sorted(addresses)


def ssh(slurm: Slurm) -> str:
    """What a user finds behind the door; the words of whoever refuses."""
    quiet = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes")
    try:
        return in_login(slurm, *ALICE, "ssh", *quiet, "alice@door-0", "hostname").strip()
    except LocalError as error:
        return str(error)


def a_user_with_a_key(slurm: Slurm) -> None:
    """On the login pod and on the worker with sshd: other clusters have one directory of users and homes."""
    user = "useradd --create-home --uid 2001 --shell /bin/sh alice"
    in_login(slurm, "sh", "-c", user)
    in_login(
        slurm,
        *ALICE,
        "sh",
        "-c",
        "mkdir -m 700 ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519",
    )
    public = base64.b64encode(in_login(slurm, "cat", "/home/alice/.ssh/id_ed25519.pub").encode()).decode()
    keys = f"mkdir -m 700 ~/.ssh && echo {public} | base64 -d > ~/.ssh/authorized_keys"
    in_worker(slurm, "door-0", "sh", "-c", user)
    in_worker(slurm, "door-0", *ALICE, "sh", "-c", keys)


def submit(slurm: Slurm, worker: str) -> str:
    options = ("--parsable", "--output=/dev/null", "--chdir=/tmp", f"--nodelist={worker}", "--wrap=sleep 600")
    job = in_login(slurm, *ALICE, "sbatch", *options).strip()
    until(lambda: slurm.job_state(int(job)) == "RUNNING", 60, lambda: slurm.job_state(int(job)))
    return job


def test_ssh_lets_in_who_has_a_job_there_and_nobody_else(slurm):
    a_user_with_a_key(slurm)

    assert "no active jobs" in ssh(slurm)
    elsewhere = submit(slurm, "cpu-0")
    assert "no active jobs" in ssh(slurm), "a job on another worker opens no door here"
    job = submit(slurm, "door-0")
    until(lambda: ssh(slurm) == "door-0", 30, lambda: ssh(slurm))

    slurm.run("scancel", job, elsewhere)
    until(lambda: slurm.states()["door-0"] == "idle", 60, lambda: slurm.states())
    assert "no active jobs" in ssh(slurm)
