"""When workers are free that should take no more jobs."""

from datetime import timedelta

import pytest

from slurm_operator.api import names, reading
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from support.workers import (
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
    return reading.plain(report(made).fields["drains"])


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
