"""What Slurm says, on the pods: written when it changes, kept when Slurm is silent."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod, PodCondition
from slurm_operator.plan.actions import PatchObject, Tell
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    NOW,
    controller,
    job,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

ONE = nodeset(replicas=1)
R = revision_of(ONE)


def pod(*states: str, message: str = "", deadline: str | None = None) -> Pod:
    notes = {names.POD_DEADLINE: deadline} if deadline else {}
    bare = worker(0, revision=R.metadata.labels[names.LABEL_REVISION], annotations=notes)
    foreign = PodCondition(type="example.com/Burnt", status="True")
    shown = [PodCondition(type=f"SlurmNodeState{state}", status="True", message=message) for state in states]
    first, *_ = bare.status.conditions
    return wire.replace(bare, status=wire.replace(bare.status, conditions=[first, *shown, foreign]))


def noted(made_pod, *words, reason="", jobs=(), slurm_=None):
    """The actions that write facts on the pod."""
    state = slurm_ or slurm(slurm_node(made_pod, *words, reason=reason), jobs=jobs)
    made = world(ONE, controller(), made_pod, revisions_=[R], slurm_=state)
    return [a for lane in planned(made).lanes if lane.name.startswith("facts") for a in lane.actions()]


def after(made_pod, actions) -> list[str]:
    """The condition types on the pod once the patch was carried out; its tests must hold."""
    types = [condition.type for condition in made_pod.status.conditions]
    for action in actions:
        for operation in action.operations if isinstance(action, PatchObject) else ():
            place = operation["path"].split("/")[3]
            match operation["op"]:
                case "test":
                    assert types[int(place)] == operation["value"]
                case "remove":
                    del types[int(place)]
                case "add":
                    types.append(operation["value"]["type"])
    return types


@pytest.mark.parametrize(
    ("before", "words", "states"),
    [
        pytest.param(pod(), ["IDLE"], {"Idle"}, id="registered"),
        pytest.param(pod("Idle"), ["IDLE"], {"Idle"}, id="as it was"),
        pytest.param(pod("Idle"), ["MIXED", "COMPLETING"], {"Mixed", "Completing"}, id="a job came, another ends"),
        pytest.param(pod("Mixed", "Completing", "Drain"), ["IDLE"], {"Idle"}, id="several at once"),
        pytest.param(pod("Idle"), ["IDLE", "PLANNED"], {"Idle"}, id="the scheduler's own notes are not told"),
        pytest.param(pod("Idle"), ["DOWN", "NOT_RESPONDING"], {"Down", "NotResponding"}, id="silent"),
        pytest.param(pod("Idle"), ["IDLE", "DRAIN", "INVALID_REG"], {"Idle", "Drain", "InvalidReg"}, id="registered wrongly"),
    ],
)  # fmt: skip
def test_pods_show_the_state_of_their_slurm_node(before, words, states):
    types = after(before, noted(before, *words))

    assert {type_ for type_ in types if type_.startswith("SlurmNodeState")} == {
        f"SlurmNodeState{s}" for s in states
    }
    assert types[0] == "Ready"
    assert "example.com/Burnt" in types, "conditions of others are not ours to touch"


@pytest.mark.parametrize(
    ("before", "words", "reason"),
    [
        pytest.param(pod("Idle"), ["IDLE"], "", id="idle"),
        pytest.param(pod("Idle", "Drain", message="ask Ada"), ["IDLE", "DRAIN"], "ask Ada", id="drained long ago"),
    ],
)  # fmt: skip
def test_what_did_not_change_is_not_written(before, words, reason):
    assert noted(before, *words, reason=reason) == []


def test_without_an_answer_from_slurm_nothing_is_taken_away():
    busy = pod("Mixed", deadline="2026-01-01T13:00:00Z")

    assert noted(busy, slurm_=Unreachable(since=NOW, why="no answer")) == []


def test_a_worker_that_slurm_does_not_know_shows_nothing():
    forgotten = pod("Idle")

    assert after(forgotten, noted(forgotten, slurm_=slurm())) == ["Ready", "example.com/Burnt"]


@pytest.mark.parametrize(
    ("before", "jobs", "value"),
    [
        pytest.param(pod("Mixed"), [job(1, "gpu-0", minutes=60), job(2, "gpu-0", minutes=90)], "2026-01-01T13:30:00Z", id="when the last job ends"),
        pytest.param(pod("Mixed"), [job(1, "gpu-0", minutes=None)], "9999-12-31T00:00:00Z", id="one that may run for ever"),
        pytest.param(pod("Idle", deadline="2026-01-01T13:30:00Z"), [], None, id="none left"),
    ],
)  # fmt: skip
def test_pods_carry_the_time_until_which_jobs_may_run(before, jobs, value):
    [patch] = noted(before, "MIXED" if jobs else "IDLE", jobs=jobs)

    [operation] = patch.operations
    assert operation.get("value") == value
    assert operation["path"].endswith("pod-deadline")


@pytest.mark.parametrize(
    ("before", "reason", "told"),
    [
        pytest.param(pod("Idle"), "bad disk", True, id="a human's drain appears"),
        pytest.param(pod("Idle"), "", True, id="without a reason too"),
        pytest.param(pod("Idle", "Drain", message="bad disk"), "bad disk", False, id="it was told before"),
        pytest.param(pod("Idle"), "slurm-operator: ScaleIn: x (pod aaaa)", False, id="ours is told by who made it"),
    ],
)  # fmt: skip
def test_a_drain_by_somebody_else_is_told_once(before, reason, told):
    words = [action for action in noted(before, "IDLE", "DRAIN", reason=reason) if isinstance(action, Tell)]

    assert bool(words) is told
    assert all("drained gpu-0 in Slurm" in word.message for word in words)


def test_a_worker_that_goes_is_not_written_on_meanwhile():
    """The proof of a crashed worker holds for this version of its pod; a write of ours would take it away."""
    gone = wire.replace(pod("Idle"), status=wire.replace(pod("Idle").status, phase="Failed"))

    assert noted(gone, "IDLE") == []


def test_our_drain_of_the_worker_before_it_is_lifted_first_and_told_of_afterwards():
    """Otherwise every worker of a rolling update would be written to twice."""
    young = pod()
    earlier = "slurm-operator: Update: being replaced (pods made until 2026-01-01T10:30:00Z)"

    assert noted(young, "IDLE", "DRAIN", reason=earlier) == []
    assert after(young, noted(young, "IDLE"))[-1] == "SlurmNodeStateIdle"
