"""Who goes first when workers have to go: the documented order, rule by rule."""

import inspect
import itertools
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from simulation.mutants import mutated
from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.departures import scale_in_order
from slurm_operator.reconcilers.nodeset.departures.scale_in_order import victims_first
from slurm_operator.reconcilers.nodeset.observe import observe
from slurm_operator.reconcilers.nodeset.workers import Worker
from testing.workers import (
    KEY,
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

HOUR = timedelta(hours=1)


def cost(text: str) -> dict[str, str]:
    return {names.POD_DELETION_COST: text}


def members(*pods, jobs=(), machines=(), draining=None, behind=()) -> list[Worker]:
    """`draining`: the cause of our drain, by pod."""
    spec = nodeset(replicas=len(pods))
    busy = {name for one in jobs if one.state.is_running for name in one.nodes}
    records = [_record(pod, (draining or {}).get(pod.metadata.name, ""), busy) for pod in pods]
    state = wire.replace(slurm(*records, jobs=jobs), behind=frozenset(behind))
    made = world(spec, controller(), *machines, *pods, revisions_=[revision_of(spec)], slurm_=state)
    return list(observe(KEY, made).workers)


def _record(pod, cause: str, busy):
    state = "MIXED" if pod.metadata.name in busy else "IDLE"
    if not cause:
        return slurm_node(pod, state)
    reason = cause if ":" in cause else ours(pod, cause)
    return slurm_node(pod, state, "DRAIN", reason=reason)


def order(*pods, **more) -> list[str]:
    """The workers' numbers, the first to go first."""
    return [worker.name.removeprefix("gpu-") for worker in victims_first(members(*pods, **more))]


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
        pytest.param(worker(1, on=""), worker(0), {"draining": {"gpu-0": "ScaleIn"}, "jobs": [job(1, "gpu-0", words=("SUSPENDED",))]}, id="one that was chosen is not free while a job is suspended there"),
        pytest.param(worker(1), worker(0), {}, id="the higher number"),
        pytest.param(worker(10), worker(9), {}, id="as numbers, not as words"),
    ],
)  # fmt: skip
def test_of_two_the_one_whose_loss_costs_less_goes_first(first, then, more):
    names_ = [pod.metadata.name.removeprefix("gpu-") for pod in (first, then)]

    assert order(first, then, **more) == order(then, first, **more) == names_


def daemon(name: str, *, created: timedelta = HOUR, ready: timedelta = HOUR, **more):
    return worker(None, name=f"gpu-{name}", mode="DaemonSet", age=created, ready_for=ready, **more)


@dataclass(frozen=True)
class Contest:
    """By an earlier rule `first` goes first, by the next one `then` would; `unlike` is made up by hand."""

    first: Any
    then: Any
    more: dict[str, Any] = field(default_factory=dict)
    unlike: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def winner(self) -> str:
        return self.first.metadata.name

    def victims(self) -> list[list[str]]:
        """The order of the two, found from either side."""
        orders = [(self.first, self.then), (self.then, self.first)]
        return [[m.name for m in victims_first(self._members(pods))] for pods in orders]

    def _members(self, pods) -> list[Worker]:
        found = {worker.name: worker for worker in members(*pods, **self.more)}
        made = {name: wire.replace(m, **self.unlike.get(name, {})) for name, m in found.items()}
        return [made[pod.metadata.name] for pod in pods]

    @property
    def is_won(self) -> bool:
        return all(names_[0] == self.winner for names_ in self.victims())


LEAVES = {"gpu-0": "ScaleIn"}
CORDON = {names.POD_CORDON: "true"}

# One for each two rules that follow each other, in their order.
CONTESTS = {
    "free surplus before unscheduled": Contest(worker(0), worker(1, on=""), {"draining": LEAVES}),
    "unscheduled before pending": Contest(worker(0, on=""), worker(1, phase="Pending")),
    "phase before readiness": Contest(worker(0, phase="Pending"), worker(1, ready=False), unlike={"gpu-0": {"is_ready": True}}),
    "unready before cheap": Contest(worker(0, ready=False), worker(1, annotations=cost("-9"))),
    "cheap before surplus": Contest(worker(1, annotations=cost("-9")), worker(0), {"draining": LEAVES, "jobs": [job(1, "gpu-0")]}),
    "surplus before the end of jobs": Contest(worker(0), worker(1), {"draining": LEAVES, "jobs": [job(1, "gpu-0")]}),
    "the end of jobs before cordons": Contest(worker(0), worker(1, annotations=CORDON), {"jobs": [job(1, "gpu-1")]}),
    "cordons before numbers": Contest(worker(0, annotations=CORDON), worker(1)),
    "numbers before the time of readiness": Contest(worker(1, ready_for=2 * HOUR), worker(0, ready_for=HOUR)),
    "the time of readiness before age": Contest(daemon("b", created=3 * HOUR), daemon("a", created=2 * HOUR, ready=2 * HOUR)),
    "age before names": Contest(daemon("b", created=HOUR), daemon("a", created=2 * HOUR)),
}  # fmt: skip

# Those that decide when all rules before them are even.
LAST = {"names, when all else is even": Contest(daemon("a"), daemon("b"))}


@pytest.mark.parametrize("contest", [pytest.param(one, id=name) for name, one in (CONTESTS | LAST).items()])
def test_an_earlier_rule_beats_the_next_one(contest):
    assert contest.is_won


def rules() -> list[str]:
    """The lines of the order, each a rule."""
    lines = inspect.getsource(scale_in_order._rank).splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.strip() == "return (")
    return list(itertools.takewhile(lambda line: line.strip() != ")", lines[start + 1 :]))


@pytest.mark.parametrize("place", range(len(CONTESTS)), ids=CONTESTS)
def test_two_rules_that_change_places_are_noticed(place):
    """`numbers before ...` and the like: each two neighbours have a contest that only their order decides."""
    upper, lower = rules()[place : place + 2]

    with mutated(scale_in_order._rank, upper + lower, lower + upper):
        assert not CONTESTS[list(CONTESTS)[place]].is_won


def test_every_rule_has_its_contest():
    assert len(rules()) == len(CONTESTS) + 1


@pytest.mark.parametrize("place", range(len(CONTESTS) + 1))
def test_a_rule_that_is_missing_is_noticed(place):
    rule = rules()[place]

    with mutated(scale_in_order._rank, rule, "        0,\n"):
        assert not all(contest.is_won for contest in (CONTESTS | LAST).values())


SWITCHED = [job(1, "gpu-0", minutes=50), job(2, "gpu-1", minutes=5)]


@pytest.mark.parametrize(
    ("more", "first"),
    [
        pytest.param({"draining": {"gpu-0": "ScaleIn"}, "jobs": SWITCHED}, "0", id="it drains to leave, and its jobs take longer"),
        pytest.param({"draining": {"gpu-0": "Duplicate"}, "jobs": SWITCHED}, "0", id="as one of two on a machine"),
        pytest.param({"draining": {"gpu-0": "Update"}, "jobs": SWITCHED}, "1", id="drained for an update: that is no choice of a victim"),
        pytest.param({"draining": {"gpu-0": "NodeCordon"}, "jobs": SWITCHED}, "1", id="drained for its machine"),
        pytest.param({"draining": {"gpu-0": "ask: Ada"}, "jobs": SWITCHED}, "1", id="drained by a human"),
        pytest.param({"draining": {"gpu-0": "slurm-operator: ScaleIn: x (pod 1234abcd)"}, "jobs": SWITCHED}, "1", id="the drain is about an earlier pod of its name"),
        pytest.param({"behind": ["gpu-0"], "jobs": SWITCHED}, "0", id="it may drain by now: Slurm was not read since we wrote to it"),
        pytest.param({"behind": ["gpu-1"], "draining": {"gpu-0": "ScaleIn"}, "jobs": SWITCHED}, "0", id="who drains for certain comes before who may"),
    ],
)  # fmt: skip
def test_what_was_begun_goes_on(more, first):
    assert order(worker(0), worker(1), **more)[0] == order(worker(1), worker(0), **more)[0] == first


def test_among_daemons_the_newest_goes_first():
    old = ready_since(worker(None, name="gpu-aaaa", mode="DaemonSet", age=HOUR), HOUR)
    new = worker(None, name="gpu-bbbb", mode="DaemonSet", age=HOUR)

    assert order(old, new) == ["bbbb", "aaaa"]
