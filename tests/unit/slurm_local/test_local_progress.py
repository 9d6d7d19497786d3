"""What a person sees while they wait."""

import io

import pytest
from rich.console import Console

from slurm_local.progress import PlainProgress, RichProgress, progress_for


def test_without_a_terminal_each_step_is_two_plain_lines() -> None:
    stream = io.StringIO()

    with progress_for(stream).step("Building", "takes long") as step:
        step.say("a package")

    first, last = stream.getvalue().splitlines()
    assert first == "Building ... (takes long)"
    assert last.startswith("Building: done in ")


def test_a_long_step_says_every_tenth_once() -> None:
    stream = io.StringIO()

    with PlainProgress(stream).step("Building") as step:
        for done in range(101):
            step.at(done, 100)

    tenths = [line for line in stream.getvalue().splitlines() if line.endswith("%")]
    assert tenths == [f"Building: {tenth} %" for tenth in range(10, 100, 10)]


def test_a_failed_step_says_so_and_lets_the_error_through() -> None:
    stream = io.StringIO()

    with pytest.raises(KeyError), PlainProgress(stream).step("Building"):
        raise KeyError

    assert "Building: failed after" in stream.getvalue()


def test_on_a_terminal_finished_steps_leave_a_line_with_their_time() -> None:
    stream = io.StringIO()
    progress = RichProgress(Console(file=stream, force_terminal=True, width=100))

    with progress.step("Outer [x]"), progress.step("Inner") as step:
        step.say("busy")
        step.at(1, 2)

    text = stream.getvalue()
    assert "✓" in text
    assert "Outer [x]" in text
    assert "Inner" in text


def test_on_a_terminal_a_failed_step_is_crossed_out() -> None:
    stream = io.StringIO()

    with pytest.raises(KeyError), RichProgress(Console(file=stream, force_terminal=True)).step("Building"):
        raise KeyError

    assert "✗" in stream.getvalue()
