"""Copies of keys: Slurm can be asked when the originals are gone, and the copies go with the last who needs them."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.names import KEY_RING
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.manifests.builders import signing_keys
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.compare.differences import stamped
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Apply, DeleteObject, GenerateSecret, PatchObject, RestoreSecret
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER, FORCE_DELETION
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from testing.controller_play import NOON, Play
from testing.controllers import KEY, NS, controller, secret, thing, world
from testing.rings import applied_secret, ring_secret

REF = {"controllerRef": {"name": "slurm"}}
RESTAPI = thing("RestApi", "rest", REF)
NODESET = thing("NodeSet", "gpu", REF)
ORIGINAL, COPIES, RING = "slurm-auth-jwt", "slurm-signing-keys", "slurm-auth-slurm-ring"
GOING = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [FINALIZER]}
ANSWERS = Snapshot(nodes={}, jobs={}, nodes_asked_at=NOON, jobs_asked_at=NOON)
AWAY = Unreachable(since=NOON - timedelta(minutes=5), why="nobody is there")


def copies(*former: str, digest: str = "j1") -> Secret:
    source = SecretHandle(namespace=NS, name=ORIGINAL, key="jwt.key", digest=digest)
    return applied_secret(stamped(signing_keys.manifest(COPIES, source, former)))


def decide(made, now=NOON):
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made), now)
    return list(plan.actions())


def without(made, *names: str):
    for name in names:
        made.named[Secret, ObjectKey(NS, name)] = None
    return made


def written(made) -> list[str]:
    return [
        one.manifest["metadata"]["name"]
        for one in decide(made)
        if isinstance(one, Apply) and one.manifest["kind"] == "Secret"
    ]


@pytest.mark.parametrize(
    ("made", "copied"),
    [
        pytest.param(world(controller(), RESTAPI), [COPIES], id="it is used to ask slurmrestd"),
        pytest.param(world(controller()), [], id="nobody signs with it yet"),
        pytest.param(world(controller({"persistence": {"enabled": False}})), [COPIES], id="slurmctld would forget its jobs"),
        pytest.param(world(controller({"external": True}), RESTAPI), [COPIES], id="slurmctld is elsewhere"),
        pytest.param(world(controller(), RESTAPI, copies()), [], id="it is copied already"),
        pytest.param(world(controller(), RESTAPI, copies(digest="j0")), [COPIES], id="the key has changed"),
    ],
)  # fmt: skip
def test_a_signing_key_is_copied_when_it_is_first_used(made, copied):
    assert [name for name in written(made) if name == COPIES] == copied


def test_a_copy_says_no_more_than_it_must_and_stays_when_its_controller_is_deleted_in_the_foreground():
    labelled = controller(labels={"sync": "to-all-namespaces"}, annotations={"replicate": "yes"})
    [copy] = [a.manifest for a in decide(world(labelled, RESTAPI)) if isinstance(a, Apply) and a.manifest["metadata"]["name"] == COPIES]  # fmt: skip

    assert copy["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "slurm-operator"}
    assert "replicate" not in copy["metadata"]["annotations"]
    assert "ownerReferences" not in copy["metadata"]
    assert (copy["type"], copy["metadata"]["namespace"]) == ("Opaque", NS)


def test_a_new_key_takes_the_place_of_the_one_before_when_every_slurmctld_was_started_with_it():
    made = Play(world(controller(), RESTAPI)).rounds()
    made.world.named[Secret, ObjectKey(NS, ORIGINAL)] = secret(ORIGINAL, jwt_key="j2")
    made.round()
    both = signing_keys.kept(made.world.named[Secret, ObjectKey(NS, COPIES)])
    made.rounds()
    left = made.world.named[Secret, ObjectKey(NS, COPIES)]

    assert (both, signing_keys.kept(left), signing_keys.current(left)) == (("j1", "j2"), ("j2",), "j2")


@pytest.mark.parametrize(
    ("lost", "more", "asked_with"),
    [
        pytest.param((), (copies(),), ["jwt.key"], id="the original is there"),
        pytest.param((ORIGINAL,), (copies(),), ["key-j1"], id="only the copy is left"),
        pytest.param((ORIGINAL,), (copies("j0"),), ["key-j1", "key-j0"], id="the key of last comes first"),
        pytest.param((ORIGINAL,), (), [], id="all are gone"),
    ],
)
def test_slurm_is_asked_with_a_copy_where_the_original_is_gone(lost, more, asked_with):
    [server] = slurm_servers(without(world(controller(), RESTAPI, *more), *lost)).values()

    assert [one.key for one in (server.key, *server.former) if one is not None] == asked_with


@pytest.mark.parametrize(("has_ring", "former"), [(True, []), (False, ["key-j1"])])
def test_a_slurmctld_that_was_not_made_here_is_asked_with_the_key_that_it_has(has_ring, former):
    made = Play(world(controller(), RESTAPI)).rounds()
    [pod] = made.pods()
    notes = pod.metadata.annotations
    if not has_ring:
        notes = {name: note for name, note in notes.items() if name != KEY_RING}
    made._replace(wire.replace(pod, metadata=wire.replace(pod.metadata, annotations=notes)))
    made.world.named[Secret, ObjectKey(NS, ORIGINAL)] = secret(ORIGINAL, jwt_key="j2")

    [server] = slurm_servers(made.world).values()

    assert (server.key.digest, [one.key for one in server.former]) == ("j2", former)


def test_a_key_that_cannot_be_read_is_not_one_that_is_gone():
    made = world(controller(), RESTAPI, copies())
    made.named[Secret, ObjectKey(NS, ORIGINAL)] = Unread(why="forbidden")

    assert [server.key for server in slurm_servers(made).values()] == [None]


def test_when_all_secrets_are_gone_the_copy_is_written_again_by_who_still_knows_the_key():
    made = Play(world(controller(), RESTAPI)).rounds()
    without(made.world, ORIGINAL, COPIES)

    [write] = [a for a in decide(made.world, made.now) if isinstance(a, Apply) and a.manifest["metadata"]["name"] == COPIES]  # fmt: skip
    assert "slurm-auth-jwt/jwt.key j1" in write.manifest["stringData"]["key-j1"]

    made.world.slurms[KEY] = AWAY
    assert COPIES not in written(made.world), "nobody is connected who could know it"


def test_a_controller_is_held_from_the_beginning_so_that_its_copies_go_with_it():
    [held] = [a for a in decide(world(controller())) if a.reason == "Held"]

    assert held.operations[-1]["value"] == [FINALIZER]
    assert not [a for a in decide(world(controller({"external": True}))) if a.reason == "Held"]


OTHER = thing("Controller", "other", {"slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"}})
OTHER_GOING = wire.replace(OTHER, metadata=wire.replace(OTHER.metadata, deletion_timestamp=NOON))
OF_OTHER = thing("NodeSet", "theirs", {"controllerRef": {"name": "other"}})


@pytest.mark.parametrize(
    ("more", "gone"),
    [
        pytest.param((), [COPIES, RING], id="it was the last"),
        pytest.param((OTHER,), [COPIES], id="another one has the same Slurm key"),
        pytest.param((OTHER_GOING, OF_OTHER), [COPIES], id="another one still waits for its workers"),
        pytest.param((OTHER_GOING,), [COPIES, RING], id="another one goes in the same moment"),
    ],
)
def test_copies_are_deleted_before_the_last_controller_that_needs_them(more, gone):
    actions = decide(world(controller(**GOING), copies(), *more))

    assert [a.key.name for a in actions if isinstance(a, DeleteObject)] == gone
    assert isinstance(actions[-1], PatchObject), "what fails before it keeps the Controller"
    assert (actions[-1].reason, actions[-1].operations[-1]["value"]) == ("Released", [])
    assert len(actions) == len(gone) + 1


def test_generated_keys_are_used_again_without_a_rotation():
    before = Play(world(controller(), RESTAPI)).rounds()
    kept = [before.world.named[Secret, ObjectKey(NS, name)] for name in (ORIGINAL, "slurm-auth-slurm")]
    again = Play(world(controller(), RESTAPI, *kept)).rounds()

    assert again.condition("Ready").status == "True"
    assert again.controller.status.slurm_key.step == ""
    assert not [line for line in again.transcript if line.startswith("GenerateSecret")]


# ---- Pods that have to start again while everything goes


@pytest.mark.parametrize(
    ("meta", "slurm", "lost", "restored"),
    [
        pytest.param(GOING, AWAY, (ORIGINAL, "slurm-auth-slurm"), {"slurm-auth-slurm": {"slurm.key": "key-k1"}, ORIGINAL: {"jwt.key": "key-j1"}}, id="nobody can ask Slurm without them"),
        pytest.param(GOING, AWAY, (ORIGINAL,), {ORIGINAL: {"jwt.key": "key-j1"}}, id="what is there stays"),
        pytest.param(GOING, AWAY, (), {}, id="nothing is lost"),
        pytest.param({}, AWAY, (ORIGINAL,), {}, id="nobody deletes it: the user is asked"),
        pytest.param(GOING, Unreachable(since=NOON - timedelta(seconds=20), why="starts"), (ORIGINAL,), {}, id="it may be back in a moment"),
        pytest.param(GOING, ANSWERS, (ORIGINAL,), {}, id="Slurm answers"),
        pytest.param({**GOING, "annotations": {FORCE_DELETION: "true"}}, AWAY, (ORIGINAL,), {}, id="forced: nobody is asked"),
    ],
)  # fmt: skip
def test_lost_secrets_are_put_back_when_a_deletion_cannot_go_on_without_them(meta, slurm, lost, restored):
    made = without(world(controller(**meta), RESTAPI, NODESET, copies()), *lost)
    ring_ = ring_secret(NS, "slurm-auth-slurm", Ring(signs="k1"))
    made.named[Secret, ObjectKey(NS, RING)] = ring_
    made.slurms[KEY] = slurm

    found = [a for a in decide(made) if isinstance(a, RestoreSecret)]
    assert {
        a.manifest["metadata"]["name"]: {entry: copy.key for entry, copy in a.entries.items()} for a in found
    } == restored
    for action in found:
        [owner] = action.manifest["metadata"]["ownerReferences"]
        assert owner["name"] == "slurm", "it goes with the Controller"


def test_they_are_put_back_too_when_the_cluster_goes_which_deletes_its_controller_last():
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Cluster", "name": "slurm", "uid": "u", "controller": True}  # fmt: skip
    whole = codec.read(Cluster, {"metadata": {"name": "slurm", "namespace": NS, "uid": "u", **GOING}, "spec": {}})  # fmt: skip
    made = without(world(controller(ownerReferences=[owner]), RESTAPI, NODESET, copies(), whole), ORIGINAL)
    made.slurms[KEY] = AWAY

    assert [a.manifest["metadata"]["name"] for a in decide(made) if isinstance(a, RestoreSecret)] == [
        ORIGINAL
    ]


def test_a_key_that_is_lost_while_everything_goes_is_not_made_anew():
    """Its StatefulSet was deleted too; but workers have the old key."""
    made = without(world(controller(**GOING), RESTAPI, NODESET, copies()), ORIGINAL, "slurm-auth-slurm")

    assert not [a for a in decide(made) if isinstance(a, GenerateSecret)]
    assert RECONCILER.decide(RECONCILER.observe(KEY, made), NOON).look_again is not None
