"""Operators swapped in the middle of an update, a scale-in and a change of a key, there and back, with jobs running.

Slinky's operator is a stand-in (`slinky_at_work.py`). The way back is taken as the guide says, on a cluster of this
module alone: it takes off what is ours everywhere.
"""

import base64
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane_rig import ControlPlane, complaints
from inherited import Inherited
from job_ledger import Ledger
from operator_rig import install, until
from slinky_at_work import SlinkyAtWork
from test_takeover import halt, left_behind, resume, wait_ready
from worker_changes import said, scale

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared.names import LABEL_HASH, POD_CORDON

pytestmark = [pytest.mark.timeout(1200), pytest.mark.minutes]

PROGRAM = Path(sys.executable).parent / "kubectl-slurm"


@pytest.fixture
def slurm(fragile_cluster: Cluster, paths: Paths, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A cluster of Slinky's that nobody looks after, with two workers."""
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    fragile_cluster.apply([crd(kind) for kind in KINDS])
    wait_established(fragile_cluster.kubectl)
    install(fragile_cluster, image.OPERATOR_IMAGE)
    halt(fragile_cluster)
    name = request.node.name.removeprefix("test_").partition("_is_")[0].replace("_", "-")
    with left_behind(fragile_cluster, name) as made:
        yield made
        resume(fragile_cluster)


def go_back(slurm: ControlPlane) -> None:
    """As the guide says: the operator is stopped, and what would be left behind is taken off."""
    halt(slurm.cluster)
    command = [PROGRAM, "doctor", "--to", "slinky", "--release", "--kubeconfig", slurm.cluster.kubeconfig]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for what in ("controller/slurm", "nodeset/cpu", "restapi/slurm"):
        left = json.loads(slurm.kubectl("get", what, "-o", "json"))["metadata"]
        assert "finalizers" not in left, what


def busy_workers(slurm: ControlPlane, *names: str) -> dict[str, Ledger]:
    return {name: Ledger(slurm, "--exclusive", f"--nodelist={name}") for name in names}


def change(slurm: ControlPlane, value: str) -> None:
    """Another revision of the workers."""
    labels = {"spec": {"template": {"metadata": {"labels": {"changed": value}}}}}
    slurm.kubectl("patch", "nodeset", "cpu", "--type=merge", "-p", json.dumps(labels))


def draining(slurm: ControlPlane) -> list[str]:
    return sorted(name for name, state in slurm.states().items() if state == "draining")


def hashes(slurm: ControlPlane) -> dict[str, str]:
    """The revision of each worker, as Slinky reads it."""
    pods = json.loads(slurm.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmd", "-o", "json"))[
        "items"
    ]
    return {pod["metadata"]["name"]: pod["metadata"]["labels"].get(LABEL_HASH, "") for pod in pods}


def cordons(slurm: ControlPlane) -> list[str]:
    pods = json.loads(slurm.kubectl("get", "pods", "-o", "json"))["items"]
    return [pod["metadata"]["name"] for pod in pods if POD_CORDON in pod["metadata"].get("annotations", {})]


def state_of(slurm: ControlPlane) -> str:
    return f"{slurm.states()} {slurm.pods()} {hashes(slurm)} {slurm.told()} {said(slurm)}"


def replaced(slurm: ControlPlane, before: dict[str, str], *names: str) -> bool:
    pods = slurm.pods()
    return all(pods.get(name) not in (None, before[name]) for name in names)


def test_an_update_is_gone_on_with_by_the_other_operator(slurm):
    slinky, before = SlinkyAtWork(slurm), slurm.pods()
    jobs = busy_workers(slurm, "cpu-0", "cpu-1")
    change(slurm, "by-slinky")
    slinky.until(lambda: draining(slurm) == ["cpu-1"], 60, lambda: state_of(slurm))
    assert cordons(slurm) == ["cpu-1"]

    resume(slurm.cluster)
    jobs["cpu-1"].outlives(30)
    assert slurm.pods() == before
    assert jobs["cpu-0"].is_running()
    jobs["cpu-1"].wait_ended_by_itself()
    until(lambda: replaced(slurm, before, "cpu-1"), 120, lambda: state_of(slurm))
    until(lambda: draining(slurm) == ["cpu-0"], 120, lambda: state_of(slurm))
    jobs["cpu-0"].outlives(10)
    jobs["cpu-0"].wait_ended_by_itself()
    until(lambda: replaced(slurm, before, "cpu-0", "cpu-1"), 120, lambda: state_of(slurm))
    slurm.wait_idle(2)
    wait_ready(slurm)
    assert cordons(slurm) == [], "what Slinky cordoned for its update is no wish of a user"
    newest = SlinkyAtWork(slurm).newest_revision()
    assert set(hashes(slurm).values()) == {newest}

    # And back, in the middle of the next one.
    before = slurm.pods()
    jobs = busy_workers(slurm, "cpu-0", "cpu-1")
    change(slurm, "by-us")
    until(lambda: len(draining(slurm)) == 1, 120, lambda: state_of(slurm))
    go_back(slurm)
    slinky.until(lambda: cordons(slurm), 60, lambda: state_of(slurm))
    for _ in range(15):
        slinky.work()
    assert slurm.pods() == before
    assert jobs["cpu-0"].is_running()
    assert jobs["cpu-1"].is_running()
    for _ in jobs:
        slinky.until(lambda: len(cordons(slurm)) == 1, 60, lambda: state_of(slurm))
        [next_one] = cordons(slurm)
        jobs[next_one].wait_ended_by_itself()
        slinky.until(
            lambda name=next_one: replaced(slurm, before, name) and slurm.states().get(name) == "idle",
            240,
            lambda: state_of(slurm),
        )
    slinky.until(lambda: not cordons(slurm) and not draining(slurm), 60, lambda: state_of(slurm))
    assert set(hashes(slurm).values()) == {slinky.newest_revision()}
    slurm.wait_idle(2)


def test_a_scale_in_is_gone_on_with_by_the_other_operator(slurm):
    slinky, before = SlinkyAtWork(slurm), slurm.pods()
    jobs = busy_workers(slurm, "cpu-0", "cpu-1")
    scale(slurm, 1)
    slinky.until(lambda: draining(slurm) == ["cpu-1"], 60, lambda: state_of(slurm))

    resume(slurm.cluster)
    jobs["cpu-1"].outlives(20)
    assert slurm.pods() == before
    scale(slurm, 2)  # Somebody thinks better of it: then the drain is lifted, and the cordon with it.
    until(lambda: not draining(slurm) and not cordons(slurm), 120, lambda: state_of(slurm))
    scale(slurm, 1)
    until(lambda: len(draining(slurm)) == 1, 120, lambda: state_of(slurm))
    [leaving] = draining(slurm)
    jobs[leaving].outlives(10)
    jobs.pop(leaving).wait_ended_by_itself()
    until(lambda: leaving not in slurm.pods(), 120, lambda: state_of(slurm))
    [(_, kept)] = jobs.items()
    assert kept.is_running()
    scale(slurm, 2)
    until(lambda: leaving in slurm.pods(), 120, lambda: state_of(slurm))
    until(lambda: slurm.states().get(leaving) == "idle", 120, lambda: state_of(slurm))

    # And back, in the middle of the next one.
    before, jobs = slurm.pods(), {kept.node: kept, **busy_workers(slurm, leaving)}
    scale(slurm, 1)
    until(lambda: len(draining(slurm)) == 1, 120, lambda: state_of(slurm))
    go_back(slurm)
    for _ in range(15):
        slinky.work()
    assert slurm.pods() == before
    assert all(job.is_running() for job in jobs.values())
    [condemned] = cordons(slurm)
    assert draining(slurm) == [condemned]
    jobs.pop(condemned).wait_ended_by_itself()
    slinky.until(lambda: condemned not in slurm.pods(), 240, lambda: state_of(slurm))
    [(name, last)] = jobs.items()
    assert last.is_running()
    assert slurm.pods() == {name: before[name]}
    last.wait_ended_by_itself()


def new_signing_key(slurm: ControlPlane) -> None:
    data = {"data": {"jwt.key": base64.b64encode(secrets.token_bytes(1024)).decode()}}
    slurm.kubectl("patch", "secret", "keys", "--type=merge", "-p", json.dumps(data))


def head(slurm: ControlPlane) -> str:
    return slurm.heads().get("slurm-controller-0", ("", 0))[0]


def test_a_new_signing_key_is_taken_up_by_the_other_operator(slurm):
    slinky, before, first = SlinkyAtWork(slurm), slurm.pods(), head(slurm)
    slinky.work()
    assert head(slurm) == first, "the stand-in has nothing to change"
    job = Ledger(slurm, "--exclusive", "--nodelist=cpu-0")
    new_signing_key(slurm)
    slinky.slurmctld()  # Its template is another one now, and Kubernetes replaces the pod.

    resume(slurm.cluster)
    until(lambda: head(slurm) not in ("", first), 180, lambda: state_of(slurm))
    wait_ready(slurm)
    assert slurm.pods() == before
    assert job.is_running()
    Ledger(slurm, "--exclusive", "--nodelist=cpu-1").wait_ended_by_itself()

    # And back, in the middle of the next one, with a worker that we made: it has the ring of keys, Slinky's have not.
    scale(slurm, 3)
    until(lambda: slurm.states().get("cpu-2") == "idle", 180, lambda: state_of(slurm))
    ours = Ledger(slurm, "--exclusive", "--nodelist=cpu-2")
    before, second = slurm.pods(), head(slurm)
    new_signing_key(slurm)
    waits = (
        f"jobs that have started: {job.job}, {ours.job}"  # It is Slinky's, so its Slurm key cannot be told.
    )
    until(
        lambda: waits in slurm.told(), 120, lambda: f"{waits}: {state_of(slurm)} {complaints(slurm.cluster)}"
    )
    assert head(slurm) == second
    go_back(slurm)
    slinky.slurmctld()
    until(lambda: head(slurm) not in ("", second), 180, lambda: f"{slurm.heads()}")
    until(slurm.is_up, 120, lambda: f"{slurm.heads()}")
    slinky.slurmctld()
    for job_ in (job, ours):
        job_.outlives(40)  # Longer than slurmctld waits for a slurmd that does not answer.
        assert job_.seen_by_slurm() == f"RUNNING {job_.node}"
    assert slurm.pods() == before
    last = Ledger(slurm, "--exclusive", "--nodelist=cpu-1")
    for job_ in (job, ours, last):
        job_.wait_ended_by_itself()
    slurm.wait_idle(3)
    assert Inherited(slurm).nodeset().spec.replicas == 3
