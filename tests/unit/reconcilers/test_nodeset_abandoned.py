"""A namespace that is deleted with running workers: it ends, and no job before its time."""

from datetime import UTC, datetime

import pytest

from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.platform import Namespace
from slurm_operator.plan.actions import PatchObject
from slurm_operator.slurm.snapshot import Unreachable
from support.workers import (
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


def seen(namespace, *, workload=False, slurm_=AWAY, spec=SPEC):
    made = world(spec, controller(), worker(0), namespace, revisions_=[revision_of(SPEC)], slurm_=slurm_)
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
        pytest.param(seen(STANDING), False, id="the namespace stays"),
        pytest.param(seen(GOING, spec=nodeset()), False, id="so far nobody deleted the NodeSet"),
    ],
)
def test_a_worker_loses_its_protection_when_nobody_else_can_say_that_its_jobs_are_over(made, lets_go):
    assert released(made) == (["gpu-0"] if lets_go else [])
    assert not [step for step in told(made) if step.startswith("delete")], "it ends by itself"
