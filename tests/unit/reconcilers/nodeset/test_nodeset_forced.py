"""A NodeSet whose deletion a person forces: told beforehand what it costs, then done, and nothing less is enough."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.names import FORCE_DELETION, POD_LEAVING, WORKERS_FINALIZER
from slurm_operator.plan.actions import DeleteWorker, EndWorker, PatchObject, WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    KEY,
    NOW,
    controller,
    job,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    uid_of,
    worker,
    world,
)

AWAY = Unreachable(since=NOW, why="nobody is there")
BUSY = slurm(
    slurm_node(worker(0), "MIXED", "DRAIN", reason="slurm-operator: Deletion: x"), jobs=[job(1, "gpu-0")]
)


def made(*pods, slurm_=BUSY, deleted=True, forced=True, head=True):
    spec = nodeset(deleted=deleted)
    notes = {FORCE_DELETION: "true"} if forced else {}
    spec = wire.replace(spec, metadata=wire.replace(spec.metadata, annotations=notes))
    heads = [controller()] if head else []
    return world(spec, *heads, *(pods or (worker(0),)), revisions_=[revision_of(nodeset())], slurm_=slurm_)


def progressing(there) -> str:
    seen, plan = RECONCILER.observe(KEY, there), planned(there)
    report = RECONCILER.status(seen, plan, Outcome(done=tuple(plan.actions())))
    return next(c.message for c in report.conditions if c.type == "Progressing")


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(made(), id="a job runs"),
        pytest.param(made(slurm_=AWAY), id="nobody can be asked"),
        pytest.param(made(slurm_=AWAY, head=False), id="its Controller is gone"),
    ],
)
def test_every_worker_ends_with_its_grace_period_and_then_the_finalizer_goes(there):
    [lane] = [lane for lane in planned(there).lanes if lane.name == "nodeset"]
    [marked], [ended], [released] = lane.stages

    assert isinstance(marked, PatchObject)
    assert [operation["value"] for operation in marked.operations] == [uid_of("gpu-0")]
    assert marked.operations[0]["path"].endswith("~1leaving")
    assert isinstance(ended, EndWorker)
    assert (ended.slurm_node, ended.order.owner_uid, ended.reason) == ("gpu-0", "set-uid", "Forced")
    assert "with the jobs in it" in ended.message
    assert isinstance(released, PatchObject)
    assert WORKERS_FINALIZER not in released.operations[-1]["value"]


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(made(deleted=False), id="nobody deletes it"),
        pytest.param(made(forced=False), id="nobody forces it"),
    ],
)
def test_without_a_deletion_and_an_order_no_worker_ends(there):
    assert not [a for a in planned(there).actions() if isinstance(a, EndWorker | DeleteWorker)]


MARKED = worker(0, annotations={POD_LEAVING: uid_of("gpu-0")})


def test_a_worker_that_is_marked_already_is_not_marked_again():
    assert [action.reason for action in planned(made(MARKED)).actions()] == ["Forced", "Released"]


@pytest.mark.parametrize("slurm_", [BUSY, AWAY])
@pytest.mark.parametrize("deleted", [True, False])
def test_an_order_that_is_taken_back_makes_a_delete_void_that_nobody_answered(deleted, slurm_):
    """It names the marked version, which is no more when the mark is taken away."""
    actions = planned(made(MARKED, forced=False, deleted=deleted, slurm_=slurm_)).actions()
    patches = [action for action in actions if isinstance(action, PatchObject) and action.reason == "Stays"]

    assert [patch.operations[0]["op"] for patch in patches] == ["remove"]


def test_a_worker_that_is_asked_to_end_is_not_asked_again():
    actions = list(planned(made(worker(0, terminating=True))).actions())

    assert not [a for a in actions if isinstance(a, EndWorker | WriteSlurm)]
    assert [a.reason for a in actions] == ["Released"]


@pytest.mark.parametrize("slurm_", [BUSY, AWAY])
def test_the_condition_says_beforehand_how_to_force_it_and_what_that_costs(slurm_):
    told = progressing(made(forced=False, slurm_=slurm_))

    assert "annotate the NodeSet with slinky.slurm.net/force-deletion=true" in told
    assert (
        "its pods are then deleted with their grace period, and jobs that run longer than that are lost"
        in told
    )
    assert "force-deletion" not in progressing(made(forced=False, deleted=False, slurm_=slurm_))
