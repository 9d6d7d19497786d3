"""What a change that is under way waits for: down to the worker, the job or the key that holds it up."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_operator.api.shared.conditions import PROGRESSING
from slurm_operator.insight.evaluation import Verdict
from slurm_operator.insight.explain.chain import Case, Link
from slurm_operator.insight.forecast.differences import Difference, differences
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.nodeset.creation.revisions import changed_intent
from slurm_operator.reconcilers.nodeset.departures import rollout
from slurm_operator.reconcilers.nodeset.observe import Seen as Workers
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import jobs_text

# So many changed fields and waits are told; of the others their number.
_MOST_FIELDS = 3
_MOST_WAITS = 3


def held_up_by(found: Verdict) -> Iterator[Link]:
    """Why something changes, and what it waits for, as the operator's own plan says."""
    said = found.condition(PROGRESSING)
    told = said.message if said is not None else ""
    if isinstance(found.seen, Workers):
        yield from _replaced(found.name, found.seen)
        yield from _slot(found.name, found.seen)
    waits = [wait for wait in found.plan.waits if wait.message not in told]
    yield from (_link(found, wait) for wait in waits[:_MOST_WAITS])


def _link(found: Verdict, wait: Wait) -> Link:
    subject = wait.subject if wait.subject not in found.name else found.name
    return Link(subject=subject, says=f"{wait.reason}: {wait.message.rstrip('.')}.")


def _replaced(name: str, seen: Workers) -> Iterator[Link]:
    """What is different between the spec and what its former workers were made from."""
    former = seen.former
    if not former:
        return
    changes = [one for one in _changes(seen, former[0].revision) if one.field]
    number = f"{len(former)} worker{'s' if len(former) > 1 else ''}"
    if not changes:
        yield Link(subject=name, says=f"is replacing {number} of revision {former[0].revision}.")
        return
    told = "; ".join(_change(one) for one in changes[:_MOST_FIELDS])
    more = f"; and {len(changes) - _MOST_FIELDS} more fields" if len(changes) > _MOST_FIELDS else ""
    yield Link(subject=name, says=f"is replacing {number} because their spec changed: {told}{more}.")


def _changes(seen: Workers, revision: str) -> list[Difference]:
    pair = changed_intent(seen.nodeset, seen.revisions, revision)
    if pair is None:
        return []
    before, after = pair
    # A part that was not there is one without fields: then its fields are told, and not the whole of it.
    parts = {key for one in pair for key, value in one.items() if isinstance(value, Mapping)}
    empty: dict[str, Any] = {key: {} for key in parts}
    return list(differences({**empty, **before}, {**empty, **after}))


def _change(one: Difference) -> str:
    if "\n" in one.before + one.after or len(one.before) + len(one.after) > 80:
        return f"spec.{one.field}"
    return f"spec.{one.field} from {one.before or 'nothing'} to {one.after or 'nothing'}"


def _slot(name: str, seen: Workers) -> Iterator[Link]:
    """A busy worker that is being replaced keeps idle ones waiting, where no more may be away at once."""
    busy = [worker for worker in seen.former if _is_replaced(worker) and worker.jobs]
    idle = [worker for worker in seen.former if not _is_replaced(worker) and not worker.jobs]
    if not busy or not idle:
        return
    slots = rollout.budget(seen, seen.nodeset.status.desired or len(seen.workers))
    which = "the only rollout slot" if slots == 1 else f"one of {slots} rollout slots"
    who = first_few([worker.slurm_node for worker in idle], _MOST_WAITS)
    verb = "wait" if len(idle) > 1 else "waits"
    yield Link(
        subject=f"Worker {busy[0].slurm_node}",
        says=f"holds {which} (updateStrategy.rollingUpdate.maxUnavailable) with {jobs_text(busy[0].jobs)}; "
        f"{who} {verb} for it, though idle.",
    )


def _is_replaced(worker: Worker) -> bool:
    return worker.drain is not None and worker.drain.cause in (Leaving.UPDATE, Leaving.RESOURCES)


def chain(found: Verdict, case: Case) -> list[Link]:
    """From an object that is changing to what holds it up; empty where its own words say all."""
    return list(held_up_by(found)) if case.is_whole else []
