"""A new Slurm key under running jobs: which step comes when, and what everybody is told meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.builders.key_ring import Ring, ring_of
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
    Secret,
)
from slurm_operator.manifests.secrets import SecretHandle, filled, handles_in, text_of
from slurm_operator.plan.actions import Apply, DeleteDaemonPod, PatchObject, Wait, WriteSlurm
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.annotations import RING_READ
from slurm_operator.reconcilers.controller.keys import rotation
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.states import NodeState
from testing.controller_play import NOON, Play, job
from testing.controllers import KEY, NS, controller, put, secret, thing, world
from testing.rings import applied_secret, ring_secret

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
CPU = thing("NodeSet", "cpu", {"controllerRef": {"name": "slurm"}})
LONG_AGO = datetime(2026, 1, 1, 6, tzinfo=UTC)
ARRIVED = NOON - timedelta(minutes=5)  # A ring that changed then is in every pod by now.
RING = "slurm-auth-slurm-ring"


def pod(name: str, container: str, *, has_ring: bool = True, owner: str = "", **notes: str) -> Pod:
    owners = (
        [{"apiVersion": "v1", "kind": "NodeSet", "name": "cpu", "uid": owner, "controller": True}]
        if owner
        else []
    )
    noted = {**({names.KEY_RING: RING} if has_ring else {}), **notes}
    meta = {
        "name": name,
        "namespace": NS,
        "uid": f"uid-{name}",
        "ownerReferences": owners,
        "annotations": noted,
    }
    running = ContainerState(running=ContainerStateRunning(started_at=LONG_AGO))
    status = PodStatus(phase="Running", container_statuses=[ContainerStatus(name=container, state=running)])
    return Pod(metadata=codec.read(Meta, meta), status=status)


def slurm(**started: datetime) -> Snapshot:
    nodes = {
        name.replace("_", "-"): SlurmNode(
            name=name.replace("_", "-"), state=NodeState.of("IDLE"), slurmd_start_time=at
        )
        for name, at in started.items()
    }
    return Snapshot(nodes=nodes, jobs={}, nodes_asked_at=NOON, jobs_asked_at=NOON)


def rotating(
    ring: Ring, *, key: str = "k2", told: bool = True, snapshot=None, worker=None, login=None, ordered=False
):
    """A cluster of one worker whose user has changed the key, as far as the ring says."""
    since = ring.since.isoformat() if ring.since is not None else ""
    head = pod("slurm-controller-0", "slurmctld", **({RING_READ: since} if told else {}))
    held = controller(finalizers=[names.IN_USE_FINALIZER])
    made = world(held, RESTAPI, CPU, head, worker or pod("cpu-0", "slurmd", owner=CPU.metadata.uid))
    made.named[Secret, ObjectKey(NS, "slurm-auth-slurm")] = secret("slurm-auth-slurm", slurm_key=key)
    made.named[Secret, ObjectKey(NS, RING)] = ring_secret(NS, "slurm-auth-slurm", ring)
    made.slurms[KEY] = snapshot or slurm(cpu_0=NOON)
    if login is not None:
        made.things.append(
            codec.read(
                LoginSet,
                {
                    "metadata": {"name": "login", "namespace": NS},
                    "spec": {"controllerRef": {"name": "slurm"}, "ordered": ordered},
                },
            )
        )
        template = {"metadata": {"annotations": {names.SLURM_KEY_HASH: login}}}
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet" if ordered else "Deployment",
            "metadata": {"name": names.login_workload("login"), "namespace": NS},
            "spec": {"replicas": 1, "template": template},
        }
        put(made, deployment, status={"observedGeneration": 1, **counts})
    return made


def unread(made):
    """The same with a NodeSet that does not decode."""
    made.undecoded = [(NodeSet, ObjectKey(NS, "gpu"))]
    return made


def due(made) -> list:
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made), NOON)
    [lane] = [lane for lane in plan.lanes if lane.name == "key ring"] or [None]
    return list(lane.actions()) if lane else []


def written(actions) -> Ring | None:
    """The ring that is written, its time aside."""
    [manifest] = [one.manifest for one in actions if isinstance(one, Apply)] or [None]
    return wire.replace(ring_of(applied_secret(manifest)), since=None) if manifest else None


OLD, BOTH, SIGNED = (
    Ring(signs="k1"),
    Ring(signs="k1", next="k2", since=ARRIVED),
    Ring(signs="k2", former="k1", since=ARRIVED),
)
GONE = Ring(signs="k2", since=ARRIVED)


@pytest.mark.parametrize(
    ("ring", "key", "then"),
    [
        pytest.param(OLD, "k2", Ring(signs="k1", next="k2"), id="a new key: everybody learns it first"),
        pytest.param(BOTH, "k2", Ring(signs="k2", former="k1"), id="all know it: it signs"),
        pytest.param(SIGNED, "k2", Ring(signs="k2"), id="all sign with it: the old one goes"),
        pytest.param(GONE, "k2", Ring(signs="k2"), id="all have forgotten the old one: done"),
        pytest.param(BOTH, "k3", Ring(signs="k1", next="k3"), id="yet another key instead"),
        pytest.param(BOTH, "k1", Ring(signs="k1"), id="the old key is put back"),
        pytest.param(SIGNED, "k3", Ring(signs="k2"), id="a third key waits until the first has gone"),
        pytest.param(SIGNED, "k1", Ring(signs="k2"), id="the old key, put back too late, is a new one"),
    ],
)  # fmt: skip
def test_one_step_after_the_other(ring, key, then):
    assert written(due(rotating(ring, key=key))) == then


def test_a_settled_ring_is_left_alone_and_put_right_when_somebody_edits_it():
    made = rotating(Ring(signs="k2"))
    assert due(made) == []

    live = made.named[Secret, ObjectKey(NS, RING)]
    made.named[Secret, ObjectKey(NS, RING)] = wire.replace(
        live, digests={**live.digests, "slurm.jwks": "edited"}
    )
    assert written(due(made)) == Ring(signs="k2")

    made.named[Secret, ObjectKey(NS, RING)] = wire.replace(live, digests={})
    assert written(due(made)) == Ring(signs="k2"), "a ring without keys is made again"


FRESH = wire.replace(BOTH, since=NOON - timedelta(seconds=30))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        pytest.param(rotating(FRESH), "the kubelets bring it to the pods", id="on its way"),
        pytest.param(rotating(BOTH, snapshot=slurm(cpu_0=LONG_AGO)), "waiting for cpu-0", id="a slurmd that has not read it"),
        pytest.param(rotating(BOTH, snapshot=slurm()), "waiting for cpu-0", id="a slurmd that Slurm does not know"),
        pytest.param(rotating(BOTH, snapshot=Unreachable(since=NOON, why="no answer")), "cannot be asked: no answer", id="Slurm is away"),
        pytest.param(rotating(BOTH, worker=pod("cpu-0", "slurmd", has_ring=False, owner=CPU.metadata.uid)), "have only one key and take part when they are replaced: cpu-0", id="a worker of an older operator"),
        pytest.param(unread(rotating(BOTH)), "NodeSet gpu cannot be read", id="workers that nobody knows"),
        pytest.param(rotating(BOTH, login="k1"), "LoginSet login is replaced", id="login pods that know the old one only"),
        pytest.param(rotating(BOTH, login="k1", ordered=True), "LoginSet login is replaced", id="ordered ones"),
    ],
)  # fmt: skip
def test_no_step_before_everybody_has_taken_the_last_one(made, says):
    [said] = due(made)

    assert isinstance(said, Wait)
    assert said.reason == "RotatingKey"
    assert says in said.message
    assert said.message.startswith("Every daemon learns the new Slurm key")


@pytest.mark.parametrize(
    ("waited", "look_again"),
    [
        pytest.param(timedelta(seconds=101), timedelta(seconds=5.05), id="at first often"),
        pytest.param(timedelta(minutes=10), timedelta(seconds=30), id="less often the longer it takes"),
        pytest.param(timedelta(hours=3), timedelta(seconds=60), id="after hours once a minute"),
    ],
)
def test_what_holds_up_a_rotation_for_hours_is_not_looked_at_every_few_seconds(waited, look_again):
    made = rotating(Ring(signs="k1", next="k2", since=NOON - waited), login="k1")

    step = rotation.next_step(RECONCILER.observe(KEY, made), NOON)

    assert step.look_again == look_again


def test_daemons_are_told_to_read_it_once_it_has_arrived_and_that_is_noted():
    actions = due(rotating(BOTH, told=False, snapshot=slurm(cpu_0=LONG_AGO)))

    assert [type(one) for one in actions] == [Wait, WriteSlurm, PatchObject]
    assert actions[2].operations[0]["value"] == ARRIVED.isoformat()


@pytest.mark.parametrize(
    ("known_for", "left"),
    [
        pytest.param(None, 0, id="as kubectl sees it"),
        pytest.param(1000, 0, id="as long as it says"),
        pytest.param(100, 0, id="since we started, and that was long enough ago"),
        pytest.param(30, 70, id="shorter than it says: our clock was set, or we have just started"),
    ],
)
def test_the_kubelets_get_their_time_by_a_clock_that_nobody_can_set(known_for, left):
    made = rotating(BOTH)
    since = NOON - timedelta(seconds=known_for) if known_for is not None else None
    made.named[Secret, ObjectKey(NS, RING)] = wire.replace(
        made.named[Secret, ObjectKey(NS, RING)], known_since=since
    )

    step = rotation.next_step(RECONCILER.observe(KEY, made), NOON)

    is_written = any(isinstance(one, Apply) for lane in step.stages for one in lane)
    assert is_written is (left == 0)
    assert step.look_again == timedelta(seconds=left or rotation.LOOK_SECONDS)


def test_login_pods_that_know_both_are_no_hindrance():
    assert written(due(rotating(BOTH, login="k1-k2"))) == Ring(signs="k2", former="k1")


def test_of_several_controllers_on_one_key_the_first_looks_after_it_and_waits_for_all():
    first = thing(
        "Controller",
        "alpha",
        {"slurmctld": {}, "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"}},
    )
    made = rotating(BOTH)
    made.things.append(first)
    made.things.append(pod("alpha-controller-0", "slurmctld"))
    assert due(made) == []

    plan = RECONCILER.decide(RECONCILER.observe(ObjectKey(NS, "alpha"), made), NOON)
    [lane] = [lane for lane in plan.lanes if lane.name == "key ring"]
    [said] = lane.actions()
    assert "Controller alpha cannot be asked" in said.message


def test_slurmctld_is_not_restarted_for_a_new_slurm_key():
    made = Play(world(controller(), RESTAPI), jobs=(job(3),)).rounds()
    made.world.named[Secret, ObjectKey(NS, "slurm-auth-slurm")] = secret("slurm-auth-slurm", slurm_key="k2")
    made.rounds(200)

    assert made.restarts == 0
    assert ring_of(made.world.named[Secret, ObjectKey(NS, RING)]) == Ring(signs="k2")
    assert made.controller.status.slurm_key.signing == "k2"


@pytest.mark.parametrize(("jobs", "restarts"), [((job(3),), 1), ((), 1)])
def test_a_slurmctld_from_before_there_were_rings_gets_one_by_a_restart_that_signs_as_before(jobs, restarts):
    made = Play(world(controller(), RESTAPI), jobs=jobs).rounds()
    [head] = made.pods()
    made._replace(
        wire.replace(head, metadata=wire.replace(head.metadata, annotations={names.SLURM_KEY_HASH: "k1"}))
    )
    workload = made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller")
    del workload.body["spec"]["template"]["metadata"]["annotations"][names.KEY_RING]
    made.world.named[Secret, ObjectKey(NS, "slurm-auth-slurm")] = secret("slurm-auth-slurm", slurm_key="k2")
    made.rounds(200)

    assert made.restarts == restarts
    assert ring_of(made.world.named[Secret, ObjectKey(NS, RING)]) == Ring(signs="k2")


def test_the_secret_has_the_new_key_from_the_user_and_the_old_one_from_itself():
    source = SecretHandle(namespace=NS, name="slurm-auth-slurm", key="slurm.key", digest="b2")
    manifest = key_ring.manifest(source, Ring(signs="a1", next="b2"))
    values = {
        handle: text_of(handle, b"\xff\x00" if handle.name == "slurm-auth-slurm" else b"b2xk")
        for handle in handles_in(manifest)
    }

    made = filled(manifest, values)["stringData"]

    keys = wire.decode_any(made["slurm.jwks"])["keys"]
    assert [(one["kid"], one["k"], one.get("use")) for one in keys] == [
        ("a1", "b2xk", "default"),
        ("b2", "_wA", None),
    ]
    assert (made["key-a1"], made["key-b2"]) == ("b2xk", "_wA")
    assert not [one for one in due(rotating(OLD)) if isinstance(one, DeleteDaemonPod)]
