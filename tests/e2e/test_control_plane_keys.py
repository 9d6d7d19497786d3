"""Keys that change under a running job: every daemon follows in a safe order, and none of them restarts in vain."""

import base64
import json
import secrets

import pytest
from control_plane_rig import ControlPlane, control_plane
from job_ledger import Ledger
from operator_rig import install, until

pytestmark = [pytest.mark.timeout(1800), pytest.mark.full]

STEPS = [
    "every daemon learns the new Slurm key; the old one signs",
    "every daemon signs with the new Slurm key",
    "every daemon forgets the old Slurm key",
]


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    install(cluster, operator_image)
    with control_plane(cluster, workers=2) as made:
        yield made


def key_status(slurm: ControlPlane) -> dict:
    return slurm.status().get("slurmKey") or {}


def change(slurm: ControlPlane, secret: str, entry: str, size: int) -> None:
    new = base64.b64encode(secrets.token_bytes(size)).decode()
    slurm.cluster.kubectl(
        "patch", "secret", secret, "-n", slurm.namespace, "-p", json.dumps({"data": {entry: new}})
    )


def test_a_new_slurm_key_reaches_every_daemon_under_a_running_job(slurm):
    until(lambda: key_status(slurm).get("signing"), what=slurm.told)
    old, heads, workers = key_status(slurm)["signing"], slurm.heads(), slurm.worker_restarts()
    job = Ledger(slurm)

    change(slurm, "slurm-auth-slurm", "slurm.key", 1024)

    for step in STEPS:
        until(lambda step=step: key_status(slurm).get("step") == step, 300, slurm.told)
        assert slurm.run("srun", "--overlap", "-N1", "hostname").strip() in ("cpu-0", "cpu-1"), step
        assert job.is_running(), step
    until(lambda: key_status(slurm).get("step", "") == "", 300, slurm.told)

    assert key_status(slurm)["accepted"] == [key_status(slurm)["signing"]] != [old]
    assert (slurm.heads(), slurm.worker_restarts()) == (heads, workers), "nobody was restarted"
    job.wait_ended_by_itself()
    slurm.wait_idle(2)
    assert sorted(slurm.run("srun", "-N2", "hostname").split()) == ["cpu-0", "cpu-1"]
