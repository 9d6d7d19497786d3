"""What is decided and said on the other simulated days is what it was."""

import pytest

from net import golden


@pytest.mark.parametrize("number", golden.DAYS)
def test_a_simulated_day_goes_as_before(number: int) -> None:
    assert golden.of_day(number) == golden.kept("days", number)


@pytest.mark.timeout(1800)
@pytest.mark.minutes
@pytest.mark.parametrize("number", golden.LONG_DAYS)
def test_a_day_of_very_many_passes_goes_as_before(number: int) -> None:
    assert golden.of_day(number) == golden.kept("days", number)
