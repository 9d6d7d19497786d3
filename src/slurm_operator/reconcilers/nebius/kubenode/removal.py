"""When a Kubernetes node is deleted, so that its provider makes another one. Off, unless flags ask for it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import node_conditions
from slurm_operator.api.schema import durations
from slurm_operator.api.shared.meta import key_of
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, DeleteKubeNode, Wait, WorkerOnNode
from slurm_operator.reconcilers.nebius.kubenode.braking import is_overdue, overdue_in
from slurm_operator.reconcilers.nebius.kubenode.marks import Case
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen, Tells
from slurm_operator.safety.gate import Candidate
from slurm_operator.safety.kube_node_removal import why_not_removed

IS_EMPTY: Final = Reason.KUBE_NODE_IS_EMPTY
NOT_DELETED: Final = Reason.KUBE_NODE_NOT_DELETED


def removal(case: Case, now: datetime) -> Iterator[Action]:
    if not case.seen.options.follows_conditions:
        return
    if is_emptied(case):
        yield from _for_maintenance(case, now)
    elif case.seen.options.deletes_not_ready and case.seen.workers and is_overdue(case.seen, now):
        yield from _lost(case, now)


def removal_in(seen: Seen, now: datetime) -> timedelta | None:
    """When that is looked at again without anybody saying so."""
    options = seen.options
    if not (options.deletes_not_ready and options.follows_conditions and seen.workers):
        return None
    left = overdue_in(seen, now)
    return max(left, timedelta(seconds=1)) if left is not None and left > timedelta(0) else None


def is_emptied(case: Case) -> bool:
    """The rebooter says that it is empty, and maintenance is still called for."""
    drain = case.mark(node_conditions.DRAIN)
    is_drained = drain.is_on and drain.reason == node_conditions.DRAINED
    is_in_maintenance = case.mark(node_conditions.MAINTENANCE).is_on and case.seen.call is Tells.YES
    return is_drained and is_in_maintenance and not case.seen.is_ignored


def _for_maintenance(case: Case, now: datetime) -> Iterator[Action]:
    name = case.seen.name
    if not case.seen.options.deletes_drained:
        message = (
            f"Kubernetes node {name} is empty and may be replaced. This operator deletes no Node: its "
            "provider does, or you do, or start the operator with --delete-drained-nodes."
        )
        yield Wait(subject=name, reason=IS_EMPTY, message=message)
        return
    yield _deletion(
        case, now, Reason.DELETED_FOR_MAINTENANCE, f"deleted Node {name}: it is empty, for maintenance"
    )


def _lost(case: Case, now: datetime) -> Iterator[Action]:
    if case.brake.is_on:
        return
    timeout = durations.text(case.seen.options.not_ready_timeout)
    message = f"deleted Node {case.seen.name}: it was not ready for more than {timeout}, and no job is there"
    yield _deletion(case, now, Reason.DELETED_NOT_READY, message)


def _deletion(case: Case, now: datetime, reason: Reason, message: str) -> Action:
    seen = case.seen
    candidates = [Candidate(one.pod, one.slurm_node, one.slurm, one.state_lost_since) for one in seen.workers]
    if seen.strangers:
        other = f"{seen.strangers[0]} is there, a worker of another API"
        told = f"Kubernetes node {seen.name} is not deleted: {other}."
        return Wait(subject=seen.name, reason=NOT_DELETED, message=told)
    if (why := why_not_removed(candidates, now)) is not None:
        told = f"Kubernetes node {seen.name} is not deleted: {why}."
        return Wait(subject=seen.name, reason=NOT_DELETED, message=told)
    return DeleteKubeNode(
        name=seen.name,
        uid=seen.meta.uid,
        resource_version=seen.meta.resource_version,
        workers=tuple(
            WorkerOnNode(
                key=key_of(one.pod),
                uid=one.pod.metadata.uid,
                slurm_node=one.slurm_node,
                controller=one.controller,
            )
            for one in seen.workers
        ),
        reason=reason,
        message=message,
    )
