"""Which places a configuration has, and which of those that a node names it lacks."""

import pytest

from slurm_operator.slurm.conf.networks import Network, lost, missing, networks

TREE = "SwitchName=root Switches=leaf[1-2]\nSwitchName=leaf[1-2]\n"
BLOCKS = "BlockName=b1\nBlockName=b2 Nodes=n[1-4]\nBlockSizes=2\n"
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
- topology: plain
  flat: true
"""


def plugin(name: str) -> str:
    return f"ClusterName=c\nTopologyPlugin={name}\n"


@pytest.mark.parametrize(
    ("texts", "known"),
    [
        pytest.param({}, {"default": Network("flat")}, id="nothing is said"),
        pytest.param({"slurm.conf": "ClusterName=c\n"}, {"default": Network("flat")}, id="no plugin"),
        pytest.param({"topology.conf": TREE}, {"default": Network("flat")}, id="a file that no plugin reads"),
        pytest.param({"slurm.conf": plugin("Topology/Tree"), "topology.conf": TREE}, {"default": Network("tree", frozenset({"root", "leaf1", "leaf2"}))}, id="a tree"),
        pytest.param({"slurm.conf": plugin("topology/block"), "topology.conf": BLOCKS}, {"default": Network("block", frozenset({"b1", "b2"}))}, id="blocks"),
        pytest.param({"slurm.conf": plugin("topology/tree"), "topology.conf": "Include more\n", "more": TREE}, {"default": Network("tree", frozenset({"root", "leaf1", "leaf2"}))}, id="in an included file"),
        pytest.param({"slurm.conf": plugin("topology/own")}, {"default": Network("own")}, id="a plugin that nobody knows"),
        pytest.param({"slurm.conf": plugin("topology/block"), "topology.conf": BLOCKS, "topology.yaml": YAML}, {"net": Network("tree", frozenset({"root", "leaf1", "leaf2"})), "nvl": Network("block", frozenset({"b1"})), "plain": Network("flat")}, id="topology.yaml wins"),
        pytest.param({"topology.yaml": "- topology: ["}, {}, id="it cannot be read, and is refused elsewhere"),
    ],
)  # fmt: skip
def test_the_topologies_of_a_configuration(texts, known):
    assert dict(networks(texts)) == known


@pytest.mark.parametrize(
    ("topology", "lacks"),
    [
        pytest.param("net:leaf1", [], id="a switch"),
        pytest.param("net:leaf9", ["switch leaf9"], id="a switch that is not there"),
        pytest.param("net:root:leaf9", [], id="one below a switch that is there: slurmctld adds it"),
        pytest.param("net:spine:leaf1", ["switch spine"], id="a path has to begin somewhere"),
        pytest.param("nvl:b1", [], id="a block"),
        pytest.param("nvl:b2", ["block b2"], id="a block that is not there"),
        pytest.param("net:leaf9,nvl:b2", ["switch leaf9", "block b2"], id="both"),
        pytest.param("old:leaf1", ["topology old"], id="a topology that is not there"),
        pytest.param("plain:anywhere", [], id="a flat topology takes any place"),
        pytest.param("", [], id="no place"),
        pytest.param("no place at all", [], id="nothing that Slurm would have taken"),
    ],
)
def test_what_a_node_names_in_vain(topology, lacks):
    assert missing(networks({"topology.yaml": YAML}), topology) == lacks


def test_a_topology_of_an_unknown_type_is_left_to_slurmctld():
    assert missing(networks({"slurm.conf": plugin("topology/own")}), "default:x") == []


@pytest.mark.parametrize(
    ("after", "found"),
    [
        pytest.param(YAML, [], id="nothing changed"),
        pytest.param(YAML.replace("[1-2]", "[1-3]") + "", [], id="more below a switch"),
        pytest.param(YAML.replace("      - switch: leaf2\n", ""), ["switch leaf2"], id="a switch less"),
        pytest.param(YAML.replace("block: b1", "block: b2"), ["block b1"], id="a block renamed"),
        pytest.param(YAML.replace("topology: nvl", "topology: nvlink"), ["topology nvl"], id="a topology renamed"),
        pytest.param(YAML.replace("topology: plain", "topology: level"), ["places that topology plain took while it was flat"], id="a flat one is gone"),
    ],
)  # fmt: skip
def test_what_a_change_takes_away(after, found):
    assert lost(networks({"topology.yaml": after}), networks({"topology.yaml": YAML})) == found


def test_a_tree_in_the_place_of_a_flat_topology_may_lack_any_place():
    tree = networks({"slurm.conf": plugin("topology/tree"), "topology.conf": TREE})

    assert lost(tree, networks({})) == ["places that topology default took while it was flat"]
    assert lost(networks({}), tree) == [], "the other way round nothing is lost"
