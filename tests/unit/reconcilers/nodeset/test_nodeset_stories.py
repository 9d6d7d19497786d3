"""The NodeSet reconciler at play: long stories, bad days, and what must hold in every second of them."""

import os
from pathlib import Path

import pytest

from slurm_operator.api.shared import names
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from slurm_operator.safety import gate
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import DrainNodes
from testing.mischief import HUMAN, Mischief
from testing.story import Story
from testing.workers import NOTES

STORIES = Path(__file__).parent / "stories"
WILD = {"replicas": 3, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "34%"}}}


def played(seed: int, seconds: int = 120) -> tuple[Story, Mischief]:
    """A story on a bad day, watched in every second."""
    story = Story(dict(WILD), seed=seed, fails=0.15, lazy=0.3)
    story.slurm.returns_to_service = seed % 2 == 0
    mischief = Mischief(story)
    for _ in range(seconds):
        mischief.strike()
        story.tick()
        watch(story, mischief)
    return story, mischief


def watch(story: Story, mischief: Mischief) -> None:
    assert story.broken == [], "a pod was deleted under a job"
    for name in mischief.drained:
        record = story.slurm.records.get(name)
        assert record is not None, f"{name} carries a human's drain, and its record is gone"
        assert record.is_drain, "a human's drain was lifted"
        told = record.reason.replace(" : Not responding", "")  # As often as slurmctld has lost the node.
        assert told == HUMAN, "a human's drain was touched"
    assert_within_budget(story)


def assert_within_budget(story: Story) -> None:
    """Whoever an update takes had room beside all who were away, as far as anybody could know."""
    taken = {
        name
        for action in story.plan.actions()
        if isinstance(action, WriteSlurm) and isinstance(action.write, DrainNodes)
        for name in action.write.nodes
        if OurReason.read(action.write.reason).cause in (Leaving.UPDATE, Leaving.RESOURCES)
    }
    in_use = {
        m.slurm_node
        for m in story.seen.workers
        if m.pod.is_ready and m.record and _takes_jobs(m.record.state)
    }
    desired = story.spec["replicas"]
    if taken & in_use:
        assert desired - len(in_use - taken) <= max(1, -(-desired * 34 // 100)), f"too many at once: {taken}"


def _takes_jobs(state: NodeState) -> bool:
    return bool(state.words & {"IDLE", "MIXED"}) and not state.words & {"DRAIN", "NOT_RESPONDING"}


def settled(story: Story, seconds: int = 180) -> None:
    """Nobody disturbs any more: in the end everything is as the spec says, and nothing is left to do."""
    for _ in range(seconds):
        story.tick()
        assert story.broken == []
    nodeset = story.nodeset()
    wanted = revisions.current(nodeset, story.seen.revisions).hash
    pods = story.pods.running()
    assert len(pods) == len(story.pods.pods) == nodeset.spec.replicas
    assert {pod["metadata"]["labels"][names.LABEL_REVISION] for pod in pods.values()} <= {wanted}
    assert [r.name for r in story.slurm.records.values() if r.is_drain or r.is_down] == []
    assert {pod["metadata"]["labels"][names.LABEL_POD_HOSTNAME] for pod in pods.values()} <= set(
        story.slurm.records
    )
    assert [lane.name for lane in story.plan.lanes if not lane.name.startswith(NOTES)] == []


@pytest.mark.parametrize("seed", range(12))
def test_on_a_bad_day_no_job_is_lost_and_a_humans_word_stands(seed):
    story, mischief = played(seed)

    mischief.make_good()
    settled(story)


@pytest.mark.parametrize("seed", range(6))
def test_with_failing_calls_and_old_answers_an_update_still_keeps_to_its_budget(seed):
    story = Story({"replicas": 6, "slurmd": {"image": "slurmd:1"}}, seed=seed, fails=0.2, lazy=0.6).tick(20)
    for seconds in (4, 9, 30):
        story.submit(seconds)
    story.change(slurmd={"image": "slurmd:2"})

    for _ in range(90):
        story.tick()
        records, running = story.slurm.records.values(), story.pods.running().values()
        alive = {pod["metadata"]["uid"] for pod in running if "deletionTimestamp" not in pod["metadata"]}
        serving = [record for record in records if record.pod_uid in alive and not record.is_drain]
        assert 6 - len(serving) <= 2, f"more than 25% of 6 are away in second {story.second}"


def drained_for_update(story: Story) -> list[str]:
    return [r.name for r in story.slurm.records.values() if r.is_drain and "Update" in r.reason]


def test_an_update_while_slurmctld_was_away_keeps_to_its_budget_when_it_is_back():
    """As when the images of all parts are raised together: no worker was ready for longer than a moment."""
    story = Story({"replicas": 8, "slurmd": {"image": "slurmd:1"}}, machines=8).tick(15)
    story.slurm_away(True).pods.turn(False)
    story.tick(40).change(slurmd={"image": "slurmd:2"}).tick(5).slurm_away(False)

    for _ in range(20):
        story.tick()
        assert len(drained_for_update(story)) <= 2, "25% of 8"
    story.pods.turn(True)
    story.tick(60)

    images = [pod["spec"]["containers"][0]["image"] for pod in story.pods.pods.values()]
    assert images == ["slurmd:2"] * 8


def test_a_worker_that_ends_for_ever_on_a_dead_machine_holds_up_no_update():
    story = Story({"replicas": 8, "slurmd": {"image": "slurmd:1"}}, machines=8).tick(15)
    story.pods.lose("gpu-3")
    story.tick(20).change(slurmd={"image": "slurmd:2"})

    for _ in range(150):
        story.tick()
        assert len(drained_for_update(story)) <= 1, "the dead one is away too, and 25% of 8 may be"

    old = [
        name for name, pod in story.pods.pods.items() if pod["spec"]["containers"][0]["image"] != "slurmd:2"
    ]
    assert old == ["gpu-3"]


def test_an_image_that_cannot_be_pulled_takes_one_worker_beside_the_dead_one():
    story = Story({"replicas": 8, "slurmd": {"image": "slurmd:1"}}, machines=8).tick(15)
    story.pods.lose("gpu-3")
    story.pods.bad_images.add("slurmd:broken")
    story.tick(70).change(slurmd={"image": "slurmd:broken"}).tick(120)

    good = [pod for pod in story.pods.pods.values() if pod["spec"]["containers"][0]["image"] == "slurmd:1"]
    assert len(good) == 7, "with the dead one"
    assert drained_for_update(story) == ["gpu-7"], "which never came back"


CONDITIONS = {
    "the job list is the second witness": (gate, "jobs_on", lambda name, snapshot: []),
    "busy nodes are waited for": (NodeState, "is_drained", property(lambda state: state.is_drain)),
    "DRAIN has to be set": (NodeState, "is_drain", property(lambda state: True)),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_with_one_condition_of_the_gate_away_the_same_day_costs_a_job(condition, monkeypatch):
    """The control: the stories would notice. Without it they might pass because nothing ever happens in them."""
    owner, name, instead = CONDITIONS[condition]
    monkeypatch.setattr(owner, name, instead)
    if condition == "busy nodes are waited for":
        monkeypatch.setattr(gate, "jobs_on", lambda name, snapshot: [])

    assert any(_costs_a_job(seed) for seed in range(20))


def _costs_a_job(seed: int) -> bool:
    try:
        played(seed)
    except AssertionError as broken:
        return "under a job" in str(broken)
    return False


def scale_in() -> Story:
    story = Story({"replicas": 3}).tick(5)
    story.submit(20)
    story.submit(12)
    story.tick(2).change(replicas=1).tick(6).slurm_away(True).tick(4)
    return story.slurm_away(False).tick(12)


def rolling_update() -> Story:
    story = Story({"replicas": 4, "slurmd": {"image": "slurmd:1"}}).tick(5)
    story.submit(12)
    story.tick(2).pods.bad_images.add("slurmd:broken")
    story.change(slurmd={"image": "slurmd:broken"}).tick(12)
    return story.change(slurmd={"image": "slurmd:2"}).tick(40)


def is_protected(story: Story, name: str) -> bool:
    return names.LABEL_POD_PROTECT in story.pods.pods[name]["metadata"]["labels"]


def node_drain() -> Story:
    story = Story({"replicas": 2}, machines=3).tick(5)
    story.submit(8)
    story.tick(2).pods.machines[0].is_cordoned = True
    story.tick(10)
    evicted = next(p for p in story.pods.pods.values() if p["spec"]["nodeName"] == "m0")
    assert not is_protected(story, evicted["metadata"]["name"]), "kubectl drain may go on now"
    story.pods.delete(evicted["metadata"]["name"], evicted["metadata"]["uid"], grace=3600, waits=True)
    story.tick(6).pods.machines[0].is_cordoned = False
    return story.tick(4)


def resumed_while_it_leaves() -> Story:
    """It was free and let go. Then somebody lifts the drain, a job starts, and another one wants it gone."""
    story = Story({"replicas": 1}, machines=1).tick(5)
    story.pods.machines[0].is_cordoned = True
    assert not is_protected(story.tick(4), "gpu-0")
    story.slurm.resume("gpu-0")
    story.submit(6)
    story.change(replicas=0).tick(2)
    assert is_protected(story, "gpu-0"), "kubectl drain has to wait for the job"
    return story.tick(10)


def mode_switch() -> Story:
    story = Story({"replicas": 2, "oversubscribeNode": True}, machines=2).tick(5)
    story.submit(25)
    story.tick(2).change(scalingMode="DaemonSet").tick(10)
    story.pods.machines[1].is_cordoned = True  # Meanwhile, a cordon like any other.
    story.tick(4).pods.machines[1].is_cordoned = False
    story.submit(15)
    return story.tick(5).change(scalingMode="StatefulSet").tick(40)


def deletion() -> Story:
    story = Story({"replicas": 2}).tick(5)
    story.submit(10)
    story.tick(2).meta["deletionTimestamp"] = "2026-01-01T12:00:07Z"
    return story.tick(14)


def pod_deleted_by_hand() -> Story:
    """Past the policy: the worker waits for its job, and another one comes in its place."""
    story = Story({"replicas": 2}).tick(5)
    job = story.submit(12)
    [name] = [record for record in story.tick(2).slurm.records if record in job.processes]
    story.pods.delete(name, story.pods.pods[name]["metadata"]["uid"], grace=3600, waits=True)
    return story.tick(20)


@pytest.mark.parametrize(
    "tell",
    [
        scale_in,
        rolling_update,
        node_drain,
        resumed_while_it_leaves,
        mode_switch,
        deletion,
        pod_deleted_by_hand,
    ],
)
def test_a_story_goes_as_written(tell):
    """SLURM_OPERATOR_GOLDEN=write writes it again; what changed is then in the diff."""
    story = tell()
    path = STORIES / f"{tell.__name__}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(story.transcript)

    assert story.broken == []
    assert story.transcript == path.read_text()
