"""Nodes and jobs by state, each counted once."""

from collections import Counter
from collections.abc import Callable, Iterable

from slurm_operator.api.slinky.cluster_status import JobCounts, NodeCounts
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState, NodeBase, NodeState

_UP: dict[str, str] = {
    NodeBase.IDLE: "idle",
    NodeBase.MIXED: "mixed",
    NodeBase.ALLOCATED: "allocated",
}


def nodes(slurm: Snapshot) -> NodeCounts:
    found = _sorted(
        (node.state.words for node in slurm.nodes.values()), lambda words: node_word(NodeState(words))
    )
    return NodeCounts(
        total=len(slurm.nodes),
        idle=found["idle"],
        mixed=found["mixed"],
        allocated=found["allocated"],
        draining=found["draining"],
        drained=found["drained"],
        down=found["down"],
        other=found["other"],
    )


def jobs(slurm: Snapshot) -> JobCounts:
    found = _sorted((job.state.words for job in slurm.jobs.values()), lambda words: job_word(JobState(words)))
    return JobCounts(
        running=found["running"],
        pending=found["pending"],
        suspended=found["suspended"],
        other=found["other"],
    )


def _sorted(states: Iterable[frozenset[str]], sort: Callable[[frozenset[str]], str]) -> Counter[str]:
    """How many of each sort. There are thousands of nodes and jobs, but few different states."""
    found: Counter[str] = Counter()
    for words, number in Counter(states).items():
        found[sort(words)] += number
    return found


def node_word(state: NodeState) -> str:
    """What matters most to somebody who wants to run a job comes first."""
    if state.is_down or state.is_unresponsive:
        return "down"
    if state.is_drain:
        return "drained" if state.is_drained else "draining"
    return _UP.get(state.base or "", "other")


def job_word(state: JobState) -> str:
    if state.is_completing:
        return "other"
    if state.is_pending:
        return "pending"
    if state.is_suspended:
        return "suspended"
    return "running" if state.is_running else "other"
