from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.runtime.loop.lag import WINDOW_SECONDS, LagMeter


@given(st.lists(st.tuples(st.floats(0.1, 20), st.floats(0, 5)), min_size=1, max_size=60))
def test_the_longest_stall_of_the_last_minute_is_told(steps):
    meter, now, told = LagMeter(), 0.0, []

    for step, stall in steps:
        now += step
        meter.note(now, stall)
        told.append((now, stall))
        assert meter.longest_seconds == max(s for at, s in told if at >= now - WINDOW_SECONDS)
