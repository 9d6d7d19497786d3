"""Pods that ended on their own: each time one is made again, the next pause is longer.

A machine that refuses a pod, or evicts it, does so again a moment later. How often that has happened is known
nowhere but in the status.
"""

from datetime import datetime, timedelta

from slurm_operator.backoff import backoff_seconds
from slurm_operator.plan.actions import Create, DeleteWorker
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.workers import Worker

# A pod that ended is left for people to look at for so long, counted from when it was made.
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)

# One that has lived for longer than this did not fail because of where it is.
LIVED = 2 * LONGEST_PAUSE


def due_in(worker: Worker, seen: Seen, now: datetime) -> timedelta:
    """How long until a pod that ended makes room for the next one."""
    failed = seen.nodeset.status.failures.get(worker.name, 0)
    pause = backoff_seconds(
        failed, first_seconds=FIRST_PAUSE.total_seconds(), longest_seconds=LONGEST_PAUSE.total_seconds()
    )
    return timedelta(seconds=pause) - _age(worker, now)


def look_again(seen: Seen, now: datetime) -> Step:
    return look(due_in(worker, seen, now) for worker in seen.workers if worker.pod.has_ended)


def remembered(seen: Seen, plan: Plan, outcome: Outcome) -> dict[str, int]:
    """For the status: how often in a row each pod has ended. Forgotten when it lives, or nobody comes."""
    before, ended = seen.nodeset.status.failures, _ended_now(seen, outcome)
    if not before and not ended:
        return {}
    young = {worker.name for worker in seen.workers if _age(worker, seen.now) <= LIVED}
    coming = {a.manifest["metadata"].get("name") for a in plan.actions() if isinstance(a, Create)}
    kept = {name: count for name, count in before.items() if name in young | coming}
    return {**kept, **{name: kept.get(name, 0) + 1 for name in sorted(ended)}}


def _ended_now(seen: Seen, outcome: Outcome) -> set[str]:
    """Pods that had ended and were deleted in this pass."""
    ended = {worker.name for worker in seen.workers if worker.pod.has_ended}
    return ended & {action.key.name for action in outcome.done if isinstance(action, DeleteWorker)}


def _age(worker: Worker, now: datetime) -> timedelta:
    return now - (worker.pod.metadata.creation_timestamp or now)
