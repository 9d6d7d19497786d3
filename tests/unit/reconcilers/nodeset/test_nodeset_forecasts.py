"""When workers are free that should take no more jobs, and what is still said of them while Slurm is silent."""

from datetime import timedelta

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

SPEC = nodeset(replicas=2)
HASH = revision_of(SPEC).metadata.labels[names.LABEL_REVISION]
SILENT = Unreachable(since=NOW, why="no answer")
CORDONED = machine("n1", cordoned=True)


def w(ordinal: int, **kwargs):
    return worker(ordinal, **{"on": f"n{ordinal}", "revision": HASH, **kwargs})


A, B, C = w(0), w(1, protected=False), w(2)


def minutes(count: int):
    return NOW + timedelta(minutes=count)


def leaves(pod, cause="ScaleIn", busy=True):
    return slurm_node(pod, "MIXED" if busy else "IDLE", "DRAIN", reason=ours(pod, cause), changed_at=NOW)


def seen(*nodes, jobs=(), pods=(A, B, C), spec=SPEC, things=()):
    known = slurm(*nodes, jobs=jobs)
    return world(spec, controller(), *pods, *things, revisions_=[revision_of(spec)], slurm_=known)


def report(made):
    found = RECONCILER.observe(KEY, made)
    return RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome())


def drains(made) -> list[dict]:
    return codec.plain(report(made).fields["drains"])


IDLE = slurm_node(A, "IDLE")
FREE = leaves(B, "NodeCordon", busy=False)
BUSY = slurm_node(A, "MIXED")
BY_HUMAN = slurm_node(C, "MIXED", "DRAIN", reason="bad disk", reason_set_by="root", changed_at=NOW)
ELSEWHERE = job(9, "gpu-0", "gpu-1")


@pytest.mark.parametrize(
    ("made", "order", "drained_by"),
    [
        pytest.param(seen(IDLE, slurm_node(B, "IDLE"), spec=SPEC, pods=(A, B)), [], None, id="nobody goes"),
        pytest.param(seen(IDLE, FREE, leaves(C), jobs=[job(5, "gpu-2")], things=[CORDONED]), ["gpu-1", "gpu-2"], minutes(60), id="one is free already: until the job of the other ends"),
        pytest.param(seen(IDLE, FREE, things=[CORDONED], pods=(A, B)), ["gpu-1"], None, id="all are free"),
        pytest.param(seen(IDLE, leaves(B), leaves(C), jobs=[job(5, "gpu-2", minutes=10), job(6, "gpu-1", minutes=30)], spec=nodeset(replicas=1)), ["gpu-2", "gpu-1"], minutes(30), id="soonest first"),
        pytest.param(seen(IDLE, FREE, leaves(C), jobs=[job(5, "gpu-2", minutes=None)], things=[CORDONED]), ["gpu-1", "gpu-2"], None, id="a job without a limit: nobody can tell"),
        pytest.param(seen(IDLE, leaves(B), leaves(C), jobs=[job(5, "gpu-1", minutes=None), job(6, "gpu-2")], spec=nodeset(replicas=1)), ["gpu-2", "gpu-1"], None, id="it comes last"),
        pytest.param(seen(BUSY, slurm_node(B, "MIXED"), BY_HUMAN, jobs=[job(5, "gpu-2", minutes=10), ELSEWHERE]), ["gpu-2"], minutes(10), id="a human drained it, and it leaves"),
        pytest.param(seen(BUSY, BY_HUMAN, jobs=[job(5, "gpu-2", minutes=10), ELSEWHERE], pods=(A, C)), [], None, id="a human drained it, and it stays"),
        pytest.param(seen(spec=nodeset(replicas=0), pods=(A,)), ["gpu-0"], None, id="unknown to Slurm, and it leaves: nobody can tell when"),
    ],
)  # fmt: skip
def test_the_last_is_free_when_the_last_of_their_jobs_ends(made, order, drained_by):
    fields = report(made).fields

    assert [drain["slurmNode"] for drain in fields["drains"]] == order
    assert fields["draining"] == len(order)
    assert fields["drainedBy"] == drained_by


def test_who_was_drained_by_a_human_and_leaves_is_told_of_in_both_their_words():
    jobs = [job(5, "gpu-2", minutes=10), ELSEWHERE]
    [told] = drains(seen(BUSY, slurm_node(B, "MIXED"), BY_HUMAN, jobs=jobs))

    assert told["reason"] == "ScaleIn"
    assert told["message"] == "leaving NodeSet gpu, which has 2 workers; drained in Slurm by root: bad disk"
    assert told["jobs"] == ["5"]
    assert told["since"] == "2026-01-01T12:00:00Z"


def test_of_two_that_share_a_name_only_one_is_listed():
    """The list is one of names, and the API server refuses it with a name twice."""
    twin = w(0, name="gpu-twin", hostname="gpu-0")
    made = seen(leaves(A), pods=(A, twin), spec=nodeset(replicas=0), jobs=[job(1, "gpu-0")])

    assert [drain["slurmNode"] for drain in drains(made)] == ["gpu-0"]


# ---- While Slurm is silent

FROM_SLURM = (
    "registeredReplicas", "slurmIdle", "slurmAllocated", "slurmDown", "slurmDrain", "slurmVersion", "drains",
    "draining", "drainedBy",
)  # fmt: skip
FULL = seen(
    slurm_node(A, "MIXED", version="26.05.5"), slurm_node(B, "IDLE", version="26.05.5"), leaves(C),
    jobs=[job(5, "gpu-2"), job(6, "gpu-0")],
)  # fmt: skip


def then_silent(made, *pods):
    """The same, with what was told about it; then Slurm falls silent, and these pods are there."""
    told = report(made)
    status = codec.plain({**told.fields, "conditions": list(told.conditions)})
    known = made.things[0]
    after = codec.read(
        NodeSet,
        {"metadata": codec.plain(known.metadata), "spec": codec.plain(known.spec), "status": status},
    )
    others = [thing for thing in made.things[1:] if type(thing) is not type(A)]
    return world(after, *others, *pods, revisions_=made.children_[next(iter(made.children_))], slurm_=SILENT)


def from_slurm(made) -> dict:
    fields = codec.plain(report(made).fields)
    return {key: value for key in FROM_SLURM if (value := fields[key])}


def without_blanks(fields: dict) -> dict:
    listed = [{k: v for k, v in drain.items() if v} for drain in fields.get("drains", [])]
    return {**fields, "drains": listed}


def test_while_slurm_is_silent_its_numbers_are_those_last_known():
    assert without_blanks(from_slurm(then_silent(FULL, A, B, C))) == without_blanks(from_slurm(FULL))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((A, B), {"registeredReplicas": 2, "slurmIdle": 1, "slurmAllocated": 2, "slurmDrain": 1, "slurmVersion": "26.05.5"}, id="the one that left is gone"),
        pytest.param((A,), {"registeredReplicas": 1, "slurmIdle": 1, "slurmAllocated": 1, "slurmDrain": 1, "slurmVersion": "26.05.5"}, id="never more than there are pods"),
        pytest.param((), {}, id="no pod is left"),
    ],
)  # fmt: skip
def test_of_workers_that_are_gone_nothing_is_said(pods, expected):
    assert from_slurm(then_silent(FULL, *pods)) == expected


def test_readiness_and_progress_do_not_go_by_what_was_last_known():
    silent = then_silent(FULL, A, w(1, ready=False), w(2, ready=False))
    told = {c.type: (c.status, c.reason) for c in report(silent).conditions}

    assert told["Ready"] == ("False", "Unavailable")
    assert told["Progressing"] == ("True", "SlurmUnreachable")
    assert told["Degraded"] == ("True", "SlurmUnreachable")


def test_a_slurm_that_never_answered_has_told_nothing():
    made = seen()
    made.slurms[CONTROLLER] = SILENT

    assert from_slurm(made) == {}


@pytest.mark.parametrize(
    ("start", "is_active"),
    [
        pytest.param(minutes(60), False, id="it lies ahead"),
        pytest.param(minutes(-10), True, id="it is under way"),
        pytest.param(minutes(-90), False, id="it is over by now"),
    ],
)
def test_while_slurm_is_silent_the_window_is_where_it_was(start, is_active):
    schedule = {"startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}", "duration": "30m"}
    spec = nodeset(replicas=1, updateStrategy={"type": "ScheduledUpdate", "scheduledUpdate": schedule})
    pod = worker(0, revision=revision_of(spec).metadata.labels[names.LABEL_REVISION])
    end = start + timedelta(minutes=30)
    window = Reservation(name="SlurmOperatorMaint-gpu", start_time=start, end_time=end, nodes=("gpu-0",))
    made = seen(slurm_node(pod, "IDLE"), pods=(pod,), spec=spec)
    made.slurms[CONTROLLER] = slurm(slurm_node(pod, "IDLE"), reservations=[window])

    told = report(then_silent(made, pod)).fields["reservation"]

    assert (told.start_time, told.end_time, told.active) == (start, end, is_active)
