"""slurmrestd with the arguments, the user and the files of a RestApi's pods, started as images start it."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_entry_points import ENTRY, add_entry_points

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.plan.actions import Apply
from slurm_operator.reconcilers.restapi import RECONCILER
from slurm_operator.reconcilers.restapi.desired import THREADS
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


# What comes before the arguments of the pod. Slinky's image, by its published build file, starts slurmrestd
# without a program of its own before it: nobody there reads SLURMRESTD_OPTIONS.
OURS, SLINKYS = (ENTRY, "slurmrestd"), ("tini", "-g", "--", "slurmrestd")
images = pytest.mark.parametrize("entry", [OURS, SLINKYS], ids=["our image", "like Slinky's image"])


@contextmanager
def running(slurm: SlurmDaemons, log: Path, entry: tuple[str, ...]) -> Iterator[None]:
    """slurmrestd as in a pod, until it listens."""
    box = slurm.head.box
    if not box.path(ENTRY).is_symlink():  # Other tests share it.
        add_entry_points(box)
    pod = container(box.path("/etc/slurm/slurm.conf").read_text())
    arguments = [argument.replace(":6820", f":{PORT}") for argument in pod["args"]]
    env = {one["name"]: one["value"] for one in pod["env"]}
    process = box.start([*entry, *arguments], log, user=NOBODY, env=env)
    try:
        slurm.wait_for(
            lambda: slurm.head._listens(PORT) or process.poll() is not None, "slurmrestd to listen"
        )
        assert process.poll() is None, log.read_text()
        yield
    finally:
        box.run("pkill", "--full", f"slurmrestd.*:{PORT}")
        process.wait()


def paths(slurm: SlurmDaemons) -> list[str]:
    """What it offers."""
    request = urllib.request.Request(
        f"http://{slurm.head.address}:{PORT}/openapi/v3", headers={"X-SLURM-USER-TOKEN": slurm.token()}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return list(json.load(answer)["paths"])


def slurmrestd(slurm: SlurmDaemons) -> tuple[int, list[str]]:
    """Its number in the box, and what it was called with."""
    called = ((pid, [word for word in argv if word]) for pid, argv in slurm.head.box.processes())
    [found] = [
        (pid, argv)
        for pid, argv in called
        if argv[0].endswith("slurmrestd") and argv[-1].endswith(f":{PORT}")
    ]
    return found


def threads(slurm: SlurmDaemons) -> int:
    pid, _ = slurmrestd(slurm)
    return int(re.search(r"Threads:\s+(\d+)", slurm.head.box.path(f"/proc/{pid}/status").read_text())[1])


@images
def test_without_accounting_it_serves_slurmctld_only(slurm, tmp_path, entry):
    with running(slurm, tmp_path / "log", entry):
        offered = paths(slurm)

    assert any(path.startswith("/slurm/") for path in offered)
    assert not any(path.startswith("/slurmdb/") for path in offered)


@images
def test_with_accounting_it_serves_slurmdbd_too(slurm_with_accounting, tmp_path, entry):
    with running(slurm_with_accounting, tmp_path / "log", entry):
        offered = paths(slurm_with_accounting)

    assert any(path.startswith("/slurmdb/") for path in offered)


def test_our_image_reads_the_number_of_threads_and_one_that_does_not_runs_with_slurmrestds_own(
    slurm, tmp_path
):
    plain = ["-s", "openapi/slurmctld", f"0.0.0.0:{PORT}"]
    with running(slurm, tmp_path / "ours", OURS):
        assert slurmrestd(slurm)[1][1:] == ["-t", str(THREADS), *plain]
        paths(slurm)
        assert threads(slurm) > THREADS
    with running(slurm, tmp_path / "theirs", SLINKYS):
        assert slurmrestd(slurm)[1][1:] == plain
