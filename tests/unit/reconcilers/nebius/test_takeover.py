"""Workers that Soperator made, taken over with the jobs in them when a person asks for it."""

import pytest
from test_soperator_pods import KRUISE, pod, stateful_set

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import Meta, OwnerReference
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Container, Pod, PodSpec
from slurm_operator.plan.actions import Apply, DeleteObject, PatchObject, Wait
from slurm_operator.reconcilers.nebius.shared import soperator_pods, takeover
from testing.slurmclusters import carried_out, decide, manifest, report, world

NAME = "smallest"
CLUSTER, WORKERS = (SlurmCluster, NAME), (NodeSet, "cpu")
ASKED = {"metadata__annotations": {names.TAKE_OVER: "true"}}
# As the CRD of the image's family says, so that the records are lines.
THEIRS = "cr.eu-north1.nebius.cloud/soperator/worker_slurmd:5.0.0"
MINE = OwnerReference(
    api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="cpu", uid="uid-of-cpu", controller=True
)


def worker(number: int = 0, *, owner: str = KRUISE, container: str = "slurmd", **more) -> Pod:
    made = pod(f"cpu-{number}", "cpu", "nodeset", owner=owner, **more)
    containers = (Container(name=container),)
    return wire.replace(made, spec=PodSpec(containers=containers, subdomain=names.nodeset_service(NAME)))


def marked(one: Pod, *, owner: OwnerReference | None = None) -> Pod:
    """After the API server took the write that marks it; nobody's, or its part's."""
    there = there_is(one)
    [patch] = [a for a in decide(there, *WORKERS)[1].actions() if isinstance(a, PatchObject)]
    values = {operation["path"]: operation["value"] for operation in patch.operations}
    meta = wire.replace(
        one.metadata,
        labels=values["/metadata/labels"],
        annotations=values["/metadata/annotations"],
        owner_references=(owner,) if owner is not None else (),
    )
    return wire.replace(one, metadata=meta)


def there_is(*pods: Pod, asked: bool = True, stateful_sets: tuple = (), **nodeset):
    there = world(
        manifest("SlurmCluster", NAME, **(ASKED if asked else {})),
        manifest("NodeSet", "cpu", spec__clusterName=NAME, **nodeset),
    )
    there.things += pods
    there.children_[kinds.KRUISE_STATEFUL_SET] = list(stateful_sets)
    return there


def told(there, about=WORKERS) -> list[str]:
    return [_told(action) for action in decide(there, *about)[1].actions()]


def _told(action) -> str:
    match action:
        case PatchObject(kind=kind, key=key, reason=reason):
            return f"{reason} {kind.kind} {key.name}"
        case DeleteObject(kind=kind, key=key, keeps_dependents=True):
            return f"release {kind.group} {key.name}"
        case Wait(reason=reason):
            return f"wait {reason}"
        case Apply(manifest=body):
            return f"apply {body['kind']} {body['metadata']['name']}"
        case _:
            return type(action).__name__


SET = stateful_set("cpu")


def ending(name: str = "cpu"):
    found = stateful_set(name)
    body = {**wire.plain(found.metadata), "deletionTimestamp": "2026-01-01T11:59:00Z"}
    return wire.replace(found, metadata=wire.convert(body, Meta))


@pytest.mark.parametrize(
    ("there", "story"),
    [
        pytest.param(there_is(worker(), stateful_sets=(SET,), asked=False), ["wait SoperatorPodsRunning"], id="nobody asked: nothing is changed"),
        pytest.param(there_is(worker(), worker(1), stateful_sets=(SET,)), ["TakenOver Pod cpu-0", "TakenOver Pod cpu-1"], id="first every pod is marked"),
        pytest.param(there_is(worker(phase="Pending"), stateful_sets=(SET,)), ["TakenOver Pod cpu-0"], id="one that has not started, too"),
        pytest.param(there_is(worker(0, owner="")), ["TakenOver Pod cpu-0"], id="one that came in between, and is nobody's"),
        pytest.param(there_is(stateful_sets=(SET,)), ["release apps.kruise.io cpu"], id="then Kruise lets them go"),
        pytest.param(there_is(stateful_sets=(ending(),)), ["wait TakingOver"], id="which takes a moment"),
        pytest.param(there_is(worker(container="other"), stateful_sets=(SET,)), ["wait TakeoverRefused"], id="the gate would not know its slurmd"),
        pytest.param(there_is(worker(), stateful_sets=(SET,), spec__ephemeralNodes=True), ["wait TakeoverRefused"], id="Slurm decides which of them run"),
        pytest.param(there_is(worker(), stateful_sets=(SET,), spec__slurmd__image={"repository": "ghcr.io/slinkyproject/slurmd", "tag": "26.05"}), ["wait TakeoverRefused"], id="they are to have our images"),
    ],
)  # fmt: skip
def test_what_is_next_for_the_workers_of_soperator(there, story):
    assert told(there) == story


def test_marked_pods_of_kruise_are_let_go_and_then_adopted_by_the_part():
    one = marked(worker())
    of_kruise = wire.replace(
        one, metadata=wire.replace(one.metadata, owner_references=worker().metadata.owner_references)
    )
    assert told(there_is(of_kruise, stateful_sets=(SET,))) == ["release apps.kruise.io cpu"]
    assert told(there_is(of_kruise)) == ["wait TakingOver"], (
        "until the API server says that they are nobody's"
    )

    [part] = [
        a.manifest for a in decide(there_is(one), *WORKERS)[1].actions()
        if isinstance(a, Apply) and a.manifest["kind"] == "NodeSet"
    ]  # fmt: skip
    assert part["spec"]["replicas"] == 1, "though nobody knows yet whether the root is whole"
    assert part["spec"]["records"] == "static"
    kept = part["metadata"]["annotations"][shared_names.KEEPS_TAKEN_OVER]
    assert kept == one.metadata.annotations[shared_names.POD_TAKEN_OVER]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param({"spec__replicas": 5}, True, id="more of them"),
        pytest.param({"spec__maxUnavailable": 1}, True, id="how they are replaced"),
        pytest.param({"spec__slurmd__port": 6818}, True, id="what is so anyway"),
        pytest.param({"spec__priorityClass": "high"}, False, id="what pods are made from"),
    ],
)
def test_a_worker_stays_until_what_pods_are_made_from_changes(change, stays):
    one = marked(worker())
    [part] = [
        a.manifest for a in decide(there_is(one, **change), *WORKERS)[1].actions()
        if isinstance(a, Apply) and a.manifest["kind"] == "NodeSet"
    ]  # fmt: skip
    kept = part["metadata"]["annotations"][shared_names.KEEPS_TAKEN_OVER]
    assert (kept == one.metadata.annotations[shared_names.POD_TAKEN_OVER]) is stays


def test_without_workers_of_soperators_nothing_is_noted_on_a_part():
    there = carried_out(there_is(asked=False), decide(there_is(asked=False), *WORKERS)[1])
    part = there.get(WorkerPart, "ns", "cpu")
    assert shared_names.KEEPS_TAKEN_OVER not in part.metadata.annotations


def handed_over(*pods: Pod, stateful_sets: tuple = (), part: bool = True):
    """The workers are the part's already."""
    there = there_is(marked(worker(), owner=MINE), stateful_sets=stateful_sets)
    if part:
        carried_out(there, decide(there_is(marked(worker())), *WORKERS)[1])
    there.things += pods
    return there


CTLD = pod("smallest-controller-0", "smallest-controller", "controller")
LOGIN = pod("smallest-login-0", "smallest-login", "login")


@pytest.mark.parametrize(
    ("there", "reason", "says"),
    [
        pytest.param(there_is(worker(), CTLD, stateful_sets=(SET,)), takeover.TAKING_OVER, "NodeSet cpu", id="workers are Kruise's"),
        pytest.param(handed_over(part=False), takeover.TAKING_OVER, "NodeSet cpu", id="slurm.conf would lack their lines"),
        pytest.param(handed_over(CTLD), soperator_pods.RUNNING, "StatefulSet smallest-controller (1)", id="slurmctld is Soperator's"),
        pytest.param(handed_over(stateful_sets=(stateful_set("smallest-controller"),)), soperator_pods.RUNNING, "restarts once", id="or may be any moment"),
    ],
)  # fmt: skip
def test_the_rest_of_the_cluster_waits_for_its_workers_and_for_the_person(there, reason, says):
    _, plan = decide(there, *CLUSTER)
    [*held, waiting] = list(plan.actions())
    assert {step.reason for step in held} <= {"Held"}, "its own finalizer, while it has parts"
    assert isinstance(waiting, Wait)
    assert waiting.reason == reason
    assert says in waiting.message
    assert report(there, *CLUSTER)["Ready"][1] == reason


def test_login_pods_stay_as_they_are_while_everything_else_goes_on():
    there = handed_over(LOGIN)
    story = told(there, CLUSTER)

    assert f"apply Controller {NAME}" in story
    assert f"apply LoginSet {names.login(NAME)}" not in story
    assert f"wait {takeover.LOGIN_RUNNING}" in story
    assert f"apply LoginSet {names.login(NAME)}" in told(handed_over(), CLUSTER), "once they are gone"
