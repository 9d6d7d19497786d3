"""New topology files wait while a record names what they lack: slurmctld would end with them."""

from datetime import timedelta

import pytest

from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.annotations import is_rehearsal
from slurm_operator.reconcilers.controller.configuration.files import files_of
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.states import NodeState
from testing.controller_play import NOON, Play
from testing.controllers import KEY, controller, files, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
TREE = "TopologyPlugin=topology/tree\n"
BOTH = "SwitchName=root Switches=leaf[1-2]\nSwitchName=leaf1\nSwitchName=leaf2\n"
ONE = "SwitchName=root Switches=leaf2\nSwitchName=leaf2\n"


def record(name: str, topology: str, *words: str) -> SlurmNode:
    return SlurmNode(name=name, state=NodeState.of("IDLE", *(words or ("DYNAMIC_NORM",))), topology=topology)


def records(**topologies: str) -> dict[str, SlurmNode]:
    named = {name.replace("_", "-"): topology for name, topology in topologies.items()}
    return {name: record(name, topology) for name, topology in named.items()}


def up(conf: str = TREE, topology: str = BOTH, **more) -> Play:
    """A slurmctld that runs with this topology."""
    spec = {"extraConf": conf, "configFileRefs": [{"name": "network"}]}
    made = world(controller(spec), RESTAPI, files("network", {"topology.conf": topology}))
    return Play(made, **more).rounds()


def write(made: Play, topology: str) -> None:
    """The user edits the file."""
    found = files("network", {"topology.conf": topology})
    [key] = [key for key in made.world.named if key[0] is ConfigMap and key[1].name == "network"]
    made.world.named[key] = found
    made._slurm()


def running(made: Play) -> str:
    return made.running.texts["topology.conf"]


def waits(made: Play) -> dict[str, str]:
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made.world), made.now)
    return {one.reason: one.message for one in plan.actions() if isinstance(one, Wait)}


def passes(made: Play, times: int = 12) -> None:
    for _ in range(times):
        made.round()


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        pytest.param(records(gpu_0="default:leaf1", gpu_1="default:leaf1", gpu_2="default:leaf2"), "switch leaf1 (gpu-[0-1])", id="a switch"),
        pytest.param(records(gpu_0="default:leaf1:new"), "switch leaf1 (gpu-0)", id="a switch above the one it is at"),
        pytest.param(records(gpu_0="other:leaf2"), "topology other (gpu-0)", id="a topology"),
        pytest.param({"gpu-0": record("gpu-0", "default:leaf1", "CLOUD", "DYNAMIC_NORM", "POWERED_DOWN")}, "switch leaf1 (gpu-0)", id="a record without a worker"),
    ],
)  # fmt: skip
def test_a_topology_waits_until_no_record_names_what_it_lacks(nodes, named):
    made = up(nodes=nodes)
    write(made, ONE)
    passes(made)

    assert running(made) == made.mounted().texts["topology.conf"] == BOTH
    assert not [one for one in made.world.children_[kinds.CONFIG_MAP] if is_rehearsal(one)]
    assert named in waits(made)["PlacesInUse"]
    assert made.condition("Degraded").reason == "PlacesInUse"
    assert named in made.condition("Degraded").message
    assert "topology.slinky.slurm.net/spec" in made.condition("Degraded").message
    assert f"nodename={named[named.index('(') + 1 : -1]} " in made.condition("Degraded").message

    made.nodes = records(gpu_0="default:leaf2", gpu_1="", gpu_2="default:root:leaf7")
    made._slurm()
    made.rounds()
    assert running(made) == ONE
    assert made.condition("Degraded").status == "False"


@pytest.mark.parametrize(
    ("nodes", "topology"),
    [
        pytest.param(records(gpu_0="default:leaf2", gpu_1=""), ONE, id="nobody names it"),
        pytest.param(records(gpu_0="default:root:leaf1"), ONE, id="slurmctld adds a switch below one that stays"),
        pytest.param({"old-0": record("old-0", "default:leaf1", "CLOUD")}, ONE, id="a line of slurm.conf, which wins over its record"),
        pytest.param(records(gpu_0="default:leaf1"), BOTH + "SwitchName=leaf3\n", id="a switch more"),
    ],
)  # fmt: skip
def test_a_topology_that_nobody_misses_anything_in_is_used(nodes, topology):
    made = up(nodes=nodes)
    write(made, topology)
    made.rounds()

    assert running(made) == topology


def test_the_switch_that_is_put_back_ends_the_wait():
    made = up(nodes=records(gpu_0="default:leaf1"))
    write(made, ONE)
    passes(made)
    write(made, BOTH)
    made.rounds()

    assert made.condition("Degraded").status == "False"


def test_a_plugin_that_reads_the_file_for_the_first_time_may_lack_what_records_name():
    made = up(conf="", topology=ONE, nodes=records(gpu_0="default:leaf1"))
    made.spec(extraConf=TREE)
    passes(made)
    assert "switch leaf1 (gpu-0)" in waits(made)["PlacesInUse"]

    made.nodes = records(gpu_0="default:leaf2")
    made._slurm()
    made.rounds()
    assert TREE.strip() in made.running.texts["slurm.conf"]


def test_while_slurm_cannot_be_read_a_topology_that_lacks_something_waits():
    made = up(nodes={})
    made.has_restapi = False
    write(made, ONE)
    passes(made)

    assert running(made) == BOTH
    assert "lacks switch leaf1" in waits(made)["PlacesUnseen"]
    assert "there is no RestApi" in waits(made)["PlacesUnseen"]
    assert made.condition("Progressing").reason == "PlacesUnseen"

    made.has_restapi = True
    made._slurm()
    made.rounds()
    assert running(made) == ONE


def test_while_slurm_cannot_be_read_a_topology_that_lacks_nothing_is_used():
    made = up(nodes={})
    made.world.slurms[KEY] = Unreachable(since=NOON, why="gone")
    write(made, BOTH + "SwitchName=leaf3\n")
    made.has_restapi = False
    made._slurm()
    passes(made)

    assert "leaf3" in made.mounted().texts["topology.conf"]


def test_what_was_read_of_slurm_long_ago_does_not_tell_who_names_a_switch():
    made = up(nodes={})
    write(made, ONE)
    made.now += timedelta(seconds=30)

    assert "Slurm is read again" in waits(made)["PlacesUnseen"]


def test_a_first_start_waits_for_nothing():
    spec = {"extraConf": TREE, "configFileRefs": [{"name": "network"}]}
    made = Play(world(controller(spec), files("network", {"topology.conf": ONE})), has_restapi=False)
    for _ in range(12):
        made.round()

    assert running(made) == ONE


def test_files_that_slurmctld_has_not_read_are_taken_back_from_a_record_that_needs_the_former_ones():
    """A worker was put at the switch while its removal was on its way."""
    made = up(nodes={})
    write(made, ONE)
    while made.mounted().texts["topology.conf"] == BOTH:
        made.round()
    made.nodes = records(gpu_0="default:leaf1")
    made._slurm()
    for _ in range(6):
        made.round()
        assert running(made) == BOTH
    assert made.mounted().texts["topology.conf"] == BOTH
    assert any("ConfigWithdrawn" in line for line in made.transcript)


def test_the_former_files_are_not_put_back_under_a_record_that_needs_the_new_ones():
    made = up(topology=ONE, takes=lambda files: "leaf1" not in files.texts["topology.conf"])
    write(made, BOTH)
    for _ in range(60):
        made.round()
        made.nodes = records(gpu_0="default:leaf1")

    assert made.mounted().texts["topology.conf"] == BOTH
    assert "switch leaf1 (gpu-0)" in waits(made)["ConfigNotTaken"]


def test_a_rehearsal_knows_the_places_of_records():
    """What our own reading of a topology cannot tell, slurmctld does."""
    made = up(nodes=records(gpu_0="default:leaf1", gpu_1="", gpu_2="default:leaf1"))
    made.spec(extraConf=f"{TREE}MaxJobCount=7\n")
    while not (held := [one for one in made.world.children_[kinds.CONFIG_MAP] if is_rehearsal(one)]):
        made.round()

    lines = files_of(held[0]).texts["slurm.conf"].splitlines()
    assert "NodeName=gpu-1 State=CLOUD" in lines
    assert "NodeName=gpu-[0,2] State=CLOUD Topology=default:leaf1" in lines
