"""The whole operator in the simulated world: many seeds, no broken promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.runs import Story, as_test, play, set_back, shrunk
from simulation.scenes import CLUSTER, SHARES, SLURMCLUSTER, WORKERS

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "4"))
FIRST_SEED = int(os.environ.get("SIMULATION_FIRST_SEED", "1"))
TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", [*SHARES, SLURMCLUSTER])
def test_no_seed_breaks_a_promise(scene):
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        story = Story.of(seed, scene=scene)
        ending = play(story)
        if ending.broken is not None:
            short = shrunk(
                story, lambda found, like=ending.broken[:40]: (found.broken or "").startswith(like)
            )
            pytest.fail(as_test(short, play(short)), pytrace=False)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda seed: Story.of(seed, scene=WORKERS, late=0.1), id="writes are late or twice"),
        pytest.param(lambda seed: Story.of(seed, scene=WORKERS, late=0.3), id="many of them"),
        pytest.param(lambda seed: Story.of(seed, scene=WORKERS, steps=True), id="the clock is set"),
        pytest.param(set_back, id="the clock is set back"),
    ],
)
def test_no_late_write_and_no_clock_breaks_a_promise(draw):
    for seed in range(FIRST_SEED, FIRST_SEED + 3 * SEEDS):
        story = draw(seed)
        assert play(story).broken is None, as_test(story, play(story))


@pytest.mark.parametrize("scene", [WORKERS, CLUSTER, SLURMCLUSTER])
def test_a_seed_always_tells_the_same_story(scene):
    def told(hash_seed: str) -> bytes:
        program = f"from simulation.runs import *; print(*play(Story.of(7, 8, {scene!r})).lines, sep='\\n')"
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        ).stdout

    assert told("1") == told("2") != b""
