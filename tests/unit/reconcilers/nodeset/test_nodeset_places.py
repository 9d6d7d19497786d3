"""Records that the operator makes stand where topology.conf has them, with and without a worker."""

import pytest

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import good_config
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.decide import decide
from slurm_operator.reconcilers.nodeset.unchanged_cache import Settled
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import AddNodes, UpdateNodes
from testing.workers import (
    KEY,
    NOW,
    controller,
    machine,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

TREE = (
    "SwitchName=root Switches=s1,unknown\nSwitchName=s1 Nodes=gpu-0,gpu-1\nSwitchName=unknown Nodes=gpu-2\n"
)
BLOCK = "BlockName=b1 Nodes=gpu-[0-2]\nBlockSizes=3\n"
S1, UNKNOWN = "default:root:s1", "default:root:unknown"


def with_files(made, topology: str | None, plugin: str = "topology/tree"):
    """The files that slurmctld is known to run with."""
    data = {"slurm.conf": f"TopologyPlugin={plugin}\n"}
    if topology is not None:
        data["topology.conf"] = topology
    name = good_config(controller())
    made.named[ConfigMap, ObjectKey("ns", name)] = ConfigMap(
        metadata=Meta(name=name, namespace="ns"), data=data
    )
    return made


def off(name: str, topology: str) -> SlurmNode:
    state = NodeState.of("IDLE", "CLOUD", "POWERED_DOWN", "DYNAMIC_NORM")
    return SlurmNode(name=name, state=state, address=name, features=("gpu",), topology=topology)


def writes(made) -> list:
    return [one.write for one in planned(made).actions() if isinstance(one, WriteSlurm)]


def without_workers(*records: SlurmNode, **spec):
    wanted = nodeset(replicas=3, ordinals=[], records="created", **spec)
    return world(wanted, controller(), slurm_=slurm(*records), revisions_=(revision_of(wanted),))


def with_worker(topology: str, annotations: dict[str, str] | None = None, **spec):
    wanted = nodeset(replicas=1, **{"records": "created", **spec})
    revision = revision_of(wanted)
    pod = worker(0, revision=revision.metadata.labels[names.LABEL_REVISION])
    there = slurm(slurm_node(pod, "IDLE", topology=topology))
    kube_node = machine("n1", annotations=annotations or {})
    return world(wanted, controller(), pod, kube_node, revisions_=[revision], slurm_=there)


def test_a_record_is_made_at_its_place():
    found = writes(with_files(without_workers(), TREE))

    assert [(one.nodes, "Topology=" + one.conf.rpartition("Topology=")[2]) for one in found] == [
        (("gpu-0", "gpu-1"), f"Topology={S1} State=CLOUD"),
        (("gpu-2",), f"Topology={UNKNOWN} State=CLOUD"),
    ]


@pytest.mark.parametrize(
    ("topology", "plugin", "conf"),
    [
        pytest.param(BLOCK, "topology/block", "Features=gpu Topology=default:b1 State=CLOUD", id="a block"),
        pytest.param(TREE, "topology/flat", "Features=gpu State=CLOUD", id="slurmctld does not read it"),
        pytest.param(None, "topology/flat", "Features=gpu State=CLOUD", id="no file"),
    ],
)
def test_what_a_record_says_of_its_place(topology, plugin, conf):
    made = with_files(without_workers(), topology, plugin)

    assert writes(made) == [AddNodes(nodes=("gpu-0", "gpu-1", "gpu-2"), conf=conf)]


def test_records_without_a_worker_are_moved_together():
    there = [off("gpu-0", UNKNOWN), off("gpu-1", UNKNOWN), off("gpu-2", UNKNOWN)]

    found = writes(with_files(without_workers(*there), TREE))
    assert found == [UpdateNodes(nodes=("gpu-0", "gpu-1"), topology=S1)]


@pytest.mark.parametrize(
    ("made", "moved"),
    [
        pytest.param(with_worker(UNKNOWN), [S1], id="elsewhere"),
        pytest.param(with_worker(""), [S1], id="nowhere"),
        pytest.param(with_worker(S1), [], id="there"),
        pytest.param(with_worker(UNKNOWN, {names.TOPOLOGY: "default:s9"}), ["default:s9"], id="the annotation of its Kubernetes node wins"),
        pytest.param(with_worker("default:mine", extraConf="Topology=default:mine"), [], id="it says its place itself"),
        pytest.param(with_worker(UNKNOWN, records="registered"), [], id="a record of its own making"),
        pytest.param(with_worker(UNKNOWN, records="static"), [], id="a line of slurm.conf, which the file places"),
    ],
)  # fmt: skip
def test_a_worker_is_moved_to_where_the_file_has_it(made, moved):
    assert [one.topology for one in writes(with_files(made, TREE)) if isinstance(one, UpdateNodes)] == moved


def test_a_worker_that_needed_nothing_is_moved_when_the_file_changes():
    settled, made = Settled(), with_files(with_worker(S1), TREE)

    def passed() -> list:
        seen = RECONCILER.observe(KEY, made)
        plan = decide(seen, NOW, settled=settled)
        return [one.write for one in plan.actions() if isinstance(one, WriteSlurm)]

    assert passed() == passed() == []
    with_files(made, TREE.replace("s1", "s2"))
    assert passed() == [UpdateNodes(nodes=("gpu-0",), topology="default:root:s2")]
