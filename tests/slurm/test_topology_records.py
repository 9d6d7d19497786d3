"""A record at a switch or block that a new topology lacks: slurmctld ends, and the operator waits."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parser_box import parser_box
from rest_rig import cluster_of, seen, shown, until
from test_language_rehearsal import BASE, rehearsal

from slurm_operator import wire
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.slurm.conf.networks import missing, networks
from slurm_operator.slurm.writes import UpdateNodes
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.boxed.box import Box
from testing.controller_play import Play, parameters
from testing.controllers import KEY, controller, files, thing, world
from testing.daemons import SlurmDaemons

LINES = ("NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu Default=YES State=UP")
TREE = {"TopologyPlugin": "topology/tree"}
BOTH = "SwitchName=root Switches=leaf[1-2]\nSwitchName=leaf1\nSwitchName=leaf2\n"
ONE = "SwitchName=root Switches=leaf2\nSwitchName=leaf2\n"
BLOCKS = "BlockName=b1\nBlockName=b2\nBlockSizes=2\n"
YAML = """\
- topology: net
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: leaf[1-2]
      - switch: leaf1
      - switch: leaf2
- topology: nvl
  block:
    block_sizes: [2]
    blocks:
      - block: b1
"""


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with parser_box(rootfs, tmp_path_factory.mktemp("topology")) as box:
        yield box


@pytest.mark.parametrize(
    ("plugin", "name", "text", "place", "is_taken"),
    [
        pytest.param("tree", "topology.conf", BOTH, "default:leaf1", True, id="a switch"),
        pytest.param("tree", "topology.conf", ONE, "default:leaf1", False, id="a switch that is not there"),
        pytest.param("tree", "topology.conf", ONE, "default:root:leaf1", True, id="below one that is there"),
        pytest.param("tree", "topology.conf", ONE, "default:spine:leaf2", False, id="below one that is not"),
        pytest.param("tree", "topology.conf", ONE, "other:leaf2", False, id="another topology"),
        pytest.param("block", "topology.conf", BLOCKS, "default:b1", True, id="a block"),
        pytest.param("block", "topology.conf", BLOCKS, "default:b3", False, id="a block that is not there"),
        pytest.param("flat", "topology.conf", ONE, "default:leaf1", True, id="a flat one takes any place"),
        pytest.param("flat", "topology.yaml", YAML, "net:leaf1,nvl:b1", True, id="in two topologies"),
        pytest.param("flat", "topology.yaml", YAML, "net:leaf1,nvl:b2", False, id="in one of two"),
        pytest.param("flat", "topology.yaml", YAML, "old:leaf1", False, id="a topology that is not there"),
    ],
)
def test_we_tell_which_places_slurmctld_does_not_start_with(box, plugin, name, text, place, is_taken):
    conf = f"{BASE}TopologyPlugin=topology/{plugin}\nNodeName=g0 State=CLOUD Topology={place}\n"

    assert (missing(networks({"slurm.conf": conf, name: text}), place) == []) is is_taken
    assert (rehearsal(box, {"slurm.conf": conf, name: text}) == "") is is_taken


def create(slurm: SlurmDaemons, name: str, place: str) -> None:
    size = ("CPUs=1", "RealMemory=100", "Features=gpu", "State=CLOUD")
    slurm.run("scontrol", "create", f"NodeName={name}", *size, f"Topology={place}")


def write(slurm: SlurmDaemons, text: str) -> None:
    slurm.head.box.path("/etc/slurm/topology.conf").write_text(text)


def with_topology(new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    slurm = new_slurm(lines=LINES)
    write(slurm, BOTH)
    slurm.write_config(TREE, LINES)
    slurm.reconfigure()
    slurm.wait_for(lambda: "leaf1" in slurm.run("scontrol", "show", "topology"), "the topology")
    return slurm


async def test_slurmctld_ends_without_a_switch_that_a_record_names(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """The fact behind the wait: a reconfigure is enough, and it does not start again."""
    slurm = with_topology(new_slurm)
    create(slurm, "g0", "default:leaf1")

    write(slurm, ONE)
    slurm.reconfigure()
    await until(lambda: slurm.slurmctld.has_ended, "slurmctld to end")
    assert "Invalid node topology specified default:leaf1 for g0" in slurm.slurmctld.last_words()
    with pytest.raises(Exception, match="Requested topology configuration is not available"):
        slurm.slurmctld.start()

    write(slurm, BOTH)
    slurm.slurmctld.start()
    assert shown(slurm, "node", "g0")["Topology"] == "default:leaf1"


async def test_the_operator_waits_with_that_topology_until_the_record_has_moved(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = with_topology(new_slurm)
    create(slurm, "g0", "default:leaf1")
    made = controlled()
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None and "g0" in seen(cluster).nodes, "the record")

        assert "switch leaf1 (g0)" in waits(made, cluster)["PlacesInUse"]

        assert (await cluster.write(UpdateNodes(nodes=("g0",), topology="default:leaf2"))).answers
        await until(lambda: seen(cluster).nodes["g0"].topology == "default:leaf2", "the move")
        assert waits(made, cluster).keys().isdisjoint({"PlacesInUse", "PlacesUnseen"})

        write(slurm, ONE)
        slurm.reconfigure()
        await until(lambda: "leaf1" not in slurm.run("scontrol", "show", "topology"), "the new topology")
        slurm.slurmctld.restart()
        assert "Nodes=g0" in slurm.run("scontrol", "show", "topology", "unit=leaf2")


def controlled() -> Play:
    """A Controller whose slurmctld runs with both switches, and whose user has removed one."""
    spec = {"extraConf": "TopologyPlugin=topology/tree\n", "configFileRefs": [{"name": "network"}]}
    restapi = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
    made = Play(world(controller(spec), restapi, files("network", {"topology.conf": BOTH}))).rounds()
    [key] = [key for key in made.world.named if key[0] is ConfigMap and key[1].name == "network"]
    made.world.named[key] = files("network", {"topology.conf": ONE})
    return made


def waits(made: Play, cluster: SlurmCluster) -> dict[str, str]:
    """What the Controller waits for when Slurm is what was really read."""
    facts = seen(cluster)
    assert facts is not None
    made.world.slurms[KEY] = wire.replace(facts, slurmctld_parameters=parameters(made.running))
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made.world), facts.asked_at)
    return {one.reason: one.message for one in plan.actions() if isinstance(one, Wait)}
