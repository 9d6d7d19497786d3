"""What a Cluster says about itself: the true cause, and what Slurm counts."""

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.reconcilers.cluster import RECONCILER
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER
from testing.children import report, secret, with_secrets
from testing.clusters import KEY, changed, cluster, decide, leaving, saying, settled, slurm, world

SPEC = {
    "accounting": {"managed": {}},
    "logins": [{"name": "ssh"}],
    "nodeSets": [{"name": "cpu", "replicas": 2}],
}
PARTS = {Accounting: "demo", Controller: "demo", RestApi: "demo", NodeSet: "demo-cpu", LoginSet: "demo-ssh"}
ELSEWHERE = {"server": "https://slurm.example.org:6820", "token": {"secretRef": "login"}}


def working(spec=SPEC, **meta):
    """Everything is ready, and Slurm answers."""
    there = settled(world(cluster(spec, finalizers=[FINALIZER], **meta)))
    for kind, name in PARTS.items():
        saying(there, kind, name, "True")
    there.slurms[KEY] = slurm()
    return there


def told(there) -> dict:
    return report(RECONCILER, *decide(there))


def test_a_cluster_in_which_everything_works():
    there = saying(working(), RestApi, "demo", "True", url="http://demo-restapi.ns:6820")
    saying(there, LoginSet, "demo-ssh", "True", endpoint="192.0.2.7:22")

    found = told(there)

    assert {name: found[name][:2] for name in ("Ready", "Progressing", "Degraded", "Persistent")} == {
        "Ready": ("True", "Working"),
        "Progressing": ("False", "UpToDate"),
        "Degraded": ("False", "AsExpected"),
        "Persistent": ("True", "Volume"),
    }
    assert found["isReady"] is True
    assert found["clusterName"] == "ns_demo"
    assert found["slurmVersion"] == "26.05.5"
    assert (found["restUrl"], found["login"]) == ("http://demo-restapi.ns:6820", "192.0.2.7:22")
    assert [(part["kind"], part["ready"]) for part in found["components"]] == [
        ("Accounting", True), ("Controller", True), ("RestApi", True), ("NodeSet", True), ("LoginSet", True),
    ]  # fmt: skip


def test_nodes_and_jobs_are_counted_once_each():
    there = working()
    there.slurms[KEY] = slurm(
        nodes={
            "a": "IDLE+DYNAMIC_NORM", "b": "MIXED", "c": "ALLOCATED", "d": "IDLE+DRAIN", "e": "MIXED+DRAIN", "f": "DOWN",
            "g": "IDLE+NOT_RESPONDING", "h": "DOWN+DRAIN", "i": "FUTURE", "j": "ALLOCATED+COMPLETING+DRAIN", "k": "NEWWORD",
        },
        jobs={1: "RUNNING", 2: "PENDING", 3: "SUSPENDED", 4: "RUNNING+COMPLETING", 5: "PENDING", 6: "RUNNING"},
    )  # fmt: skip

    found = told(there)

    assert found["nodes"] == {
        "total": 11, "idle": 1, "mixed": 1, "allocated": 1, "drained": 1, "draining": 2, "down": 3, "other": 2,
    }  # fmt: skip
    assert found["jobs"] == {"running": 2, "pending": 2, "suspended": 1, "other": 1}


@pytest.mark.parametrize(
    ("troubled", "cause"),
    [
        pytest.param({Controller: ("ConfigRefused", "True"), RestApi: ("ConfigNotYetWritten", "False"), NodeSet: ("Unavailable", "False")},
                     ("ConfigRefused", "Controller demo: why ConfigRefused 2 more parts are not ready."), id="the head, not those who wait for it"),
        pytest.param({Accounting: ("DatabaseRefused", "True"), Controller: ("AccountingNotReady", "False")},
                     ("DatabaseRefused", "Accounting demo: why DatabaseRefused 1 more part is not ready."), id="the database behind slurmctld"),
        pytest.param({NodeSet: ("Unavailable", "False")}, ("Unavailable", "NodeSet demo-cpu: why Unavailable"), id="workers are starting"),
        pytest.param({Controller: ("PodsNotReady", "False"), LoginSet: ("SecretNotFound", "True")},
                     ("SecretNotFound", "LoginSet demo-ssh: why SecretNotFound 1 more part is not ready."), id="who needs a person comes before who needs time"),
    ],
)  # fmt: skip
def test_the_cause_is_the_part_that_is_really_in_trouble(troubled, cause):
    there = working()
    for kind, (reason, degraded) in troubled.items():
        saying(there, kind, PARTS[kind], "False", reason, f"why {reason}", degraded)

    found = told(there)

    assert found["Ready"] == ("False", *cause)
    assert found["isReady"] is False


def test_a_part_that_works_and_needs_attention_makes_the_cluster_degraded_not_unready():
    there = saying(working(), NodeSet, "demo-cpu", "True", "DrainOverdue", "cpu-1 drains since noon.", "True")

    found = told(there)

    assert found["Ready"][0] == "True"
    assert found["Degraded"] == ("True", "DrainOverdue", "NodeSet demo-cpu: cpu-1 drains since noon.")


def test_parts_that_do_not_exist_yet_are_being_made():
    found = told(world(cluster(SPEC)))

    assert found["Ready"][:2] == ("False", "Starting")
    assert found["Progressing"][:2] == ("True", "Starting")
    assert found["Degraded"][0] == "False"


def test_a_part_that_was_deleted_by_hand_is_missed():
    there = working()
    there.things.remove(there.get(RestApi, "ns", "demo"))

    assert told(there)["Ready"][:2] == ("False", "Starting")


def test_slurm_that_does_not_answer_is_said_so():
    there = working()
    del there.slurms[KEY]

    found = told(there)

    assert found["Ready"][:2] == ("False", "SlurmUnreachable")
    assert "there is no RestApi" in found["Degraded"][2]
    assert "nodes" not in found


def test_without_slurmrestd_by_the_users_will_nobody_expects_an_answer():
    there = working({**SPEC, "restApi": {"replicas": 0}})
    del there.slurms[KEY]

    assert told(there)["Ready"][0] == "True"


def test_a_leaving_nodeset_does_not_make_the_cluster_unready():
    there = changed(working(), cluster({**SPEC, "nodeSets": []}, finalizers=[FINALIZER]))
    there = saying(
        leaving(there, NodeSet, "demo-cpu"), NodeSet, "demo-cpu", "False", progress="jobs 5 run on cpu-0."
    )

    found = told(there)

    assert found["Ready"][0] == "True"
    assert found["Progressing"] == (
        "True",
        "Leaving",
        "waiting for NodeSet demo-cpu to be gone: jobs 5 run on cpu-0.",
    )


def test_a_write_that_was_refused_is_told_in_the_servers_words():
    seen, plan = decide(
        changed(working(), cluster({**SPEC, "restApi": {"replicas": 3}}, finalizers=[FINALIZER]))
    )
    [write] = plan.actions()

    found = report(
        RECONCILER, seen, plan, Outcome(failed=(Failure(action=write, error="quota is used up."),))
    )

    assert found["Ready"][0] == "True"
    assert found["Progressing"] == ("True", "Retrying", "quota is used up. It is tried again.")
    assert found["Degraded"] == (
        "True",
        "WriteFailed",
        "updated RestApi demo: spec.replicas: quota is used up.",
    )


def test_without_a_volume_it_says_what_that_costs_and_what_to_do():
    found = told(settled(world(cluster(), storage=False)))

    assert found["Persistent"][:2] == ("False", "NoDefaultStorageClass")
    assert "spec.controller.persistence.storageClassName" in found["Persistent"][2]


def test_a_volume_that_is_asked_for_blindly_is_told_as_such():
    found = told(settled(world(cluster(), storage=None)))

    assert found["Persistent"][0] == "True"
    assert found["Persistent"][2].endswith("Whether there is a default StorageClass could not be read.")


@pytest.mark.parametrize(
    ("has_token", "answers", "ready", "degraded"),
    [
        pytest.param(True, True, ("True", "Working"), "False", id="it answers"),
        pytest.param(True, False, ("False", "SlurmUnreachable"), "True", id="it does not"),
        pytest.param(False, False, ("False", "SecretNotFound"), "True", id="there is no token"),
    ],
)
def test_a_slurm_elsewhere_is_told_about_like_one_of_ours(has_token, answers, ready, degraded):
    there = world(cluster(ELSEWHERE))
    if has_token:
        with_secrets(there, secret("login", SLURM_JWT="d"))
    if answers:
        there.slurms[ObjectKey("ns", "cluster/demo")] = slurm(nodes={"a": "IDLE"}, jobs={1: "RUNNING"})

    found = told(there)

    assert found["Ready"][:2] == ready
    assert found["Degraded"][0] == degraded
    assert found.get("nodes", {}).get("total") == (1 if answers else None)
    assert found["clusterName"] == ("physics" if answers else "")
    assert "Isolation" not in found


def test_a_slurm_elsewhere_is_never_taken_for_a_controller_of_the_same_name():
    there = with_secrets(world(cluster(ELSEWHERE)), secret("login", SLURM_JWT="d"))
    there.slurms[KEY] = slurm(nodes={"a": "IDLE"})

    assert "nodes" not in told(there)


def test_while_it_is_deleted_it_says_what_it_waits_for():
    there = leaving(working(), NodeSet, "demo-cpu")
    there = saying(there, NodeSet, "demo-cpu", "True", progress="jobs 5 run on cpu-0.")
    there = changed(there, cluster(SPEC, finalizers=[FINALIZER], deletionTimestamp="2026-01-01T11:00:00Z"))

    found = told(there)

    assert found["Ready"][:2] == ("False", "Deleting")
    assert found["Progressing"][2] == "waiting for NodeSet demo-cpu to be gone: jobs 5 run on cpu-0."
