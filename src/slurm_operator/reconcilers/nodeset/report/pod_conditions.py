"""What Slurm says about a worker, written on its pod: conditions for people, a deadline for autoscalers.

Written only where something changed, so a worker that does nothing costs nothing. The pod itself says it; an
event there is only about what others drained. Without an answer from Slurm everything stays as last known.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import PodCondition
from slurm_operator.plan.actions import Action, PatchObject, Tell
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset.annotations import marked
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.states import NodeBase, NodeFlag, NodeState

# The states that other people's tools look for. Flags that only the scheduler cares about, such as PLANNED,
# come and go all the time and are not told.
TOLD = {
    NodeBase.ALLOCATED: "Allocated",
    NodeBase.DOWN: "Down",
    NodeBase.ERROR: "Error",
    NodeBase.FUTURE: "Future",
    NodeBase.IDLE: "Idle",
    NodeBase.MIXED: "Mixed",
    NodeBase.UNKNOWN: "Unknown",
    NodeBase.INVALID: "Invalid",
    NodeFlag.COMPLETING: "Completing",
    NodeFlag.DRAIN: "Drain",
    NodeFlag.FAIL: "Fail",
    NodeFlag.INVALID_REG: "InvalidReg",
    NodeFlag.MAINTENANCE: "Maintenance",
    NodeFlag.NOT_RESPONDING: "NotResponding",
    NodeFlag.UNDRAIN: "Undrain",
}
DRAIN = names.POD_CONDITION_PREFIX + TOLD[NodeFlag.DRAIN]


def condition_writes(worker: Worker, at: str) -> list[Lane]:
    """What to write on this pod now. First its deadline; a pod that changed is looked at again anyway.

    `at` is the present time, `written` once for all.
    """
    if isinstance(worker.slurm, Unreachable) or worker.is_terminating or worker.pod.has_ended:
        return []
    if _is_taking_over(worker):
        return []
    noted = _deadline(worker)
    stages = [noted] if noted else [_conditions(worker, at), _news_of_drain(worker)]
    return [lane(f"facts of {worker.slurm_node}", *stages, is_note=True)] if any(stages) else []


def _is_taking_over(worker: Worker) -> bool:
    """Slurm still has our drain of the worker before it. It is lifted at once, and told of when it is."""
    return worker.drain is not None and not worker.is_drained_itself


def _deadline(worker: Worker) -> list[PatchObject]:
    deadline = worker.deadline
    text = kubernetes_time(deadline) if deadline is not None else None
    if worker.pod.metadata.annotations.get(names.POD_DEADLINE) == text:
        return []
    until = f"has jobs until {text}" if text else "has no jobs"
    return marked(
        worker,
        Reason.DEADLINE,
        f"{worker.slurm_node} {until} at the latest",
        annotations={names.POD_DEADLINE: text},
        is_housekeeping=True,
    )


def wanted_conditions(record: SlurmNode | None) -> dict[str, str]:
    """Condition types and their message; none for a worker that is not registered."""
    if record is None:
        return {}
    return dict.fromkeys(_types(record.state), record.reason)


@cache
def _types(state: NodeState) -> tuple[str, ...]:
    """There are few states and many workers."""
    return tuple(names.POD_CONDITION_PREFIX + told for word, told in TOLD.items() if word in state)


def _conditions(worker: Worker, at: str) -> list[Action]:
    there = worker.pod.status.conditions
    record = worker.known_record
    operations = tuple(_operations(there, wanted_conditions(record), at))
    if not operations:
        return []
    state = record.state if record is not None else "not registered"
    return [
        PatchObject(
            kind=kinds.POD,
            key=key_of(worker.pod),
            uid=worker.uid,
            operations=operations,
            subresource="status",
            reason=Reason.SLURM_STATE,
            message=f"{worker.slurm_node} is {state} in Slurm",
            is_housekeeping=True,
        )
    ]


def _operations(
    there: Sequence[PodCondition], wanted: dict[str, str], at: str
) -> Iterator[dict[str, object]]:
    """From the last to the first, so that no place moves before its turn. Each tests who is there."""
    missing = dict(wanted)
    for place, condition in reversed(list(enumerate(there))):
        if not condition.type.startswith(names.POD_CONDITION_PREFIX):
            continue
        message = missing.pop(condition.type, None)
        if message == condition.message and condition.status == "True":
            continue
        path = f"/status/conditions/{place}"
        yield {"op": "test", "path": f"{path}/type", "value": condition.type}
        if message is None:
            yield {"op": "remove", "path": path}
        else:
            yield {"op": "replace", "path": path, "value": _condition(condition.type, message, at)}
    for type_, message in sorted(missing.items()):
        yield {"op": "add", "path": "/status/conditions/-", "value": _condition(type_, message, at)}


def _condition(type_: str, message: str, at: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": "True",
        "message": message,
        "lastTransitionTime": at,
    }


def kubernetes_time(moment: datetime) -> str:
    """As Kubernetes writes it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _news_of_drain(worker: Worker) -> list[Tell]:
    """Somebody else's drain, when it appears; ours are told by whoever makes them."""
    record, shown = worker.record, worker.pod.status.condition(DRAIN)
    if record is None or not record.is_drained_by_others or (shown and shown.message == record.reason):
        return []
    by, given = record.reason_by
    who, why = by or "somebody", f": {given}" if given else ", without a reason"
    message = f"{who} drained {record.name} in Slurm{why}. It takes no new jobs until that is lifted there"
    return [Tell(subject=record.name, reason=Reason.SLURM_NODE_DRAINED, message=message, warning=True)]
