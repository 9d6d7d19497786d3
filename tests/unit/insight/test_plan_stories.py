"""A plan, and then what happens: random changes of a NodeSet, equal by uid in both directions, and by job.

What happens is told by another simulation than the one that plans: pods, machines and a Slurm of the stories.
"""

import random
from typing import Any

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.forecast.outcome import Forecast, forecast
from slurm_operator.insight.forecast.simulate import Play
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.nodeset import RECONCILER
from testing.story import Story

SETTLED_SECONDS = 12
LONGEST_JOB_SECONDS = 40

CLASSES = (
    "scale in",
    "scale out",
    "to zero",
    "replace",
    "replace and scale in",
    "replace and scale out",
    "nothing",
)
SEEDS = range(8)  # Of each class: more than fifty changes.


def picture(story: Story) -> Picture:
    """What somebody would see who looks at the story now."""
    world = story.world()
    made = Picture(now=world.now, is_whole=True, slurms=dict(world.slurms), parts={})
    for thing in world.things:
        made.put(thing)
    for kind, children in world.children_.items():
        made.parts[kind] = {key_of(child): child for child in children}
    return made


def begun(seed: int) -> tuple[Story, random.Random]:
    """A NodeSet at rest, with some jobs on some of its workers."""
    chance = random.Random(seed)
    story = Story({"replicas": chance.randint(2, 5)}, seed=seed, machines=8).tick(SETTLED_SECONDS)
    for _ in range(chance.randint(0, 3)):
        story.submit(chance.randint(5, LONGEST_JOB_SECONDS), width=chance.randint(1, 2))
    story.tick(2)
    waiting = [job_id for job_id, job in story.slurm.jobs.items() if job.state == "PENDING"]
    for job_id in waiting:  # Which of those would start where is the scheduler's to say, not a plan's.
        del story.slurm.jobs[job_id]
    return story.tick(2), chance


def wanted(class_: str, replicas: int, chance: random.Random) -> dict[str, Any]:
    fewer, more = chance.randint(1, replicas - 1), chance.randint(replicas + 1, 7)
    template = {"template": {"metadata": {"labels": {"colour": chance.choice(["blue", "green"])}}}}
    return {
        "scale in": {"replicas": fewer},
        "scale out": {"replicas": more},
        "to zero": {"replicas": 0},
        "replace": template,
        "replace and scale in": {**template, "replicas": fewer},
        "replace and scale out": {**template, "replicas": more},
        "nothing": {},
    }[class_]


def planned(story: Story, change: dict[str, Any]) -> Forecast:
    now = picture(story)
    nodeset = now.get(NodeSet, "ns", "gpu")
    body = codec.plain(nodeset)
    body["spec"] = {**body["spec"], **change}
    changed = codec.read(NodeSet, body)
    then = now.copy()
    generation = nodeset.metadata.generation + bool(change)
    then.put(wire.replace(changed, metadata=wire.replace(changed.metadata, generation=generation)))
    return forecast(now, then, [RECONCILER])


def uids(story: Story) -> dict[str, str]:
    return {pod["metadata"]["uid"]: name for name, pod in story.pods.pods.items()}


def carried_out(story: Story, change: dict[str, Any]) -> set[int]:
    """The jobs that were waited for until everything had come to rest."""
    story.change(**change)
    jobs: set[int] = set()
    for _ in range(LONGEST_JOB_SECONDS * 8):
        story.tick()
        waits = [action for action in story.plan.actions() if isinstance(action, Wait)]
        jobs |= {job_id for wait in waits for job_id in wait.jobs}
        story.quiet = 0 if waits or not story.plan.is_idle else getattr(story, "quiet", 0) + 1
        if story.quiet > SETTLED_SECONDS:
            return jobs
    raise AssertionError("no rest:\n" + story.transcript)


@pytest.mark.parametrize("class_", CLASSES)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_planned_is_what_happens_by_uid_and_by_job(class_: str, seed: int) -> None:
    story, chance = begun(seed * len(CLASSES) + CLASSES.index(class_))
    change = wanted(class_, story.spec["replicas"], chance)
    before = uids(story)
    found = planned(story, change)
    assert uids(story) == before  # Nothing was done.
    jobs = carried_out(story, change)
    after = uids(story)

    gone = {one.uid for one in (*found.deleted, *found.restarted) if one.kind == "Pod"}
    back = {one.name for one in found.restarted if one.kind == "Pod"}
    new = {one.name for one in found.created if one.kind == "Pod"}
    assert gone == set(before) - set(after), story.transcript
    assert {after[uid] for uid in set(after) - set(before)} == back | new, story.transcript
    waited_for = {one.job_id for one in found.waited_for}
    if "replace" in class_:  # A job with seconds left may be done when machines get to its worker.
        assert jobs <= waited_for, story.transcript
    else:
        assert jobs == waited_for, story.transcript
    assert not found.stuck


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("early", [1, 4])
def test_a_plan_made_midway_sees_the_same_workers_leave(replicas: int, early: int) -> None:
    """Four to two: two drain, a job ends somewhere, and perhaps another number is wished for."""
    story = Story({"replicas": 4}, seed=early, machines=8).tick(SETTLED_SECONDS)
    for seconds in (36, 32, 28, 24):
        story.submit(seconds)
    story.tick(2).change(replicas=2).tick(3)
    story.slurm.jobs[early].state = "COMPLETED"
    story.read = story.slurm.snapshot()
    story.change(replicas=replicas)
    played = picture(story)
    Play(played, [RECONCILER]).run()
    carried_out(story, {})

    assert {pod.metadata.uid for pod in played.all(Pod)} == set(uids(story)), story.transcript
