"""A scale-in goes on with the workers that it began with, whatever happens to jobs meanwhile."""

from datetime import timedelta

import pytest

from slurm_operator.api.shared import names
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.slurm.writes import DrainNodes, ResumeNodes
from testing.story import Story
from testing.workers import (
    controller,
    job,
    machine,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)


def busy(*seconds: int, **more) -> Story:
    """A worker for each of the jobs, which end after so many seconds: job 1 on gpu-0 and so on."""
    story = Story({"replicas": len(seconds)}, machines=8, **more).tick(12)
    for number, length in enumerate(seconds):
        record = story.slurm.records[f"gpu-{number}"]
        ends_at = story.now + timedelta(seconds=length)
        story.submit(
            length,
            state="RUNNING",
            nodes=(record.name,),
            processes={record.name: record.pod_uid},
            ends_at=ends_at,
        )
    return story.tick(2)


def written(story: Story, kind: type, seconds: int) -> list[set[str]]:
    """Which nodes were drained, or resumed, in each of the seconds; those in which none was left out."""
    found = []
    for _ in range(seconds):
        story.tick()
        done = (a.write for a in story.plan.actions() if isinstance(a, WriteSlurm))
        if nodes := {name for write in done if isinstance(write, kind) for name in write.nodes}:
            found.append(nodes)
    return found


def drained(story: Story) -> set[str]:
    return {record.name for record in story.slurm.records.values() if record.is_drain}


def test_a_job_that_ends_elsewhere_does_not_change_who_leaves():
    """Four to two: as soon as a job of another worker ended, a drained one was resumed and that one drained."""
    story = busy(100, 90, 80, 70)
    story.change(replicas=2).tick(3)
    assert drained(story) == {"gpu-2", "gpu-3"}

    for early in (1, 4, 2):
        story.slurm.jobs[early].state = "COMPLETED"
        assert written(story, DrainNodes | ResumeNodes, 5) == []

    story.tick(100)
    assert set(story.pods.pods) == {"gpu-0", "gpu-1"}
    assert drained(story) == set()
    assert story.broken == []


@pytest.mark.parametrize("seed", range(10))
def test_without_a_change_of_the_wish_nobody_is_ever_resumed(seed):
    """Jobs end when they like, calls fail, and Slurm is not read for seconds after a drain was sent."""
    story = busy(100, 90, 80, 70, 60, seed=seed, lazy=0.6)
    story.fails = 0.2
    story.change(replicas=2)

    ends = list(story.slurm.jobs.values())
    story.chance.shuffle(ends)
    for job_ in ends:
        assert written(story, ResumeNodes, story.chance.randint(1, 9)) == []
        job_.state = "COMPLETED"
    assert written(story, ResumeNodes, 30) == []
    assert len(story.pods.pods) == 2
    assert story.broken == []


def test_who_is_cheaper_by_its_deletion_cost_leaves_instead():
    """The rules before: whoever says so while jobs still run has the last word."""
    story = busy(100, 90, 80, 70)
    story.change(replicas=2).tick(3)
    story.pods.pods["gpu-0"]["metadata"]["annotations"][names.POD_DELETION_COST] = "-5"
    story.tick(3)

    assert drained(story) == {"gpu-0", "gpu-3"}


@pytest.mark.parametrize(
    ("replicas", "stays_drained"),
    [
        pytest.param(3, {"gpu-3"}, id="back to three: of the two the one leaves whose jobs end first"),
        pytest.param(4, set(), id="back to four: none leaves"),
        pytest.param(1, {"gpu-1", "gpu-2", "gpu-3"}, id="on to one: one more leaves"),
    ],
)
def test_another_number_keeps_what_was_begun_as_far_as_it_needs_it(replicas, stays_drained):
    story = busy(100, 90, 80, 70)
    story.change(replicas=2).tick(3)
    story.change(replicas=replicas).tick(3)

    assert drained(story) == stays_drained


def test_a_worker_that_gets_a_job_because_somebody_lifted_its_drain_is_waited_for():
    story = busy(100, 90, 80, 8)
    story.change(replicas=3).tick(2)
    story.slurm.resume("gpu-3")
    story.submit(50)
    story.tick(90)

    assert story.broken == []
    assert len(story.pods.pods) == 3


def midway(replicas: int, *, draining: dict[str, str], jobs=(), cheap: str = "", unready: str = ""):
    """Four workers, of which some drain to leave already."""
    names_ = [f"gpu-{number}" for number in range(4)]
    spec = nodeset(replicas=replicas)
    revision = revision_of(spec)
    hash_ = revision.metadata.labels[names.LABEL_REVISION]
    pods = [
        worker(number, on=f"n{number}", revision=hash_, ready=name != unready,
               annotations={names.POD_DELETION_COST: "-9"} if name == cheap else None)
        for number, name in enumerate(names_)
    ]  # fmt: skip
    busy_ = {node for one in jobs for node in one.nodes}
    records = []
    for pod, name in zip(pods, names_, strict=True):
        state = "MIXED" if name in busy_ else "IDLE"
        cause = draining.get(name)
        drain = {"reason": ours(pod, cause)} if cause else {}
        records.append(slurm_node(pod, state, *(["DRAIN"] if cause else []), **drain))
    machines = [machine(f"n{number}") for number in range(4)]
    return world(
        spec, controller(), *machines, *pods, revisions_=[revision], slurm_=slurm(*records, jobs=jobs)
    )


LEAVE = {"gpu-2": "ScaleIn", "gpu-3": "ScaleIn"}
GONE_3 = ["Retired gpu-3", "forget gpu-3", "delete gpu-3 (Drained)"]
GONE_2 = ["Retired gpu-2", "forget gpu-2", "delete gpu-2 (Drained)"]
WAITS_2, WAITS_3 = ["wait gpu-2: Draining"], ["wait gpu-3: Draining"]


@pytest.mark.parametrize(
    ("made", "plan"),
    [
        pytest.param(midway(2, draining=LEAVE), [*GONE_2, *GONE_3], id="both are free"),
        pytest.param(midway(2, draining=LEAVE, cheap="gpu-0"), [*GONE_2, *GONE_3], id="and go, though another one is cheaper by now"),
        pytest.param(midway(2, draining=LEAVE, unready="gpu-0"), [*GONE_2, *GONE_3], id="or not ready"),
        pytest.param(midway(2, draining=LEAVE, jobs=[job(1, "gpu-2")]), [*WAITS_2, *GONE_3], id="one still has a job, while two others are idle"),
        pytest.param(midway(3, draining=LEAVE, jobs=[job(1, "gpu-3")]), [*GONE_2, "resume gpu-3"], id="back to three: the free one goes, the busy one stays"),
        pytest.param(midway(3, draining=LEAVE, jobs=[job(1, "gpu-3")], cheap="gpu-0"), [*GONE_2, "resume gpu-3"], id="also where a third one is cheaper"),
        pytest.param(midway(3, draining=LEAVE), ["resume gpu-2", *GONE_3], id="back to three, both free: the usual order"),
        pytest.param(midway(3, draining=LEAVE, jobs=[job(1, "gpu-2"), job(2, "gpu-3", minutes=90)]), [*WAITS_2, "resume gpu-3"], id="back to three, both busy: whose jobs end later stays"),
        pytest.param(midway(4, draining=LEAVE), ["resume gpu-2", "resume gpu-3"], id="back to four"),
        pytest.param(midway(2, draining=LEAVE, jobs=[job(1, "gpu-2"), job(2, "gpu-3")], cheap="gpu-0"), ["drain gpu-0 for ScaleIn", "resume gpu-2", *WAITS_3], id="a deletion cost decides while jobs run"),
    ],
)  # fmt: skip
def test_midway(made, plan):
    assert told(made) == plan
