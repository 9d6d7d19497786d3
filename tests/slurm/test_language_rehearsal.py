"""Files we wrote, taken by a real slurmctld: what only the daemon itself can say about them."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from parser_box import CONF, parser_box

from slurm_operator.slurm.conf import topology_yaml
from slurm_operator.slurm.conf.grammar import problems
from slurm_operator.slurm.conf.lines import Entry, Pair, Setting, parse, render, setting
from slurm_operator.slurm.conf.topology_yaml import Block, Blocks, Flat, Ring, Rings, Switch, Topology, Tree
from testing.boxed.box import Box

REHEARSE = """
rm -rf /tmp/state
slurmctld -D -c -f /tmp/rehearsal/slurm.conf > /tmp/rehearsal/log 2>&1 &
for _ in $(seq 200); do
    grep -qE 'Running as primary controller|fatal:|cannot stat file' /tmp/rehearsal/log && break
    kill -0 $! 2> /dev/null || break
    sleep 0.05
done
kill -KILL $! 2> /dev/null
wait $! 2> /dev/null
cat /tmp/rehearsal/log
"""
BASE = (
    CONF
    + "SlurmUser=root\nStateSaveLocation=/tmp/state\nSlurmctldPidFile=/tmp/rehearsal/pid\nMaxNodeCount=64\n"
)
NODES = "NodeName=n[1-8] CPUs=1 State=CLOUD\nPartitionName=all Nodes=ALL\n"


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with parser_box(rootfs, tmp_path_factory.mktemp("rehearsal")) as box:
        yield box


def rehearsal(box: Box, files: Mapping[str, str]) -> str:
    """What a slurmctld with empty state says to these files; nothing when it runs on them."""
    box.run("rm", "-rf", "/tmp/rehearsal")
    box.path("/tmp/rehearsal").mkdir()
    box.write_secret("/tmp/rehearsal/slurm.key", b"x" * 1024, (0, 0))
    for name, text in files.items():
        box.path(f"/tmp/rehearsal/{name}").write_text(text)
    said = box.run("sh", "-c", REHEARSE, timeout_s=60).stdout
    return "" if "Running as primary controller" in said else said


SAFE: list[tuple[str, tuple[str, ...]]] = [
    ("KillWait", ("5", "0x10")),
    ("MinJobAge", ("10", "1k")),
    ("MaxJobCount", ("5000", "10K")),
    ("ReturnToService", ("0", "1", "2")),
    ("SchedulerParameters", ("defer,bf_interval=30", "unknown_word_of_ours")),
    ("PriorityDecayHalfLife", ("7-0", "UNLIMITED")),
    ("SlurmctldDebug", ("info", "debug2")),
    ("DebugFlags", ("Gres,Steps",)),
    ("Licenses", ("matlab:4,ansys:2",)),
    ("EnforcePartLimits", ("ALL", "NO")),
    ("MailProg", ("/opt/my mail/prog#1",)),
    ("UnkillableStepProgram", ("/bin/back\\\\slash",)),
    ("PrivateData", ("jobs,usage",)),
    ("SelectTypeParameters", ("CR_Core_Memory", "CR_CPU")),
    ("PrologFlags", ("Alloc,Contain",)),
]


def some_settings(draw: random.Random) -> list[Entry]:
    lines: list[Entry] = [setting(key, draw.choice(values)) for key, values in draw.sample(SAFE, 7)]
    options = [
        Pair("MaxTime", draw.choice(["UNLIMITED", "1-2", "5:30"])),
        Pair("Default", draw.choice(["YES", "no"])),
    ]
    partition = Setting((Pair("PartitionName", "p"), Pair("Nodes", "ALL"), *options))
    return [*lines, Setting((Pair("NodeSet", "s"), Pair("Feature", "s"))), partition]


@pytest.mark.parametrize("seed", range(6))
def test_slurmctld_runs_on_random_settings_that_we_rendered(box, seed):
    text = BASE + render(some_settings(random.Random(seed)))

    assert problems({"slurm.conf": text}) == []
    assert rehearsal(box, {"slurm.conf": text}) == ""


@pytest.mark.parametrize(
    "line", ["MaxJobCoutn=5", "KillWait=70000", "PartitionName=p MaxTime=xyz", "KillWait=5 A=6"]
)
def test_slurmctld_dies_on_what_our_grammar_refuses(box, line):
    text = f"{BASE}{line}\n"

    assert [problem.line for problem in problems({"slurm.conf": text})] == [text.count("\n")]
    assert "fatal: Unable to process configuration file" in rehearsal(box, {"slurm.conf": text})


TOPOLOGIES = [
    Topology(
        topology="tree",
        cluster_default=True,
        tree=Tree(
            switches=(
                Switch(switch="top", children="s[1-2]"),
                Switch(switch="s1", nodes="n[1-4]"),
                Switch(switch="s2", nodes="n[5-8]"),
            )
        ),
    ),
    Topology(
        topology="blocks",
        block=Blocks(
            block_sizes=(4,), blocks=(Block(block="b1", nodes="n[1-4]"), Block(block="b2", nodes="n[5-8]"))
        ),
    ),
    Topology(topology="rings", ring=Rings(rings=(Ring(ring="r1", nodes="n[1-8]"),))),
    Topology(topology="flat", flat=True),
    Topology(topology="sorted", flat=Flat(alpha_step_rank=True)),
]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=[topology.topology for topology in TOPOLOGIES])
def test_slurmctld_runs_on_each_topology_that_we_rendered(box, topology):
    text = topology_yaml.render([topology])

    assert list(topology_yaml.problems(text)) == []
    assert rehearsal(box, {"slurm.conf": BASE + NODES, "topology.yaml": text}) == ""


WRONG_TOPOLOGIES = [
    "- topology: a\n- topology: b\n  flat: true\n",
    "- topology: a\n  tree: [\n",
]


@pytest.mark.parametrize("text", WRONG_TOPOLOGIES)
def test_slurmctld_dies_on_a_topology_that_we_refuse(box, text):
    assert [problem for problem in topology_yaml.problems(text) if problem.is_fatal]
    assert "fatal:" in rehearsal(box, {"slurm.conf": BASE + NODES, "topology.yaml": text})


def test_slurmctld_passes_over_a_field_that_a_topology_does_not_have(box):
    text = "- topology: a\n  tree:\n    switches:\n      - switch: s1\n        nodes: n[1-8]\n        noodles: n1\n"

    (problem,) = topology_yaml.problems(text)

    assert (problem.line, problem.is_fatal) == (6, False)
    assert rehearsal(box, {"slurm.conf": BASE + NODES, "topology.yaml": text}) == ""


TOPOLOGY_LINES = ["SwitchName=s1 Nodes=n[1-8]", "SwitchName=s1 Nodes=n[1-8] Foo=1", "Foo=1"]


@pytest.mark.parametrize("line", TOPOLOGY_LINES)
def test_topology_conf_is_judged_as_slurmctld_does(box, line):
    conf = f"{BASE}TopologyPlugin=topology/tree\n{NODES}"

    refused = [problem for problem in problems({"topology.conf": f"{line}\n"}) if problem.is_fatal]

    assert bool(refused) == bool(rehearsal(box, {"slurm.conf": conf, "topology.conf": f"{line}\n"}))


VALUES = {
    "MailProg": "/opt/my mail/prog#1",
    "SchedulerParameters": "defer,Spelled_As_Typed=5",
    "HealthCheckProgram": "/bin/back\\slash",
    "LaunchParameters": "a=b=c",
}


def test_slurmctld_reads_the_values_that_we_wrote(new_slurm):
    written = render(setting(key, value) for key, value in VALUES.items())
    slurm = new_slurm(lines=[*written.splitlines(), "PartitionName=all Nodes=ALL Default=YES"])

    shown = slurm.run("scontrol", "show", "config")

    read = {
        key.strip(): value.strip() for key, _, value in (line.partition("=") for line in shown.splitlines())
    }
    assert {key: read[key] for key in VALUES} == VALUES
    conf = parse(written, "slurm.conf")
    assert {key: conf.last(key) for key in VALUES} == VALUES


def test_another_cluster_name_is_refused_on_old_state(new_slurm):
    slurm = new_slurm()
    slurm.slurmctld.stop()
    slurm.write_config({"ClusterName": "other"})

    said = slurm.head.box.run("timeout", "5", "slurmctld", "-D", user=(401, 401), check=False)

    assert "CLUSTER NAME MISMATCH" in said.stdout + said.stderr
