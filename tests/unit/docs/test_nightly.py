"""What takes long is run a night at a time: what is due, what counts as a result, and what the page says."""

import sys

import pytest

from testing import nightly
from testing.nightly import PAGE, Known, Piece, page, pieces, play, read, run_piece

DAY = "2026-01-02 03:04"


def known(at: str, **given) -> Known:
    return Known(at=at, commit="abc", result="passed", passed_at=at, passed_on="abc", **given)


def test_what_was_never_played_comes_first_and_then_what_was_played_longest_ago():
    found = {"b.py": known("2026-01-02 00:00"), "a.py": known("2026-01-03 00:00")}
    due = [piece.name for piece in pieces(["a.py", "b.py", "c.py"], found)]

    assert due.index("c.py") < due.index("b.py") < due.index("a.py")
    assert {"simulation", "chaos", "bench kube"} <= {*due}


@pytest.mark.parametrize(("times", "first"), [(0, "100001"), (2, "100601")])
def test_series_go_on_with_seeds_that_nobody_has_played(times, first):
    [simulation] = [
        each for each in pieces([], {"simulation": known(DAY, times=times)}) if each.name == "simulation"
    ]

    assert simulation.command[-1] == first


def played(found: dict[str, Known], results: dict[str, str | None], seconds: float = 100) -> dict[str, Known]:
    now = [0.0]

    def run(piece: Piece, left: float) -> str | None:
        now[0] += 10
        return results[piece.name]

    due = [Piece(name=name, command=()) for name in results]
    return dict(play(due, found, "new", seconds, run, clock=lambda: now[0]))


def test_a_failure_keeps_when_it_last_passed_and_what_is_cut_off_has_no_result():
    found = played({"a": known(DAY), "b": known(DAY)}, {"a": "failed", "b": None, "c": "passed"})

    assert found.keys() == {"a", "c"}
    assert (found["a"].result, found["a"].passed_at, found["a"].passed_on) == ("failed", DAY, "abc")
    assert (found["c"].passed_on, found["c"].seconds, found["c"].times) == ("new", 10, 1)


def test_what_would_not_end_in_time_is_left_for_the_next_night():
    found = played({"a": known(DAY, seconds=200)}, {"a": "passed", "b": "passed"})

    assert found.keys() == {"b"}


@pytest.mark.parametrize(
    ("program", "result"),
    [("pass", "passed"), ("raise SystemExit(3)", "failed"), ("import time; time.sleep(60)", None)],
)
def test_a_piece_passes_fails_or_is_ended(tmp_path, monkeypatch, program, result):
    monkeypatch.setattr(nightly, "LOGS", tmp_path)

    assert run_piece(Piece(name="a b", command=(sys.executable, "-c", program)), 5) == result
    assert (tmp_path / "a-b.log").exists()


def test_the_page_says_what_is_known_and_what_never_ran():
    text = page({"a": known(DAY, seconds=7), "b": Known(at=DAY, commit="d", result="failed")}, ["c"])

    assert f"| `a` | {DAY} | abc | 7 | passed |" in text
    assert f"| `b` | never |  |  | failed {DAY} on d |" in text
    assert "| `c` | never |  |  |  |" in text


def test_the_page_in_the_docs_is_the_one_of_the_results():
    rows = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert PAGE.read_text() == page(read(), rows)
