"""Durations as Go writes them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.api.schema import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("30m0s", 1800),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1m1m", 120),
        ("250ms", 0.25),
        ("10us", 0.00001),
        ("10µs", 0.00001),
        ("-5m", -300),
        ("+5m", 300),
        ("8760h", 365 * 86400),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert durations.parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "5 m", "2 days", "1d", "m", "-", "1h 30m", "PT1H", "5m\n", "."])
def test_what_go_refuses_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 90s, 15m or 1h30m"):
        durations.parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (45, "45s"), (5400, "1h30m"), (3600, "1h"), (1.5, "1.5s"), (-300, "-5m"), (90061, "25h1m1s")],
)
def test_a_duration_is_written_as_short_as_people_would(seconds: float, text: str) -> None:
    assert durations.text(timedelta(seconds=seconds)) == text


@given(st.timedeltas(min_value=timedelta(days=-3650), max_value=timedelta(days=3650)))
def test_writing_and_reading_gives_the_same_duration(duration: timedelta) -> None:
    # Parts are read as floating point numbers, so over years the last microsecond may differ.
    assert abs(durations.parse(durations.text(duration)) - duration) <= timedelta(microseconds=1)
