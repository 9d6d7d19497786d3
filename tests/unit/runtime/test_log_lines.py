"""Log lines quote what others wrote. None of it is obeyed, and none of it passes for a line of ours."""

import io
import re

import pytest
import structlog

from slurm_operator import wire
from slurm_operator.runtime.logs import configure
from testing.hostile import HOSTILE, obeyed

STYLING = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def as_before():
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def logged(style, stream=None, **values):
    stream = stream or io.StringIO()
    configure(style, "info", stream)
    log = structlog.get_logger("test").bind()
    said = values.pop("said", "decided")
    try:
        raise_it = values.pop("error", None)
        if raise_it is not None:
            raise raise_it
        log.info(said, **values)
    except RuntimeError:
        log.exception(said, **values)
    return stream.getvalue()


class Odd:
    """Something whose own words hold an escape."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Odd {self.text}"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("style", ["plain", "json"])
def test_a_value_is_part_of_one_line_and_nothing_in_it_is_obeyed(style, text):
    line = logged(style, said=f"it said {text}", why=text, spaced=f"a b {text}", listed=[text], odd=Odd(text))

    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert obeyed(line) == ""
    assert len(line) < 5 * 6 * 8192 + 1000  # Five values, and six letters at most for one of theirs.


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_at_a_terminal_only_our_own_colours_are_left(text):
    line = logged("plain", Terminal(), said=text, why=text)

    plain = re.sub(r"time=\S+", "", logged("plain", said=text, why=text))
    assert re.sub(r"time=\S+", "", STYLING.sub("", line)).split() == plain.split()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_trace_stands_behind_a_margin(text):
    first, *trace = logged(
        "plain", error=RuntimeError(f"{text}\n2026-01-01T00:00:00Z [info] forged")
    ).splitlines()

    assert "decided" in first
    assert "forged" in "".join(trace)
    assert all(line.startswith("  ") for line in trace)
    assert obeyed("\n".join(trace), but="\n\t") == ""


def test_json_has_the_trace_whole_and_the_value_as_it_was():
    text = "a\x1b[31m\u202e\x7f\nb"
    found = wire.decode_any(logged("json", error=RuntimeError("x" * 20_000), why=text))

    assert found["why"] == text
    assert found["exception"].endswith("x" * 20_000)
    assert list(found)[:3] == ["time", "level", "message"]


def test_plain_values_read_as_they_always_did():
    line = logged("plain", n=3, name="gpu-0", why="no answer", found=["a", 1], nothing=None)

    assert re.fullmatch(
        r"\[info +\] decided +found=\['a', 1\] n=3 name=gpu-0 nothing=None time=\S+Z why='no answer'\n"
        r"|\[info +\] decided +n=3 name=gpu-0 why='no answer' found=\['a', 1\] nothing=None time=\S+Z\n",
        line,
    ), line
