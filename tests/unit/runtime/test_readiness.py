"""Which changes of Ready are worth an event, beside the condition that says the same."""

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.plan.conditions import DEGRADED, READY, Condition, false, true
from slurm_operator.runtime.report.event_batches import Words
from slurm_operator.runtime.report.ready_events import Readiness

WHO = ("nodeset", ObjectKey("ns", "gpu"))

STARTING = [false(READY, "Starting", "It starts."), false(DEGRADED, "AsExpected")]
WAITING = [false(READY, "Rehearsing", "It waits."), false(DEGRADED, "AsExpected")]
READY_NOW = [true(READY, "Serving", "It serves."), false(DEGRADED, "AsExpected")]
READY_WITH_TROUBLE = [true(READY, "Serving", "It serves."), true(DEGRADED, "Mismatch", "CPUs differ.")]
CRASHED = [false(READY, "PodsNotReady", "It ends."), true(DEGRADED, "PodsNotReady", "It ends.")]
REFUSED = [false(READY, "SpecRefused", "No."), true(DEGRADED, "SpecRefused", "No.")]


def live(conditions: list[Condition], generation: int = 2) -> dict:
    told = [
        {"type": c.type, "status": str(c.status), "reason": c.reason, "observedGeneration": generation}
        for c in conditions
    ]
    return {"conditions": told}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param([], STARTING, None, id="it is new"),
        pytest.param(STARTING, WAITING, None, id="it waits for something else: the condition says so"),
        pytest.param(STARTING, READY_NOW, None, id="it is ready for the first time: so does this one"),
        pytest.param(STARTING, READY_WITH_TROUBLE, None, id="what is wrong with what runs is no warning about Ready"),
        pytest.param([], REFUSED, "Warning", id="it was refused at once"),
        pytest.param(STARTING, CRASHED, "Warning", id="it does not start"),
        pytest.param(CRASHED, CRASHED, None, id="it still does not start"),
        pytest.param(CRASHED, REFUSED, "Warning", id="something else is wrong"),
        pytest.param(READY_NOW, CRASHED, "Warning", id="it was lost because something is wrong"),
        pytest.param(READY_NOW, STARTING, "Normal", id="it was lost, and nothing is wrong"),
    ],
)  # fmt: skip
def test_an_event_tells_that_ready_was_lost_and_what_is_wrong(before, after, told):
    words = Readiness().news(WHO, live(before), after, 2)

    assert (words and words.type) == told
    assert words is None or words.at_once is (told == "Warning")


@pytest.mark.parametrize(("after", "told"), [(STARTING, None), (CRASHED, "Warning")])
def test_ready_that_another_spec_takes_is_told_only_when_something_is_wrong(after, told):
    """As when workers are asked for where there were none."""
    words = Readiness().news(WHO, live(READY_NOW, generation=1), after, 2)

    assert (words and words.type) == told


def test_what_was_lost_is_told_when_it_is_back_and_once():
    readiness = Readiness()
    readiness.news(WHO, live(READY_NOW), CRASHED, 2)

    assert readiness.news(WHO, live(CRASHED), READY_NOW, 2) == Words("Serving", ("It serves.",))
    assert readiness.news(WHO, live(STARTING), READY_NOW, 2) is None


def test_nothing_is_remembered_of_what_is_gone():
    readiness = Readiness()
    readiness.news(WHO, live(READY_NOW), CRASHED, 2)
    readiness.forget(WHO)

    assert readiness.news(WHO, live(CRASHED), READY_NOW, 2) is None
