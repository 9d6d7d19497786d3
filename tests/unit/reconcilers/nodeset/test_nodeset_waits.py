"""When a NodeSet has Slurm read often: while something is about to happen there, and only then."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.decide import MOST_GOING, MOST_NOTED
from testing.workers import (
    CONTROLLER,
    NOW,
    controller,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

JUST_NOW = timedelta(seconds=2)
SPEC = nodeset(replicas=3)
REVISION = revision_of(SPEC)
HASH = REVISION.metadata.labels["controller-revision-hash"]
KNOWN = worker(0, revision=HASH)
CORDONED = worker(0, revision=HASH, annotations={names.POD_CORDON: "true"})


@pytest.mark.parametrize(
    ("other", "waits"),
    [
        pytest.param(
            worker(1, revision=HASH, age=JUST_NOW), True, id="everybody is up, one has yet to register"
        ),
        pytest.param(
            worker(1, revision=HASH, age=JUST_NOW, ready=False, started=False, phase="Pending"),
            False,
            id="pods still start",
        ),
        pytest.param(
            worker(1, revision=HASH, age=timedelta(minutes=5), ready=False, started=False, phase="Pending"),
            True,
            id="one has been at it for long, and nobody waits for it",
        ),
        pytest.param(
            worker(1, revision=HASH, age=timedelta(minutes=5)), False, id="it should have long registered"
        ),
    ],
)
def test_slurm_is_read_often_until_the_last_worker_has_registered(other, waits):
    late = worker(2, revision=HASH, ready=True, age=JUST_NOW) if not other.is_ready else None
    things = [thing for thing in (KNOWN, other, late) if thing is not None]
    made = world(SPEC, controller(), *things, slurm_=slurm(slurm_node(KNOWN, "IDLE")), revisions_=[REVISION])

    assert planned(made).waits_on == ((CONTROLLER,) if waits else ())


@pytest.mark.parametrize(
    ("last_came", "waits"),
    [
        pytest.param(timedelta(seconds=1), False, id="one has just come up, so more may follow"),
        pytest.param(timedelta(seconds=10), True, id="nobody followed: the one that does not come is alone"),
    ],
)
def test_while_many_pods_come_up_one_by_one_slurm_is_left_alone(last_came, waits):
    minutes = timedelta(minutes=1)
    slow = worker(1, revision=HASH, age=minutes, ready=False, started=False, phase="Pending")
    late = worker(2, revision=HASH, age=minutes, ready_for=last_came)
    made = world(
        SPEC, controller(), KNOWN, slow, late, slurm_=slurm(slurm_node(KNOWN, "IDLE")), revisions_=[REVISION]
    )

    assert planned(made).waits_on == ((CONTROLLER,) if waits else ())


def test_neither_a_lost_machine_nor_a_worker_that_never_registers_keeps_others_waiting():
    lost = worker(0, revision=HASH, ready=False)
    never, late = worker(1, revision=HASH, age=timedelta(minutes=5)), worker(2, revision=HASH, age=JUST_NOW)
    silent = slurm(slurm_node(lost, "IDLE", "NOT_RESPONDING"))
    made = world(SPEC, controller(), lost, never, late, slurm_=silent, revisions_=[REVISION])

    assert planned(made).waits_on == (CONTROLLER,)


def test_of_a_thousand_that_may_go_some_go_at_once_and_the_rest_in_turn():
    spec = nodeset(replicas=0)
    pods = [worker(number, revision=HASH) for number in range(MOST_GOING + 3)]
    free = slurm(*(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "ScaleIn")) for pod in pods))

    lines = told(world(spec, controller(), *pods, slurm_=free, revisions_=[revision_of(spec)]))

    assert sum(line.startswith("delete ") for line in lines) == MOST_GOING
    assert sum(line.endswith(": InTurn") for line in lines) == 3


def test_a_pass_tells_some_pods_what_slurm_says_and_the_next_pass_the_others():
    spec = nodeset(replicas=MOST_NOTED + 3)
    pods = [worker(number, revision=HASH) for number in range(MOST_NOTED + 3)]
    idle = slurm(*(slurm_node(pod, "IDLE") for pod in pods))

    lanes = planned(world(spec, controller(), *pods, slurm_=idle, revisions_=[revision_of(spec)])).lanes

    assert sum(lane.name.startswith("facts of ") for lane in lanes) == MOST_NOTED


@pytest.mark.parametrize(
    ("other", "seconds"),
    [
        pytest.param(worker(1, ready=False, unready_for=timedelta(seconds=10)), 20, id="unready for a while"),
        pytest.param(worker(1, ready=False, unready_for=timedelta(seconds=40)), 20, id="for longer: it counts as unresponsive then"),
        pytest.param(worker(1, ready=False, unready_for=timedelta(seconds=90)), None, id="for long"),
        pytest.param(worker(1, ready=False), None, id="ever since it started"),
        pytest.param(worker(1, ready=False, terminating=True, grace=10), 40, id="ending"),
        pytest.param(worker(1, ready=False, terminating=True, grace=-60), None, id="for ever"),
    ],
)  # fmt: skip
def test_an_update_looks_again_when_a_worker_should_be_ready_or_gone(other, seconds):
    """Nothing else would wake it: the worker stays as it is."""
    two = nodeset(replicas=2)
    first = worker(0, revision="older")
    known = slurm(slurm_node(first, "IDLE"), slurm_node(other, "IDLE"))
    made = world(two, controller(), first, other, slurm_=known, revisions_=[revision_of(two)])

    again = planned(made).look_again

    assert again == (timedelta(seconds=seconds) if seconds is not None else None)


GOING = machine("n1", taints=[("ToBeDeletedByClusterAutoscaler", "NoSchedule")])


@pytest.mark.parametrize(
    ("on", "pod", "words", "waits"),
    [
        pytest.param(machine("n1", cordoned=True), KNOWN, ["DRAIN"], True, id="its machine is cordoned"),
        pytest.param(GOING, KNOWN, ["DRAIN"], True, id="its machine is about to go"),
        pytest.param(machine("n1"), CORDONED, ["DRAIN"], True, id="a user cordoned it"),
        pytest.param(GOING, worker(0, revision=HASH, protected=False), ["DRAIN"], False, id="it may go already"),
        pytest.param(machine("n1"), KNOWN, ["DRAIN"], False, id="it is only drained"),
        pytest.param(machine("n1"), KNOWN, [], False, id="nothing is the matter"),
    ],
)  # fmt: skip
def test_slurm_is_read_often_until_one_that_others_drained_may_be_evicted(on, pod, words, waits):
    """What is known of Slurm is too old to let it go by, and an equal answer wakes nobody who does not wait."""
    spec = nodeset(replicas=1)
    known = slurm(slurm_node(pod, "IDLE", *words, reason="bad disk" if words else ""))
    earlier = NOW - timedelta(seconds=10)
    old = wire.replace(known, nodes_asked_at=earlier, jobs_asked_at=earlier)
    made = world(spec, controller(), pod, on, slurm_=old, revisions_=[revision_of(spec)])

    assert told(made) == []
    assert planned(made).waits_on == ((CONTROLLER,) if waits else ())
    made.slurms[CONTROLLER] = known
    assert told(made) == (["Released gpu-0"] if waits else [])
