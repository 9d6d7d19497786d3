"""Counters and histograms that only the exporter keeps. They begin at zero with each start.

Prometheus' `rate` and `increase` see a start as a reset. Nodes that are gone take their series with them, so
that the memory follows the cluster that there is, not every one that ever was.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar

from slurm_operator.exporter import classes
from slurm_operator.exporter.records import Job, Node
from slurm_operator.exporter.table import Histogram, clean
from slurm_operator.slurm.states import NodeFlag, NodeState

T = TypeVar("T")

DURATIONS: Final = (
    30.0,
    60.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
    7200.0,
    14400.0,
    28800.0,
    43200.0,
    86400.0,
    172800.0,
    259200.0,
    604800.0,
    1209600.0,
    2592000.0,
)
WAITS: Final = (
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    7200.0,
    14400.0,
    43200.0,
    86400.0,
    259200.0,
    604800.0,
)

# Reasons are anybody's words, and may differ each time. Of one node so many are told apart.
MOST_REASONS: Final = 50
OTHER_REASONS: Final = "others"

_Labels = tuple[str, ...]


class Tallies:
    """What happened since the exporter started, by what it saw from one reading to the next."""

    def __init__(self) -> None:
        self.gpu_seconds: dict[_Labels, float] = {}
        self.fails: dict[_Labels, float] = {}
        self.unavailable: dict[str, Histogram] = {}
        self.draining: dict[str, Histogram] = {}
        self.node_seconds: dict[_Labels, float] = {}
        self.waits: dict[str, Histogram] = {}
        self._states: dict[str, NodeState] = {}
        self._unavailable_since: dict[str, float] = {}
        self._draining_since: dict[str, float] = {}
        self._reasons: dict[str, set[str]] = {}
        self._read_at: float | None = None
        self._started: set[tuple[int, datetime]] | None = None

    def frozen(self) -> "Tallies":
        """What a page may be made from while the next reading is counted."""
        made = Tallies()
        made.gpu_seconds, made.fails = dict(self.gpu_seconds), dict(self.fails)
        made.unavailable, made.draining = dict(self.unavailable), dict(self.draining)
        made.node_seconds, made.waits = dict(self.node_seconds), dict(self.waits)
        return made

    def nodes_read(self, nodes: Iterable[Node], at: float) -> None:
        """`at` is by a clock that nobody sets, in seconds."""
        nodes = list(nodes)
        passed = max(0.0, at - self._read_at) if self._read_at is not None else 0.0
        self._read_at = at
        for node in nodes:
            if passed:
                self._add_seconds(node, passed)
            self._note_change(node, at)
        self._forget({node.record.name for node in nodes})
        self._states = {node.record.name: node.record.state for node in nodes}

    def jobs_read(self, jobs: Iterable[Job]) -> None:
        """Each start counts once. Those before our first look were counted by whoever looked then."""
        jobs = list(jobs)
        # A series has to be there before what it counts: `increase` does not see how one begins.
        for name in {name for job in jobs for name in job.record.partition.split(",") if name}:
            self.waits.setdefault(name, Histogram(WAITS))
        started = {
            (job.record.job_id, job.record.start_time): job
            for job in jobs
            if job.record.start_time is not None and job.record.submit_time is not None
        }
        known, self._started = self._started, set(started)
        if known is None:
            return
        for key in sorted(started.keys() - known):
            record = started[key].record
            assert record.start_time is not None
            assert record.submit_time is not None
            waited = (record.start_time - record.submit_time).total_seconds()
            before = self.waits.get(record.partition, Histogram(WAITS))
            self.waits[record.partition] = before.observed(max(0.0, waited))

    def _add_seconds(self, node: Node, passed: float) -> None:
        record = node.record
        pool = (classes.pool(record), classes.state_class(record.state), classes.owner(record))
        self.node_seconds[pool] = self.node_seconds.get(pool, 0.0) + passed
        if node.gpus:
            state = state_labels(record.name, record.state)
            self.gpu_seconds[state] = self.gpu_seconds.get(state, 0.0) + passed * node.gpus

    def _note_change(self, node: Node, at: float) -> None:
        name, state = node.record.name, node.record.state
        before = self._states.get(name)
        if before is not None and classes.is_failed(state) and not classes.is_failed(before):
            labels = (*state_labels(name, state), self._reason(name, clean(node.record.reason)))
            self.fails[labels] = self.fails.get(labels, 0.0) + 1
        _measure(self._unavailable_since, self.unavailable, name, classes.is_unavailable(state), at)
        _measure(self._draining_since, self.draining, name, classes.is_draining(state), at)

    def _reason(self, name: str, reason: str) -> str:
        known = self._reasons.setdefault(name, set())
        if reason not in known and len(known) >= MOST_REASONS:
            return OTHER_REASONS
        known.add(reason)
        return reason

    def _forget(self, names: set[str]) -> None:
        for series in (self.gpu_seconds, self.fails):
            for labels in [labels for labels in series if labels[0] not in names]:
                del series[labels]
        _keep(self.unavailable, names)
        _keep(self.draining, names)
        _keep(self._unavailable_since, names)
        _keep(self._draining_since, names)
        _keep(self._reasons, names)


def _keep(known: dict[str, T], names: set[str]) -> None:
    for name in [name for name in known if name not in names]:
        del known[name]


def _measure(
    since: dict[str, float], found: dict[str, Histogram], name: str, is_now: bool, at: float
) -> None:
    """Note when it began, and how long it took once it is over."""
    if is_now:
        since.setdefault(name, at)
    elif name in since:
        found[name] = found.get(name, Histogram(DURATIONS)).observed(at - since.pop(name))


def state_labels(name: str, state: NodeState) -> _Labels:
    """The labels of a node's state that counters have."""
    return (
        name,
        classes.base(state),
        bool_text(NodeFlag.DRAIN in state.words),
        bool_text(NodeFlag.MAINTENANCE in state.words),
        bool_text(NodeFlag.RESERVED in state.words),
    )


def bool_text(is_so: bool) -> str:
    return "true" if is_so else "false"
