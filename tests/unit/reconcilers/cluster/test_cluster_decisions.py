"""What a Cluster writes, puts back, leaves alone, deletes and waits for."""

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.names import FORCE_DELETION
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.plan.actions import DeleteObject, PatchObject, Wait, subject
from slurm_operator.reconcilers.cluster import clusters_of, everywhere, in_slurm
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER
from slurm_operator.slurm.snapshot import Changes
from testing.children import secret, with_config, with_secrets
from testing.clusters import (
    KEY,
    carried_out,
    changed,
    cluster,
    decide,
    edited,
    leaving,
    saying,
    settled,
    slurm,
    storage_class,
    stranger,
    world,
)

HELD = {"finalizers": [FINALIZER]}
WHOLE = {
    "accounting": {"managed": {}},
    "logins": [{"name": "ssh"}],
    "nodeSets": [{"name": "cpu", "replicas": 2}, {"name": "gpu"}],
    "partitions": [{"name": "all", "default": True}, {"name": "gpu", "nodeSets": ["gpu"]}],
}
ADOPTED = {"server": "https://slurm.example.org:6820", "token": {"secretRef": "login"}}


def steps(there) -> list[str]:
    """Verb, subject and reason of everything that is to be done, the finalizer aside."""
    return sorted(
        f"{type(action).__name__} {subject(action)} {action.reason}"
        for action in decide(there)[1].actions()
        if subject(action) != "Cluster ns/demo"
    )


def running(spec: dict | None = None):
    """A Cluster whose parts were made and are in order."""
    return settled(world(cluster(spec, **HELD)))


@pytest.mark.parametrize("spec", [None, WHOLE, {}], ids=["smallest", "whole", "without workers"])
def test_what_is_there_is_not_written_again(spec):
    assert steps(running(spec)) == []


def test_a_cluster_is_held_as_soon_as_it_has_parts_and_not_before():
    first = decide(world(cluster()))[1]
    assert not [action for action in first.actions() if isinstance(action, PatchObject)]

    [hold] = decide(settled(world(cluster())))[1].actions()

    assert (hold.reason, hold.operations[1]["value"]) == ("Held", [FINALIZER])


@pytest.mark.parametrize(
    ("kind", "name", "edit", "expected"),
    [
        pytest.param(RestApi, "demo", {"replicas": 5}, "Apply RestApi ns/demo PutBack", id="a field of ours"),
        pytest.param(Controller, "demo", {"extraConf": "SlurmdTimeout=5"}, "Apply Controller ns/demo PutBack", id="lines of slurm.conf"),
        pytest.param(Controller, "demo", {"inplaceReconfigure": True}, "PatchObject Controller ns/demo PutBack", id="a field that the Cluster leaves out"),
        pytest.param(NodeSet, "demo-gpu", {"slurmd": {"image": "other"}}, "PatchObject NodeSet ns/demo-gpu PutBack", id="something added"),
        pytest.param(NodeSet, "demo-cpu", {"replicas": 7}, "PatchObject NodeSet ns/demo-cpu Scaled", id="scaled by hand though the Cluster says how many"),
        pytest.param(NodeSet, "demo-gpu", {"replicas": 7}, None, id="scaled by hand, and the Cluster says nothing"),
    ],
)  # fmt: skip
def test_direct_edits_of_parts_are_put_back(kind, name, edit, expected):
    there = edited(running(WHOLE), kind, name, **edit)

    assert steps(there) == ([expected] if expected else [])
    assert steps(carried_out(there, decide(there)[1])) == []


def test_a_put_back_names_the_field_and_the_place_to_change_it():
    there = edited(running(WHOLE), RestApi, "demo", replicas=5)

    [put_back] = decide(there)[1].actions()

    assert put_back.message == (
        "reverted an edit of RestApi demo (spec.replicas): Cluster demo sets it. "
        "Change it in spec.restApi of Cluster demo"
    )


def test_handing_the_workers_over_to_an_autoscaler_writes_nothing():
    there = changed(running(), cluster({"nodeSets": [{"name": "cpu"}]}, **HELD))

    assert steps(there) == []
    assert there.get(NodeSet, "ns", "demo-cpu").spec.replicas == 2


def test_a_changed_spec_changes_only_the_part_that_it_is_about():
    spec = {**WHOLE, "restApi": {"replicas": 2}}

    assert steps(changed(running(WHOLE), cluster(spec, **HELD))) == ["Apply RestApi ns/demo Updated"]


def test_a_part_that_is_no_longer_wanted_goes_through_its_own_end():
    there = changed(running(), cluster({}, **HELD))
    assert steps(there) == ["DeleteObject NodeSet ns/demo-cpu Deleted"]

    there = saying(
        leaving(there, NodeSet, "demo-cpu"), NodeSet, "demo-cpu", "True", progress="cpu-0: 2 jobs run."
    )

    [wait] = decide(there)[1].waits
    assert wait.message == "waiting for NodeSet demo-cpu to be gone: cpu-0: 2 jobs run."


def test_a_part_that_comes_back_while_it_goes_is_made_anew_afterwards():
    there = leaving(running(), NodeSet, "demo-cpu")

    assert steps(there) == ["Wait NodeSet demo-cpu Leaving"]


def test_an_accounting_goes_only_after_the_controller_has_let_go_of_it():
    there = changed(running(WHOLE), cluster({**WHOLE, "accounting": None}, **HELD))
    assert steps(there) == ["Apply Controller ns/demo Updated"]

    there = carried_out(there, decide(there)[1])

    assert steps(there) == ["DeleteObject Accounting ns/demo Deleted"]


def test_what_is_deleted_goes_in_an_order_that_takes_nothing_from_those_who_stay():
    there = running(WHOLE)
    gone = cluster(WHOLE, **HELD, deletionTimestamp="2026-01-01T11:00:00Z")
    there, told = changed(there, gone), []
    while len(told) < 10:
        plan = decide(there)[1]
        told.append([subject(action) for action in plan.actions()])
        if any(isinstance(action, PatchObject) for action in plan.actions()):
            break
        there = carried_out(there, plan)

    assert told == [
        ["NodeSet ns/demo-cpu", "NodeSet ns/demo-gpu"],
        ["LoginSet ns/demo-ssh"],
        ["RestApi ns/demo"],
        ["Controller ns/demo"],
        ["Accounting ns/demo"],
        ["Cluster ns/demo"],
    ]
    assert (plan.lanes[0].stages[0][0].reason, there.things[-1].metadata.name) == ("Released", "demo")


def test_nothing_else_is_touched_while_a_worker_is_still_leaving():
    there = leaving(running(WHOLE), NodeSet, "demo-cpu")
    there = saying(there, NodeSet, "demo-cpu", "True", progress="waits for jobs 5")
    there = changed(there, cluster(WHOLE, **HELD, deletionTimestamp="2026-01-01T11:00:00Z"))

    assert steps(there) == ["DeleteObject NodeSet ns/demo-gpu Deleted", "Wait NodeSet demo-cpu Leaving"]


def test_who_deletes_a_cluster_without_its_parts_keeps_them():
    there = running(WHOLE)
    orphaning = {"finalizers": [FINALIZER, "orphan"], "deletionTimestamp": "2026-01-01T11:00:00Z"}
    there = changed(there, cluster(WHOLE, **orphaning))

    [release] = decide(there)[1].actions()

    assert (release.reason, release.operations[1]["value"]) == ("Released", ["orphan"])


@pytest.mark.parametrize(
    ("meta", "come"),
    [
        pytest.param({}, False, id="nobody keeps it from being deleted yet"),
        pytest.param(HELD, True, id="it is held"),
        pytest.param({"annotations": {FORCE_DELETION: "true"}}, True, id="nobody is to hold it"),
    ],
)
def test_workers_come_when_the_cluster_is_held(meta, come):
    nodesets = [step for step in steps(world(cluster(WHOLE, **meta))) if "NodeSet" in step]

    assert nodesets == (["Create NodeSet ns/demo-cpu Created", "Create NodeSet ns/demo-gpu Created"] * come)


def test_a_nodeset_that_is_there_is_changed_also_while_the_cluster_is_not_held():
    there = running(WHOLE)
    spec = {**WHOLE, "nodeSets": [{**one, "extraConf": "Weight=2"} for one in WHOLE["nodeSets"]]}

    assert "Apply NodeSet ns/demo-cpu Updated" in steps(changed(there, cluster(spec)))


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        pytest.param(Controller, "demo", ["Wait Controller demo NameTaken"], id="a Controller: nothing may join it"),
        pytest.param(
            LoginSet, "demo-ssh",
            ["Apply Accounting ns/demo Created", "Apply ConfigMap ns/demo-cgroup Created", "Apply Controller ns/demo Created",
             "Apply RestApi ns/demo Created", "Create NodeSet ns/demo-cpu Created", "Create NodeSet ns/demo-gpu Created",
             "Wait LoginSet demo-ssh NameTaken"],
            id="a LoginSet: the others go on",
        ),
    ],
)  # fmt: skip
def test_objects_of_others_are_left_alone(kind, name, expected):
    there = world(cluster(WHOLE, **HELD), stranger(kind, name, {"controllerRef": {"name": "else"}}))

    assert steps(there) == expected


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        pytest.param(slurm(partitions={"gpu": "UP"}), "State=DRAIN", id="it still takes jobs"),
        pytest.param(slurm(partitions={"gpu": "DRAIN"}, jobs={7: "PENDING"}, in_partition="gpu"), "jobs 7", id="a job waits there"),
        pytest.param(slurm(partitions={"gpu": "DRAIN"}, jobs={8: "SUSPENDED"}, in_partition="cpu,gpu"), "jobs 8", id="a suspended job"),
        pytest.param(None, "cannot be seen", id="Slurm is unreachable"),
        pytest.param(slurm(partitions={"gpu": "DRAIN"}, jobs={9: "RUNNING"}), "", id="nothing left"),
        pytest.param(slurm(partitions={}), "", id="slurmctld has forgotten it"),
    ],
)  # fmt: skip
def test_a_partition_goes_with_the_last_of_its_jobs(state, kept):
    there = running(WHOLE)
    there = changed(there, cluster({**WHOLE, "partitions": [{"name": "all", "default": True}]}, **HELD))
    if state is not None:
        there.slurms[KEY] = state

    there = carried_out(there, decide(there)[1])

    conf = there.get(Controller, "ns", "demo").spec.extra_conf
    assert ("PartitionName=gpu Nodes=demo-gpu State=DRAIN" in conf) is bool(kept)
    told = f"{conf} {[wait.message for wait in decide(there)[1].waits]}"
    assert kept in told
    assert ("PartitionInUse" in str(steps(there))) is bool(kept)


@pytest.mark.parametrize(("workers", "named"), [(1, "demo-cpu,demo-gpu"), (0, "demo-cpu")])
def test_a_partition_keeps_a_leaving_nodeset_while_it_has_workers(workers, named):
    two = [{"name": "cpu"}, {"name": "gpu"}]
    there = running({"nodeSets": two, "partitions": [{"name": "p", "nodeSets": ["cpu", "gpu"]}]})
    there = saying(there, NodeSet, "demo-gpu", "True", replicas=workers)
    there = changed(
        there, cluster({"nodeSets": two[:1], "partitions": [{"name": "p", "nodeSets": ["cpu"]}]}, **HELD)
    )

    there = carried_out(there, decide(there)[1])

    assert f"PartitionName=p Nodes={named}\n" in there.get(Controller, "ns", "demo").spec.extra_conf


def test_a_cluster_name_that_slurm_would_not_take_makes_nothing():
    there = world(cluster({"clusterName": ""}, name="demo"))
    assert steps(there)
    long = "a-name-that-is-much-longer-than-slurm-takes"
    there.things[0] = cluster({}, name=long)

    [wait] = decide(there, ObjectKey("ns", long))[1].actions()

    assert wait.reason == "SpecRefused"
    assert "longer than 40" in wait.message


def test_a_cluster_name_never_changes():
    there = world(cluster({}, status={"clusterName": "before"}))

    assert steps(there) == ["Wait spec SpecRefused"]


def test_our_cgroup_conf_goes_when_the_users_is_in_use():
    given = {"isolation": "process", "controller": {"configFileRefs": [{"name": "mine"}]}}
    there = running({"isolation": "process"})
    with_config(changed(there, cluster(given, **HELD)), "mine", cgroup_conf="CgroupPlugin=disabled\n")
    assert steps(there) == ["Apply Controller ns/demo Updated"]

    assert steps(carried_out(there, decide(there)[1])) == ["DeleteObject ConfigMap ns/demo-cgroup Deleted"]


@pytest.mark.parametrize(
    ("secrets", "expected"),
    [
        pytest.param([], ["Wait Secret login SecretNotFound"], id="no token"),
        pytest.param([secret("login", SLURM_JWT="d")], [], id="a token"),
        pytest.param([secret("login", other="d")], [], id="the only entry"),
        pytest.param([secret("login", a="d", b="d")], ["Wait Secret login SecretEntryNotFound"], id="which of them?"),
    ],
)  # fmt: skip
def test_for_a_slurm_elsewhere_nothing_is_made(secrets, expected):
    there = with_secrets(world(cluster(ADOPTED)), *secrets)

    assert steps(there) == expected


def test_parts_from_before_are_left_alone_when_the_slurm_is_elsewhere():
    there = with_secrets(
        changed(running(), cluster({**ADOPTED, "nodeSets": []}, **HELD)), secret("login", SLURM_JWT="d")
    )

    assert {type(action) for action in decide(there)[1].actions()} == {Wait}
    assert not [action for action in decide(there)[1].actions() if isinstance(action, DeleteObject)]


def test_who_is_woken():
    there = running(WHOLE)
    part = there.get(NodeSet, "ns", "demo-cpu")

    assert set(clusters_of(part, there)) == {KEY}
    assert list(clusters_of(stranger(Accounting, "demo"), there)) == [KEY]
    assert list(clusters_of(stranger(NodeSet, "demo-new"), there)) == [KEY]
    assert list(clusters_of(stranger(NodeSet, "demonstration"), there)) == []
    assert list(in_slurm(KEY, Changes(jobs=frozenset({1})), there)) == [KEY]
    assert list(in_slurm(KEY, Changes(), there)) == []
    assert list(in_slurm(ObjectKey("ns", "cluster/demo"), Changes(everything=True), there)) == []
    assert list(everywhere(storage_class(), there)) == [KEY]
    assert there.get(Cluster, "ns", "demo") is not None
