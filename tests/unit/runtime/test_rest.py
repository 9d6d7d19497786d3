"""How long an object is left alone after a pass: longer the dearer it is, and never long for a small one."""

import pytest

from slurm_operator.runtime.loop.reconcile import rest_seconds


@pytest.mark.parametrize(
    ("cost", "rest"),
    [
        pytest.param(0.0, 0.0, id="a pass that costs nothing"),
        pytest.param(0.001, 0.05, id="ten workers: nothing that anybody would feel"),
        pytest.param(0.025, 1.0, id="a thousand: once a second"),
        pytest.param(0.2, 3.0, id="three thousand: a fifteenth of the time"),
    ],
)
def test_a_pass_takes_a_small_share_of_the_time(cost, rest):
    assert rest_seconds(cost) == pytest.approx(rest)
