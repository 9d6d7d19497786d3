"""Take out a rule about late writes or about the clock, and the simulation notices."""

from contextlib import ExitStack

import pytest

from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.runs import Story, play, set_back
from simulation.scenes import Scene
from slurm_operator.clock import PassClock
from slurm_operator.reconcilers.nodeset.report import pod_conditions
from slurm_operator.reconcilers.nodeset.worker import protection, staying
from slurm_operator.reconcilers.shared import strays
from slurm_operator.safety import gate

ONE = Scene(nodeset=(("replicas", 1),))
LATE = 0.5

# What we note on a pod changes it, too, mostly in time. Nothing may rest on that.
NO_NOTES = (pod_conditions.condition_writes, "if _is_taking_over(worker):", "if True:")

# Half of the creates are late, too, so the worker needs a while to come.
CHANGED_BACK = (
    (90, "change_image", 0, 5), (25, "change_image", 0, 1), (20, "submit", 1, 39), (0, "submit", 1, 39),
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


LEFT = (65, 126)


def test_a_workload_that_is_applied_as_it_was_a_minute_before_is_put_right():
    assert play(Story.of(741, late=0.1)).broken is None


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, id=f"a worker is created when its NodeSet is gone, {seed}") for seed in LEFT),
        pytest.param(229, id="an Accounting is deleted before its database is made"),
        pytest.param(878, id="a Cluster is deleted before it is held"),
        pytest.param(147, id="somebody deletes a key before it is created a second time"),
        pytest.param(472, id="a Controller is made as it was wanted a minute before"),
    ],
)
def test_stories_that_once_did_not_end(seed):
    assert play(Story.of(seed, late=0.3)).broken is None


def test_a_worker_whose_nodeset_is_gone_and_that_nobody_looks_after_is_noticed():
    with mutated(strays.is_stray, "owner.name not in world.unreadable(NodeSet, namespace)", "False"):
        assert all("left behind" in (play(Story.of(seed, late=0.3)).broken or "") for seed in LEFT)


@pytest.mark.parametrize(
    ("target", "old", "new", "told", "seeds"),
    [
        pytest.param(gate.version_to_delete, "return marked_version(pod.metadata)", 'return ""', CHANGED_BACK, (20, 21, 48), id="a delete names the version of the pod"),
        pytest.param(staying.stages_of_staying_worker, "[[*void], *steps] if void else steps", "steps", CHANGED_BACK, (20, 21, 48), id="a delete is void before the worker is resumed"),
        pytest.param(protection.protect_again, "protect(worker, seen), stays(worker)", "protect(worker, seen), []", FORGOTTEN, (2, 10, 21), id="a delete is void before a forgotten worker registers again"),
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

    with mutated(PassClock.dated, "dated(facts, self._ahead) if self._ahead else facts", "facts"):
        assert any(play(story).broken for story in stories), "nobody noticed"
