"""Objects as Slinky's operator leaves them, through observe and decide: nothing that runs is touched.

First pass and second pass: what the first one writes is in the world of the second, and then nothing is left.
"""

import copy
import hashlib
from datetime import UTC, datetime

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, decode_child
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.plan.actions import (
    Apply,
    Create,
    DeleteDaemonPod,
    DeleteObject,
    DeleteWorker,
    PatchObject,
    Wait,
    WriteSlurm,
)
from slurm_operator.reconcilers import controller, loginset, nodeset, restapi
from slurm_operator.reconcilers.controller.configuration import pipeline
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import NodeState
from testing import slinky
from testing.controllers import put
from testing.rings import ring_secret
from testing.workers import job
from testing.world import HandmadeWorld

NS = slinky.NAMESPACE
NOW = datetime(2026, 11, 17, 20, 30, tzinfo=UTC)
STARTED = datetime(2026, 11, 17, 20, 12, 53, tzinfo=UTC)
MODELS = {"Controller": Controller, "RestApi": RestApi, "NodeSet": NodeSet, "LoginSet": LoginSet}
RECONCILERS = {
    "controller": (controller.RECONCILER, ObjectKey(NS, "slurm")),
    "restapi": (restapi.RECONCILER, ObjectKey(NS, "slurm")),
    "loginset": (loginset.RECONCILER, ObjectKey(NS, "login")),
    "nodeset": (nodeset.RECONCILER, ObjectKey(NS, "w")),
}
CHANGES = (DeleteDaemonPod, DeleteObject, DeleteWorker, WriteSlurm)
# What our caches show: what carries these labels. The others are read by name, or not at all.
SHOWN = {"slurmctld", "slurmrestd", "slurmdbd", "slurmd", "login"}


def world(objects: list[dict]) -> HandmadeWorld:
    made = HandmadeWorld(now=NOW)
    for one in objects:
        meta = one["metadata"]
        key = ObjectKey(NS, meta["name"])
        if one["kind"] in MODELS:
            made.things.append(codec.read(MODELS[one["kind"]], one))
        elif one["kind"] == "Pod":
            made.things.append(running(one))
        elif one["kind"] == "Secret":
            digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in one.get("data", {})}
            made.named[Secret, key] = Secret(metadata=wire.convert(meta, Meta), digests=digests)
        elif one["kind"] == "ControllerRevision":
            made.named[Child, key] = decode_child(wire.encode(one))
        elif meta.get("labels", {}).get(names.APP_NAME) in SHOWN:
            made.children_.setdefault(kinds.kind_of(one), []).append(decode_child(wire.encode(one)))
        if one["kind"] == "ConfigMap":
            made.named[ConfigMap, key] = wire.decode(wire.encode(one), ConfigMap)
    key_digest = made.named[Secret, ObjectKey(NS, "slurm-key")].digests["slurm.key"]
    ring = ring_secret(NS, "slurm-key", Ring(signs=key_digest))
    made.named[Secret, ObjectKey(NS, ring.metadata.name)] = ring
    made.slurms[ObjectKey(NS, "slurm")] = slurm([t for t in made.things if isinstance(t, Pod)])
    return made


def running(pod: dict) -> Pod:
    status = {
        **pod["status"],
        "containerStatuses": [
            {"name": one["name"], "ready": True, "state": {"running": {"startedAt": "2026-11-17T20:12:40Z"}}}
            for one in pod["spec"]["containers"]
        ],
    }
    return wire.decode(wire.encode({**pod, "status": status}), Pod)


def slurm(pods: list[Pod]) -> Snapshot:
    """Jobs on w-0 and w-1, as when it was recorded."""
    busy = {"w-0", "w-1"}
    workers = [pod for pod in pods if pod.metadata.name.startswith("w-")]
    nodes = {
        pod.metadata.name: SlurmNode(
            name=pod.metadata.name,
            state=NodeState.of("ALLOCATED" if pod.metadata.name in busy else "IDLE", "DYNAMIC_NORM"),
            address=pod.status.pod_ip, slurmd_start_time=STARTED, reason="", reason_changed_at=None,
            features=("w",), active_features=("w",),
        )
        for pod in workers
    }  # fmt: skip
    jobs = [job(number, name) for number, name in enumerate(sorted(busy), 1)]
    return Snapshot(
        nodes=nodes, jobs={one.job_id: one for one in jobs}, jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=NOW, jobs_asked_at=NOW,
    )  # fmt: skip


def plan(name: str, made: HandmadeWorld) -> list:
    reconciler, key = RECONCILERS[name]
    return list(reconciler.decide(reconciler.observe(key, made), NOW).actions())


def carry_out(actions: list, made: HandmadeWorld) -> None:
    """The writes of a plan, as an API server takes them: applied fields over those that are there."""
    for action in actions:
        if isinstance(action, Apply) and action.manifest["kind"] != "Secret":
            kind, name = kinds.kind_of(action.manifest), action.manifest["metadata"]["name"]
            there = made.child(kind, NS, name)
            put(made, over(there.body if there else {}, action.manifest))
        if isinstance(action, Apply) and action.manifest["kind"] == "Secret":
            put_secret(made, action.manifest)
        if isinstance(action, PatchObject) and action.kind == kinds.CONTROLLER_REVISION:
            there = made.named.pop((Child, ObjectKey(NS, action.key.name)))
            [operation] = action.operations
            labels = {**there.metadata.labels, names.LABEL_REVISION: operation["value"]}
            labelled = wire.replace(there, metadata=wire.replace(there.metadata, labels=labels))
            made.children_.setdefault(kinds.CONTROLLER_REVISION, []).append(labelled)
        if isinstance(action, PatchObject) and action.kind.kind in MODELS:
            finalizers = next(one["value"] for one in action.operations if "finalizers" in str(one["path"]))
            kind = MODELS[action.kind.kind]
            at = next(i for i, one in enumerate(made.things) if isinstance(one, kind))
            meta = wire.replace(made.things[at].metadata, finalizers=tuple(finalizers))
            made.things[at] = wire.replace(made.things[at], metadata=meta)


def put_secret(made: HandmadeWorld, manifest: dict) -> None:
    """As it is after it was filled: its values are known by their digests."""
    meta = manifest["metadata"]
    digests = {entry: digest(text) for entry, text in manifest["stringData"].items()}
    notes = {**meta.get("annotations", {}), CONTENT_DIGEST: content_digest(digests, digests)}
    metadata = codec.read(Meta, {**meta, "annotations": notes, "uid": f"uid-of-{meta['name']}"})
    made.named[Secret, ObjectKey(NS, meta["name"])] = Secret(metadata=metadata, digests=digests)


def over(there: dict, manifest: dict) -> dict:
    merged = copy.deepcopy(there)
    for key, value in manifest.items():
        is_map = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = over(merged[key], value) if is_map else value
        if value is None:
            del merged[key]
    return merged


@pytest.mark.parametrize("existing_claim", [False, True], ids=["claim by template", "existing claim"])
@pytest.mark.parametrize("name", RECONCILERS)
def test_nothing_that_runs_is_touched_and_the_second_pass_writes_nothing(name, existing_claim):
    made = world(slinky.recorded(existing_claim=existing_claim))
    recorded = {child.metadata.name: child.body for child in made.children_[kinds.STATEFUL_SET]}

    first = plan(name, made)

    assert [one for one in first if isinstance(one, CHANGES)] == []
    assert [one for one in first if isinstance(one, Create) and one.manifest["kind"] != "Pod"] == []
    for write in first:
        if isinstance(write, Apply) and write.manifest["kind"] in ("StatefulSet", "Deployment"):
            live = made.child(kinds.kind_of(write.manifest), NS, write.manifest["metadata"]["name"])
            assert write.manifest["spec"]["template"] == live.body["spec"]["template"]
            assert write.takes_over
            if "volumeClaimTemplates" in live.body["spec"]:
                claims = recorded["slurm-controller"]["spec"]["volumeClaimTemplates"]
                assert write.manifest["spec"]["volumeClaimTemplates"] == claims

    carry_out(first, made)
    second = [one for one in plan(name, made) if not is_about_config(one)]
    assert [one for one in second if not isinstance(one, Wait)] == []


def is_about_config(action: object) -> bool:
    """The rehearsal of slurm.conf takes more than two passes, and the facts on pods are written one by one."""
    told = getattr(action, "reason", "")
    return told in ("Rehearsing", "Deadline", "SlurmState", "Protected", "ActiveLabel", "KeyRing")


def test_its_revision_is_the_current_one_and_is_only_given_our_label():
    made = world(slinky.recorded())
    seen = nodeset.RECONCILER.observe(ObjectKey(NS, "w"), made)

    assert (seen.revision.hash, seen.revision.is_new, seen.former) == (slinky.HASH, False, [])
    [labelled] = [
        one for one in plan("nodeset", made) if getattr(one, "kind", None) == kinds.CONTROLLER_REVISION
    ]
    assert labelled.operations == (
        {"op": "add", "path": "/metadata/labels/controller-revision-hash", "value": slinky.HASH},
    )


def test_a_revision_that_cannot_be_read_replaces_nobody():
    objects = slinky.recorded()
    for one in objects:
        if one["kind"] == "Pod":
            one["metadata"]["labels"].pop("controller.kubernetes.io/hash", None)
            if one["metadata"]["name"].startswith("w-"):
                one["metadata"]["labels"]["controller.kubernetes.io/hash"] = "elsewhere"
    made = world(objects)
    del made.named[Child, ObjectKey(NS, f"w-{slinky.HASH}")]
    made.named[Child, ObjectKey(NS, "w-elsewhere")] = Unread(why="forbidden")

    seen = nodeset.RECONCILER.observe(ObjectKey(NS, "w"), made)
    assert (seen.former, seen.unread_revisions) == ([], frozenset({"elsewhere"}))
    found = plan("nodeset", made)
    assert [one for one in found if isinstance(one, DeleteWorker | WriteSlurm)] == []
    assert "w-elsewhere" in next(
        one.message for one in found if getattr(one, "reason", "") == "RevisionUnread"
    )


def test_a_changed_spec_drains_its_workers_without_a_word_about_other_resources():
    objects = slinky.recorded()
    slinky.named(objects, "NodeSet", "w")["spec"]["slurmd"]["image"] = "docker.io/local/slurmd:26.11"
    made = world(objects)

    drains = [one for one in plan("nodeset", made) if isinstance(one, WriteSlurm)]
    assert drains
    assert not any("other resources" in one.message or "other resources" in str(one.write) for one in drains)


def test_files_that_its_pods_mount_are_not_new():
    seen = controller.RECONCILER.observe(ObjectKey(NS, "slurm"), world(slinky.recorded()))

    waits = [one for stage in pipeline.next_step(seen, NOW).stages for one in stage if isinstance(one, Wait)]
    assert [one.reason for one in waits if one.reason == "JobsAtStake"] == []


def test_a_worker_that_we_made_before_is_given_the_label_that_slinky_looks_for():
    objects = slinky.recorded()
    for one in objects:
        if one["kind"] == "Pod" and one["metadata"]["name"] == "w-2":
            labels = one["metadata"]["labels"]
            labels["controller-revision-hash"] = labels.pop("controller.kubernetes.io/hash")
    found = [one for one in plan("nodeset", world(objects)) if getattr(one, "reason", "") == "Labelled"]

    [label] = [operation for one in found for operation in one.operations]
    assert (found[0].key.name, label["value"]) == ("w-2", slinky.HASH)
