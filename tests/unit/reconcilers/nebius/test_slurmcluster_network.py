"""topology.conf of a SlurmCluster, rule by rule."""

import pytest

from slurm_operator.reconcilers.nebius.slurmcluster.network import (
    Plugin,
    Stand,
    kept_units,
    known_paths,
    safe_name,
    tier_path,
    topology_conf,
)
from slurm_operator.slurm.conf.grammar import problems
from slurm_operator.slurm.conf.node_places import node_places

PREFIX = "topology.nebius.com"
LONG = "1234567890123456789"


def labels(**tiers: str) -> dict[str, str]:
    return {f"{PREFIX}/tier-{tier.removeprefix('t')}": value for tier, value in tiers.items()} | {
        "other": "x"
    }


@pytest.mark.parametrize(
    ("found", "plugin", "path"),
    [
        pytest.param(labels(t1="leaf"), Plugin.TREE, ("leaf",), id="one tier"),
        pytest.param(labels(t1="leaf", t2="spine", t3="core"), Plugin.TREE, ("core", "spine", "leaf"), id="three, from the top down"),
        pytest.param(labels(t0="nvl", t1="leaf"), Plugin.TREE, ("leaf",), id="tier 0 is no switch"),
        pytest.param(labels(t2="spine"), Plugin.TREE, (), id="tier 1 is missing"),
        pytest.param(labels(t1="leaf", t3="core"), Plugin.TREE, (), id="a gap"),
        pytest.param(labels(t1="leaf", t2=""), Plugin.TREE, (), id="an empty one"),
        pytest.param(labels(), Plugin.TREE, (), id="no tier"),
        pytest.param({"else/tier-1": "leaf"}, Plugin.TREE, (), id="another prefix"),
        pytest.param({f"{PREFIX}/tier-x": "a", f"{PREFIX}/tier-1": "leaf"}, Plugin.TREE, ("leaf",), id="no number"),
        pytest.param(labels(t0="nvl", t1="leaf"), Plugin.BLOCK, ("nvl",), id="tier 0 is the block"),
        pytest.param(labels(t1="leaf"), Plugin.BLOCK, (), id="no block"),
        pytest.param(labels(t1=f"sw-{LONG}"), Plugin.TREE, (f"sw-{LONG}_",), id="a number that Slurm cannot hold"),
    ],
)  # fmt: skip
def test_labels_say_where_a_kubernetes_node_is(found, plugin, path):
    assert tier_path(found, PREFIX, plugin) == path


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a", "a"), (f"a{LONG[:18]}", f"a{LONG[:18]}"), (f"a{LONG}", f"a{LONG}_"), (f"{LONG}a", f"{LONG}a"), ("", "")],
)  # fmt: skip
def test_names_end_in_no_number_that_slurm_cannot_hold(name, safe):
    assert safe_name(name) == safe


def tree(*stands: Stand, kept: tuple[str, ...] = ()) -> list[str]:
    return topology_conf(Plugin.TREE, stands, 18, kept).splitlines()


@pytest.mark.parametrize(
    ("stands", "lines"),
    [
        pytest.param([], ["SwitchName=root"], id="nobody: the start"),
        pytest.param(
            [Stand("cpu-0"), Stand("cpu-1")],
            ["SwitchName=root Switches=unknown", "SwitchName=unknown Nodes=cpu-0,cpu-1"],
            id="nobody knows where",
        ),
        pytest.param(
            [Stand("gpu-1", path=("s", "l1")), Stand("gpu-0", path=("s", "l2")), Stand("gpu-2")],
            [
                "SwitchName=l1 Nodes=gpu-1",
                "SwitchName=l2 Nodes=gpu-0",
                "SwitchName=root Switches=s,unknown",
                "SwitchName=s Switches=l[1-2]",
                "SwitchName=unknown Nodes=gpu-2",
            ],
            id="leaves below a spine",
        ),
        pytest.param(
            [Stand("a-0", path=("l1",)), Stand("b-0", "ib", ("l9",)), Stand("b-1", "ib")],
            [
                "SwitchName=ib Switches=ib.unknown,l9",
                "SwitchName=ib.unknown Nodes=b-1",
                "SwitchName=l1 Nodes=a-0",
                "SwitchName=l9 Nodes=b-0",
                "SwitchName=root Switches=l1",
            ],
            id="each fabric has a root, and nothing connects them",
        ),
        pytest.param(
            [Stand("b-0", "ib", ("l9",))],
            ["SwitchName=ib Switches=l9", "SwitchName=l9 Nodes=b-0"],
            id="no root of a fabric that nobody has",
        ),
        pytest.param(
            [Stand("a-0", path=("s", "l1")), Stand("a-1", path=("top", "s", "l2"))],
            [
                "SwitchName=l1 Nodes=a-0",
                "SwitchName=l2 Nodes=a-1",
                "SwitchName=root Switches=top",
                "SwitchName=s Switches=l[1-2]",
                "SwitchName=top Switches=s",
            ],
            id="the top of a shallow path that has a switch above it",
        ),
        pytest.param(
            [Stand("a-0", path=("s", "l1")), Stand("b-0", "ib", ("s", "l2"))],
            [
                "SwitchName=ib",
                "SwitchName=l1 Nodes=a-0",
                "SwitchName=l2 Nodes=b-0",
                "SwitchName=root Switches=s",
                "SwitchName=s Switches=l[1-2]",
            ],
            id="a switch in two fabrics hangs below the first",
        ),
        pytest.param(
            [Stand("a-0", path=("s1", "l1")), Stand("a-1", path=("s2", "l1"))],
            [
                "SwitchName=l1 Nodes=a-0",
                "SwitchName=root Switches=s1,unknown",
                "SwitchName=s1 Switches=l1",
                "SwitchName=unknown Nodes=a-1",
            ],
            id="a switch below two others",
        ),
        pytest.param(
            [Stand("a-0", path=("x", "y")), Stand("a-1", path=("y", "x"))],
            [
                "SwitchName=root Switches=unknown,x",
                "SwitchName=unknown Nodes=a-1",
                "SwitchName=x Switches=y",
                "SwitchName=y Nodes=a-0",
            ],
            id="a circle",
        ),
        pytest.param(
            [Stand("a-0", path=("z", "x", "l")), Stand("a-1", path=("l2", "z"))],
            [
                "SwitchName=l Nodes=a-0",
                "SwitchName=root Switches=unknown,z",
                "SwitchName=unknown Nodes=a-1",
                "SwitchName=x Switches=l",
                "SwitchName=z Switches=x",
            ],
            id="workers on a switch that has others below it",
        ),
        pytest.param(
            [Stand("a-0", path=("l1",)), Stand("a-1", path=("l1", "l2"))],
            ["SwitchName=l1 Switches=l2", "SwitchName=l2 Nodes=a-1", "SwitchName=root Switches=l1,unknown", "SwitchName=unknown Nodes=a-0"],
            id="the same, whoever is asked first",
        ),
        pytest.param(
            [Stand("a-0", path=("s", "s")), Stand("a-1", path=("root", "l")), Stand("a-2", path=("unknown",))],
            ["SwitchName=root Switches=unknown", "SwitchName=unknown Nodes=a-0,a-1,a-2"],
            id="names that are taken",
        ),
    ],
)  # fmt: skip
def test_the_tree_of_some_workers(stands, lines):
    assert tree(*stands) == lines
    assert tree(*reversed(stands)) == lines
    assert [one for one in problems({"topology.conf": "\n".join(lines) + "\n"}) if one.is_fatal] == []


@pytest.mark.parametrize(
    ("stands", "lines"),
    [
        pytest.param([], ["BlockName=unknown", "BlockSizes=18"], id="nobody: the start"),
        pytest.param(
            [Stand("g-2", path=("b1",)), Stand("g-0", path=("b1",)), Stand("g-1", path=("b1",)), Stand("c-0"), Stand("i-0", "ib")],
            [
                "BlockName=b1 Nodes=g-[0-2]",
                "BlockName=ib.unknown Nodes=i-0",
                "BlockName=unknown Nodes=c-0",
                "BlockSizes=18",
            ],
            id="blocks, and unknown ones for each fabric",
        ),
    ],
)  # fmt: skip
def test_the_blocks_of_some_workers(stands, lines):
    assert topology_conf(Plugin.BLOCK, stands, 18).splitlines() == lines


def test_what_a_record_still_names_stays_without_nodes():
    assert "SwitchName=ib" in tree(Stand("a-0"), kept=("ib",))
    blocks = topology_conf(Plugin.BLOCK, [Stand("a-0")], 4, ("b7",))
    assert blocks.splitlines() == ["BlockName=b7", "BlockName=unknown Nodes=a-0", "BlockSizes=4"]


BEFORE = topology_conf(Plugin.TREE, [Stand("a-0", "ib", ("s", "l1")), Stand("a-1", "ib"), Stand("b-0", path=("l2",))], 18)  # fmt: skip
BLOCKS = topology_conf(Plugin.BLOCK, [Stand("a-0", path=("b1",)), Stand("a-1")], 18)


def test_the_file_remembers_where_workers_stood():
    assert known_paths(BEFORE, Plugin.TREE) == {"a-0": ("s", "l1"), "b-0": ("l2",)}
    assert known_paths(BLOCKS, Plugin.BLOCK) == {"a-0": ("b1",)}
    assert known_paths(BLOCKS, Plugin.TREE) == known_paths(BEFORE, Plugin.BLOCK) == {}
    assert known_paths("", Plugin.TREE) == {}


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        pytest.param({"ib", "other"}, ["ib"], id="a record names it"),
        pytest.param({"root"}, [], id="nobody names it"),
        pytest.param(None, ["ib"], id="nobody can tell"),
    ],
)
def test_a_root_stays_while_a_record_names_it(named, kept):
    after = topology_conf(Plugin.TREE, [Stand("a-0"), Stand("b-0")], 18)

    assert kept_units(BEFORE, after, named) == kept


def test_a_block_stays_while_a_record_names_it():
    after = topology_conf(Plugin.BLOCK, [Stand("a-0", path=("b2",)), Stand("a-1")], 18)

    assert kept_units(BLOCKS, after, {"b1"}) == ["b1"]


def test_records_are_told_the_whole_path():
    conf = {"slurm.conf": "TopologyPlugin=topology/tree\n", "topology.conf": BEFORE}

    assert node_places(conf) == {
        "a-0": "default:ib:s:l1",
        "a-1": "default:ib:ib.unknown",
        "b-0": "default:root:l2",
    }
    assert node_places({"topology.conf": BEFORE}) == {}, "no plugin reads it"
    blocks = {"slurm.conf": "TopologyPlugin=topology/block\n", "topology.conf": BLOCKS}
    assert node_places(blocks) == {"a-0": "default:b1", "a-1": "default:unknown"}
