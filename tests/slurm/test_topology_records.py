"""A record at a switch or block that a new topology lacks: slurmctld ends, and the operator waits."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parser_box import parser_box
from rest_rig import cluster_of, running, seen, shown, until
from test_language_rehearsal import BASE, rehearsal

from slurm_operator import wire
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.nebius.slurmcluster.network import Plugin, Stand, topology_conf
from slurm_operator.reconcilers.shared.node_lines import own_conf, record_conf
from slurm_operator.slurm.conf.networks import missing, networks
from slurm_operator.slurm.conf.node_places import node_places
from slurm_operator.slurm.hostlist import expand
from slurm_operator.slurm.writes import AddNodes, UpdateNodes, Verdict
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


STANDS = [
    Stand("gpu-0", path=("core", "s1", "l1")),
    Stand("gpu-1", path=("core", "s1", "l2")),
    Stand("gpu-2", path=("s1", "l3")),
    Stand("gpu-3", path=("l1-12345678901234567890_",)),
    Stand("gpu-4"),
    Stand("ib-0", "ib", ("x1",)),
    Stand("ib-1", "ib"),
    Stand("gpu-5", path=("s2", "l1")),  # Below two switches.
    Stand("gpu-6", path=("l1", "s1")),  # A circle.
]


@pytest.mark.parametrize(
    ("stands", "kept", "shown"),
    [
        pytest.param([], (), {"root": set()}, id="nobody"),
        pytest.param(
            STANDS,
            ("old",),
            {
                "core": {"gpu-0", "gpu-1", "gpu-2"},
                "l1": {"gpu-0"},
                "s1": {"gpu-0", "gpu-1", "gpu-2"},
                "l1-12345678901234567890_": {"gpu-3"},
                "unknown": {"gpu-4", "gpu-5", "gpu-6"},
                "root": {f"gpu-{number}" for number in range(7)},
                "ib": {"ib-0", "ib-1"},
                "ib.unknown": {"ib-1"},
                "old": set(),
            },
            id="fabrics, depths, and labels that contradict each other",
        ),
    ],
)
def test_slurmctld_shows_the_tree_of_a_slurmcluster_as_it_was_meant(box, stands, kept, shown):
    text = topology_conf(Plugin.TREE, stands, 18, kept)
    nodes = "NodeName=gpu-[0-6],ib-[0-1] CPUs=1 State=CLOUD\nPartitionName=all Nodes=ALL\n"
    conf = f"{BASE}TopologyPlugin=topology/tree\nTopologyParam=SwitchAsNodeRank\n{nodes}"

    found = units(box, {"slurm.conf": conf, "topology.conf": text})
    assert {name: found.get(name) for name in shown} == shown


@pytest.mark.parametrize(
    ("stands", "kept", "shown"),
    [
        pytest.param([], (), {"unknown": set()}, id="nobody"),
        pytest.param(
            [Stand("gpu-0", path=("b1",)), Stand("gpu-1", path=("b1",)), *(Stand(f"gpu-{n}") for n in range(2, 7)), Stand("ib-0", "ib"), Stand("ib-1", "ib")],
            ("old",),
            {"b1": {"gpu-0", "gpu-1"}, "unknown": {f"gpu-{n}" for n in range(2, 7)}, "ib.unknown": {"ib-0", "ib-1"}, "old": set()},
            id="blocks",
        ),
    ],
)  # fmt: skip
def test_slurmctld_shows_the_blocks_of_a_slurmcluster_as_they_were_meant(box, stands, kept, shown):
    text = topology_conf(Plugin.BLOCK, stands, 2, kept)
    nodes = "NodeName=gpu-[0-6],ib-[0-1] CPUs=1 State=CLOUD\nPartitionName=all Nodes=ALL\n"
    conf = f"{BASE}TopologyPlugin=topology/block\nTopologyParam=SwitchAsNodeRank\n{nodes}"

    assert units(box, {"slurm.conf": conf, "topology.conf": text}) == shown


def units(box: Box, found: dict[str, str]) -> dict[str, set[str]]:
    """The switches or blocks that a slurmctld with these files shows, with the nodes below each."""
    box.run("rm", "-rf", "/tmp/rehearsal", "/tmp/state")
    box.path("/tmp/rehearsal").mkdir()
    box.write_secret("/tmp/rehearsal/slurm.key", b"x" * 1024, (0, 0))
    for name, text in found.items():
        box.path(f"/tmp/rehearsal/{name}").write_text(text)
    said = box.run("sh", "-c", SHOW, timeout_s=60).stdout
    lines = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in said.splitlines()]
    named = [(line.get("SwitchName") or line.get("BlockName"), line) for line in lines]
    return {name: {*expand(line.get("Nodes", ""))} for name, line in named if name}


SHOW = """
slurmctld -D -c -f /tmp/rehearsal/slurm.conf > /tmp/rehearsal/log 2>&1 &
for _ in $(seq 200); do
    grep -qE 'Running as primary controller|fatal:' /tmp/rehearsal/log && break
    kill -0 $! 2> /dev/null || break
    sleep 0.05
done
SLURM_CONF=/tmp/rehearsal/slurm.conf scontrol show topology
kill -KILL $! 2> /dev/null
wait $! 2> /dev/null
grep fatal: /tmp/rehearsal/log
true
"""


async def test_a_created_record_runs_jobs_at_its_place_and_moves_with_them(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """From unknown to a switch that slurmctld does not know yet, then to the file that has it."""
    slurm = new_slurm(lines=LINES)
    nowhere, somewhere = Stand("gpu-0"), Stand("gpu-0", path=("s1", "l1"))
    texts = {one: topology_conf(Plugin.TREE, [one], 18) for one in (nowhere, somewhere)}
    write(slurm, texts[nowhere])
    slurm.write_config(TREE, LINES)
    slurm.reconfigure()
    limits = {"resources": {"limits": {"cpu": "1", "memory": "200Mi"}}}
    made = thing(
        "NodeSet", "gpu", {"controllerRef": {"name": "slurm"}, "records": "created", "slurmd": limits}
    )
    first, then = (
        node_places({"slurm.conf": "TopologyPlugin=topology/tree\n", "topology.conf": texts[one]})["gpu-0"]
        for one in (nowhere, somewhere)
    )
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        conf = record_conf(made, first)
        assert (await cluster.write(AddNodes(nodes=("gpu-0",), conf=conf))).answers[
            "gpu-0"
        ].verdict is Verdict.DONE
        slurm.add_worker("gpu-0", arguments=["-Z", "-b", "--conf", own_conf(made)])
        job = await running(slurm, "--nodelist=gpu-0")
        assert seen(cluster).nodes["gpu-0"].topology == first == "default:root:unknown"

        await cluster.write(UpdateNodes(nodes=("gpu-0",), topology=then))
        await until(lambda: seen(cluster).nodes["gpu-0"].topology == then == "default:root:s1:l1", "the move")
        write(slurm, texts[somewhere])
        slurm.reconfigure()
        await until(lambda: "unknown" not in slurm.run("scontrol", "show", "topology"), "the new file")
        slurm.slurmctld.restart()
        assert slurm.job_state(job) == "RUNNING"
        assert "Nodes=gpu-0" in slurm.run("scontrol", "show", "topology", "unit=l1")
        slurm.run("scancel", str(job))
        await running(slurm, "--nodelist=gpu-0")
