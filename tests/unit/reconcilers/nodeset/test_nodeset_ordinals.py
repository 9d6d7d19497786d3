"""Workers by a list of numbers: those of the list come, the others leave through the gate."""

import pytest

from slurm_operator.api.schema.problems import References
from testing.story import Story
from testing.workers import (
    controller,
    job,
    machine,
    nodeset,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)


def there(story: Story) -> set[str]:
    return set(story.pods.pods)


def plan_of(ordinals, *pods, jobs=(), **spec) -> list[str]:
    wanted = nodeset(ordinals=ordinals, **spec)
    records = [slurm_node(pod, "IDLE") for pod in pods]
    machines = [machine(f"n{number}") for number in range(9)]
    made = world(
        wanted,
        controller(),
        *machines,
        *pods,
        slurm_=slurm(*records, jobs=jobs),
        revisions_=(revision_of(wanted),),
    )
    return [line for line in told(made) if line.split()[0] in ("create", "drain", "delete", "wait")]


def at(*ordinals: int) -> list:
    return [worker(ordinal, on=f"n{ordinal}") for ordinal in ordinals]


@pytest.mark.parametrize(
    ("ordinals", "present", "plan"),
    [
        pytest.param([2, 5], (), ["create Pod gpu-2", "create Pod gpu-5"], id="just these numbers come"),
        pytest.param([5, 2], (), ["create Pod gpu-2", "create Pod gpu-5"], id="in whatever order they are"),
        pytest.param([2], (2,), [], id="who is there stays"),
        pytest.param([], (0, 1), ["drain gpu-0 for ScaleIn", "drain gpu-1 for ScaleIn"], id="none is wanted"),
        pytest.param(
            [3],
            (0, 3),
            ["drain gpu-0 for ScaleIn"],
            id="the lowest leaves if it is not named",
        ),
        pytest.param(
            [4],
            (0,),
            ["create Pod gpu-4", "drain gpu-0 for ScaleIn"],
            id="one comes while another leaves: they are no replacements of each other",
        ),
    ],
)
def test_workers_of_the_list_come_and_all_others_leave(ordinals, present, plan):
    assert plan_of(ordinals, *at(*present), updateStrategy={"type": "OnDelete"}) == plan


def test_replicas_are_ignored_beside_a_list():
    assert plan_of([1], replicas=7) == ["create Pod gpu-1"]


def test_a_worker_with_a_job_is_kept_until_the_job_is_over():
    story = Story({"ordinals": [0, 4, 7]}, machines=8).tick(12)
    assert there(story) == {"gpu-0", "gpu-4", "gpu-7"}
    story.submit(
        60, state="RUNNING", nodes=("gpu-4",), processes={"gpu-4": story.slurm.records["gpu-4"].pod_uid}
    )
    story.slurm.jobs[1].ends_at = story.now.replace(year=2100)

    story.change(ordinals=[0, 1]).tick(20)
    assert there(story) == {"gpu-0", "gpu-1", "gpu-4"}
    assert story.slurm.records["gpu-4"].is_drain

    story.slurm.jobs[1].state = "COMPLETED"
    story.tick(10)
    assert there(story) == {"gpu-0", "gpu-1"}
    assert set(story.slurm.records) == {"gpu-0", "gpu-1"}
    assert story.broken == []


def test_from_replicas_to_a_list_and_back_costs_only_who_is_in_neither():
    story = Story({"replicas": 3}, machines=8).tick(12)
    uids = {name: pod["metadata"]["uid"] for name, pod in story.pods.pods.items()}

    story.change(ordinals=[1, 2]).tick(12)
    assert there(story) == {"gpu-1", "gpu-2"}
    story.change(ordinals=None, replicas=2).tick(12)

    assert there(story) == {"gpu-1", "gpu-2"}
    assert all(pod["metadata"]["uid"] == uids[name] for name, pod in story.pods.pods.items())
    assert story.broken == []


def test_of_two_with_one_number_one_leaves():
    """A change of ordinalPadding gives the next worker of a number another name."""
    pods = [worker(3, on="n3"), worker(3, name="gpu-003", on="n4")]
    plan = plan_of([3], *pods, ordinalPadding=3, updateStrategy={"type": "OnDelete"})

    assert plan == ["drain gpu-3 for ScaleIn"]


def test_jobs_decide_nothing_about_who_leaves():
    """With `replicas` the cheapest leaves; a list is an order."""
    pods = at(0, 1)
    plan = plan_of([1], *pods, jobs=[job(1, "gpu-0")], updateStrategy={"type": "OnDelete"})

    assert plan == ["drain gpu-0 for ScaleIn"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({"ordinals": [-1]}, "numbers of workers start at 0", id="no number of a worker"),
        pytest.param(
            {"ordinals": [1], "scalingMode": "DaemonSet"},
            "makes no difference in DaemonSet mode",
            id="machines",
        ),
        pytest.param(
            {"records": "created", "scalingMode": "DaemonSet"}, "are for numbered workers", id="no numbers"
        ),
        pytest.param(
            {"records": "static", "template": {"spec": {"hostNetwork": True}}},
            "with hostNetwork workers are called like their machines",
            id="names of machines",
        ),
        pytest.param({"supervisor": {"configMapRef": {}}}, "configMapRef.name says which", id="no name"),
    ],
)
def test_what_cannot_be_is_said(spec, says):
    problems = [str(problem) for problem in nodeset(**spec).problems(None, References())]

    assert any(says in problem for problem in problems), problems


def test_records_of_slurm_conf_and_others_exclude_each_other():
    before, after = nodeset(records="static"), nodeset(records="created")

    assert any("to or from static" in str(problem) for problem in after.problems(before, References()))
    assert not list(nodeset(records="registered").problems(after, References()))
