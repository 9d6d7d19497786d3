"""Labels by which tools of the second API follow the update of a worker: they tell what is decided, in time."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.plan.actions import DeleteWorker, PatchObject
from testing.story import Story
from testing.workers import (
    controller,
    job,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

OPERATION, PHASE, FOLLOWED = names.UPDATE_OPERATION, names.UPDATE_PHASE, names.UPDATES_FOLLOWED


def children(followed: str) -> dict:
    return {"children": {"labels": {FOLLOWED: followed}}}


def spec(followed: str = "true", **more) -> dict:
    return {"replicas": 1, "slurmd": {"image": "slurmd:2"}, **children(followed), **more}


FORMER = revision_of(nodeset(slurmd={"image": "slurmd:1"}))
CURRENT = revision_of(nodeset(**spec()))
OLD, NEW = (one.metadata.labels[names.LABEL_REVISION] for one in (FORMER, CURRENT))
BUSY = ("ALLOCATED", "DRAIN"), [job(7, "gpu-0")]
FREE = ("IDLE", "DRAIN"), []
STOPPING = {OPERATION: NEW, PHASE: "stopping"}
READY = {OPERATION: NEW, PHASE: "ready"}


def pod(revision: str = OLD, followed: str = "true", **labels: str):
    made = worker(0, revision=revision)
    given = {**made.metadata.labels, FOLLOWED: followed, **labels}
    return wire.replace(made, metadata=wire.replace(made.metadata, labels=given))


def written(made) -> dict[str, str | None]:
    """What becomes of our labels on its pod; None is taken away."""
    found: dict[str, str | None] = {}
    for action in made.actions():
        if isinstance(action, PatchObject) and action.reason == "UpdatePhase":
            for operation in action.operations:
                key = operation["path"].removeprefix("/metadata/labels/").replace("~1", "/")
                found[key] = operation.get("value")
    return found


def plan(one, state=BUSY, cause: str = "Update", **more):
    words, jobs = state
    record = slurm_node(one, *words, reason=ours(one, cause) if "DRAIN" in words else "")
    return planned(
        world(
            nodeset(**spec(**more)),
            controller(),
            one,
            revisions_=[FORMER, CURRENT],
            slurm_=slurm(record, jobs=jobs),
        )
    )


@pytest.mark.parametrize(
    ("made", "labels"),
    [
        pytest.param(plan(pod()), STOPPING, id="chosen: it stops"),
        pytest.param(plan(pod(**STOPPING)), {}, id="it was told before"),
        pytest.param(plan(pod(**{OPERATION: "r0", PHASE: "stopping"})), {OPERATION: NEW}, id="by another revision than before"),
        pytest.param(plan(pod(**STOPPING), FREE), {PHASE: "ready"}, id="its last job has ended"),
        pytest.param(plan(pod(), FREE), READY, id="it had none"),
        pytest.param(plan(pod(**READY), FREE), {}, id="it was ready before, and its delete failed"),
        pytest.param(plan(pod(**READY)), {PHASE: "stopping"}, id="a job has started there after all"),
        pytest.param(plan(pod(NEW), (("IDLE",), [])), {}, id="it is of this revision"),
        pytest.param(plan(pod(NEW, **STOPPING), (("IDLE",), [])), {OPERATION: None, PHASE: None}, id="the user went back: it stays"),
        pytest.param(plan(pod(**STOPPING), cause="ScaleIn", replicas=0), {OPERATION: None, PHASE: None}, id="it leaves for good instead"),
        pytest.param(plan(pod(), FREE, cause="ScaleIn", replicas=0), {}, id="it leaves for good"),
        pytest.param(plan(pod(followed="false"), followed="false"), {}, id="nobody follows"),
        pytest.param(plan(pod(**STOPPING), followed="false"), {FOLLOWED: "false", OPERATION: None, PHASE: None}, id="nobody follows any more"),
        pytest.param(plan(pod(followed="false")), {FOLLOWED: "true", **STOPPING}, id="somebody follows from now on"),
        pytest.param(plan(pod(), children=None), {}, id="a NodeSet of the first API"),
    ],
)  # fmt: skip
def test_the_labels_tell_the_phase(made, labels):
    assert written(made) == labels


def test_it_is_ready_before_it_is_deleted_and_the_delete_keeps_its_proof():
    [going] = [one for one in plan(pod(**STOPPING), FREE).lanes if one.name == "gpu-0"]

    told = [action.reason for action in going.actions()]
    assert told.index("UpdatePhase") < told.index("Leaving") < told.index("Update")
    assert isinstance(list(going.actions())[-1], DeleteWorker)


def test_a_worker_whose_slurmd_crashed_is_not_written_on_before_it_is_deleted():
    """Its proof holds for one version of the pod."""
    crashed = wire.replace(pod(), status=wire.replace(pod().status, phase="Failed"))

    made = plan(crashed, (("DOWN",), []))

    assert [action for action in made.actions() if isinstance(action, DeleteWorker)]
    assert written(made) == {}


def test_an_update_with_jobs_shows_each_phase_on_each_worker():
    story = Story({"replicas": 3, "slurmd": {"image": "slurmd:1"}, **children("true")}, machines=3).tick(10)
    story.submit(seconds=30, width=3)
    story.tick(3).change(slurmd={"image": "slurmd:2"})
    seen: dict[str, list[str]] = {}
    for _ in range(150):
        story.tick()
        for name, one in story.pods.pods.items():
            phase = one["metadata"]["labels"].get(PHASE, "")
            if (phases := seen.setdefault(name, []))[-1:] != [phase]:
                phases.append(phase)

    assert story.broken == []
    told = {name: [phase for phase in phases if phase] for name, phases in seen.items()}
    assert told == {f"gpu-{number}": ["stopping", "ready"] for number in range(3)}
    assert all(phases[-1] == "" for phases in seen.values()), "workers of the new revision have none"
