"""Who may delete a worker, asked of a real API server with the real controllers that delete things."""

import json
import uuid

import pytest
from kinds_rig import apply, get

from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Caller, Refused
from slurm_operator.api.shared import names
from slurm_operator.manifests.builders.protection import (
    NAME,
    POD_GARBAGE_COLLECTOR,
    protection,
    service_account,
)
from testing.control_plane import ControlPlane
from testing.managers import until

OPERATOR = service_account("slurm", "slurm-operator")
ADVICE = "may have running jobs, so it is not deleted. Lower replicas of its NodeSet"


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("policy"), controller_manager=True).running() as plane:
        apply(plane, *protection(OPERATOR, exempt=["ci-robot"]))
        # A new policy is at work when the API server has compiled it, which it does not announce.
        plane.kubectl("create", "namespace", "probe")
        plane.wait_for_service_account("probe")
        apply(plane, worker("probe", "probe-0"))
        until(lambda: is_refused(plane, "probe", "probe-0", "--dry-run=server"), what="the policy at work")
        yield plane


@pytest.fixture
def ns(plane) -> str:
    name = f"policy-{uuid.uuid4().hex[:8]}"
    plane.kubectl("create", "namespace", name)
    plane.wait_for_service_account(name)
    return name


def worker(ns: str, name: str, *, protected: bool = True, node: str = "", owner: dict | None = None) -> dict:
    labels = {names.APP_NAME: "slurmd", **({names.LABEL_POD_PROTECT: "true"} if protected else {})}
    # Without a kubelet nobody would confirm the end of a pod that has a machine, unless it may end at once.
    spec = {"containers": [{"name": "slurmd", "image": "none"}], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "namespace": ns, "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
        }]  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, **({"nodeName": node} if node else {})},
    }


def is_refused(plane, ns: str, name: str, *flags: str) -> bool:
    try:
        plane.kubectl("delete", "pod", name, "-n", ns, *flags)
    except LocalError as error:
        return ADVICE in str(error)
    return False


def delete_as(plane, user: str, groups: tuple[str, ...], ns: str, name: str) -> None:
    caller = Caller(plane.url, plane.ca, plane.certificates.client(user, groups))
    caller.call("DELETE", f"/api/v1/namespaces/{ns}/pods/{name}")


def test_a_delete_by_hand_is_refused_and_told_how_to_go_about_it(plane, ns):
    apply(plane, worker(ns, "gpu-0"))

    with pytest.raises(LocalError) as refusal:
        plane.kubectl("delete", "pod", "gpu-0", "-n", ns)

    said, annotate = str(refusal.value), f"kubectl annotate pod -n {ns} gpu-0 nodeset.slinky.slurm.net"
    assert f"worker gpu-0 {ADVICE}, or delete the NodeSet" in said
    assert f"replaced then: {annotate}/replace=true. To empty its machine: kubectl drain" in said
    assert f"with its jobs: {annotate}/allow-deletion=true" in said
    assert get(plane, ns, "pod", "gpu-0")["metadata"].get("deletionTimestamp") is None


def test_not_even_an_impatient_delete_of_everything_takes_a_protected_worker(plane, ns):
    apply(plane, worker(ns, "gpu-0"), worker(ns, "gpu-1"), worker(ns, "free-0", protected=False))

    with pytest.raises(LocalError, match="gpu-1"):
        plane.kubectl("delete", "pods", "--all", "-n", ns, "--force", "--grace-period=0")

    left = json.loads(plane.kubectl("get", "pods", "-n", ns, "-o", "json"))["items"]
    assert [pod["metadata"]["name"] for pod in left] == ["gpu-0", "gpu-1"]


def test_a_foreground_deletion_of_the_owner_waits_for_its_workers(plane, ns):
    apply(plane, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "set", "namespace": ns}})
    owner = get(plane, ns, "configmap", "set")
    apply(plane, worker(ns, "gpu-0", owner=owner), worker(ns, "free-0", protected=False, owner=owner))

    plane.kubectl("delete", "configmap", "set", "-n", ns, "--cascade=foreground", "--wait=false")
    until(lambda: get(plane, ns, "pod", "free-0") is None, what="the worker without protection gone")

    assert get(plane, ns, "configmap", "set")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert get(plane, ns, "pod", "gpu-0")["metadata"].get("deletionTimestamp") is None

    delete_as(plane, OPERATOR, ("system:masters",), ns, "gpu-0")  # As after a proof.
    until(lambda: get(plane, ns, "configmap", "set") is None, what="the owner gone after its last worker")


def test_a_namespace_stays_while_it_has_a_protected_worker_and_says_why(plane, ns):
    apply(plane, worker(ns, "gpu-0"))

    plane.kubectl("delete", "namespace", ns, "--wait=false")

    def told() -> str:
        conditions = get(plane, "", "namespace", ns)["status"].get("conditions", [])
        return " ".join(condition["message"] for condition in conditions)

    until(lambda: f"worker gpu-0 {ADVICE}" in told(), what="the reason in the Namespace's conditions")
    assert get(plane, ns, "pod", "gpu-0") is not None

    plane.kubectl("annotate", "pod", "gpu-0", "-n", ns, f"{names.ALLOW_DELETION}=true")
    until(lambda: get(plane, "", "namespace", ns) is None, what="the Namespace gone once that is allowed")


@pytest.mark.parametrize(
    ("user", "groups", "may"),
    [
        pytest.param(OPERATOR, ("system:masters",), True, id="the operator, which has a proof"),
        pytest.param("ci-robot", ("system:masters",), True, id="somebody named in the chart's values"),
        pytest.param("system:node:m1", ("system:nodes",), True, id="the kubelet of its own machine"),
        pytest.param("system:node:m2", ("system:masters",), False, id="the kubelet of another machine"),
        pytest.param(POD_GARBAGE_COLLECTOR, ("system:masters",), True, id="the collector of lost pods"),
        pytest.param("system:kube-scheduler", ("system:masters",), False, id="the scheduler, to preempt"),
        pytest.param("admin", ("system:masters",), False, id="an administrator"),
    ],
)
def test_only_these_may_delete_a_protected_worker(plane, ns, user, groups, may):
    plane.caller.call("POST", f"/api/v1/namespaces/{ns}/pods", worker(ns, "gpu-0", node="m1"))

    try:
        delete_as(plane, user, groups, ns, "gpu-0")
        refused = ""
    except Refused as refusal:
        refused = str(refusal)

    assert (get(plane, ns, "pod", "gpu-0") is None) is may, refused
    assert may or (refused.startswith("403") and ADVICE in refused)


def test_a_worker_that_already_ends_may_be_hurried(plane, ns):
    finalized = worker(ns, "gpu-0")
    finalized["metadata"]["finalizers"] = ["example.com/keep"]
    apply(plane, finalized)
    delete_as(plane, OPERATOR, ("system:masters",), ns, "gpu-0")
    assert get(plane, ns, "pod", "gpu-0")["metadata"]["deletionTimestamp"]

    assert not is_refused(plane, ns, "gpu-0", "--force", "--grace-period=0", "--wait=false")


def test_a_person_who_takes_the_risk_may_delete_it_at_once(plane, ns):
    apply(plane, worker(ns, "gpu-0"))
    plane.kubectl("annotate", "pod", "gpu-0", "-n", ns, f"{names.ALLOW_DELETION}=true")

    plane.kubectl("delete", "pod", "gpu-0", "-n", ns)

    assert get(plane, ns, "pod", "gpu-0") is None


def test_the_api_server_finds_nothing_to_warn_about_in_the_policy(plane):
    def checked() -> dict:
        return get(plane, "", "validatingadmissionpolicy", NAME).get("status", {})

    until(lambda: "typeChecking" in checked(), what="the types in the policy checked")

    assert checked()["typeChecking"] == {}


def test_a_policy_may_be_about_some_namespaces_only(plane):
    [policy, binding] = protection(OPERATOR, namespaces=["lab", "gpu"], name="elsewhere")

    answer = plane.kubectl("apply", "--dry-run=server", "-f", "-",
                           stdin="\n---\n".join(json.dumps(one) for one in (policy, binding)))  # fmt: skip

    assert answer.count("elsewhere created (server dry run)") == 2
    [only] = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert only["values"] == ["gpu", "lab"]
