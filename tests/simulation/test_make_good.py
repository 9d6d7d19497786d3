"""When all trouble is over, people ask for nothing any more that cannot be met."""

import pytest

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import CLUSTER, PARTS, WORKERS, Scene


@pytest.mark.parametrize("scene", [WORKERS, PARTS, CLUSTER])
@pytest.mark.parametrize("after", [13.3, 60.0])
def test_an_image_that_somebody_broke_in_the_last_moment_is_a_good_one_again(scene, after):
    """In a Cluster the workers have the bad one some moments later than the Cluster, when nobody looks any more."""
    story = Story(
        seed=1122,
        roughness=0.08,
        scene=Scene(name=scene, nodeset=(("replicas", 1),), has_login=False, has_token=True),
        happenings=(Happening(after, "break_image", 3, 10),),
    )

    assert play(story).broken is None
