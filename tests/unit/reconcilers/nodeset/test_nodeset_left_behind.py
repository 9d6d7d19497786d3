"""Workers that an API server created when their NodeSet was gone: they leave by the gate, and nobody is wedged."""

import asyncio
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.schema.codec import read
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.kube.errors import Forbidden, NotFound, Status
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers import controller as controllers
from slurm_operator.reconcilers import restapi as restapis
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.runtime.loop.reconcile import Loop
from testing.workers import (
    KEY,
    NOW,
    controller,
    job,
    nodeset,
    ours,
    planned,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

HEAD = controller()
RING = {names.KEY_RING: "slurm-auth-slurm-ring"}
GOING = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [names.IN_USE_FINALIZER]}


def left(*, cluster="slurm", annotations=RING, owners=None, **more):
    """A worker of NodeSet gpu."""
    made = worker(1, annotations=annotations, **more)
    labels = {**made.metadata.labels, names.APP_INSTANCE: "gpu"}
    labels |= {names.LABEL_CLUSTER: cluster} if cluster else {}
    meta = wire.replace(made.metadata, labels=labels)
    return wire.replace(made, metadata=wire.replace(meta, owner_references=owners) if owners else meta)


IDLE, NEW, PLACED = left(), left(on="", started=False, phase="Pending"), left(started=False, phase="Pending")
ELSEWHERE = left(annotations={})
UNLABELLED = left(cluster="")


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(world(HEAD, NEW, slurm_=slurm()), ["delete gpu-1 (NeverStarted)"], id="no machine has it"),
        pytest.param(world(HEAD, PLACED, slurm_=slurm()), ["forget gpu-1", "delete gpu-1 (Unreported)"], id="a machine may be about to start it"),
        pytest.param(world(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "IDLE"))), ["drain gpu-1 for Deletion"], id="it takes jobs"),
        pytest.param(
            world(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "ALLOCATED", "DRAIN", reason=ours(IDLE, "Deletion")), jobs=[job(7, "gpu-1")])),
            ["wait gpu-1: Draining"], id="it has a job",
        ),
        pytest.param(
            world(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "IDLE", "DRAIN", reason=ours(IDLE, "Deletion")))),
            ["Retired gpu-1", "forget gpu-1", "delete gpu-1 (Drained)"], id="its jobs are done",
        ),
        pytest.param(world(HEAD, IDLE), ["wait gpu-1: SlurmUnreachable"], id="Slurm does not answer"),
        pytest.param(world(NEW), ["delete gpu-1 (NeverStarted)"], id="the Controller is gone, too, and it has not started"),
        pytest.param(world(IDLE), ["Released gpu-1", "wait gpu-1: Abandoned"], id="the Controller is gone, and slurmctld with it"),
        pytest.param(world(ELSEWHERE), ["wait gpu-1: LeftBehind"], id="the Controller is gone, and slurmctld may be elsewhere"),
        pytest.param(world(HEAD, UNLABELLED), ["wait gpu-1: LeftBehind"], id="it does not say which Controller it is of"),
    ],
)  # fmt: skip
def test_it_leaves_as_if_its_nodeset_were_being_deleted(made, story):
    assert told(made) == story


def test_one_that_loses_its_protection_is_deleted_by_the_garbage_collector():
    [patch] = [action for action in planned(world(IDLE)).actions() if isinstance(action, PatchObject)]

    assert f"/metadata/labels/{names.LABEL_POD_PROTECT.replace('/', '~1')}" in {
        one["path"] for one in patch.operations if one["op"] == "remove"
    }


def test_while_the_slurmctld_of_a_controller_that_is_gone_is_there_it_is_waited_for():
    made = world(IDLE)
    meta = Meta(name=names.controller_workload("slurm"), namespace="ns", uid="s")
    made.children_[kinds.STATEFUL_SET] = [Child(metadata=meta, body={})]

    assert told(made) == ["wait gpu-1: SlurmUnreachable"]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Running", ["wait gpu-1: SlurmUnreachable"]), ("Failed", ["Released gpu-1", "wait gpu-1: Abandoned"])],
)
def test_a_slurmctld_whose_workload_is_called_otherwise_is_waited_for(phase, expected):
    """Its Controller had names of its own in spec.children, and is gone."""
    labels = {names.APP_NAME: "mine", names.LABEL_PART: "slurmctld", names.LABEL_PART_NAME: "slurm"}
    meta = {"name": "head-0", "namespace": "ns", "uid": "h", "labels": labels}
    made = world(IDLE, read(Pod, {"metadata": meta, "status": {"phase": phase}}))

    assert told(made) == expected


UNREAD = world(HEAD, IDLE)
UNREAD.undecoded = [(NodeSet, KEY)]
OTHER = wire.replace(IDLE.metadata.owner_references[0], kind="Other")


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(world(HEAD), id="nothing is left of it"),
        pytest.param(UNREAD, id="its NodeSet is there and does not decode"),
        pytest.param(world(HEAD, left(terminating=True)), id="it is asked to end already"),
        pytest.param(world(HEAD, left(owners=[OTHER])), id="it belongs to something else"),
    ],
)
def test_nobody_else_is_taken_for_one(made):
    assert RECONCILER.observe(KEY, made) is None


def test_a_nodeset_that_was_made_again_takes_it_in():
    spec = nodeset(replicas=2)
    again = wire.replace(spec, metadata=wire.replace(spec.metadata, uid="second"))
    made = told(world(again, HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "IDLE"))))

    assert "Adopted gpu-1" in made
    assert "create Pod gpu-1" not in made


def elsewhere(*things, slurm_=None):
    """NodeSet gpu was made again, for another Controller than its previous worker's."""
    spec = nodeset(replicas=0, controllerRef={"name": "other"})
    again = wire.replace(spec, metadata=wire.replace(spec.metadata, uid="second"))
    other = wire.replace(HEAD, metadata=wire.replace(HEAD.metadata, name="other", uid="o"))
    return world(again, other, *things, slurm_=slurm_) if slurm_ is not None else world(again, other, *things)


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(elsewhere(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "IDLE"))), ["drain gpu-1 for Deletion"], id="it takes jobs"),
        pytest.param(
            elsewhere(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "ALLOCATED", "DRAIN", reason=ours(IDLE, "Deletion")), jobs=[job(7, "gpu-1")])),
            ["wait gpu-1: Draining"], id="it has a job",
        ),
        pytest.param(
            elsewhere(HEAD, IDLE, slurm_=slurm(slurm_node(IDLE, "IDLE", "DRAIN", reason=ours(IDLE, "Deletion")))),
            ["Retired gpu-1", "forget gpu-1", "delete gpu-1 (Drained)"], id="its jobs are done",
        ),
        pytest.param(elsewhere(HEAD, IDLE), ["wait gpu-1: SlurmUnreachable"], id="Slurm does not answer"),
        pytest.param(elsewhere(IDLE), ["Released gpu-1", "wait gpu-1: Abandoned"], id="its Controller is gone"),
    ],
)  # fmt: skip
def test_it_also_leaves_while_a_nodeset_of_its_name_belongs_to_another_controller(made, story):
    assert [one for one in told(made) if "gpu-1" in one] == story
    assert planned(made).look_again is not None


@pytest.mark.parametrize(
    "pod", [left(cluster="other"), UNLABELLED], ids=["of the same Controller", "unlabelled"]
)
def test_a_worker_of_no_other_controller_is_taken_in_and_not_taken_for_one_that_leaves(pod):
    assert next(one for one in told(elsewhere(HEAD, pod)) if "gpu-1" in one) == "Adopted gpu-1"
    assert RECONCILER.observe(KEY, elsewhere(HEAD, pod)).left_elsewhere is None


@pytest.mark.parametrize(
    ("pod", "holds"),
    [
        pytest.param(IDLE, True, id="it may have jobs of this Slurm"),
        pytest.param(left(cluster="other"), False, id="of another Slurm"),
        pytest.param(left(terminating=True), False, id="it is asked to end"),
    ],
)
def test_the_slurm_that_it_may_have_jobs_of_stays(pod, holds):
    meta = {"namespace": "ns", "uid": "u", **GOING}
    head = read(Controller, {"metadata": {"name": "slurm", **meta}, "spec": {}})
    rest = read(RestApi, {"metadata": {"name": "rest", **meta}, "spec": {"controllerRef": {"name": "slurm"}}})
    made = world(head, rest, pod)
    about = ((controllers.RECONCILER, "slurm"), (restapis.RECONCILER, "rest"))
    seen = [(one, one.observe(ObjectKey("ns", name), made)) for one, name in about]

    waits = [wait.message for one, facts in seen for wait in one.decide(facts, NOW).waits]
    assert ["pod gpu-1, whose NodeSet is gone" in message for message in waits if "needed by" in message] == (
        [True, True] if holds else [False]  # The Controller waits for the RestApi, which may go.
    )
    assert (list(controllers.behind(pod, made)) == [ObjectKey("ns", "slurm")]) is holds
    assert (list(restapis.of_pod(pod, made)) == [ObjectKey("ns", "rest")]) is holds


@pytest.mark.parametrize(
    ("answer", "is_gone"),
    [
        pytest.param(NotFound(Status(code=404)), True, id="it is gone"),
        pytest.param(None, False, id="it is there: the watch is late"),
        pytest.param(Forbidden(Status(code=403)), False, id="nobody knows"),
    ],
)
def test_the_api_server_has_to_say_that_the_nodeset_is_gone(answer, is_gone):
    async def get(kind, key):
        if answer is not None:
            raise answer

    seen = RECONCILER.observe(KEY, world(HEAD, IDLE))
    loop = Loop(RECONCILER, None, SimpleNamespace(client=SimpleNamespace(get=get)))

    assert asyncio.run(loop._gone(KEY, seen)) == (seen.nodeset if is_gone else None)
