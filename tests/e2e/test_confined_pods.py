"""What the kernel says about daemons in real pods, and that jobs and their log go on as before."""

import pytest
from control_plane_rig import ControlPlane, control_plane
from operator_rig import install, until

from slurm_operator.manifests.builders import logs

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

# Of /proc/1/status: a seccomp filter, no new privileges, no capability now or ever.
CONFINED = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapBnd": "0" * 16}

PIPE = f"{logs.DIRECTORY}/slurmd.log"
FORGE = f"(echo forged > {PIPE}) 2> /dev/null || ln -sf /etc/passwd {PIPE} 2> /dev/null"


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    install(cluster, operator_image)
    with control_plane(cluster, ControlPlane.accounting, workers=1, accountingRef={"name": "books"}) as made:
        yield made


def privileges(made: ControlPlane, app: str, container: str) -> dict[str, str]:
    """What the first process of a container may do."""
    [pod] = made.kubectl("get", "pods", "-l", f"app.kubernetes.io/name={app}", "-o", "name").split()
    told = made.kubectl("exec", pod, "-c", container, "--", "cat", "/proc/1/status")
    lines = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
    return {name: lines[name] for name in CONFINED}


@pytest.mark.parametrize(
    ("app", "container"),
    [
        ("slurmctld", "slurmctld"), ("slurmctld", "logfile"), ("slurmdbd", "slurmdbd"),
        ("mariadb", "mariadb"), ("slurmrestd", "slurmrestd"), ("slurmd", "logfile"),
    ],
)  # fmt: skip
def test_the_kernel_lets_a_daemon_do_nothing_it_needs_not(slurm, app, container):
    assert privileges(slurm, app, container) == CONFINED


def test_a_worker_keeps_what_jobs_use(slurm):
    found = privileges(slurm, "slurmd", "slurmd")

    assert (found["Seccomp"], found["NoNewPrivs"]) == ("0", "0")


def test_jobs_run_and_neither_forge_nor_replace_the_log_of_slurmd(slurm):
    job = slurm.submit(f"{FORGE} && exit 1; exit 0")  # As Slurm's own user, who is not root.
    until(
        lambda: slurm.job_state(job) in ("COMPLETED", "FAILED", "FORGOTTEN"),
        what=lambda: slurm.job_state(job),
    )

    told = slurm.run("sacct", "--noheader", "--parsable2", f"--jobs={job}", "--format=State", "--allocations")
    assert told.split() == ["COMPLETED"]
    worker = next(iter(slurm.pods()))
    log = slurm.kubectl("logs", worker, "-c", "logfile")
    assert "slurmd started" in log
    assert "forged" not in log
    shown = slurm.kubectl("exec", worker, "-c", "slurmd", "--", "stat", "--format=%F %a %U", PIPE)
    assert shown.strip() == "fifo 600 root"
