"""Stories of workers by a list of numbers, with records that are made before them."""

from dataclasses import replace

import pytest

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import Scene

CREATED = ("records", "created")
SCENES = {
    "created": Scene(nodeset=(("replicas", 3), CREATED)),
    "listed": Scene(nodeset=(("replicas", 0), ("ordinals", [1, 4]))),
    "both": Scene(nodeset=(("replicas", 0), ("ordinals", [0, 3, 6]), CREATED)),
}


def told_in(seed: int, scene: Scene) -> Story:
    """What happens in the story of this seed, elsewhere. Records of this kind need workers with numbers."""
    story = Story.of(seed, scene="workers")
    calm = tuple(
        Happening(one.after, "calm") if one.deed == "switch_mode" else one for one in story.happenings
    )
    return replace(story, happenings=calm, scene=scene)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", range(12))
def test_every_promise_is_kept(scene, seed):
    assert play(told_in(seed, SCENES[scene])).broken is None


def test_a_job_keeps_the_record_of_a_number_that_nobody_wants_any_more():
    story = Story(
        seed=4,
        scene=SCENES["both"],
        happenings=(
            Happening(30, "submit", 2, 50),
            Happening(2, "scale", 5, 1),
            Happening(5, "crash_operator", 1, 3),
            Happening(90, "calm"),
        ),
    )

    assert play(story).broken is None
