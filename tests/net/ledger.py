"""What one pass decided and what it said, taken apart, and digests over many of them."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.plan.actions import Action, WriteSlurm, subject
from slurm_operator.plan.plan import Plan
from slurm_operator.plan.reconciler import StatusReport

# What users read, or find in Slurm: sentences, and reasons of drains that hold one.
SENTENCES = {"message", "comment", "admin_comment", "comment_over", "drained_for"}
OF_WRITES = {"reason", "over"}


class Ledger:
    """Collects passes. `decisions` and `texts` are their digests so far."""

    def __init__(self) -> None:
        self._decisions, self._texts = hashlib.sha256(), hashlib.sha256()
        self.passes = 0

    def note(self, who: str, plan: Plan, report: StatusReport | None) -> None:
        self.passes += 1
        texts: list[Any] = []
        decided = [who, *_plan(plan, texts), *(_report(report, texts) if report is not None else ())]
        self._decisions.update(wire.encode(decided) + b"\n")
        self._texts.update(wire.encode([who, *texts]) + b"\n")

    @property
    def decisions(self) -> str:
        return self._decisions.hexdigest()[:16]

    @property
    def texts(self) -> str:
        return self._texts.hexdigest()[:16]


def _plan(plan: Plan, texts: list[Any]) -> list[Any]:
    lanes = [
        [lane.name, lane.is_note, [[_action(action, texts) for action in stage] for stage in lane.stages]]
        for lane in plan.lanes
    ]
    return [lanes, _plain(plan.look_again), _plain(plan.waits_on)]


def _action(action: Action, texts: list[Any]) -> list[Any]:
    fields = _fields(action, SENTENCES, texts)
    if isinstance(action, WriteSlurm):
        fields["write"] = [
            type(action.write).__name__,
            _fields(action.write, SENTENCES | OF_WRITES, texts),
        ]
    return [type(action).__name__, subject(action), fields]


def _fields(record: Any, sentences: set[str], texts: list[Any]) -> dict[str, Any]:
    """The fields of a record; sentences go to the texts."""
    kept = {}
    for name in record.__struct_fields__:
        value = _plain(getattr(record, name))
        if name in sentences:
            texts.append(value)
        else:
            kept[name] = value
    return kept


def _report(report: StatusReport, texts: list[Any]) -> list[Any]:
    texts.extend(condition.message for condition in report.conditions)
    conditions = [[c.type, str(c.status), c.reason] for c in report.conditions]
    return [conditions, _plain(codec.plain(report.fields))]


def _plain(value: Any) -> Any:
    """As JSON, the same in every process: sets in order, records by their fields."""
    match value:
        case Kind():
            return str(value)
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case Mapping():
            return {
                str(key): _plain(inner) for key, inner in sorted(value.items(), key=lambda it: str(it[0]))
            }
        case set() | frozenset():
            return sorted(map(_plain, value))
        case list() | tuple():
            return [_plain(item) for item in value]
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case _:
            return value
