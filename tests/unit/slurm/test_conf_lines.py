import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_operator.slurm.conf import plugstack
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.lines import (
    Comment,
    Include,
    Pair,
    Setting,
    UnwritableError,
    parse,
    render,
    setting,
)
from slurm_operator.slurm.conf.plugstack import SpankInclude, SpankPlugin
from slurm_operator.slurm.conf.problems import Fault

LINES = [
    ("KillWait=5", [("KillWait", "5")]),
    ("  KillWait = 5  # seconds", [("KillWait", "5")]),
    ("KillWait=5\r", [("KillWait", "5")]),
    ("\vKillWait=5\t", [("KillWait", "5")]),
    ('MailProg="/usr/bin/my mail"', [("MailProg", "/usr/bin/my mail")]),
    ('MailProg=""', [("MailProg", "")]),
    ('MailProg="a"b', [("MailProg", '"a"b')]),
    ("MailProg==x", [("MailProg", "=x")]),
    (r"MailProg=/a\#b # cut", [("MailProg", "/a#b")]),
    (r"MailProg=/a\\#b", [("MailProg", "/a\\")]),
    (r"MailProg=a\b\\c", [("MailProg", "ab\\c")]),
    ('MailProg="/a # b"', [("MailProg", '"/a')]),
    ("NodeSet=gpu Feature=gpu", [("NodeSet", "gpu"), ("Feature", "gpu")]),
    ("Slurmd\\\nTimeout=5", [("SlurmdTimeout", "5")]),
    ("NodeName=a \\  # why\n  CPUs=2", [("NodeName", "a"), ("CPUs", "2")]),
    ("NodeName=a \\\n# not a setting", [("NodeName", "a")]),
    ("NodeName=a \\", [("NodeName", "a")]),
]


@pytest.mark.parametrize(("text", "pairs"), LINES)
def test_a_line_is_read_the_way_slurm_reads_it(text, pairs):
    conf = parse(text, "slurm.conf")

    assert [(pair.key, pair.value) for one in conf.settings for pair in one.pairs] == pairs
    assert not [problem for problem in conf.problems if problem.is_fatal]


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "KillWait=",
        "KillWait=5 garbage",
        "MailProg=/a b",
        " Include x",
        "Include x y",
        "=5",
        "a-b=5",
    ],
)
def test_a_line_that_slurm_refuses_is_a_problem_with_file_line_and_reason(text):
    conf = parse(f"# first\nClusterName=x\n{text}\nKillWait=5\n", "slurm.conf")

    assert [(one.file, one.line, one.fault) for one in conf.problems] == [("slurm.conf", 3, Fault.SYNTAX)]
    assert "cannot read" in str(conf.problems[0])
    assert conf.last("killwait") == "5"


def test_a_quote_that_a_comment_cuts_off_is_pointed_out():
    (problem,) = parse('MailProg="/a # b"', "slurm.conf").problems

    assert (problem.line, problem.fault, problem.is_fatal) == (1, Fault.IGNORED, False)
    assert "MailProg" in problem.reason


def test_line_numbers_count_joined_lines():
    conf = parse("A=1 \\\n B=2 \\\n C=3\nD=4\n", "slurm.conf")

    assert [(one.key, one.line) for one in conf.settings] == [("A", 1), ("D", 4)]


def test_keys_are_found_in_any_case_and_the_last_one_counts():
    conf = parse("killwait=5\nKillWait=7\n", "slurm.conf")

    assert conf.last("KILLWAIT") == "7"
    assert len(conf.all("KillWait")) == 2


def test_comments_empty_lines_and_includes_are_kept():
    text = "# head\n\nKillWait=5\nInclude more.conf\n"

    assert render(parse(text, "slurm.conf").entries) == text


@pytest.mark.parametrize(
    "entry",
    [
        setting("A", "line\nbreak"),
        setting("A", 'two "words" here'),
        setting("A", '"quoted"'),
        setting("A b", "x"),
        setting("", "x"),
        Include("two words"),
        Include(""),
        Comment("first\nKillWait=5"),
    ],
)
def test_what_no_file_can_hold_is_refused_when_written(entry):
    with pytest.raises(UnwritableError):
        render([entry])


KEYS = st.from_regex(r"[A-Za-z0-9_.]{1,12}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)
PAIRS = st.builds(Pair, KEYS, VALUES, st.sampled_from(["", "+", "-"]))
ENTRIES = st.one_of(
    st.builds(Setting, st.lists(PAIRS, min_size=1, max_size=4).map(tuple)),
    st.builds(Include, st.from_regex(r"[a-z/.#\\%]{1,12}", fullmatch=True)),
    st.builds(Comment, st.from_regex(r"([a-z#\\]([a-z #\\]{0,10}[a-z#\\])?)?", fullmatch=True)),
)


def bare(entries):
    """Without the places: those are not written."""
    return [type(entry)(getattr(entry, entry.__match_args__[0])) for entry in entries]


@given(st.lists(ENTRIES, max_size=8))
def test_what_is_written_is_read_back(entries):
    try:
        text = render(entries)
    except UnwritableError:
        assume(False)

    conf = parse(text, "slurm.conf")

    assert not [problem for problem in conf.problems if problem.is_fatal]
    assert bare(conf.entries) == entries
    assert render(conf.entries) == text


@given(st.text(alphabet='aK=5 "#\\\n\t', max_size=40))
def test_any_text_is_read_and_what_was_read_survives_writing(text):
    conf = parse(text, "slurm.conf")

    again = parse(render(conf.entries), "slurm.conf")

    assert bare(again.entries) == bare(conf.entries)


def test_included_lines_stand_in_the_place_of_the_include():
    files = {
        "slurm.conf": "ClusterName=AB\nInclude nodes-%c.conf\nKillWait=5\n",
        "nodes-ab.conf": "NodeName=n1\n",
    }

    conf = load(files, "slurm.conf")

    places = [(one.key, one.file, one.line) for one in conf.settings]
    assert places == [
        ("ClusterName", "slurm.conf", 1),
        ("NodeName", "nodes-ab.conf", 1),
        ("KillWait", "slurm.conf", 3),
    ]


@pytest.mark.parametrize(
    ("files", "place", "why"),
    [
        ({"slurm.conf": "Include gone.conf\n"}, ("slurm.conf", 1), "is not there"),
        ({"slurm.conf": "\nInclude /etc/other/x.conf\n", "x.conf": ""}, ("slurm.conf", 2), "is not there"),
        ({"slurm.conf": "Include a\n", "a": "Include slurm.conf\n"}, ("a", 1), "a circle"),
        ({"slurm.conf": "Include a\n", "a": "x\n"}, ("a", 1), "cannot read"),
    ],
)
def test_an_include_that_slurm_cannot_follow_is_a_problem(files, place, why):
    (problem,) = load(files, "slurm.conf").problems

    assert (problem.file, problem.line) == place
    assert why in problem.reason


def test_an_absolute_include_of_the_same_directory_is_followed():
    files = {"slurm.conf": "Include /etc/slurm/a.conf\n", "a.conf": "KillWait=5\n"}

    assert load(files, "slurm.conf").last("KillWait") == "5"


def test_plugstack_lines_are_read_and_written():
    text = "required chroot.so path=/jail x\noptional /usr/lib/a.so\ninclude plugstack.conf.d/*\n"

    entries, problems = plugstack.parse(f"# jail\n\n{text}")

    assert entries == [
        SpankPlugin("chroot.so", True, "path=/jail x"),
        SpankPlugin("/usr/lib/a.so"),
        SpankInclude("plugstack.conf.d/*"),
    ]
    assert problems == []
    assert plugstack.render(entries) == text


def test_a_plugstack_line_that_is_none_is_a_problem():
    (problem,) = plugstack.problems("required a.so\nchroot.so\n")

    assert (problem.line, "required or optional" in problem.reason) == (2, True)


@pytest.mark.parametrize(
    "entry", [SpankPlugin("a b"), SpankPlugin("a.so", arguments="x\ny"), SpankInclude("")]
)
def test_a_plugin_that_would_be_read_differently_is_not_written(entry):
    with pytest.raises(UnwritableError):
        plugstack.render([entry])
