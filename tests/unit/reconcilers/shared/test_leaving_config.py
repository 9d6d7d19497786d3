"""When a NodeSet may leave slurm.conf: without its partition, its jobs would end."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.plan.actions import PatchObject, Wait
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.shared.partition_removal import may_leave_config
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.snapshot import Snapshot
from testing.workers import CONTROLLER, KEY, NOW, job, nodeset, slurm, worker
from testing.world import HandmadeWorld

DELETED = {"deletionTimestamp": "2026-01-01T11:00:00Z"}
OWNER = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Cluster",
    "name": "demo",
    "uid": "d",
    "controller": True,
}


def controller(*, deleted=False, owners=(), **spec) -> Controller:
    meta = {"name": "slurm", "namespace": "ns", "uid": "c", "ownerReferences": list(owners)}
    if deleted:
        meta |= DELETED
    return codec.read(Controller, {"metadata": meta, "spec": spec})


def cluster(**more) -> Cluster:
    return codec.read(
        Cluster, {"metadata": {"name": "demo", "namespace": "ns", "uid": "d", **more}, "spec": {}}
    )


def world(*things, snapshot=None, conf="") -> HandmadeWorld:
    good = Child(
        metadata=Meta(name=names.controller_config("slurm") + "-good", namespace="ns", uid="g"),
        body={"data": {"slurm.conf": conf}},
    )
    slurms = {CONTROLLER: snapshot} if snapshot is not None else {}
    return HandmadeWorld(things=list(things), children_={kinds.CONFIG_MAP: [good]}, slurms=slurms, now=NOW)


IN_CONFIG = "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu State=INACTIVE\n"
GOING = nodeset(deleted=True, partition={"enabled": True})
NAMED = controller(extraConf="# ours\nPartitionName=all Nodes=cpu,gpu\n")
OWNED = controller(extraConf="PartitionName=all Nodes=gpu\n", owners=[OWNER])
PENDING = job(7, words=("PENDING",), partition="other,gpu")


def in_state(word: str) -> Snapshot:
    return wire.replace(slurm(), partitions={"gpu": Partition(name="gpu", state=frozenset({word}))})


@pytest.mark.parametrize(
    ("seen", "stays"),
    [
        pytest.param(world(nodeset(), controller(), snapshot=slurm()), "InUse", id="it is there"),
        pytest.param(world(GOING, controller(), worker(0), snapshot=slurm()), "WorkersLeft", id="with workers"),
        pytest.param(world(GOING, controller(), snapshot=slurm(jobs=[job(1, "gpu-0", partition="gpu")])), "JobsInPartition", id="a job runs"),
        pytest.param(world(GOING, controller(), snapshot=slurm(jobs=[PENDING])), "JobsInPartition", id="a job waits for one of several"),
        pytest.param(world(GOING, controller(), snapshot=slurm(jobs=[job(1, "x", partition="other")])), None, id="jobs of others"),
        pytest.param(world(GOING, controller(), snapshot=in_state("UP")), "PartitionOpen", id="a job may come any moment"),
        pytest.param(world(GOING, controller(), snapshot=in_state("INACTIVE")), None, id="none may come, and none is left"),
        pytest.param(world(nodeset(deleted=True, partition={"enabled": False}), controller(), snapshot=in_state("UP")), None, id="a partition of somebody else"),
        pytest.param(world(nodeset(deleted=True, partition={"enabled": False}), controller(), snapshot=slurm(jobs=[PENDING])), None, id="it has no partition"),
        pytest.param(world(GOING, NAMED, snapshot=slurm()), "NamedInExtraConf", id="extraConf names it"),
        pytest.param(world(GOING, controller(extraConf="PartitionName=all Nodes=gpus,ALL\n"), snapshot=slurm()), None, id="extraConf names others"),
        pytest.param(world(GOING, controller()), "SlurmUnreachable", id="Slurm is silent"),
        pytest.param(world(GOING, controller(deleted=True)), None, id="the Controller goes too"),
        pytest.param(world(GOING, OWNED, cluster(**DELETED), snapshot=slurm()), None, id="the Cluster of both goes"),
        pytest.param(world(GOING, OWNED, cluster(), snapshot=slurm()), "NamedInExtraConf", id="the Cluster stays"),
        pytest.param(world(GOING), None, id="there is no Controller"),
    ],
)  # fmt: skip
def test_a_nodeset_stays_in_the_configuration_while_anything_names_it(seen, stays):
    found = may_leave_config(seen.things[0], seen)

    assert (found.reason if found is not None else None) == stays


def test_jobs_that_wait_are_told_by_their_id():
    found = may_leave_config(GOING, world(GOING, controller(), snapshot=slurm(jobs=[PENDING])))

    assert found is not None
    assert found.jobs == (7,)
    assert "job 7 of ada (PENDING)" in found.message


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        pytest.param(world(GOING, controller(), snapshot=slurm(jobs=[PENDING]), conf=IN_CONFIG), "JobsInPartition", id="its jobs first"),
        pytest.param(world(GOING, controller(), snapshot=slurm(), conf=IN_CONFIG), "LeavingConfiguration", id="then its lines"),
        pytest.param(world(GOING, controller(), snapshot=slurm(), conf="ClusterName=x\n"), "Released", id="then itself"),
        pytest.param(world(GOING, controller(), conf=IN_CONFIG), "Released", id="Slurm is away: its lines stay without it"),
        pytest.param(world(GOING, controller(deleted=True), snapshot=slurm(), conf=IN_CONFIG), "Released", id="all goes"),
        pytest.param(world(GOING, OWNED, cluster(**DELETED), snapshot=slurm(), conf=IN_CONFIG), "Released", id="all of a Cluster goes"),
        pytest.param(world(GOING, NAMED, snapshot=slurm(), conf=IN_CONFIG), "NamedInExtraConf", id="a person has to act"),
    ],
)  # fmt: skip
def test_the_finalizer_goes_after_the_last_line_in_slurm_conf(seen, step):
    plan = RECONCILER.decide(RECONCILER.observe(KEY, seen), NOW)

    (action,) = [it for it in plan.actions() if isinstance(it, Wait | PatchObject)]
    assert action.reason == step
