"""What has not changed is not looked at again, and nothing is decided differently for it."""

import random
from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import KubeNode, Pod, PodCondition
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.decide import decide
from slurm_operator.reconcilers.nodeset.unchanged_cache import Settled
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

COUNT = 6
SPEC = nodeset(replicas=COUNT)
R = revision_of(SPEC)
IDLE = PodCondition(type=names.POD_CONDITION_PREFIX + "Idle", status="True")


def calm(ordinal: int) -> Pod:
    """A worker that needs nothing."""
    pod = worker(ordinal, revision=R.metadata.labels[names.LABEL_REVISION])
    conditions = [*pod.status.conditions, IDLE]
    return wire.replace(pod, status=wire.replace(pod.status, conditions=tuple(conditions)))


def noted(pod: Pod, **annotations: str) -> Pod:
    meta = wire.replace(pod.metadata, annotations={**pod.metadata.annotations, **annotations})
    return wire.replace(pod, metadata=meta)


class Play:
    """A NodeSet to which one thing after the other happens."""

    def __init__(self) -> None:
        self.nodeset = SPEC
        self.pods = [calm(number) for number in range(COUNT)]
        self.machine: KubeNode = machine("n1")
        self.drained: set[int] = set()
        self.busy: set[int] = set()
        self.is_silent = False

    def seen(self):
        records = [
            slurm_node(pod, *("MIXED" if number in self.busy else "IDLE", *(["DRAIN"] if number in self.drained else [])),
                       reason="bad disk" if number in self.drained else "")
            for number, pod in enumerate(self.pods)
        ]  # fmt: skip
        jobs = [job(number + 1, self.pods[number].metadata.name) for number in sorted(self.busy)]
        state = Unreachable(since=NOW, why="away") if self.is_silent else slurm(*records, jobs=jobs)
        made = world(self.nodeset, controller(), self.machine, *self.pods, revisions_=[R], slurm_=state)
        return RECONCILER.observe(KEY, made)

    def change(self, dice: random.Random) -> None:
        number = dice.randrange(COUNT)
        match dice.randrange(9):
            case 0:
                self.drained ^= {number}
            case 1:
                self.busy ^= {number}
            case 2:
                self.pods[number] = calm(number)
            case 3:
                self.pods[number] = noted(
                    self.pods[number], **{names.POD_CORDON: dice.choice(["true", "false"])}
                )
            case 4:
                self.pods[number] = noted(
                    self.pods[number], **{names.POD_RETIRED: self.pods[number].metadata.uid}
                )
            case 5:
                self.machine = machine("n1", cordoned=dice.choice([True, False]))
            case 6:
                self.nodeset = nodeset(replicas=dice.randrange(COUNT - 2, COUNT + 2))
            case 7:
                self.nodeset = nodeset(
                    replicas=COUNT, workloadDisruptionProtection=dice.choice([True, False])
                )
            case 8:
                self.is_silent = not self.is_silent


def test_workers_that_need_nothing_are_at_rest_until_they_change():
    play, settled = Play(), Settled()
    assert settled.among(play.seen()) == frozenset()
    decide(play.seen(), NOW, settled)
    everybody = frozenset(pod.metadata.uid for pod in play.pods)
    assert settled.among(play.seen()) == everybody

    play.drained.add(2)
    assert settled.among(play.seen()) == everybody - {play.pods[2].metadata.uid}


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_is_the_same_with_and_without_that_memory(seed):
    dice, play, settled = random.Random(seed), Play(), Settled()
    for _ in range(40):
        seen, now = play.seen(), NOW + timedelta(seconds=dice.choice([0, 10]))  # What Slurm said may be old.
        assert decide(seen, now, settled) == decide(seen, now)
        play.change(dice)


def test_who_is_held_back_is_looked_at_again_and_again_because_an_answer_may_only_have_been_old():
    """Its machine is cordoned and Slurm has drained it; only a fresh answer says that it is free of jobs."""
    reason, settled = "slurm-operator: NodeCordon: Node n1 was cordoned", Settled()
    pod = calm(0)
    shown = [
        PodCondition(type=names.POD_CONDITION_PREFIX + word, status="True", message=reason)
        for word in ("Idle", "Drain")
    ]
    first, *_ = pod.status.conditions
    pod = wire.replace(pod, status=wire.replace(pod.status, conditions=(first, *shown)))
    state = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=reason))
    one = nodeset(replicas=1)
    made = world(
        one, controller(), machine("n1", cordoned=True), pod, revisions_=[revision_of(one)], slurm_=state
    )
    seen = RECONCILER.observe(KEY, made)

    assert not list(decide(seen, NOW + timedelta(seconds=10), settled).actions())
    assert [action.reason for action in decide(seen, NOW, settled).actions()] == ["Released"]
