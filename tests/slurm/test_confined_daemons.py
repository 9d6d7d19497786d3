"""Real daemons without capabilities and without new privileges, and a log of slurmd that jobs cannot touch."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from slurm_local.machine.cell import wait_until
from slurm_operator.manifests.builders import logs
from testing.boxed.box import Box
from testing.boxed.daemon import Daemon
from testing.daemons import SlurmDaemons

PIPE = f"{logs.DIRECTORY}/slurmd.log"

# As the kernel tells it of a process that can do nothing that its user cannot.
CONFINED = {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16}


def privileges(daemon: Daemon) -> dict[str, str]:
    [pid] = daemon.pids()
    told = daemon.box.path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
    return {name: lines[name] for name in CONFINED}


def test_a_cluster_works_whose_daemons_have_no_capabilities(new_slurm: Callable[..., SlurmDaemons]):
    slurm = new_slurm(accounting=True, confined=True)
    slurm.add_worker("w-0")
    job = slurm.submit("hostname")

    slurm.wait_for(lambda: slurm.job_state(job) in ("COMPLETED", "GONE"), "the job to complete")
    slurm.wait_for(
        lambda: "COMPLETED" in slurm.run("sacct", "--noheader", f"--jobs={job}", "--format=State"),
        "the job to be in the books",
    )
    slurm.reconfigure()
    again = slurm.submit("hostname")
    slurm.wait_for(lambda: slurm.job_state(again) in ("COMPLETED", "GONE"), "a job after a reconfigure")

    daemons = [slurm.slurmctld, slurm.slurmdbd, slurm.slurmrestd, slurm.mariadbd]
    assert {daemon.name: privileges(daemon) for daemon in daemons} == {
        daemon.name: CONFINED for daemon in daemons
    }


def test_jobs_neither_forge_nor_replace_the_log_of_slurmd(
    new_slurm: Callable[..., SlurmDaemons], tmp_path: Path
):
    output, sidecars = tmp_path / "followed", []

    def follow(box: Box) -> None:
        folder = box.path(logs.DIRECTORY)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)  # It belongs to root and is open to all, as volumes in memory are.
        os.chown(folder, 0, 0)
        command = ["sh", "-c", logs.FOLLOW]
        sidecars.append(box.start(command, output, user=(0, 0), env={"SOCKET": PIPE}, confined=True))
        wait_until(box.path(PIPE).exists, "the pipe for the log", 60)

    slurm = new_slurm(settings={"SlurmdLogFile": PIPE}, beside=follow)
    worker = slurm.add_worker("w-0")
    forge = f"(echo forged > {PIPE}) 2> /dev/null && exit 1; ln -sf /etc/passwd {PIPE} 2> /dev/null && exit 1; exit 0"
    job = slurm.submit(forge)

    slurm.wait_for(lambda: slurm.job_state(job) in ("COMPLETED", "FAILED"), "the job to end")
    assert slurm.job_state(job) == "COMPLETED"
    slurm.wait_for(lambda: b"slurmd started" in output.read_bytes(), "the log to be followed")
    assert b"forged" not in output.read_bytes()
    pipe = worker.box.path(PIPE).lstat()
    assert stat.S_ISFIFO(pipe.st_mode)
    assert stat.S_IMODE(pipe.st_mode) == 0o600
    slurm.close()  # Their boxes end, and they with them.
    for sidecar in sidecars:
        sidecar.wait()
