"""A live cluster of the operator before us, with a job running on it, is taken over without a scratch."""

import json

import pytest
from e2e_pods import make_namespace
from inherited import Inherited
from job_ledger import Ledger
from operator_rig import Slurm, install, until

from slurm_operator.api import KINDS
from slurm_operator.api.crd import crd
from slurm_operator.local.operated import OPERATOR_NAMESPACE, wait_established

pytestmark = pytest.mark.timeout(600)

NAMED_KEYS = {
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
}


@pytest.fixture
def inherited(cluster, operator_image):
    """A Slurm cluster that no operator looks after right now, with two idle workers."""
    cluster.apply([crd(kind) for kind in KINDS])
    wait_established(cluster.kubectl)
    install(cluster, operator_image)
    halt(cluster)
    make_namespace(cluster, "inherited")
    slurm = Slurm(cluster, "inherited")
    left = Inherited(slurm)
    slurm.apply(slurm.files(), left.keys(), slurm.controller(**NAMED_KEYS), slurm.restapi(), slurm.nodeset())
    left.make()
    until(lambda: pod_is_ready(slurm, "slurm-controller-0"), what=lambda: "slurmctld to be ready")
    cluster.kubectl(
        "label", "pod", "slurm-controller-0", "-n", "inherited", "controller.slinky.slurm.net/active=true"
    )
    slurm.wait_idle(2)
    yield slurm
    resume(cluster)
    for kind in ("nodeset", "restapi", "controller"):
        cluster.kubectl("delete", kind, "--all", "-n", "inherited", "--wait=false")
    cluster.kubectl("delete", "namespace", "inherited", "--wait=false")


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
        slurm.cluster.kubectl("wait", "--for=condition=Ready", what, "-n", slurm.namespace, "--timeout=120s")


def test_a_live_cluster_is_taken_over_and_given_back_with_its_job_running(inherited):
    slurm = inherited
    job, before = Ledger(slurm, "--exclusive"), lives(slurm)

    resume(slurm.cluster)
    wait_ready(slurm)

    assert job.is_running()
    after = lives(slurm)
    assert {name: after.get(name) for name in before} == before
    service = json.loads(
        slurm.cluster.kubectl("get", "service", "slurm-controller", "-n", "inherited", "-o", "json")
    )
    assert "controller.slinky.slurm.net/active" not in service["spec"]["selector"]
    revisions = slurm.cluster.kubectl("get", "controllerrevisions", "-n", "inherited", "-o", "name").split()
    assert [name for name in revisions if "cpu" in name] == ["controllerrevision.apps/cpu-6f7b9c5d84"]

    halt(slurm.cluster)  # And back: what the other operator looks for is still as it left it.
    assert job.is_running()
    pods = json.loads(slurm.cluster.kubectl("get", "pods", "-n", "inherited", "-o", "json"))["items"]
    labels = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in pods}
    assert labels["slurm-controller-0"]["controller.slinky.slurm.net/active"] == "true"
    assert labels["cpu-0"]["controller-revision-hash"] == "6f7b9c5d84"
    job.wait_ended_by_itself()
    assert {name: lives(slurm).get(name) for name in before} == before
