"""What is decided and said in made-up worlds, and on two simulated days (of workers, and of a whole cluster), is what it was."""

import pytest

from net import golden


@pytest.mark.parametrize("first", golden.CHUNKS)
def test_made_up_worlds_are_decided_and_told_as_before(first: int) -> None:
    assert golden.of_worlds(first) == golden.kept("worlds", first)


@pytest.mark.parametrize("number", golden.QUICK_DAYS)
def test_a_simulated_day_goes_as_before(number: int) -> None:
    assert golden.of_day(number) == golden.kept("days", number)
