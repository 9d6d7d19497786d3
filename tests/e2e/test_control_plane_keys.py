"""Keys that change under a running job: every daemon follows in a safe order, and none of them restarts needlessly."""

import base64
import json
import secrets
import subprocess

import pytest
from control_plane_rig import ControlPlane, control_plane
from job_ledger import Ledger
from operator_rig import install, until

from slurm_local.errors import LocalError

pytestmark = [pytest.mark.timeout(1800), pytest.mark.minutes]

STEPS = [
    "every daemon learns the new Slurm key; the old one signs",
    "every daemon signs with the new Slurm key",
    "every daemon forgets the old Slurm key",
]


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    """With slurmdbd and a login pod, which read keys only when they start."""
    install(cluster, operator_image)
    more = (ControlPlane.accounting, ControlPlane.loginset)
    with control_plane(cluster, *more, workers=2, accountingRef={"name": "books"}) as made:
        made.wait_ready("loginset", "login")
        made.keeps_books = True
        yield made


def key_status(slurm: ControlPlane) -> dict:
    return slurm.status().get("slurmKey") or {}


def change(slurm: ControlPlane, secret: str, entry: str, size: int) -> None:
    new = base64.b64encode(secrets.token_bytes(size)).decode()
    slurm.cluster.kubectl(
        "patch", "secret", secret, "-n", slurm.namespace, "-p", json.dumps({"data": {entry: new}})
    )


def everybody_understands_everybody(slurm: ControlPlane) -> bool:
    """A step on a worker from the head and from a login pod, and a word with slurmdbd."""
    try:
        ran = slurm.run("srun", "--overlap", "-N1", "hostname").strip()
        ran_too = slurm.in_login("timeout", "30", "srun", "--overlap", "-N1", "hostname").strip()
        known = slurm.run("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
    except (LocalError, subprocess.TimeoutExpired):
        return False  # A login pod or slurmdbd that is replaced just now.
    return {ran, ran_too} <= {"cpu-0", "cpu-1"} and slurm.status()["clusterName"] in known


def test_a_new_slurm_key_reaches_every_daemon_under_a_running_job(slurm):
    until(lambda: key_status(slurm).get("signing"), what=slurm.told)
    old, heads, workers = key_status(slurm)["signing"], slurm.heads(), slurm.worker_restarts()
    job = Ledger(slurm)

    change(slurm, slurm.status()["slurmKeySecret"], "slurm.key", 1024)

    for step in STEPS:
        until(lambda step=step: key_status(slurm).get("step") == step, 400, slurm.told)
        until(
            lambda: everybody_understands_everybody(slurm), 200, lambda step=step: f"{step}: {slurm.told()}"
        )
        assert job.is_running(), step
    until(lambda: key_status(slurm).get("step", "") == "", 400, slurm.told)

    assert key_status(slurm)["accepted"] == [key_status(slurm)["signing"]] != [old]
    assert (slurm.heads(), slurm.worker_restarts()) == (heads, workers), "nobody with jobs was restarted"
    until(lambda: everybody_understands_everybody(slurm), 200, slurm.told)
    job.wait_ended_by_itself()
    slurm.wait_idle(2)
    assert sorted(slurm.run("srun", "-N2", "hostname").split()) == ["cpu-0", "cpu-1"]

    slurm.kill_head()  # What starts now has only the new key.
    slurm.wait_idle(2)
    slurm.apply(slurm.nodeset(replicas=3))
    slurm.wait_idle(3)
    assert len(slurm.run("srun", "-N3", "hostname").split()) == 3
