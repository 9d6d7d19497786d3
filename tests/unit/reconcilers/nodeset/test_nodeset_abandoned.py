"""A namespace that is deleted with running workers: it ends, and no job before its time."""

from datetime import UTC, datetime

import pytest

from slurm_operator import wire
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.platform import Namespace
from slurm_operator.plan.actions import PatchObject
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
    told,
    worker,
    world,
)

SPEC = nodeset(deleted=True)
AWAY = Unreachable(since=NOW, why="nobody is there")
GOING = Namespace(metadata=Meta(name="ns", uid="n", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)))
STANDING = Namespace(metadata=Meta(name="ns", uid="n"))
WORKLOAD = Child(metadata=Meta(name="slurm-controller", namespace="ns", uid="w"), body={})


ELSEWHERE = wire.replace(controller(), spec=wire.replace(controller().spec, external=True))


def seen(namespace, *, head=controller(), workload=False, slurm_=AWAY, spec=SPEC):  # noqa: B008 - it never changes
    things = [spec, *([head] if head is not None else []), worker(0), namespace]
    made = world(*things, revisions_=[revision_of(SPEC)], slurm_=slurm_)
    made.children_[kinds.STATEFUL_SET] = [WORKLOAD] if workload else []
    return made


def released(made) -> list[str]:
    patches = [a for a in planned(made).actions() if isinstance(a, PatchObject) and a.reason == "Released"]
    return [patch.key.name for patch in patches]


BUSY = slurm(
    slurm_node(worker(0), "MIXED", "DRAIN", reason="slurm-operator: Deletion: x"), jobs=[job(1, "gpu-0")]
)


@pytest.mark.parametrize(
    ("made", "lets_go"),
    [
        pytest.param(seen(GOING), True, id="slurmctld went with its namespace"),
        pytest.param(seen(GOING, workload=True), False, id="slurmctld is only away"),
        pytest.param(seen(GOING, slurm_=BUSY), False, id="Slurm answers: the gate decides"),
        pytest.param(seen(GOING, head=ELSEWHERE), False, id="slurmctld is elsewhere and goes on"),
        pytest.param(seen(GOING, head=None), True, id="nobody knows any more where slurmctld was"),
        pytest.param(seen(STANDING), False, id="the namespace stays"),
        pytest.param(seen(GOING, spec=nodeset()), False, id="so far nobody deleted the NodeSet"),
    ],
)
def test_a_worker_loses_its_protection_when_nobody_else_can_say_that_its_jobs_are_over(made, lets_go):
    assert released(made) == (["gpu-0"] if lets_go else [])
    assert not [step for step in told(made) if step.startswith("delete")], "it ends on its own"


def test_of_a_slurmctld_elsewhere_a_person_is_told_how_its_workers_can_go():
    [waiting] = [a for a in planned(seen(GOING, head=ELSEWHERE)).actions() if a.reason == "CutOff"]

    assert "slurmctld is elsewhere and may have jobs here" in waiting.message
    assert waiting.message.endswith("annotate Controller slurm with slinky.slurm.net/force-deletion=true")


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(seen(GOING, head=ELSEWHERE, slurm_=BUSY), id="Slurm answers: the gate decides"),
        pytest.param(seen(STANDING, head=ELSEWHERE), id="the namespace stays"),
    ],
)
def test_a_slurmctld_elsewhere_is_not_missed_without_need(made):
    assert not [a for a in planned(made).actions() if a.reason == "CutOff"]
