"""A scale-in on a slow machine: what is known of Slurm is old soon after it was read."""

import pytest

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import Scene


@pytest.mark.parametrize("tenths_of_a_second", [3, 6, 9])
def test_a_scale_in_ends_however_slow_slurm_is_while_it_can_be_read_in_time(tenths_of_a_second):
    story = Story(
        seed=2,
        scene=Scene(nodeset=(("replicas", 5),)),
        happenings=(
            Happening(60, "slow_slurmrestd", 0, tenths_of_a_second),
            Happening(5, "scale", 0, 0),
            Happening(100, "calm"),
        ),
    )

    assert play(story).broken is None
