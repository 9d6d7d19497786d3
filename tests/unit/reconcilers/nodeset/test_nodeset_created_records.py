"""Records that are made before the pods: there before a worker, kept after it, gone with its number."""

import pytest

from slurm_operator.plan.actions import Create, Wait, WriteSlurm
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import AddNodes
from testing.story import Story
from testing.workers import (
    NOW,
    controller,
    job,
    machine,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

CREATED = {"records": "created"}
SIZED = {**CREATED, "slurmd": {"resources": {"limits": {"cpu": "1500m", "memory": "3Gi"}}}}


def off(name: str, *words: str, **fields) -> SlurmNode:
    """A record that no slurmd has registered with."""
    state = NodeState.of("IDLE", "CLOUD", "POWERED_DOWN", "DYNAMIC_NORM", *words)
    return SlurmNode(name=name, state=state, address=name, **{"features": ("gpu",), **fields})


def seen_with(spec: dict, *records: SlurmNode, pods=(), jobs=(), snapshot=None):
    wanted = nodeset(**spec)
    machines = [machine(f"n{number}") for number in range(9)]
    facts = snapshot if snapshot is not None else slurm(*records, jobs=jobs)
    return world(wanted, controller(), *machines, *pods, slurm_=facts, revisions_=(revision_of(wanted),))


def lanes_of(made) -> dict[str, list[list]]:
    return {lane.name: [list(stage) for stage in lane.stages] for lane in planned(made).lanes}


def test_the_record_is_made_before_the_pod():
    record, pod = lanes_of(seen_with({**SIZED, "replicas": 1}))["gpu-0"]

    assert [type(action) for action in record + pod] == [WriteSlurm, Create]
    assert record[0].write == AddNodes(
        nodes=("gpu-0",), conf="CPUs=2 Features=gpu RealMemory=3072 State=CLOUD"
    )
    [slurmd] = pod[0].manifest["spec"]["containers"]
    assert slurmd["args"][:2] == ["-Z", "-b"]
    assert "CPUs=2" in slurmd["args"][-1], "slurmd and its record are of the same size"


def test_a_record_that_is_there_is_used():
    made = seen_with({**CREATED, "replicas": 1}, off("gpu-0"))

    assert [line for line in told(made) if "gpu-0" in line] == ["create Pod gpu-0"]


@pytest.mark.parametrize(
    ("extra", "conf"),
    [
        pytest.param(
            "CPUs=8", "CPUs=8 Features=gpu RealMemory=3072 State=CLOUD", id="extraConf has more to say"
        ),
        pytest.param(
            "Sockets=2 CoresPerSocket=4",
            "CoresPerSocket=4 Features=gpu RealMemory=3072 Sockets=2 State=CLOUD",
            id="a shape says how many CPUs there are",
        ),
        pytest.param(
            "RealMemory=100 State=FUTURE Gres=gpu:2",
            "CPUs=2 Features=gpu Gres=gpu:2 RealMemory=100 State=CLOUD",
            id="the state is ours",
        ),
    ],
)
def test_what_a_record_says(extra, conf):
    record, _ = lanes_of(seen_with({**SIZED, "replicas": 1, "extraConf": extra}))["gpu-0"]

    assert record[0].write.conf == conf


def test_no_pod_comes_while_slurm_cannot_be_told():
    away = Unreachable(since=NOW, why="nobody answers")
    [[wait], *rest] = lanes_of(seen_with({**CREATED, "replicas": 1}, snapshot=away))["gpu-0"]

    assert isinstance(wait, Wait)
    assert wait.reason == "RecordNotMade"
    assert "nobody answers" in wait.message
    assert not any(rest)


def test_an_api_without_the_call_leaves_it_to_slurmd():
    old = slurm()
    made = seen_with(
        {**CREATED, "replicas": 1}, snapshot=type(old)(**{**_fields(old), "can_add_nodes": False})
    )

    assert [line for line in told(made) if "gpu-0" in line] == ["create Pod gpu-0"]


def _fields(snapshot) -> dict:
    return {name: getattr(snapshot, name) for name in snapshot.__struct_fields__}


def test_a_record_of_another_size_is_made_again():
    made = seen_with({**SIZED, "replicas": 1}, off("gpu-0", cpus=8, real_memory_mb=3072))

    assert [line for line in told(made) if "gpu-0" in line] == [
        "forget gpu-0",
        "AddNodes gpu-0",
        "create Pod gpu-0",
    ]


@pytest.mark.parametrize(
    ("record", "jobs", "plan"),
    [
        pytest.param(
            off("gpu-0"), (), ["forget gpu-0", "delete gpu-0 (NeverStarted)"], id="record first, then pod"
        ),
        pytest.param(
            off("gpu-0"), (job(1, "gpu-0"),), ["drain gpu-0 for ScaleIn"], id="a job waits for it to start"
        ),
        pytest.param(
            off("gpu-0", "DRAIN", reason="slurm-operator: ScaleIn: x (pod 1)"),
            (job(1, "gpu-0"),),
            ["wait gpu-0: Draining"],
            id="that job is waited for",
        ),
        pytest.param(
            off("gpu-0"),
            (job(1, words=("PENDING",), required=("gpu-0",)),),
            ["delete gpu-0 (NeverStarted)"],
            id="a job insists on it: the record stays",
        ),
    ],
)
def test_a_worker_that_has_not_started_leaves(record, jobs, plan):
    pod = worker(0, on="", started=False, ready=False, phase="Pending")
    made = seen_with({**CREATED, "replicas": 0}, record, pods=[pod], jobs=jobs)

    lines = told(made)
    assert [line for line in lines if line.split()[0] in ("forget", "delete", "drain", "wait")] == plan


def test_a_record_stays_while_its_pod_is_away_and_goes_with_its_number():
    story = Story({**CREATED, "replicas": 2}, machines=4).tick(12)
    assert set(story.slurm.records) == {"gpu-0", "gpu-1"}
    before = story.slurm.records["gpu-1"]

    del story.pods.pods["gpu-1"]  # Its machine is gone.
    story.tick(20)
    assert story.slurm.records["gpu-1"] is before, "the same record, with a new pod"
    assert set(story.pods.pods) == {"gpu-0", "gpu-1"}

    story.change(replicas=1).tick(20)
    assert set(story.slurm.records) == {"gpu-0"}
    assert story.broken == []


def test_a_busy_worker_keeps_its_record_until_it_is_free():
    story = Story({**CREATED, "replicas": 2}, machines=4).tick(12)
    uid = story.slurm.records["gpu-1"].pod_uid
    story.submit(30, state="RUNNING", nodes=("gpu-1",), processes={"gpu-1": uid})
    story.slurm.jobs[1].ends_at = story.now.replace(year=2100)

    story.change(ordinals=[0], replicas=0).tick(30)
    assert set(story.slurm.records) == {"gpu-0", "gpu-1"}
    assert "gpu-1" in story.pods.pods

    story.slurm.jobs[1].state = "COMPLETED"
    story.tick(20)
    assert set(story.slurm.records) == {"gpu-0"}
    assert story.broken == []


def test_the_record_goes_of_whoever_leaves_not_of_the_highest_number():
    """The idle one leaves. Its record must not be made again for a number that `replicas` would have."""
    story = Story({**CREATED, "replicas": 2}, machines=4).tick(12)
    uid = story.slurm.records["gpu-1"].pod_uid
    story.submit(60, state="RUNNING", nodes=("gpu-1",), processes={"gpu-1": uid})
    story.slurm.jobs[1].ends_at = story.now.replace(year=2100)

    story.change(replicas=1).tick(30)
    assert set(story.slurm.records) == set(story.pods.pods) == {"gpu-1"}


def test_changed_resources_drain_delete_and_create_again():
    story = Story({**SIZED, "replicas": 1, "updateStrategy": {"type": "RollingUpdate"}}, machines=4).tick(12)
    larger = {"resources": {"limits": {"cpu": "4", "memory": "3Gi"}}}

    story.change(slurmd=larger).tick(40)

    assert "CPUs=4 " in story.slurm.records["gpu-0"].conf
    assert not story.slurm.records["gpu-0"].is_drain
    assert story.broken == []


def test_numbers_below_replicas_are_known_to_slurm_while_ordinals_say_who_runs():
    story = Story({**CREATED, "replicas": 3, "ordinals": [1]}, machines=4).tick(12)
    assert set(story.pods.pods) == {"gpu-1"}
    assert set(story.slurm.records) == {"gpu-0", "gpu-1", "gpu-2"}

    story.change(ordinals=[0]).tick(60)
    assert set(story.pods.pods) == {"gpu-0"}
    assert set(story.slurm.records) == {"gpu-0", "gpu-1", "gpu-2"}, "who was stopped is still known"
    assert not story.slurm.records["gpu-1"].is_drain

    story.change(ordinals=[0], replicas=1).tick(30)
    assert set(story.slurm.records) == {"gpu-0"}
    assert story.broken == []


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_no_job_is_lost(seed):
    story = Story({**CREATED, "replicas": 3}, machines=6, seed=seed, fails=0.2, lazy=0.4)
    for wanted in (
        {"replicas": 4},
        {"ordinals": [2, 5]},
        {"ordinals": [1, 5], "replicas": 0},
        {"ordinals": None},
    ):
        story.submit(20)
        story.change(**wanted).tick(25)
    story.fails = 0.0
    story.change(replicas=2).tick(60)

    assert set(story.pods.pods) == set(story.slurm.records)
    assert len(story.pods.pods) == 2
    assert story.broken == []


def test_deleted_with_its_records():
    story = Story({**CREATED, "replicas": 2, "ordinals": [0]}, machines=4).tick(12)
    assert set(story.slurm.records) == {"gpu-0", "gpu-1"}

    story.meta["deletionTimestamp"] = "2026-01-01T12:00:30Z"
    story.tick(30)

    assert story.slurm.records == {}
    assert story.pods.pods == {}


def test_who_registered_by_itself_keeps_its_record():
    """The option was changed while a worker runs: its record stays, and the next one uses it."""
    pod = worker(0)
    made = seen_with(
        {**CREATED, "replicas": 1, "updateStrategy": {"type": "OnDelete"}},
        slurm_node(pod, "IDLE"),
        pods=[pod],
    )

    assert not [line for line in told(made) if line.split()[0] in ("forget", "AddNodes", "drain", "delete")]
