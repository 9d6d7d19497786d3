"""Tables, times and colours."""

import io
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from slurm_operator import wire
from slurm_operator.insight.text import output
from slurm_operator.insight.text.output import Cell, paragraph, span, table
from slurm_operator.slurm.states import NodeState

CELLS = st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=12)


def test_columns_are_as_wide_as_what_is_in_them_and_lines_end_where_their_text_ends():
    made = table(("NAME", "STATE", "WHY"), [("gpu-0", "idle", ""), ("a-long-name", "down", "no answer")])

    assert made.plain == (
        "NAME          STATE   WHY\n"
        "gpu-0         idle\n"
        "a-long-name   down    no answer\n"
    )  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=5))
def test_every_cell_of_a_column_starts_in_the_same_place(rows):
    head = ("AAA", "BBB", "CCC")

    first, *lines = table(head, rows).plain.split("\n")[:-1]

    starts = [first.index(name) for name in head]
    for row, line in zip(rows, lines, strict=True):
        assert [line[at : at + len(cell)] for at, cell in zip(starts, row, strict=True)] == row


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=119), "119m"),
        (timedelta(hours=2), "2h"),
        (timedelta(days=2, hours=4), "2d4h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=30, hours=4), "30d"),
    ],
)
def test_lengths_of_time_read_as_kubectl_writes_ages(length, text):
    assert span(length) == text


def printed(environ: dict[str, str], *, terminal: bool) -> str:
    console = output.console(environ)
    made = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        no_color=console.no_color,
        highlight=False,
        soft_wrap=True,
    )
    made.print(paragraph(Cell("down", output.BAD)), end="")
    return made.file.getvalue()


def test_colours_are_for_terminals_and_not_for_those_who_want_none():
    assert printed({}, terminal=False) == "down\n"
    assert "\x1b[31m" in printed({"TERM": "xterm"}, terminal=True)
    assert "\x1b[31m" not in printed({"TERM": "xterm", "NO_COLOR": "1"}, terminal=True)


def test_json_is_json_whatever_stands_in_it():
    to = Console(file=io.StringIO(), width=20, soft_wrap=True)

    output.emit("json", {"text": "[red]a very long text that no terminal breaks into lines[/red]"}, list, to)

    assert wire.decode_any(to.file.getvalue())["text"].startswith("[red]")


def test_what_is_true_of_every_node_is_left_out_of_its_state():
    assert output.node_state(NodeState.of("MIXED", "DRAIN", "DYNAMIC_NORM")) == "MIXED+DRAIN"
