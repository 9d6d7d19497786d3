"""What becomes of labels of Kubernetes nodes in a SlurmCluster: the file, its delivery, and what is told."""

from datetime import timedelta

import pytest

from slurm_operator.api.nebius import JailedConfig, NodeSet, SlurmCluster, names
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.plan.actions import Apply, DeleteObject
from slurm_operator.reconcilers.nebius import slurmcluster
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import NodeState
from testing.children import with_config
from testing.slurmclusters import (
    NOW,
    carried_out,
    decide,
    manifest,
    populated,
    report,
    settled,
    with_our_images,
    world,
)

NAME = "smallest"
GPU = {
    "metadata__name": "gpu",
    "spec__clusterName": NAME,
    "spec__replicas": 3,
    "spec__gpu": {"enabled": True},
}
LATER = NOW + timedelta(minutes=2)


def cluster(**changes):
    return with_our_images(manifest("SlurmCluster", NAME, **changes))


def up(*, spec=None, gpu=None, cpus=0):
    """A cluster with three GPU workers, none of which runs."""
    gpus = manifest("NodeSet", "cpu", **{**GPU, **(gpu or {})})
    cpu = manifest("NodeSet", "cpu", spec__clusterName=NAME, spec__replicas=cpus)
    there = world(cluster(**(spec or {})), gpus, *([cpu] if cpus else []))
    return settled(there, (SlurmCluster, NAME), (NodeSet, "gpu"), *([(NodeSet, "cpu")] if cpus else []))


def started(there, worker: str, kube_node: str, **tiers: str):
    """The worker runs on a Kubernetes node with these tiers."""
    part = there.get(WorkerPart, "ns", worker.rsplit("-", 1)[0])
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": part.metadata.name,
             "uid": part.metadata.uid, "controller": True}  # fmt: skip
    metadata = {"name": worker, "namespace": "ns", "uid": f"uid-{worker}", "ownerReferences": [owner]}
    there.things = [one for one in there.things if one.metadata.name not in (worker, kube_node)]
    there.things.append(
        codec.read(Pod, {"metadata": metadata, "spec": {"hostname": worker, "nodeName": kube_node}})
    )
    labelled(there, kube_node, **tiers)
    return there


def labelled(there, kube_node: str, **tiers: str):
    labels = {f"topology.nebius.com/tier-{tier.removeprefix('t')}": value for tier, value in tiers.items()}
    there.things = [one for one in there.things if one.metadata.name != kube_node]
    there.things.append(KubeNode(metadata=Meta(name=kube_node, uid=kube_node, labels=labels)))
    return there


def stopped(there, worker: str):
    there.things = [one for one in there.things if one.metadata.name != worker]
    return there


def passed(there, now=LATER):
    """One pass at this time."""
    reconciler = slurmcluster.RECONCILER
    seen = reconciler.observe(ObjectKey("ns", NAME), there)
    plan = reconciler.decide(seen, now)
    return carried_out(there, plan), plan


def conf(there) -> str:
    return there.child(kinds.CONFIG_MAP, "ns", names.topology_config(NAME)).body["data"]["topology.conf"]


def writes(plan) -> list[str]:
    found = (one.manifest["metadata"]["name"] for one in plan.actions() if isinstance(one, Apply))
    return [name for name in found if name == names.topology_config(NAME)]


def known(there):
    return report(there, SlurmCluster, NAME)["TopologyKnown"]


ALL_UNKNOWN = "SwitchName=root Switches=unknown\nSwitchName=unknown Nodes=gpu-0,gpu-1,gpu-2\n"
PLACED = (
    "SwitchName=l1 Nodes=gpu-0,gpu-1\nSwitchName=l2 Nodes=gpu-2\n"
    "SwitchName=root Switches=s\nSwitchName=s Switches=l[1-2]\n"
)


def placed():
    there = up()
    for worker, leaf in (("gpu-0", "l1"), ("gpu-1", "l1"), ("gpu-2", "l2")):
        started(there, worker, f"n{worker[-1]}", t1=leaf, t2="s")
    return passed(there)[0]


def test_workers_stand_where_labels_put_their_kubernetes_nodes():
    there = up()
    assert conf(there) == ALL_UNKNOWN

    assert conf(placed()) == PLACED
    assert known(placed())[:2] == ("True", "Labelled")


def test_slurmctld_is_given_the_file_and_the_plugin():
    found = up().get(Controller, "ns", NAME).spec

    assert [ref.name for ref in found.config_file_refs] == [f"{NAME}-slurm-files", f"{NAME}-topology-config"]
    assert "TopologyPlugin=topology/tree\n" in found.extra_conf
    assert "TopologyParam=SwitchAsNodeRank\n" in found.extra_conf


def test_another_plugin_is_the_users_business():
    there = up(spec={"spec__slurmConfig": {"topologyPlugin": "topology/flat"}})

    assert there.child(kinds.CONFIG_MAP, "ns", names.topology_config(NAME)) is None
    assert len(there.get(Controller, "ns", NAME).spec.config_file_refs) == 1
    assert "TopologyKnown" not in report(there, SlurmCluster, NAME)


def test_labels_may_begin_with_what_the_settings_say():
    there = up()
    started(there, "gpu-0", "n0")
    labels = {"net.example/tier-1": "l1"}
    there.things[-1] = KubeNode(metadata=Meta(name="n0", uid="n0", labels=labels))
    seen = slurmcluster.reconciler("net.example").observe(ObjectKey("ns", NAME), there)

    carried_out(there, slurmcluster.RECONCILER.decide(seen, LATER))
    assert "SwitchName=l1 Nodes=gpu-0\n" in conf(there)


def test_blocks_are_of_tier_0():
    there = up(
        spec={"spec__slurmConfig": {"topologyPlugin": "topology/block"}, "spec__topology": {"blockSize": 4}}
    )
    started(there, "gpu-0", "n0", t0="nvl-7", t1="l1")
    passed(there)

    assert conf(there) == "BlockName=nvl-7 Nodes=gpu-0\nBlockName=unknown Nodes=gpu-[1-2]\nBlockSizes=4\n"


def test_workers_without_gpus_and_other_fabrics():
    there = up(gpu={"spec__topology": {"fabric": "ib"}}, cpus=1)
    started(there, "cpu-0", "n9", t1="l9")
    started(there, "gpu-0", "n0", t1="l1")
    passed(there)

    assert conf(there) == (
        "SwitchName=ib Switches=ib.unknown,l1\nSwitchName=ib.unknown Nodes=gpu-1,gpu-2\n"
        "SwitchName=l1 Nodes=gpu-0\nSwitchName=root Switches=unknown\nSwitchName=unknown Nodes=cpu-0\n"
    )


def test_a_worker_that_is_powered_down_keeps_its_place():
    there = stopped(placed(), "gpu-2")
    _, plan = passed(there)

    assert conf(there) == PLACED
    assert writes(plan) == []


def test_labels_that_are_lost_change_nothing_and_are_told():
    there = placed()
    for node in ("n0", "n1"):
        labelled(there, node)
    _, plan = passed(there)

    assert conf(there) == PLACED
    assert writes(plan) == []
    status, reason, message = known(there)
    assert (status, reason) == ("False", "LabelsMissing")
    assert "n0, n1" in message
    assert "stay where they were before: gpu-0, gpu-1" in message


def test_kubernetes_nodes_that_cannot_be_seen_change_nothing():
    there = placed()
    there.served.remove(kinds.KUBE_NODE)
    _, plan = passed(there)

    assert conf(there) == PLACED
    assert writes(plan) == []


def test_a_worker_on_a_kubernetes_node_without_labels_is_told():
    there = started(up(), "gpu-0", "n0")
    passed(there)

    assert conf(there) == ALL_UNKNOWN
    assert "no place for: gpu-0" in known(there)[2]


def test_a_worker_that_moved_stands_elsewhere():
    there = started(placed(), "gpu-2", "n7", t1="l7", t2="s")
    passed(there, LATER + timedelta(minutes=2))

    assert "SwitchName=l7 Nodes=gpu-2\n" in conf(there)
    assert "l2" not in conf(there)


def test_a_file_that_somebody_deleted_is_made_again_from_the_tested_one():
    there = placed()
    with_config(there, f"{NAME}-slurm-configs-good", slurm_conf="ClusterName=x\n", topology_conf=PLACED)
    maps = there.children_[kinds.CONFIG_MAP]
    there.children_[kinds.CONFIG_MAP] = [
        one for one in maps if one.metadata.name != names.topology_config(NAME)
    ]
    for node in ("n0", "n1", "n2"):
        labelled(there, node)
    passed(there)

    assert conf(there) == PLACED


def test_equal_text_is_written_once():
    there = placed()
    _, plan = passed(there, LATER + timedelta(hours=1))

    assert writes(plan) == []


def test_workers_that_start_one_after_the_other_are_told_together():
    """Each new file costs a reconfigure."""
    there = started(up(), "gpu-0", "n0", t1="l1")
    passed(there, LATER)
    before = conf(there)
    started(there, "gpu-1", "n1", t1="l1")
    _, plan = passed(there, LATER + timedelta(seconds=20))
    assert conf(there) == before
    assert plan.look_again == timedelta(seconds=40)

    passed(there, LATER + timedelta(seconds=61))
    assert "SwitchName=l1 Nodes=gpu-0,gpu-1\n" in conf(there)


def test_more_workers_are_told_at_once():
    there = placed()
    [old] = [one for one in there.things if type(one) is NodeSet]
    there.things.remove(old)
    there.things.append(world(manifest("NodeSet", "cpu", **{**GPU, "spec__replicas": 4})).things[0])
    passed(there, LATER + timedelta(seconds=1))

    assert "SwitchName=unknown Nodes=gpu-3\n" in conf(there)


def test_nodes_of_the_users_own_lines_have_a_place():
    """On no switch they would run no job."""
    there = up(spec={"spec__customSlurmConfig": "NodeName=old-[0-1] CPUs=2\nNodeName=DEFAULT CPUs=1\n"})

    assert "SwitchName=unknown Nodes=gpu-0,gpu-1,gpu-2,old-0,old-1\n" in conf(there)


@pytest.mark.parametrize(
    ("topology", "is_kept"),
    [("default:ib:l1", True), ("default:root:unknown", False), ("", False), (None, True)],
)
def test_the_root_of_a_fabric_stays_while_a_record_names_it(topology, is_kept):
    there = up(gpu={"spec__topology": {"fabric": "ib"}})
    [old] = [one for one in there.things if type(one) is NodeSet]
    there.things.remove(old)
    there.things.append(world(manifest("NodeSet", "cpu", **GPU)).things[0])
    if topology is not None:
        record = SlurmNode(name="gpu-0", state=NodeState.of("IDLE", "DYNAMIC_NORM"), topology=topology)
        slurm = Snapshot(nodes={"gpu-0": record}, jobs={}, nodes_asked_at=NOW, jobs_asked_at=NOW)
        there.slurms[ObjectKey("ns", NAME)] = slurm
    passed(there)

    assert ("SwitchName=ib\n" in conf(there)) is is_kept


def test_the_tested_file_is_written_into_the_root_with_the_others():
    writer = {
        "container": {"image": "registry.example/writer:1"},
        "node": {"k8sNodeFilterName": "all", "size": 1},
    }
    there = populated(up(spec={"spec__sConfigController": writer}), NAME)
    texts = {"slurm.conf": "ClusterName=smallest\n", "topology.conf": ALL_UNKNOWN}
    with_config(there, f"{NAME}-slurm-configs-good", **{k.replace(".", "_"): v for k, v in texts.items()})
    passed(there)
    whole = there.get(JailedConfig, "ns", f"{NAME}-slurm-configs")
    found = there.get(JailedConfig, "ns", f"{NAME}-topology-config")

    assert [item.path for item in whole.spec.items] == ["/etc/slurm/slurm.conf"]
    assert [item.path for item in found.spec.items] == ["/etc/slurm/topology.conf"]
    assert found.spec.config_map.name == f"{NAME}-slurm-configs-good"
    assert found.metadata.labels[names.JAILED_AGGREGATION] == "common"
    assert found.spec.update_actions == []

    with_config(there, f"{NAME}-slurm-configs-good", slurm_conf="ClusterName=smallest\n")
    _, plan = decide(there, SlurmCluster, NAME)
    gone = [one.key[1] for one in plan.actions() if isinstance(one, DeleteObject)]
    assert gone == [f"{NAME}-topology-config"]
