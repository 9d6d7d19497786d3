"""A live cluster of the Slinky operator, with a job running on it, is taken over without a scratch."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from control_plane_rig import ControlPlane
from e2e_pods import make_namespace
from inherited import Inherited
from job_ledger import Ledger
from operator_rig import Slurm, install, until
from test_control_plane_ha import clients_find_it, next_step, settle, state_claim

from slurm_local.slurm_cluster import OPERATOR_NAMESPACE, wait_established
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared.names import LABEL_HASH
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import their_hash

pytestmark = pytest.mark.timeout(600)

NAMED_KEYS = {
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
}


ACTIVE = "controller.slinky.slurm.net/active"
CHANGE = json.dumps({"spec": {"template": {"metadata": {"annotations": {"example.org/changed": "yes"}}}}})


@pytest.fixture
def unattended(cluster, operator_image):
    """A cluster without an operator, until the test brings it back."""
    cluster.apply([crd(kind) for kind in KINDS])
    wait_established(cluster.kubectl)
    install(cluster, operator_image)
    halt(cluster)
    yield cluster
    resume(cluster)


@contextmanager
def left_behind(cluster, namespace: str, backups: int = 0, **controller: object) -> Iterator[ControlPlane]:
    """A Slurm cluster that no operator looks after right now, with two idle workers."""
    make_namespace(cluster, namespace)
    slurm = ControlPlane(cluster, namespace)
    left = Inherited(slurm, backups)
    spec = {**NAMED_KEYS, "extraConf": left.extra_conf, **controller}
    slurm.apply(
        slurm.files(),
        left.keys(),
        *([state_claim(slurm)] if backups else []),
        slurm.controller(**spec),
        slurm.restapi(),
        slurm.nodeset(),
    )
    left.make()
    for index in range(1 + backups):
        until(
            lambda name=f"slurm-controller-{index}": pod_is_ready(slurm, name),
            what=lambda: f"{slurm.heads()}",
        )
    slurm.kubectl("label", "pod", "slurm-controller-0", f"{ACTIVE}=true")
    slurm.wait_idle(2)
    yield slurm
    slurm.delete()


@pytest.fixture
def inherited(unattended):
    with left_behind(unattended, "inherited") as slurm:
        yield slurm


@pytest.fixture
def inherited_pair(unattended):
    """The same with a slurmctld that stands by."""
    ha = {"enabled": True, "backups": 1}
    persistence = {"enabled": True, "existingClaim": "state"}
    with left_behind(unattended, "inherited-pair", 1, ha=ha, persistence=persistence) as slurm:
        yield slurm


def halt(cluster) -> None:
    cluster.kubectl("scale", "deployment/slurm-operator", "--replicas=0", "-n", OPERATOR_NAMESPACE)
    managers = ("get", "pods", "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=slurm-operator")
    until(lambda: not cluster.kubectl(*managers, "-o", "name").strip())


def resume(cluster) -> None:
    cluster.kubectl("scale", "deployment/slurm-operator", "--replicas=1", "-n", OPERATOR_NAMESPACE)
    cluster.kubectl(
        "rollout", "status", "deployment/slurm-operator", "-n", OPERATOR_NAMESPACE, "--timeout=120s"
    )


def pod_is_ready(slurm: Slurm, name: str) -> bool:
    out = slurm.cluster.kubectl("get", "pods", "-n", slurm.namespace, "-o", "json")
    return any(
        pod["metadata"]["name"] == name
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
        for pod in json.loads(out)["items"]
    )


def lives(slurm: Slurm) -> dict[str, tuple[str, int]]:
    """Pods, claims and Secrets with their uid, and how often a container of theirs was started again."""
    out = slurm.cluster.kubectl("get", "pods,pvc,secrets", "-n", slurm.namespace, "-o", "json")
    return {
        f"{thing['kind']}/{thing['metadata']['name']}": (
            thing["metadata"]["uid"],
            sum(one["restartCount"] for one in thing.get("status", {}).get("containerStatuses", ())),
        )
        for thing in json.loads(out)["items"]
    }


def wait_ready(slurm: Slurm) -> None:
    for what in ("controller/slurm", "restapi/slurm", "nodeset/cpu"):
        for condition in ("Ready", "Degraded=false"):
            slurm.kubectl("wait", f"--for=condition={condition}", what, "--timeout=120s")


def test_a_live_cluster_is_taken_over_and_given_back_with_its_job_running(inherited):
    slurm = inherited
    job, before = Ledger(slurm, "--exclusive"), lives(slurm)

    resume(slurm.cluster)
    wait_ready(slurm)

    assert job.is_running()
    after = lives(slurm)
    assert {name: after.get(name) for name in before} == before
    assert ACTIVE not in selector(slurm)
    hash_ = their_hash(Inherited(slurm).nodeset())
    revisions = slurm.cluster.kubectl("get", "controllerrevisions", "-n", "inherited", "-o", "name").split()
    assert [name for name in revisions if "cpu" in name] == [f"controllerrevision.apps/cpu-{hash_}"]

    halt(slurm.cluster)  # And back: what the other operator looks for is still as it left it.
    assert job.is_running()
    pods = json.loads(slurm.cluster.kubectl("get", "pods", "-n", "inherited", "-o", "json"))["items"]
    labels = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in pods}
    assert labels["slurm-controller-0"][ACTIVE] == "true"
    assert {labels[name][LABEL_HASH] for name in ("cpu-0", "cpu-1")} == {hash_}
    job.wait_ended_by_itself()
    assert {name: lives(slurm).get(name) for name in before} == before


def selector(slurm: Slurm) -> dict:
    """Which pods are behind the Service of slurmctld."""
    service = slurm.kubectl("get", "service", "slurm-controller", "-o", "json")
    return json.loads(service)["spec"]["selector"]


@pytest.mark.full
def test_a_cluster_with_a_backup_is_taken_over_with_its_job_running(inherited_pair):
    slurm = inherited_pair
    job, before, heads = Ledger(slurm, "--exclusive"), lives(slurm), slurm.heads()

    resume(slurm.cluster)
    wait_ready(slurm)
    assert job.node in next_step(slurm, job)
    # slurmrestd restarts with a file that names each slurmctld by a Service of its own; all others read it.
    kept = {name: life for name, life in before.items() if "restapi" not in name}
    assert {name: lives(slurm).get(name) for name in kept} == kept
    assert selector(slurm)[ACTIVE] == "true", "both are ready, and only one is in charge"
    job.wait_ended_by_itself()

    until(lambda: slurm.status().get("config", {}).get("owed") == "nothing", 240, slurm.told)
    slurm.wait_idle(2)
    assert {name: lives(slurm).get(name) for name in kept} == kept

    slurm.kubectl("patch", "controller", "slurm", "--type=merge", "-p", CHANGE)
    until(
        lambda: not set(heads.values()) & set(slurm.heads().values()),
        240,
        lambda: f"{slurm.heads()} {slurm.told()}",
    )
    settle(slurm)
    until(lambda: ACTIVE not in selector(slurm), 60, lambda: f"{selector(slurm)}")
    wait_ready(slurm)
    last = Ledger(slurm)
    until(lambda: last.node in next_step(slurm, last), 120, slurm.told)
    assert clients_find_it(slurm)
    last.wait_ended_by_itself()
