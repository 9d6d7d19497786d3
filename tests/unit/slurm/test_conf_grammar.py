import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm.conf import topology_yaml
from slurm_operator.slurm.conf.grammar import TABLES, problems
from slurm_operator.slurm.conf.problems import Fault
from slurm_operator.slurm.conf.topology_yaml import Block, Blocks, Flat, Ring, Rings, Switch, Topology, Tree

GOOD = {
    "slurm.conf": """
        ClusterName=demo
        SlurmctldHost=demo-0(demo-0.internal)
        SlurmctldHost=demo-1
        slurmctldparameters=enable_configless,config_digest_1234
        MaxJobCount=10k
        KillWait=0x1F
        UsePAM=Yes
        Prolog=a.sh
        Prolog=b.sh
        PriorityDecayHalfLife=7-0
        DebugFlags=Gres,db_job,
        NodeSet=gpu Feature=gpu
        NodeName=n[1-3] CPUs=2 RealMemory=500 State=CLOUD
        PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED OverSubscribe=FORCE:4
        """,
    "slurmdbd.conf": "DbdHost=dbd\nDbdPort=6819\nStorageType=accounting_storage/mysql\nPurgeJobAfter=12months\n",
    "cgroup.conf": "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nAllowedRAMSpace=101.5\n",
    "gres.conf": "AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3]\nNodeName=n1 Name=nvme Count=2\n",
    "mpi.conf": "PMIxDebug=1\nPMIxDirectConn=false\n",
    "topology.conf": "SwitchName=s0 Nodes=n[0-5]\nSwitchName=top Switches=s[0-2]\nBlockSizes=4,16\n",
    "plugstack.conf": "required chroot.so /jail\n",
    "topology.yaml": "- topology: default\n  cluster_default: true\n  flat: true\n",
    "prolog.sh": "#!/bin/sh\nexit 0\n",
}


def test_good_files_have_no_problems():
    assert problems(GOOD) == []


BAD = [
    # file, line, fault, part of the reason
    (
        "slurm.conf",
        "MaxJobCoutn=5",
        Fault.UNKNOWN_KEY,
        "there is no key MaxJobCoutn; did you mean MaxJobCount?",
    ),
    ("slurm.conf", "Xyzzy=5", Fault.UNKNOWN_KEY, "there is no key Xyzzy"),
    ("slurm.conf", "MaxJobCount=xyz", Fault.BAD_VALUE, "MaxJobCount: 'xyz' is no number"),
    ("slurm.conf", "MaxJobCount=-1", Fault.BAD_VALUE, "is no number"),
    ("slurm.conf", "MaxJobCount=5m", Fault.BAD_VALUE, "is no number"),
    ("slurm.conf", "MaxJobCount=4294967296", Fault.BAD_VALUE, "larger than 4294967295"),
    ("slurm.conf", "KillWait=5k", Fault.BAD_VALUE, "is no number"),
    ("slurm.conf", "KillWait=08", Fault.BAD_VALUE, "is no number"),
    ("slurm.conf", "SlurmdTimeout=70000", Fault.BAD_VALUE, "larger than 65535"),
    ("slurm.conf", "UsePAM=maybe", Fault.BAD_VALUE, "neither yes nor no"),
    ("slurm.conf", "PriorityMaxAge=90s", Fault.BAD_VALUE, "no length of time"),
    ("slurm.conf", "DebugFlags=Gres,Foo", Fault.BAD_VALUE, "'Foo' is none of"),
    ("slurm.conf", "SlurmctldDebug=debug6", Fault.BAD_VALUE, "none of quiet, fatal"),
    ("slurm.conf", "SlurmctldPort=6820-6817", Fault.BAD_VALUE, "no port"),
    ("slurm.conf", "SlurmctldHost=a(b", Fault.BAD_VALUE, "host(address)"),
    ("slurm.conf", "PropagateResourceLimits=nofile", Fault.BAD_VALUE, "none of ALL"),
    ("slurm.conf", "SallocDefaultCommand=x", Fault.BAD_VALUE, "use_interactive_step"),
    ("slurm.conf", "PartitionName=a MaxTime=xyz", Fault.BAD_VALUE, "MaxTime"),
    ("slurm.conf", "PartitionName=a State=BLUE", Fault.BAD_VALUE, "none of UP"),
    ("slurm.conf", "PartitionName=a Exclusive=YES", Fault.BAD_VALUE, "none of NO"),
    ("slurm.conf", "PartitionName=a OverSubscribe=NO:2", Fault.BAD_VALUE, "FORCE:count"),
    (
        "slurm.conf",
        "PartitionName=a Defualt=YES",
        Fault.UNKNOWN_KEY,
        "behind PartitionName=; did you mean Default?",
    ),
    ("slurm.conf", "NodeName=a NodeName=b", Fault.UNKNOWN_KEY, "behind NodeName="),
    ("slurm.conf", "KillWait=5 MaxJobCount=7", Fault.SYNTAX, "must begin a line of its own"),
    ("slurm.conf", "garbage", Fault.SYNTAX, "cannot read"),
    ("slurm.conf", "Include gone", Fault.BAD_INCLUDE, "is not there"),
    ("slurm.conf", "PowerPlugin=x", Fault.IGNORED, "defunct"),
    ("slurmdbd.conf", "PurgeJobAfter=1year", Fault.BAD_VALUE, "12months"),
    ("slurmdbd.conf", "DbdHots=x", Fault.UNKNOWN_KEY, "did you mean DbdHost?"),
    ("cgroup.conf", "AllowedRAMSpace=5%", Fault.BAD_VALUE, "is no number"),
    ("cgroup.conf", "MemorySwappiness=5.5", Fault.BAD_VALUE, "is no number"),
    ("cgroup.conf", "CgroupPlugin=cgroup/v3", Fault.BAD_VALUE, "none of cgroup/v1"),
    ("gres.conf", "Count=1", Fault.UNKNOWN_KEY, "there is no key Count"),
    ("gres.conf", "Name=gpu Fiel=/dev/null", Fault.UNKNOWN_KEY, "did you mean File?"),
    ("mpi.conf", "PMIxDirectConn=maybe", Fault.BAD_VALUE, "neither yes nor no"),
    ("topology.conf", "SwitchName=a LinkSpeed=fast", Fault.BAD_VALUE, "is no number"),
    ("plugstack.conf", "chroot.so", Fault.SYNTAX, "required or optional"),
]


@pytest.mark.parametrize(("file", "line", "fault", "why"), BAD, ids=[f"{case[0]}: {case[1]}" for case in BAD])
def test_each_fault_is_found_with_its_file_line_and_reason(file, line, fault, why):
    (problem,) = problems({file: f"# first\n{line}\n"})

    assert (problem.file, problem.line, problem.fault) == (file, 2, fault)
    assert why in problem.reason
    assert problem.is_fatal == (fault is not Fault.IGNORED)


def test_a_fault_in_an_included_file_is_shown_there():
    (problem,) = problems({"slurm.conf": "Include more.conf\n", "more.conf": "\nFoo=1\n"})

    assert str(problem) == "more.conf:2: there is no key Foo"


def test_no_key_is_listed_twice_in_two_spellings():
    for table in TABLES.values():
        for low, key in table.items():
            assert low == key.name.lower()
            assert all(option == inner.name.lower() for option, inner in key.options.items())
    assert len(TABLES["slurm.conf"]) == 248


@given(st.dictionaries(st.sampled_from([*TABLES, "topology.yaml", "plugstack.conf"]), st.text(max_size=60)))
def test_any_text_is_judged_and_never_breaks(files):
    for problem in problems(files):
        assert problem.file in files
        assert problem.line >= 1
        assert problem.reason


TOPOLOGIES = [
    Topology(
        topology="tree",
        cluster_default=True,
        tree=Tree(switches=(Switch(switch="top", children="s[1-2]"), Switch(switch="s1", nodes="n[01-02]"))),
    ),
    Topology(
        topology="blocks",
        block=Blocks(block_sizes=(4, 16), blocks=(Block(block="b1", nodes="n[1-4]"), Block(block="b2"))),
    ),
    Topology(topology="rings", ring=Rings(rings=(Ring(ring="r1", nodes="n[1-8]"),))),
    Topology(topology="flat", flat=True),
    Topology(topology="sorted", flat=Flat(alpha_step_rank=True)),
]


def test_topologies_are_written_and_read_back():
    text = topology_yaml.render(TOPOLOGIES)

    assert topology_yaml.parse(text) == TOPOLOGIES
    assert list(topology_yaml.problems(text)) == []
    assert text.startswith("- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n")
    assert "null" not in text


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("- topology: a\n- topology: ]\n", 2, "no YAML"),
        ("topology: a\n", 1, "Expected `array`"),
        ("- topology: a\n  flat: true\n- cluster_default: true\n", 3, "topology"),
        (
            "- topology: a\n  tree:\n    switches:\n      - switch: s\n        noodles: n1\n",
            5,
            "passes over noodles",
        ),
        ("- topology: a\n  flat: true\n- topology: b\n", 3, "exactly one of"),
        ("- topology: a\n  flat: true\n  tree: {switches: []}\n", 1, "has tree, flat"),
        ("- topology: a\n  flat: true\n- topology: a\n  flat: true\n", 3, "its name is taken"),
        ("- topology: a\n  tree: {switches: [{switch: s, nodes: 'n[1-'}]}\n", 1, "brackets"),
        ("- topology: a\n  tree: {switches: [{switch: s}, {switch: s}]}\n", 1, "s is there twice"),
        ("- &x\n  topology: a\n  flat: true\n- *x\n", 1, "aliases"),
    ],
)
def test_a_topology_yaml_that_is_wrong_says_where_and_why(text, line, why):
    found = list(topology_yaml.problems(text))

    assert [problem.line for problem in found] == [line]
    assert why in found[0].reason
