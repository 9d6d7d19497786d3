"""What is decided and said on the other simulated days is what it was."""

import pytest

from net import golden


@pytest.mark.parametrize("number", golden.DAYS[len(golden.QUICK_DAYS) :])
def test_a_simulated_day_goes_as_before(number: int) -> None:
    assert golden.of_day(number) == golden.kept("days", number)
