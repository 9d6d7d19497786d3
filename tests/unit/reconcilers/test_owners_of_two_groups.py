"""An owner is known by group and kind: a namesake in another group wakes nobody here, and is nobody's Cluster."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey, OwnerReference
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.cluster import clusters_of
from slurm_operator.reconcilers.nodeset import owner_of
from slurm_operator.reconcilers.shared.partition_removal import goes_as_a_whole
from testing.two_groups import OTHER, OURS, owner
from testing.world import HandmadeWorld

WORLD = HandmadeWorld()


def worker(of: dict) -> Pod:
    reference = wire.convert(of, OwnerReference)
    meta = Meta(
        name="gpu-0", namespace="ns", labels={names.APP_NAME: "slurmd"}, owner_references=(reference,)
    )
    return Pod(metadata=meta)


def cluster_owner(group: str) -> dict:
    return {"apiVersion": f"{group}/v1", "kind": "Cluster", "name": "demo", "uid": "d", "controller": True}


def controller(of: dict) -> Controller:
    meta = {"name": "slurm", "namespace": "ns", "uid": "c", "ownerReferences": [of]}
    return codec.read(Controller, {"metadata": meta, "spec": {}})


def test_a_worker_wakes_the_nodeset_of_its_own_group():
    assert list(owner_of(worker(owner(OURS, "gpu")), WORLD)) == [ObjectKey("ns", "gpu")]
    assert list(owner_of(worker(owner(OTHER, "gpu")), WORLD)) == []


def test_a_worker_whose_owner_was_written_in_an_old_version_is_still_its_own():
    old = owner(OURS, "gpu") | {"apiVersion": "slinky.slurm.net/v1alpha1"}

    assert list(owner_of(worker(old), WORLD)) == [ObjectKey("ns", "gpu")]


@pytest.mark.parametrize(
    ("group", "woken"),
    [
        pytest.param(names.GROUP, [ObjectKey("ns", "demo")], id="ours"),
        pytest.param("testing.example.com", [], id="a namesake"),
    ],
)
def test_a_part_wakes_the_cluster_of_its_own_group(group, woken):
    assert list(clusters_of(controller(cluster_owner(group)), WORLD)) == woken


@pytest.mark.parametrize(
    ("group", "goes"),
    [
        pytest.param(names.GROUP, True, id="its Cluster is deleted"),
        pytest.param("testing.example.com", False, id="only a namesake of its owner is"),
    ],
)
def test_a_controller_goes_with_its_own_cluster_only(group, goes):
    meta = {"name": "demo", "namespace": "ns", "deletionTimestamp": "2026-01-01T11:00:00Z"}
    world = HandmadeWorld([codec.read(Cluster, {"metadata": meta, "spec": {}})])

    assert goes_as_a_whole(controller(cluster_owner(group)), world) is goes
