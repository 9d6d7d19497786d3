"""Stories of ephemeral workers that all run: the power state is kept, whatever happens, and takes nobody away.

slurmctld of these stories has no power saving of its own; that is played in tests/unit.
"""

from dataclasses import replace

import pytest

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import SLURMCLUSTER, Scene

EPHEMERAL = Scene(
    name=SLURMCLUSTER,
    nodeset=(("replicas", 3), ("ephemeralNodes", True), ("initialNumberEphemeralNodes", 3)),
)
# These ask for another number of workers, and nobody here powers up those that are new.
_OTHERS = ("scale", "switch_mode")


def told_in(seed: int) -> Story:
    story = Story.of(seed, scene=SLURMCLUSTER)
    calm = tuple(Happening(one.after, "calm") if one.deed in _OTHERS else one for one in story.happenings)
    return replace(story, happenings=calm, scene=EPHEMERAL)


@pytest.mark.parametrize("seed", range(4))
def test_every_promise_is_kept(seed):
    assert play(told_in(seed)).broken is None


def test_fewer_replicas_wait_for_jobs_also_over_a_crash():
    story = Story(
        seed=4,
        scene=EPHEMERAL,
        happenings=(
            Happening(60, "submit", 2, 50),
            Happening(2, "submit", 2, 50),
            Happening(2, "submit", 2, 50),
            Happening(2, "scale", 1, 1),
            Happening(5, "crash_operator", 1, 3),
            Happening(120, "calm"),
        ),
    )

    assert play(story).broken is None
