from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm.durations import FOREVER, DurationError, duration, minutes

LENGTHS = [
    ("5", timedelta(minutes=5)),
    ("0", timedelta(0)),
    ("5:30", timedelta(minutes=5, seconds=30)),
    ("5:99", timedelta(minutes=6, seconds=39)),
    ("1:2:3", timedelta(hours=1, minutes=2, seconds=3)),
    ("90:00:00", timedelta(hours=90)),
    ("1-", timedelta(days=1)),
    ("1-2", timedelta(days=1, hours=2)),
    ("1-2:3", timedelta(days=1, hours=2, minutes=3)),
    ("1-02:03:04", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ("UNLIMITED", FOREVER),
    ("infinite", FOREVER),
    ("-1", FOREVER),
]


@pytest.mark.parametrize(("text", "length"), LENGTHS)
def test_each_of_slurms_forms_is_read(text, length):
    assert duration(text) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1d",
        "+5",
        "-5",
        "5.5",
        "5:",
        ":5",
        "1::2",
        "1:2:3:4",
        "1-2:3:4:5",
        "1-:3",
        "1-2-3",
        "NONE",
        "٣",
    ],
)
def test_what_slurm_refuses_is_refused(text):
    with pytest.raises(DurationError, match="is no length of time"):
        duration(text)


@given(st.integers(0, 10**5), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_length_as_scontrol_shows_it_is_read(days, hours, minutes_, seconds):
    length = timedelta(days=days, hours=hours, minutes=minutes_, seconds=seconds)

    assert duration(f"{days}-{hours:02}:{minutes_:02}:{seconds:02}") == length


def test_a_started_minute_counts():
    assert [minutes(timedelta(seconds=seconds)) for seconds in (0, 1, 60, 61)] == [0, 1, 1, 2]
