"""What takes long is run the longest ago first, and the page says when each piece last passed."""

import pytest

from testing.nightly import (
    KNOWN,
    PAGE,
    Known,
    Piece,
    command_of,
    in_order,
    nightly,
    noted,
    page,
    pieces,
    read,
)

A, B, C = (Piece(name, ("true",)) for name in "abc")
KNOWN_OF_TWO = {
    "a": Known(turns=2, ran_at="2026-01-02 10:00", outcome="passed", seconds=60),
    "b": Known(turns=1, ran_at="2026-01-01 10:00", outcome="failed", seconds=60),
}


def test_the_page_is_made_from_what_is_known():
    assert PAGE.read_text() == page(read(KNOWN)), "run: make nightly"


def test_every_long_test_and_every_program_that_draws_seeds_is_a_piece():
    found = {piece.name for piece in pieces()}

    assert found >= {"tests/e2e/test_confined_pods.py", "simulation", "chaos", "benchmarks"}
    assert all(command_of(piece, 3) for piece in pieces())


def test_what_never_ran_comes_first_and_then_what_ran_longest_ago():
    assert in_order([A, B, C], KNOWN_OF_TWO) == [C, B, A]


def test_each_run_draws_other_seeds():
    [chaos] = [piece for piece in pieces() if piece.name == "chaos"]

    assert command_of(chaos, 0) != command_of(chaos, 1)


@pytest.mark.parametrize(
    ("code", "outcome", "has_passed"),
    [(0, "passed", True), (1, "failed", False), (-1, "ran out of time", False), (5, "chose nothing", False)],
)
def test_only_what_passed_is_noted_as_passed(code, outcome, has_passed):
    before = Known(turns=1, passed_at="before", passed_on="abc")

    after = noted(before, code, 5, "now", "def")

    assert (after.outcome, after.turns, after.ran_at) == (outcome, 2, "now")
    assert (after.passed_at, after.passed_on) == (("now", "def") if has_passed else ("before", "abc"))


def test_a_run_that_is_cut_off_is_continued_by_the_next_one():
    known: dict[str, Known] = {}
    ran: list[str] = []

    def perform(piece: Piece, turn: int, left: float) -> tuple[int, float]:
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(piece.name)
        return 0, 1.0

    with pytest.raises(KeyboardInterrupt):
        nightly([A, B, C], 1, "abc", known, perform=perform)
    ran.clear()
    nightly([A, B, C], 1, "abc", known, perform=lambda piece, *_: (ran.append(piece.name), (1, 1.0))[1])

    assert ran[0] == "c"
    assert sorted(ran) == ["a", "b", "c"]


def test_a_piece_for_which_there_is_no_time_is_left_out():
    known = {**KNOWN_OF_TWO, "b": Known(turns=1, seconds=7200)}
    ran: list[str] = []

    bad = nightly([A, B], 1, "abc", known, perform=lambda piece, *_: (ran.append(piece.name), (0, 1.0))[1])

    assert (ran, bad) == (["a"], [])
