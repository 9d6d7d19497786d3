"""Workers that somebody wants replaced: when their jobs are done, and in service again afterwards."""

import pytest

from slurm_operator.api.shared import names
from testing.story import Story
from testing.workers import (
    controller,
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

ASKED = {names.POD_REPLACE: "true"}
ON_DELETE = {"type": "OnDelete"}


def marked(story: Story, name: str, key: str = names.POD_REPLACE) -> Story:
    pod = story.pods.pods[name]
    pod["metadata"].setdefault("annotations", {})[key] = "true"
    story.pods._touch(pod)
    return story


def images(story: Story) -> dict[str, str]:
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in story.pods.pods.items()}


def in_service(story: Story) -> list[str]:
    return sorted(name for name, record in story.slurm.records.items() if not record.is_drain)


def test_with_on_delete_the_worker_that_is_asked_for_is_replaced_when_its_job_is_done():
    story = Story({"replicas": 2, "updateStrategy": ON_DELETE}, machines=2).tick(20)
    story.submit(seconds=60, width=2)
    story.tick(5).change(slurmd={"image": "slurmd:next"})
    before = images(story)
    marked(story, "gpu-1").tick(30)

    assert images(story) == before, "its job runs"
    assert in_service(story) == ["gpu-0"]

    story.tick(60)

    assert images(story) == {"gpu-0": before["gpu-0"], "gpu-1": "slurmd:next"}
    assert in_service(story) == ["gpu-0", "gpu-1"]
    assert names.POD_REPLACE not in story.pods.pods["gpu-1"]["metadata"]["annotations"]
    assert story.broken == []


def test_a_worker_that_is_to_stay_after_all_takes_jobs_again():
    story = Story({"replicas": 2, "updateStrategy": ON_DELETE}, machines=2).tick(20)
    story.submit(seconds=600, width=2)
    uid = marked(story.tick(5), "gpu-1").tick(5).pods.pods["gpu-1"]["metadata"]["uid"]
    assert in_service(story) == ["gpu-0"]

    story.pods.pods["gpu-1"]["metadata"]["annotations"].pop(names.POD_REPLACE)
    story.pods._touch(story.pods.pods["gpu-1"])
    story.tick(10)

    assert in_service(story) == ["gpu-0", "gpu-1"]
    assert story.pods.pods["gpu-1"]["metadata"]["uid"] == uid


def seen(pod, record, **spec):
    made = nodeset(**{"replicas": 1, **spec})
    return world(made, controller(), machine("n1"), pod, revisions_=[revision_of(made)], slurm_=slurm(record))


def current(**kwargs):
    return worker(0, revision=revision_of(nodeset()).metadata.labels[names.LABEL_REVISION], **kwargs)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
def test_also_one_that_is_up_to_date_is_replaced_if_somebody_asks(strategy):
    pod = current(annotations=ASKED)
    free = slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "Update"))

    assert told(seen(pod, slurm_node(pod, "IDLE"), updateStrategy={"type": strategy})) == [
        "drain gpu-0 for Update"
    ]
    assert told(seen(pod, free, updateStrategy={"type": strategy})) == [
        "Leaving gpu-0",
        "delete gpu-0 (Drained)",
    ]


def test_with_other_resources_its_record_is_made_anew():
    pod = current(annotations=ASKED)
    made = seen(pod, slurm_node(pod, "IDLE"), updateStrategy=ON_DELETE, extraConf="Weight=7")

    assert told(made) == ["drain gpu-0 for Resources"]


@pytest.mark.parametrize(
    ("mark", "spec"),
    [
        pytest.param({names.POD_REPLACE: "false"}, {}, id="not asked for"),
        pytest.param(ASKED, {"template": {"metadata": {"annotations": ASKED}}}, id="every pod has it: that would never end"),
    ],
)  # fmt: skip
def test_nobody_is_replaced_for_nothing(mark, spec):
    pod = current(annotations=mark)

    assert told(seen(pod, slurm_node(pod, "IDLE"), updateStrategy=ON_DELETE, **spec)) == []


def test_one_that_is_asked_for_takes_room_in_an_update():
    """It is away soon, so nobody else goes beside it."""
    old, new = nodeset(replicas=4), nodeset(replicas=4, slurmd={"image": "next"})
    fresh = revision_of(new, revision_of(old)).metadata.labels[names.LABEL_REVISION]
    pods = [
        worker(n, on=f"n{n}", annotations=ASKED if n == 0 else None, revision=fresh if n == 3 else "r1") for n in range(4)
    ]  # fmt: skip
    made = world(
        new, controller(), *(machine(f"n{n}") for n in range(4)), *pods,
        revisions_=[revision_of(old), revision_of(new, revision_of(old))],
        slurm_=slurm(*(slurm_node(pod, "IDLE") for pod in pods)),
    )  # fmt: skip

    assert [line for line in told(made) if "drain" in line] == ["drain gpu-0 for Update"]
