"""Nodes and jobs by state, each counted once."""

from collections import Counter

from slurm_operator.api.cluster_status import JobCounts, NodeCounts
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState, NodeBase, NodeState


def nodes(slurm: Snapshot) -> NodeCounts:
    found = Counter(_node(node.state) for node in slurm.nodes.values())
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
    found = Counter(_job(job.state) for job in slurm.jobs.values())
    return JobCounts(
        running=found["running"],
        pending=found["pending"],
        suspended=found["suspended"],
        other=found["other"],
    )


def _node(state: NodeState) -> str:
    """What matters most to somebody who wants to run a job comes first."""
    if state.is_down or state.is_unresponsive:
        return "down"
    if state.is_drain:
        return "drained" if state.is_drained else "draining"
    return {NodeBase.IDLE: "idle", NodeBase.MIXED: "mixed", NodeBase.ALLOCATED: "allocated"}.get(
        NodeBase(state.base) if state.base is not None else NodeBase.UNKNOWN, "other"
    )


def _job(state: JobState) -> str:
    if state.is_completing:
        return "other"
    if state.is_pending:
        return "pending"
    if state.is_suspended:
        return "suspended"
    return "running" if state.is_running else "other"
