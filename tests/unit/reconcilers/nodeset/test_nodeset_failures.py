"""Pods that end on their own are made again, each time after a longer pause."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from testing.workers import KEY, controller, nodeset, planned, revision_of, told, worker, world

TWO = nodeset(replicas=2)
REVISION = revision_of(TWO)


def failed(age: float):
    """A pod that was made so many seconds ago, and whose containers have ended."""
    return worker(
        0,
        phase="Failed",
        ready=False,
        age=timedelta(seconds=age),
        revision=REVISION.metadata.labels[names.LABEL_REVISION],
    )


def made(*pods, failures=None):
    remembered = wire.replace(TWO, status=wire.replace(TWO.status, failures=failures or {}))
    return world(remembered, controller(), *pods, revisions_=[REVISION])


@pytest.mark.parametrize(
    ("before", "age", "goes"),
    [
        pytest.param(0, 4, False, id="first: people may look at it"),
        pytest.param(0, 5, True, id="first: five seconds"),
        pytest.param(1, 9, False, id="second: not so soon"),
        pytest.param(1, 10, True, id="second: ten seconds"),
        pytest.param(4, 79, False, id="fifth: eighty seconds"),
        pytest.param(4, 80, True, id="fifth: and then"),
        pytest.param(60, 299, False, id="in the end: five minutes"),
        pytest.param(60, 300, True, id="in the end: and no longer"),
    ],
)
def test_a_pod_that_ended_again_and_again_is_replaced_later_each_time(before, age, goes):
    plan = told(made(failed(age), failures={"gpu-0": before}))

    assert ("delete gpu-0 (Ended)" in plan) == goes


def test_it_is_looked_at_again_when_its_pause_is_over():
    assert planned(made(failed(30), failures={"gpu-0": 4})).look_again == timedelta(seconds=50)


def remembered(there, *, is_done=True) -> dict[str, int]:
    seen, plan = RECONCILER.observe(KEY, there), planned(there)
    outcome = Outcome(done=tuple(plan.actions())) if is_done else Outcome()
    return RECONCILER.status(seen, plan, outcome).fields["failures"]


HEALTHY = worker(0, age=timedelta(seconds=30))
OLD = worker(0, age=timedelta(hours=1))


@pytest.mark.parametrize(
    ("there", "counts"),
    [
        pytest.param(made(failed(5)), {"gpu-0": 1}, id="once"),
        pytest.param(made(failed(10), failures={"gpu-0": 1}), {"gpu-0": 2}, id="once more"),
        pytest.param(made(failed(5), failures={"gpu-0": 1}), {"gpu-0": 1}, id="waiting"),
        pytest.param(made(failures={"gpu-0": 2, "gpu-9": 3}), {"gpu-0": 2}, id="gone; only one comes again"),
        pytest.param(made(HEALTHY, failures={"gpu-0": 2}), {"gpu-0": 2}, id="up, and may yet fail"),
        pytest.param(made(OLD, failures={"gpu-0": 2}), {}, id="it lives"),
        pytest.param(made(failed(3600), failures={"gpu-0": 7}), {"gpu-0": 1}, id="it had lived for long"),
        pytest.param(made(OLD), {}, id="nothing ever happened"),
    ],
)
def test_failures_in_a_row_are_counted_in_the_status(there, counts):
    assert remembered(there) == counts


def test_a_delete_that_did_not_happen_does_not_count():
    assert remembered(made(failed(5)), is_done=False) == {}
