"""While pods that Soperator made run a cluster, nothing of it is changed, and the conditions say why."""

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.nebius.nodeset import of_soperators_pod
from slurm_operator.reconcilers.nebius.shared.soperator_pods import RUNNING
from testing.slurmclusters import decide, manifest, report, world

NAME = "smallest"
BOTH = ((SlurmCluster, NAME), (NodeSet, "cpu"))
KRUISE, APPS = "apps.kruise.io/v1beta1", "apps/v1"


def pod(name: str, workload: str, component: str, **more) -> Pod:
    """As the StatefulSets of Soperator make them."""
    given = {"owner": KRUISE, "instance": NAME, "namespace": "ns", "phase": "Running", "labels": {}, **more}
    labels = {
        "app.kubernetes.io/name": "slurmcluster", "app.kubernetes.io/instance": given["instance"],
        "app.kubernetes.io/component": component, "app.kubernetes.io/managed-by": "slurm-operator",
        **given["labels"],
    }  # fmt: skip
    owner = {
        "apiVersion": given["owner"],
        "kind": "StatefulSet",
        "name": workload,
        "uid": "s",
        "controller": True,
    }
    meta = {
        "name": name, "namespace": given["namespace"], "uid": f"uid-{name}", "labels": labels,
        "ownerReferences": [owner] if given["owner"] else [],
    }  # fmt: skip
    return wire.convert({"metadata": meta, "status": {"phase": given["phase"]}}, Pod)


def there_is(*pods: Pod):
    there = world(manifest("SlurmCluster", NAME), manifest("NodeSet", "cpu", spec__clusterName=NAME))
    there.things += pods
    return there


def stateful_set(name: str, instance: str = NAME) -> Child:
    labels = {"app.kubernetes.io/name": "slurmcluster", "app.kubernetes.io/instance": instance}
    return Child(metadata=wire.convert({"name": name, "namespace": "ns", "labels": labels}, Meta), body={})


@pytest.mark.parametrize("about", BOTH, ids=["SlurmCluster", "NodeSet"])
@pytest.mark.parametrize(
    ("there", "is_held"),
    [
        pytest.param(stateful_set("cpu"), True, id="of the workers"),
        pytest.param(stateful_set("smallest-controller"), True, id="of slurmctld"),
        pytest.param(stateful_set("controller"), True, id="without a prefix"),
        pytest.param(stateful_set("controller", "other"), False, id="of another cluster"),
        pytest.param(stateful_set("something"), False, id="of somebody else"),
    ],
)
def test_nothing_is_changed_while_a_statefulset_of_kruise_may_make_pods(there, is_held, about):
    empty = there_is()
    empty.children_[kinds.KRUISE_STATEFUL_SET] = [there]
    _, plan = decide(empty, *about)
    waits = [step for step in plan.actions() if isinstance(step, Wait) and step.reason == RUNNING]
    assert bool(waits) is is_held
    if is_held:
        assert [*plan.actions()] == waits
        assert f"StatefulSet {there.metadata.name} (0)" in waits[0].message


@pytest.mark.parametrize("about", BOTH, ids=["SlurmCluster", "NodeSet"])
@pytest.mark.parametrize(
    ("there", "is_held"),
    [
        pytest.param(pod("cpu-0", "cpu", "nodeset"), True, id="a worker"),
        pytest.param(pod("smallest-controller-0", "smallest-controller", "controller"), True, id="slurmctld"),
        pytest.param(pod("smallest-login-0", "smallest-login", "login"), True, id="a login pod"),
        pytest.param(pod("controller-0", "controller", "controller"), True, id="a name without prefix"),
        pytest.param(pod("worker-0", "worker", "worker"), True, id="a worker of an older release"),
        pytest.param(pod("cpu-0", "cpu", "nodeset", phase="Unknown"), True, id="nobody knows whether it runs"),
        pytest.param(pod("cpu-0", "cpu", "nodeset", phase="Succeeded"), False, id="it has ended"),
        pytest.param(pod("smallest-controller-0", "smallest-controller", "controller", owner=APPS), False, id="ours"),
        pytest.param(pod("cpu-0", "cpu", "nodeset", owner=""), False, id="of nobody: nothing says whose it is"),
        pytest.param(pod("worker-0", "worker", "worker", instance="other"), False, id="of another cluster"),
        pytest.param(pod("cpu-0", "cpu", "nodeset", namespace="other"), False, id="in another namespace"),
        pytest.param(pod("x-0", "", "populate-jail", owner=""), False, id="no part of the cluster"),
    ],
)  # fmt: skip
def test_nothing_is_changed_while_pods_of_soperator_run(there, is_held, about):
    _, plan = decide(there_is(there), *about)
    steps = list(plan.actions())

    waits = [step for step in steps if isinstance(step, Wait) and step.reason == RUNNING]
    assert bool(waits) is is_held
    assert (steps == waits) is is_held, "held: not one write; otherwise it goes on"


@pytest.mark.parametrize("about", BOTH, ids=["SlurmCluster", "NodeSet"])
def test_the_conditions_name_the_pods_and_what_to_do(about):
    told = report(there_is(pod("cpu-0", "cpu", "nodeset"), pod("cpu-1", "cpu", "nodeset")), *about)

    for type_, status in (("Ready", "False"), ("Degraded", "True"), ("Progressing", "False")):
        assert told[type_][:2] == (status, RUNNING)
    assert "StatefulSet cpu (2)" in told["Ready"][2]
    assert "delete these StatefulSets" in told["Ready"][2]


def test_nodesets_look_again_when_such_a_pod_ends():
    for one in (
        pod("cpu-0", "cpu", "nodeset"),
        pod("smallest-controller-0", "smallest-controller", "controller"),
    ):
        assert [key.name for key in of_soperators_pod(one, there_is(one))] == ["cpu"]
