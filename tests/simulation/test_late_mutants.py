"""Take out a rule about late writes or about the clock, and the simulation notices."""

from contextlib import ExitStack

import pytest

from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.runs import Story, play, set_back
from simulation.scenes import Scene
from slurm_operator.plan import gate
from slurm_operator.reconcilers.nodeset import drains, facts, protection
from slurm_operator.runtime.clock import PassClock

ONE = Scene(nodeset=(("replicas", 1),))
LATE = 0.5

# What we note on a pod changes it, too, mostly in time. Nothing may rest on that.
NO_NOTES = (facts.facts, "if _is_taking_over(member):", "if True:")

CHANGED_BACK = (
    (8, "change_image", 0, 5), (9, "change_image", 0, 1), (20, "submit", 1, 39), (0, "submit", 1, 39),
    (12, "submit", 1, 39), (60, "calm"),
)  # fmt: skip
FORGOTTEN = ((8, "scale", 0, 0), (25, "submit", 1, 39), (0, "submit", 1, 39), (60, "calm"))


def late(happenings: tuple, seed: int) -> Story:
    return Story(seed, tuple(Happening(*one) for one in happenings), scene=ONE, late=LATE)


@pytest.mark.parametrize(
    "story",
    [
        *(pytest.param(Story.of(seed, late=0.1), id=f"late, {seed}") for seed in (413, 435, 782)),
        *(pytest.param(set_back(seed), id=f"set back, {seed}") for seed in (69, 70, 94)),
    ],
)
def test_stories_in_which_jobs_were_once_lost(story):
    assert play(story).broken is None


@pytest.mark.parametrize(
    ("target", "old", "new", "told", "seeds"),
    [
        pytest.param(gate.version_to_delete, "return pod.metadata.resource_version if is_marked else None", 'return ""', CHANGED_BACK, (2, 20, 27), id="a delete names the version of the pod"),
        pytest.param(drains.keep, "[[*void], *steps] if void else steps", "steps", CHANGED_BACK, (2, 20, 27), id="a delete is void before the worker is resumed"),
        pytest.param(protection.protect_again, '*([] if verdict.reason == "OldAnswer" else void)', "", FORGOTTEN, (2, 10, 21), id="a delete is void before a forgotten worker registers again"),
    ],
)  # fmt: skip
def test_one_rule_about_late_writes_less_is_noticed(target, old, new, told, seeds):
    with ExitStack() as without:
        without.enter_context(mutated(*NO_NOTES))
        assert [play(late(told, seed)).broken for seed in seeds] == [None] * len(seeds), "all is well with it"
        without.enter_context(mutated(target, old, new))

        assert any(play(late(told, seed)).broken for seed in (*seeds, *range(1, 31))), "nobody noticed"


def test_answers_that_are_dated_by_another_clock_than_their_age_is_told_by_are_noticed():
    stories = [set_back(seed) for seed in (4, 6, 16)]
    assert [play(story).broken for story in stories] == [None] * 3, "all is well with it"

    with mutated(PassClock.told, "dated(facts, self._ahead) if self._ahead else facts", "facts"):
        assert any(play(story).broken for story in stories), "nobody noticed"
