"""A pass over a NodeSet costs in proportion to its workers: counted in function calls, which no load changes."""

import cProfile
import pstats

import pytest

from bench.passes import STATES, World, one_pass


def calls_per_worker(state: str, size: int) -> float:
    world = World(state, size)
    with cProfile.Profile() as profile:
        one_pass(world)
    return pstats.Stats(profile).total_calls / size


@pytest.mark.parametrize("state", STATES)
def test_cost_per_worker_does_not_grow_with_their_number(state):
    assert calls_per_worker(state, 400) <= 1.1 * calls_per_worker(state, 100)
