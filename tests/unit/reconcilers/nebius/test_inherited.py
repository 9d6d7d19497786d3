"""What Soperator left of a cluster without pods: parts get its names, its keys and slurmctld's state."""

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.plan.actions import Apply, PatchObject, Wait
from slurm_operator.reconcilers.nebius.shared.soperator_pods import RUNNING
from slurm_operator.reconcilers.nebius.slurmcluster.decide import STATE_UNKNOWN
from testing.slurmclusters import carried_out, decide, manifest, report, settled, world

NAME = "smallest"
CLAIM = f"controller-spool-{NAME}-controller-0"
TEMPLATE = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
CLUSTER, WORKERS = (SlurmCluster, NAME), (NodeSet, "cpu")


def owned_by(kind: str, name: str, uid: str = "") -> list[dict]:
    version = "slurm.nebius.ai/v1" if kind == "SlurmCluster" else "slurm.nebius.ai/v1alpha1"
    return [
        {"apiVersion": version, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}
    ]


OF_CLUSTER = owned_by("SlurmCluster", NAME)
SERVICES = {
    f"{NAME}-controller-svc": OF_CLUSTER,
    f"{NAME}-nodeset-svc": OF_CLUSTER,
    f"{NAME}-login-svc": OF_CLUSTER,
    f"{NAME}-nodeset-cpu-svc": owned_by("NodeSet", "cpu"),
}


def meta(name: str, owners: list[dict], **more) -> Meta:
    body = {
        "name": name,
        "namespace": "ns",
        "uid": f"u-{name}",
        "resourceVersion": "4",
        "ownerReferences": owners,
        **more,
    }
    return wire.convert(body, Meta)


def left_behind(*, sees_claims: bool = True, spool: dict = TEMPLATE, deployments: dict | None = None):
    """As Soperator leaves a cluster whose StatefulSets were deleted."""
    there = world(
        manifest("SlurmCluster", NAME, spec__slurmNodes__controller__volumes__spool=spool),
        manifest("NodeSet", "cpu", spec__clusterName=NAME),
    )
    there.children_[kinds.SERVICE] = [
        Child(metadata=meta(name, owners), body={"metadata": {"name": name}, "spec": {}})
        for name, owners in SERVICES.items()
    ]
    there.children_[kinds.DEPLOYMENT] = [
        Child(
            metadata=meta(name, OF_CLUSTER, annotations=notes), body={"metadata": {"name": name}, "spec": {}}
        )
        for name, notes in (deployments or {}).items()
    ]
    for entry, name in (("munge.key", f"{NAME}-munge"), ("rest_jwt.key", f"{NAME}-rest-jwt-key")):
        there.named[Secret, ObjectKey("ns", name)] = Secret(
            metadata=meta(name, OF_CLUSTER), digests={entry: "d"}
        )
    if sees_claims:
        there.served.add(kinds.PERSISTENT_VOLUME_CLAIM)
    return there


def patched(there, plan):
    """The world after the API server carried out these patches of owners."""
    for step in plan.actions():
        if not isinstance(step, PatchObject):
            continue
        [owners] = [one["value"] for one in step.operations if one["path"] == "/metadata/ownerReferences"]
        if step.kind == kinds.SECRET:
            found = there.named[Secret, step.key]
            changed = wire.convert({**wire.plain(found.metadata), "ownerReferences": owners}, Meta)
            there.named[Secret, step.key] = wire.replace(found, metadata=changed)
            continue
        there.children_[step.kind] = [
            wire.replace(
                one, metadata=wire.convert({**wire.plain(one.metadata), "ownerReferences": owners}, Meta)
            )
            if one.metadata.name == step.key.name
            else one
            for one in there.children_[step.kind]
        ]
    return there


def claim(name: str = CLAIM, **labels: str) -> VolumeClaim:
    return VolumeClaim(
        metadata=meta(name, [], labels={f"app.kubernetes.io/{key}": value for key, value in labels.items()})
    )


def state_of(there) -> dict:
    """Where slurmctld's state is, as the Controller is asked for."""
    for about in (CLUSTER, WORKERS):
        patched(there, decide(there, *about)[1])
    [part] = [
        step.manifest
        for step in decide(there, *CLUSTER)[1].actions()
        if isinstance(step, Apply) and step.manifest["kind"] == "Controller"
    ]
    return part["spec"]["persistence"]


def test_first_everything_loses_its_owner_and_nothing_else_happens():
    there = left_behind()
    for about, names in (
        (CLUSTER, {*list(SERVICES)[:3], f"{NAME}-munge", f"{NAME}-rest-jwt-key"}),
        (WORKERS, {f"{NAME}-nodeset-cpu-svc"}),
    ):
        _, plan = decide(there, *about)
        steps = list(plan.actions())
        patches = [step for step in steps if isinstance(step, PatchObject) and step.kind != about[0].KIND]
        assert {step.key.name for step in patches} == names
        for step in patches:
            assert step.operations[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "4"}
            assert step.operations[1]["value"] == []
        assert not [step for step in steps if isinstance(step, Apply)]
        assert plan.look_again is not None


def test_after_that_the_parts_are_made_and_it_happens_once():
    there = left_behind()
    for about in (CLUSTER, WORKERS):
        patched(there, decide(there, *about)[1])
    _, plan = decide(there, *CLUSTER)
    assert not [
        step for step in plan.actions() if isinstance(step, PatchObject) and step.kind == kinds.SERVICE
    ]
    assert "Controller" in {step.manifest["kind"] for step in plan.actions() if isinstance(step, Apply)}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            owned_by("SlurmCluster", NAME, "uid-of-another"), id="of a cluster of this name that is gone"
        ),
        pytest.param(owned_by("SlurmCluster", "other"), id="of another cluster"),
        pytest.param([], id="of nobody"),
    ],
)
def test_what_belongs_to_others_keeps_its_owner(other):
    there = left_behind()
    there.named.clear()
    there.children_[kinds.SERVICE] = [
        Child(metadata=meta(f"{NAME}-controller-svc", other), body={"metadata": {}, "spec": {}})
    ]
    seen, _ = decide(there, *CLUSTER)
    assert seen.inherited == {}


def test_other_owners_than_the_cluster_stay():
    there = left_behind()
    more = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "m"}
    there.children_[kinds.SERVICE] = [
        Child(metadata=meta(f"{NAME}-login-svc", [*OF_CLUSTER, more]), body={"metadata": {}, "spec": {}})
    ]
    there.named.clear()
    [step] = [
        one
        for one in decide(there, *CLUSTER)[1].actions()
        if isinstance(one, PatchObject) and one.kind == kinds.SERVICE
    ]
    assert [one["name"] for one in step.operations[1]["value"]] == ["mine"]


@pytest.mark.parametrize("about", [CLUSTER, WORKERS], ids=["SlurmCluster", "NodeSet"])
@pytest.mark.parametrize(
    ("deployments", "is_held"),
    [
        pytest.param({f"{NAME}-accounting": {}}, True, id="slurmdbd of Soperator"),
        pytest.param({f"{NAME}-sconfigcontroller": {"versions": ""}}, True, id="its writer of files"),
        pytest.param({f"{NAME}-sconfigcontroller": {APPLIED_DIGEST: "d"}}, False, id="ours"),
        pytest.param({"another": {}}, False, id="something else of the cluster"),
    ],
)
def test_nothing_is_changed_while_a_deployment_of_soperator_is_there(deployments, is_held, about):
    there = left_behind(deployments=deployments)
    _, plan = decide(there, *about)
    waits = [step for step in plan.actions() if isinstance(step, Wait) and step.reason == RUNNING]
    assert bool(waits) is is_held
    if is_held:
        assert list(plan.actions()) == waits
        assert f"Deployment {next(iter(deployments))}" in waits[0].message


@pytest.mark.parametrize(
    ("claims", "kept"),
    [
        pytest.param([claim()], CLAIM, id="as Soperator names it"),
        pytest.param([claim(instance=NAME)], CLAIM, id="labelled with the cluster"),
        pytest.param(
            [claim("controller-spool-controller-0", instance=NAME)],
            "controller-spool-controller-0",
            id="of an older release",
        ),
        pytest.param([claim("controller-spool-controller-0", instance="other")], "", id="of another cluster"),
        pytest.param([claim("statesave-smallest-controller-0")], "", id="ours"),
        pytest.param([], "", id="none"),
    ],
)
def test_slurmctld_starts_on_the_state_that_soperator_left(claims, kept):
    there = left_behind()
    there.things += claims
    found = state_of(there)
    assert found.get("existingClaim", "") == kept
    assert ("resources" in found) is not bool(kept)


def test_a_claim_that_is_being_deleted_holds_no_state():
    there = left_behind()
    there.things.append(VolumeClaim(metadata=meta(CLAIM, [], deletionTimestamp="2026-01-01T00:00:00Z")))
    assert "existingClaim" not in state_of(there)


def test_without_the_right_to_look_at_claims_nothing_is_touched_and_the_condition_says_so():
    there = left_behind(sees_claims=False)
    _, plan = decide(there, *CLUSTER)
    assert [type(step) for step in plan.actions()] == [Wait]
    told = report(there, *CLUSTER)
    assert told["Ready"][:2] == ("False", STATE_UNKNOWN)
    assert told["Degraded"][:2] == ("True", STATE_UNKNOWN)


def test_a_controller_that_was_made_keeps_its_volume_whatever_claims_appear():
    there = left_behind()
    for about in (CLUSTER, WORKERS):
        patched(there, decide(there, *about)[1])
    carried_out(there, decide(there, *CLUSTER)[1])
    there.things.append(claim())
    settled(there, CLUSTER)
    part = there.get(Controller, "ns", NAME)
    assert part.spec.persistence.existing_claim == ""


def test_a_controller_that_was_made_on_that_state_keeps_it_when_claims_cannot_be_seen():
    there = left_behind()
    there.things.append(claim())
    for about in (CLUSTER, WORKERS):
        patched(there, decide(there, *about)[1])
    carried_out(there, decide(there, *CLUSTER)[1])
    there.served.discard(kinds.PERSISTENT_VOLUME_CLAIM)
    settled(there, CLUSTER)
    part = there.get(Controller, "ns", NAME)
    assert part.spec.persistence.existing_claim == CLAIM
