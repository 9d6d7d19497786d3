"""A spec that only its author can fix: nothing is changed for it, and its object says why.

The same problems refuse a manifest in the webhook. Here they arrive when the webhook was away, or when
another object came in between.
"""

from datetime import datetime
from typing import Any, Final, TypeVar

from slurm_operator.api.schema.problems import Problem, References, Severity
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import node_set_names, older
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan, lane, plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.plan.world import World

Seen = TypeVar("Seen")

REASON: Final = Reason.SPEC_REFUSED
_STANDARD: Final = (READY, PROGRESSING, DEGRADED)


def decide(reconciler: Reconciler[Seen], about: HasMeta, seen: Seen, world: World, now: datetime) -> Plan:
    """What a reconciler decides about an object; nothing but the reason, if its spec has problems."""
    problems = [] if reconciler.validates_itself else errors(about, world)
    if not problems:
        return reconciler.decide(seen, now)
    return plan(
        lane("spec", [Wait(subject="spec", reason=REASON, message=str(problem)) for problem in problems])
    )


def status(reconciler: Reconciler[Seen], seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    """What a reconciler says about an object; that its spec is refused, if that was decided."""
    report = reconciler.status(seen, plan, outcome)
    refused = [wait.message for wait in plan.waits if wait.reason == REASON]
    if reconciler.validates_itself or not refused:
        return report
    kept = [condition for condition in report.conditions if condition.type not in _STANDARD]
    return StatusReport(conditions=[*_conditions("; ".join(refused)), *kept], fields=report.fields)


def errors(thing: Any, world: World) -> list[Problem]:
    """What is wrong with an object and has no remedy here. One that is being deleted is not held up."""
    if thing.metadata.is_terminating or not hasattr(thing, "problems"):
        return []
    found = thing.problems(None, references(thing, world))
    return [problem for problem in found if problem.severity is Severity.ERROR]


def references(thing: HasMeta, world: World) -> References:
    """What the problems of an object depend on. Of two that are in each other's way the older one stays."""
    if not isinstance(thing, NodeSet):
        return References()
    before = older(thing, world.all(NodeSet, thing.metadata.namespace))
    return References(node_set_names=node_set_names(thing, before))


def _conditions(message: str) -> list[Condition]:
    return [
        false(READY, REASON, message),
        false(PROGRESSING, REASON, "No changes will be made until the spec is fixed."),
        true(DEGRADED, REASON, message),
    ]
