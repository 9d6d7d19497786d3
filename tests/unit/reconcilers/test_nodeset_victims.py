"""Who goes first when workers have to go: the documented order, rule by rule."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.reconcilers.nodeset.observe import observe
from slurm_operator.reconcilers.nodeset.victims import victims_first
from support.workers import (
    KEY,
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

HOUR = timedelta(hours=1)


def cost(text: str) -> dict[str, str]:
    return {names.POD_DELETION_COST: text}


def order(*pods, jobs=(), machines=()) -> list[str]:
    """The workers' numbers, the first to go first."""
    spec = nodeset(replicas=len(pods))
    state = slurm(*(slurm_node(pod, "IDLE") for pod in pods), jobs=jobs)
    made = world(spec, controller(), *machines, *pods, revisions_=[revision_of(spec)], slurm_=state)
    return [member.name.removeprefix("gpu-") for member in victims_first(list(observe(KEY, made).members))]


def ready_since(pod, ago):
    """Ready for so long, and otherwise like any other."""
    [condition] = pod.status.conditions
    later = wire.replace(condition, last_transition_time=condition.last_transition_time - ago)
    return wire.replace(pod, status=wire.replace(pod.status, conditions=[later]))


@pytest.mark.parametrize(
    ("first", "then", "more"),
    [
        pytest.param(worker(0, on=""), worker(1), {}, id="on no machine yet"),
        pytest.param(worker(0, phase="Pending"), worker(1), {}, id="pending before running"),
        pytest.param(worker(0, phase="Pending"), worker(1, phase="Unknown"), {}, id="pending before unknown"),
        pytest.param(worker(0, phase="Unknown"), worker(1), {}, id="unknown before running"),
        pytest.param(worker(0, ready=False), worker(1), {}, id="not ready"),
        pytest.param(worker(0, annotations=cost("-5")), worker(1), {}, id="cheaper"),
        pytest.param(worker(0), worker(1, annotations=cost("1")), {}, id="a cost that is none counts as 0"),
        pytest.param(worker(0, annotations=cost("x")), worker(1, annotations=cost("1")), {}, id="and what is no number does too"),
        pytest.param(worker(0), worker(1), {"jobs": [job(1, "gpu-1")]}, id="idle before busy"),
        pytest.param(worker(0), worker(1), {"jobs": [job(1, "gpu-0", minutes=5), job(2, "gpu-1", minutes=50)]}, id="whose jobs end soonest"),
        pytest.param(worker(0), worker(1), {"jobs": [job(1, "gpu-0", minutes=500), job(2, "gpu-1", minutes=None)]}, id="a job without limit keeps its worker longest"),
        pytest.param(worker(0), worker(1), {"jobs": [job(1, "gpu-0", minutes=5), job(2, "gpu-1", minutes=1), job(3, "gpu-1", minutes=9)]}, id="the last of its jobs counts"),
        pytest.param(worker(0, annotations={names.POD_CORDON: "true"}), worker(1), {}, id="cordoned"),
        pytest.param(worker(0, on="n2"), worker(1), {"machines": (machine("n1"), machine("n2", cordoned=True))}, id="on a cordoned machine"),
        pytest.param(worker(1), worker(0), {}, id="the higher number"),
        pytest.param(worker(10), worker(9), {}, id="as numbers, not as words"),
    ],
)  # fmt: skip
def test_of_two_the_one_whose_loss_costs_less_goes_first(first, then, more):
    names_ = [pod.metadata.name.removeprefix("gpu-") for pod in (first, then)]

    assert order(first, then, **more) == order(then, first, **more) == names_


def test_an_earlier_rule_beats_every_later_one():
    unready, cheap, busy = worker(0, ready=False), worker(1, annotations=cost("-9")), worker(2)

    assert order(busy, cheap, unready, jobs=[job(1, "gpu-2")]) == ["0", "1", "2"]


def test_among_daemons_the_newest_goes_first():
    old = ready_since(worker(None, name="gpu-aaaa", mode="DaemonSet", age=HOUR), HOUR)
    new = worker(None, name="gpu-bbbb", mode="DaemonSet", age=HOUR)

    assert order(old, new) == ["bbbb", "aaaa"]
