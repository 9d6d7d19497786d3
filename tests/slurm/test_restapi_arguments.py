"""slurmrestd with the arguments, the user and the files of a RestApi's pods."""

import json
import urllib.request
from datetime import UTC, datetime

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.plan.actions import Apply
from slurm_operator.reconcilers.restapi import RECONCILER
from testing.boxed.head import NOBODY
from testing.children import read, secret, with_config, with_secrets
from testing.daemons import SlurmDaemons
from testing.world import HandmadeWorld

PORT = 6830


def container(slurm_conf: str) -> dict:
    """The container that a RestApi gets beside this slurm.conf."""
    world = HandmadeWorld(things=[read(Controller, {}), read(RestApi, {"controllerRef": {"name": "slurm"}})])
    with_secrets(
        with_config(world, "slurm-config", slurm_conf=slurm_conf), secret("slurm-auth-slurm", slurm_key="k")
    )
    plan = RECONCILER.decide(RECONCILER.observe(ObjectKey("ns", "slurm"), world), datetime.now(UTC))
    [workload] = [
        a.manifest for a in plan.actions() if isinstance(a, Apply) and a.manifest["kind"] == "Deployment"
    ]
    [found] = workload["spec"]["template"]["spec"]["containers"]
    return found


def paths(slurm: SlurmDaemons, log) -> list[str]:
    """What slurmrestd offers when it is started as in a pod."""
    box = slurm.head.box
    pod = container(box.path("/etc/slurm/slurm.conf").read_text())
    arguments = [argument.replace(":6820", f":{PORT}") for argument in pod["args"]]
    env = {one["name"]: one["value"] for one in pod["env"]}
    process = box.start(["slurmrestd", *arguments], log, user=NOBODY, env=env)
    try:
        slurm.wait_for(
            lambda: slurm.head._listens(PORT) or process.poll() is not None, "slurmrestd to listen"
        )
        assert process.poll() is None, log.read_text()
        request = urllib.request.Request(
            f"http://{slurm.head.address}:{PORT}/openapi/v3", headers={"X-SLURM-USER-TOKEN": slurm.token()}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return list(json.load(answer)["paths"])
    finally:
        box.run("pkill", "--full", f"slurmrestd.*:{PORT}")
        process.wait()


def test_without_accounting_it_serves_slurmctld_only(slurm, tmp_path):
    offered = paths(slurm, tmp_path / "log")

    assert any(path.startswith("/slurm/") for path in offered)
    assert not any(path.startswith("/slurmdb/") for path in offered)


def test_with_accounting_it_serves_slurmdbd_too(slurm_with_accounting, tmp_path):
    offered = paths(slurm_with_accounting, tmp_path / "log")

    assert any(path.startswith("/slurmdb/") for path in offered)
