"""The rig itself: real daemons that behave as they do in pods."""

import json
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from testing.daemons import SlurmDaemons


def nodes(slurm: SlurmDaemons, token: str | None = None) -> dict[str, Any]:
    headers = {"X-SLURM-USER-TOKEN": token or slurm.token()}
    request = urllib.request.Request(f"{slurm.rest_url}/slurm/v0.0.45/nodes/", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {node["name"]: node for node in json.load(answer)["nodes"]}


def test_workers_register_with_their_own_address_and_start_time(slurm):
    found = nodes(slurm)

    assert {name: node["address"] for name, node in found.items()} == {
        name: worker.address for name, worker in slurm.workers.items()
    }
    assert all("DYNAMIC_NORM" in node["state"] for node in found.values())
    assert all(node["slurmd_start_time"]["number"] > 0 for node in found.values())


def test_a_job_of_an_ordinary_user_runs_on_two_workers(slurm):
    job = slurm.submit("srun hostname", "--nodes=2")

    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", f"job {job} to complete")


def test_slurmrestd_refuses_a_token_of_another_key(slurm):
    with pytest.raises(urllib.error.HTTPError) as refused:
        nodes(slurm, token=slurm.token() + "x")

    refused.value.close()
    assert refused.value.code in (401, 511)


def test_a_recreated_worker_has_a_new_address_under_the_old_name(slurm):
    before = nodes(slurm)["w-1"]
    slurm.remove_worker("w-1")
    slurm.add_worker("w-1")

    after = nodes(slurm)["w-1"]
    assert after["address"] == slurm.workers["w-1"].address != before["address"]
    assert after["slurmd_start_time"]["number"] >= before["slurmd_start_time"]["number"]


def test_a_worker_has_the_address_that_it_speaks_from_whatever_it_says(slurm):
    slurm.add_worker("w-2", conf="Features=all NodeAddr=192.0.2.1")

    assert nodes(slurm)["w-2"]["address"] == slurm.workers["w-2"].address


def test_a_frozen_slurmctld_takes_connections_and_answers_when_it_is_thawed(slurm):
    slurm.slurmctld.pause()
    with pytest.raises(subprocess.TimeoutExpired):
        slurm.run("scontrol", "ping", timeout_s=2)
    slurm.slurmctld.resume()

    assert "UP" in slurm.run("scontrol", "ping")


def test_jobs_outlive_a_restarted_slurmctld(slurm):
    job = slurm.submit("sleep 600")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    slurm.slurmctld.restart()

    assert slurm.job_state(job) == "RUNNING"


def test_daemons_are_still_found_after_a_reconfigure(slurm):
    slurm.reconfigure()

    found = [slurm.slurmctld, *(worker.slurmd for worker in slurm.workers.values())]
    slurm.wait_for(lambda: all(daemon.is_running for daemon in found), "all of them to be found")


def test_accounting_remembers_a_finished_job(slurm_with_accounting):
    slurm = slurm_with_accounting
    job = slurm.submit("true")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", f"job {job} to complete")

    def remembered() -> bool:
        return "COMPLETED" in slurm.run("sacct", "-nX", f"-j{job}", "-ostate")

    slurm.wait_for(remembered, "sacct to show it")


def test_everything_ends_with_the_process_that_started_it(rootfs: Path, tmp_path: Path):
    program = (
        "import sys, time, pathlib\n"
        "from testing.daemons import SlurmDaemons\n"
        f"slurm = SlurmDaemons(pathlib.Path({str(rootfs)!r}), pathlib.Path({str(tmp_path)!r}))\n"
        "slurm.start()\n"
        "print(slurm.head.box.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        first_process = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)

    # Waits for the kernel to end the box; a process of it that stayed would make this time out.
    descriptor = _watch(first_process)
    if descriptor is not None:
        assert select.select([descriptor], [], [], 30)[0], "the box outlived its owner"
        os.close(descriptor)


def _watch(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, or nothing when it has ended already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
