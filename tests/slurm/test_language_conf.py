"""Our reading of configuration files against the parsers of Slurm's own programs.

Two rules hold: what we refuse, Slurm refuses; and what Slurm refuses though we take it is known and listed.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from parser_box import CONF, HOSTNAME, parser_box

from slurm_operator.slurm.conf import values
from slurm_operator.slurm.conf.files.slurm_conf import NODE_LINE, PARTITION_LINE, SLURM_CONF
from slurm_operator.slurm.conf.grammar import TABLES, problems
from slurm_operator.slurm.conf.keys import Key
from slurm_operator.slurm.conf.lines import Entry, Pair, Setting, render, setting
from testing.boxed.box import Box

ASK = """
cd /tmp/cases
for case in *; do
    said=$(SLURM_CONF=/tmp/cases/$case/slurm.conf timeout 5 %s 2>&1)
    printf '%%s\\t%%s\\t%%s\\n' "$case" $? "$(printf %%s "$said" | tr '\\n\\t' '  ')"
done
"""
SCONTROL = "scontrol show hostnames x"
SLURMD = f"slurmd -N {HOSTNAME} -G"

# One key of each kind is tried with all of these, every other with a few.
FEW = ("5", "70000", "zz-bad")
SAMPLES = (
    *(
        "-1",
        "5k",
        "UNLIMITED",
        "05",
        "08",
        "0x1F",
        "+5",
        "5m",
        "5.5",
        "1e3",
        "4294967296",
        "99999999999999999999",
        *FEW,
    ),
    *("infinite", "yes", "NO", "true", "up", "on", "1", "0", "2", "none", "MONTHLY", "cores", "associations"),
    *("1-", "1-2", "1:2:3", "1:2:3:4", "5:", "6817-6820", "6820-6817", "a(b)", "a(b", "debug3", "debug6"),
    *("Gres,Steps", "CR_Core", "Alloc", "GANG", "NOFILE,STACK", "nofile", "FORCE:2", "NO:2", "DRAIN", "NODE"),
)

# Values that only the program can judge that uses them: plugins, users, paths, and what depends on other keys.
_JUDGED_LATER = """
    AccountingStorageType AuthType BcastExclude CertgenType CredType HashPlugin TLSType JobContainerType
    NamespaceType MCSParameters PluginDir SlurmdUser SlurmUser PreemptMode PriorityDecayHalfLife FirstJobId
    MaxJobId SlurmSchedLogLevel SlurmctldPort
"""
JUDGED_LATER = frozenset(_JUDGED_LATER.split())


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with parser_box(rootfs, tmp_path_factory.mktemp("conf")) as box:
        yield box


def verdicts(box: Box, cases: Iterable[Mapping[str, str]], program: str = SCONTROL) -> list[str]:
    """What the program says to each set of files: nothing when it takes them, else its complaint."""
    box.run("rm", "-rf", "/tmp/cases")
    key = box.path("/etc/slurm/slurm.key").read_bytes()
    for number, files in enumerate(cases):
        directory = f"/tmp/cases/{number:05d}"
        box.path(directory).mkdir(parents=True)
        box.write_secret(f"{directory}/slurm.key", key, (0, 0))
        for name, text in files.items():
            box.write_secret(f"{directory}/{name}", text.encode(), (0, 0))
    lines = box.run("sh", "-c", ASK % program, timeout_s=300).stdout.splitlines()
    return [said if status != "0" else "" for _, status, said in (line.split("\t", 2) for line in lines)]


def fatal(files: Mapping[str, str]) -> list[str]:
    return [str(problem) for problem in problems(files) if problem.is_fatal]


def disagreements(box: Box, lines: list[tuple[str, str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Lines we refuse and Slurm takes; and by key, values that Slurm refuses and we take."""
    cases = [{"slurm.conf": f"{CONF}{line}\n"} for _, line in lines]
    too_strict: list[str] = []
    too_lax: dict[str, list[str]] = {}
    for (key, line), case, said in zip(lines, cases, verdicts(box, cases), strict=True):
        if fatal(case) and not said:
            too_strict.append(line)
        elif said and not fatal(case):
            too_lax.setdefault(key, []).append(f"{line}: {said}")
    return too_strict, too_lax


def trials(keys: Iterable[Key], tried: Iterable[Key] = ()) -> Iterator[tuple[str, str]]:
    """Keys with values to try them with. Anything goes in a text, so of those only a word and a number."""
    seen = {key.check for key in tried}
    for key in keys:
        some = ("5", "zz-bad") if key.check is values.text else FEW if key.check in seen else SAMPLES
        seen.add(key.check)
        yield from ((key.name, value) for value in some)


def test_slurm_knows_exactly_the_keys_that_we_know(box):
    strangers = ["Foo", "NodeNames", "MaxJobCoutn", "CacheGroups", "TaskAffinity", "SchedulerPort", "Include"]
    names = [key.name for key in SLURM_CONF.values()]

    said = verdicts(box, [{"slurm.conf": f"{CONF}{name.upper()}=x\n"} for name in [*names, *strangers]])

    unknown = [
        name for name, words in zip([*names, *strangers], said, strict=True) if "unrecognized key" in words
    ]
    assert unknown == strangers


def test_values_of_slurm_conf_are_judged_as_slurm_does(box):
    keys = [key for key in SLURM_CONF.values() if not key.options]
    lines = [(name, f"{name}={value}") for name, value in trials(keys)]

    too_strict, too_lax = disagreements(box, lines)

    assert too_strict == []
    assert {key: said for key, said in too_lax.items() if key not in JUDGED_LATER} == {}


@pytest.mark.parametrize(
    ("head", "table"),
    [("PartitionName=p", PARTITION_LINE), ("NodeName=n1", NODE_LINE)],
    ids=["partition", "node"],
)
def test_values_of_lines_are_judged_as_slurm_does(box, head, table):
    lines = [(name, f"{head} {name}={value}") for name, value in trials(table.values(), SLURM_CONF.values())]

    too_strict, too_lax = disagreements(box, lines)

    assert too_strict == []
    assert {key: said for key, said in too_lax.items() if key not in JUDGED_LATER} == {}


LINES = [
    "garbage",
    "KillWait=",
    "KillWait=5 MaxJobCount=7",
    "KillWait = 5",
    "killwait=5",
    "KillWait=5\nKillWait=6",
    'KillWait="5"',
    'MailProg="/a b',
    "MailProg=/a b",
    'MailProg="/a # b"',
    'MailProg=""',
    'MailProg="a"b',
    "MailProg==x",
    "MailProg=\u00e9",
    "MailProg=/a\\#b # x",
    "MaxJobCount+=5",
    "KillWait=5 \\\n MaxJobCount=8",
    "Kill\\\nWait=5",
    "KillWait=5 \\ \n",
    "# \\\nKillWait=5",
    "KillWait=5 # \\\nFoo=1",
    " KillWait=5\r",
    "\vKillWait=5",
    "\u00a0",
    "Foo.bar=1",
    "a-b=1",
    "NodeSet=a",
    "NodeSet=a Feature=a Foo=b",
    "NodeName=n1 NodeName=n2",
    'DownNodes=n1 Reason="a b" State=DOWN',
    "Prolog=a\nProlog=b",
    "SlurmctldHost=a(b) Foo=1",
    "Include slurm2.conf",
    "INCLUDE sl%crm2.conf",
    " Include slurm2.conf",
    "Include slurm2.conf x",
    "Include=slurm2.conf",
]


def test_lines_are_taken_or_refused_as_slurm_does(box):
    cases = [
        {"slurm.conf": f"{CONF}{line}\n", "slurm2.conf": "KillWait=5\n", "slxrm2.conf": "\n"}
        for line in LINES
    ]

    said = verdicts(box, cases)

    ours = {line: bool(fatal(case)) for line, case in zip(LINES, cases, strict=True)}
    assert ours == {line: bool(words) for line, words in zip(LINES, said, strict=True)}


GOOD_VALUES = {
    values.uint16: ("0", "7", "65535", "0x10", "UNLIMITED"),
    values.uint32: ("1", "4000000000", "10k", "INFINITE"),
    values.uint64: ("1", "18446744073709551615", "64K"),
    values.yes_no: ("YES", "no", "1", "False"),
    values.time_length: ("5", "1-2:3:4", "UNLIMITED"),
    values.log_level: ("info", "debug5", "3"),
    values.text: ("word", "two words", "a,b=1", "/path/with#hash", "back\\slash", "tab\there"),
}


def some_settings(draw: random.Random) -> list[Entry]:
    """A few lines of random keys with values that their kinds allow."""
    usable = [
        key for key in SLURM_CONF.values() if key.check in GOOD_VALUES and not key.options and not key.refused
    ]
    lines = [setting(key.name, draw.choice(GOOD_VALUES[key.check])) for key in draw.sample(usable, 12)]
    options = [key for key in PARTITION_LINE.values() if key.check in GOOD_VALUES]
    pairs = [Pair(key.name, draw.choice(GOOD_VALUES[key.check])) for key in draw.sample(options, 5)]
    keep = [line for line in lines if line.key not in JUDGED_LATER]
    return [*keep, Setting((Pair("PartitionName", "p"), *pairs))]


def test_rendered_random_settings_are_accepted_by_slurm(box):
    draw = random.Random(11)
    cases = [{"slurm.conf": CONF + render(some_settings(draw))} for _ in range(100)]

    assert [fatal(case) for case in cases] == [[]] * len(cases)
    assert [said for said in verdicts(box, cases) if said] == []


CGROUP_SAMPLES = ("yes", "maybe", "5", "5.5", "-1", "5%", "zz", "5k", "99999999999999999999")
CGROUP_LATER = {"CgroupPlugin"}


def node_conf() -> str:
    return f"{CONF}GresTypes=gpu,nvme\nNodeName={HOSTNAME} CPUs=1\n"


def test_cgroup_conf_is_judged_as_slurmd_does(box):
    pairs = [(key.name, value) for key in TABLES["cgroup.conf"].values() for value in CGROUP_SAMPLES]
    pairs = [(name, value) for name, value in pairs if name not in CGROUP_LATER] + [
        ("Foo", "1"),
        ("CgroupPlugi", "x"),
    ]
    cases = [{"cgroup.conf": f"CgroupPlugin=disabled\n{name}={value}\n"} for name, value in pairs]

    said = verdicts(box, [{**case, "slurm.conf": node_conf()} for case in cases], SLURMD)

    ours = {pair: bool(fatal(case)) for pair, case in zip(pairs, cases, strict=True)}
    assert ours == {pair: bool(words) for pair, words in zip(pairs, said, strict=True)}


GRES_LINES = [
    *(
        "AutoDetect=off",
        "Name=gpu Count=0",
        "Name=gpu File=/dev/null Foo=1",
        "Count=1",
        "Foo=1",
        "Name=nvme Count=0",
    ),
    *(f"NodeName={HOSTNAME} Name=nvme Count=0 Type=x Flags=CountOnly", "NodeName=other Name=gpu Count=8"),
]


def test_gres_conf_is_judged_as_slurmd_does(box):
    rest = {"slurm.conf": node_conf(), "cgroup.conf": "CgroupPlugin=disabled\n"}
    cases = [{"gres.conf": f"{line}\n"} for line in GRES_LINES]

    said = verdicts(box, [{**case, **rest} for case in cases], SLURMD)

    ours = {line: bool(fatal(case)) for line, case in zip(GRES_LINES, cases, strict=True)}
    assert ours == {line: bool(words) for line, words in zip(GRES_LINES, said, strict=True)}


DBD_SAMPLES = ("5", "70000", "yes", "maybe", "12months", "9year", "info", "debug6", "DB_JOB")


def test_slurmdbd_conf_is_judged_as_slurmdbd_does(box):
    """slurmdbd ends either way: on the file, or next on an authentication plugin that is not there."""
    # Judged later, or set below.
    passed = {"ArchiveDir", "ArchiveScript", "AuthType", "DbdHost", "SlurmUser", "StorageType", "PluginDir"}
    keys = [key for key in TABLES["slurmdbd.conf"].values() if key.name not in passed]
    pairs = [
        (key.name, value)
        for key in keys
        for value in (DBD_SAMPLES if key.check is not values.text else ("x",))
    ]
    pairs += [("Foo", "1"), ("DbdHots", "x")]
    base = f"AuthType=auth/gone\nDbdHost={HOSTNAME}\nSlurmUser=root\nStorageType=accounting_storage/mysql\n"
    cases = [{"slurmdbd.conf": f"{base}{name}={value}\n"} for name, value in pairs]

    said = verdicts(box, [{**case, "slurm.conf": CONF} for case in cases], "slurmdbd -D")

    ours = {pair: bool(fatal(case)) for pair, case in zip(pairs, cases, strict=True)}
    assert ours == {pair: "auth/gone" not in words for pair, words in zip(pairs, said, strict=True)}
