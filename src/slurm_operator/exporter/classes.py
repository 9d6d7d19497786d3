"""Few words for many: the pool of a node, its state, who drained it, and why jobs wait.

Sums are kept by these. Each has a handful of values, however many nodes, jobs and reasons there are.
"""

from functools import lru_cache
from typing import Final

from slurm_operator import wire
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.states import JobState, NodeBase, NodeFlag, NodeState

# As soperator and Slurm print it: the first of these that a node is.
_BASES: Final = ("UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE")

POWER_MANAGED: Final = frozenset(
    {
        NodeFlag.POWER_DOWN,
        NodeFlag.POWER_DRAIN,
        NodeFlag.POWERED_DOWN,
        NodeFlag.POWERING_DOWN,
        NodeFlag.POWERING_UP,
        NodeFlag.POWER_UP,
    }
)

_CLASSES: Final = {
    "None": "none",
    "Resources": "resources",
    "Licenses": "resources",
    "Priority": "priority",
    "Dependency": "dependency",
    "DependencyNeverSatisfied": "invalid",
    "BeginTime": "time",
    "Reservation": "reservation",
    "ReservationDeleted": "invalid",
    "ReqNodeNotAvail": "nodes",
    "NodeDown": "nodes",
    "BadConstraints": "invalid",
    "InvalidAccount": "invalid",
    "InvalidQOS": "invalid",
    "AccountNotAllowed": "invalid",
    "QOSNotAllowed": "invalid",
    "PartitionDown": "partition",
    "PartitionInactive": "partition",
    "PartitionConfig": "partition",
    "PartitionNodeLimit": "partition",
    "PartitionTimeLimit": "partition",
    "MaxArrayTasks": "limit",
    "JobArrayTaskLimit": "limit",
    "Cleaning": "resources",
    "launch_failed_requeued_held": "held",
}


class PodInfo(wire.Record, rename="camel"):
    """The comment that the operator writes on a Slurm node: which pod it is."""

    namespace: str
    pod_name: str
    node_set_name: str = wire.field(name="nodeSetName")
    node: str = ""


_decode = wire.decoder(PodInfo)


@lru_cache(maxsize=65536)
def pod_info(comment: str) -> PodInfo | None:
    """Which pod a Slurm node is; None where the comment is not the operator's."""
    if not comment.startswith("{"):
        return None
    try:
        return _decode(comment)
    except wire.DecodeError:
        return None


def pool(node: SlurmNode) -> str:
    """The NodeSet of a node; of one elsewhere its first feature, or else its first partition."""
    info = pod_info(node.comment)
    if info is not None:
        return info.node_set_name
    return next(iter((*node.features, *node.partitions)), "")


@lru_cache(maxsize=1024)
def base(state: NodeState) -> str:
    """The base state as Slurm prints it."""
    return next((word for word in _BASES if word in state.words), "UNKNOWN")


@lru_cache(maxsize=1024)
def is_power_managed(state: NodeState) -> bool:
    return not state.words.isdisjoint(POWER_MANAGED)


@lru_cache(maxsize=1024)
def is_unavailable(state: NodeState) -> bool:
    """No job can use it, for another reason than power saving."""
    if is_power_managed(state):
        return False
    words = state.words
    return (
        state.is_down
        or state.is_unresponsive
        or (NodeBase.IDLE in words and NodeFlag.DRAIN in words)
        or base(state) in ("UNKNOWN", "ERROR")
        or NodeFlag.FAIL in words
        or NodeBase.INVALID in words
        or NodeFlag.INVALID_REG in words
    )


@lru_cache(maxsize=1024)
def is_failed(state: NodeState) -> bool:
    return (state.is_down or NodeFlag.DRAIN in state.words) and not is_power_managed(state)


@lru_cache(maxsize=1024)
def is_draining(state: NodeState) -> bool:
    """Drained by somebody, with jobs still there."""
    words = state.words
    return NodeFlag.DRAIN in words and not words.isdisjoint({NodeBase.ALLOCATED, NodeBase.MIXED})


@lru_cache(maxsize=1024)
def state_class(state: NodeState) -> str:
    """One word for a node: what keeps it from taking jobs comes before what it does."""
    if state.is_powered_off:
        return "powered_down"
    if state.is_down or state.is_failing or state.base in (None, NodeBase.UNKNOWN, NodeBase.FUTURE):
        return "down"
    if state.is_unresponsive:
        return "not_responding"
    if state.is_drain:
        return "draining" if state.is_busy else "drained"
    if NodeFlag.POWERING_UP in state.words:
        return "powering_up"
    if state.is_in_maintenance:
        return "maintenance"
    if NodeBase.ALLOCATED in state.words:
        return "allocated"
    return "mixed" if state.is_busy else "idle"


# Where the part of a node that no job has is counted.
UNUSED: Final = {
    "powered_down": "down",
    "down": "down",
    "not_responding": "down",
    "drained": "drained",
    "draining": "drained",
    "maintenance": "drained",
    "powering_up": "down",
    "allocated": "idle",
    "mixed": "idle",
    "idle": "idle",
}


def owner(node: SlurmNode) -> str:
    """Who keeps the node from taking jobs: the operator, Slurm, a user, or nobody."""
    if node.is_drained_by_us:
        return "operator"
    if node.is_drained_by_slurm or node.is_marked_by_slurm:
        return "slurm"
    if node.state.is_drain or node.reason:
        return "user"
    return "none"


@lru_cache(maxsize=1024)
def job_state(state: JobState) -> str:
    """The base state as Slurm prints it; of a newer Slurm whatever it says."""
    return state.base or next(iter(sorted(state.words)), "")


@lru_cache(maxsize=4096)
def reason_class(reason: str) -> str:
    """Why a job waits, in one of a dozen words."""
    word = reason.partition(",")[0].strip().strip("()")
    if word in _CLASSES:
        return _CLASSES[word]
    if "Held" in word or "Hold" in word:
        return "held"
    if word.startswith(("QOS", "Assoc")) or "Limit" in word:
        return "limit"
    return "other" if word else "none"
