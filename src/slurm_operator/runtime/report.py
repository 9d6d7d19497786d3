"""Telling people: status where it differs, events for what was done, one log line per decision."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import structlog

from slurm_operator.api import reading
from slurm_operator.api.conditions import DEGRADED, READY, Truth
from slurm_operator.api.meta import HasMeta, ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.kube.events import Recorder, regarding
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Action, Tell, Wait, subject
from slurm_operator.plan.conditions import Condition, settled
from slurm_operator.plan.plan import Failure, Outcome, Plan
from slurm_operator.plan.wiring import Reconciler, StatusReport
from slurm_operator.runtime.known import Known

log = structlog.get_logger("slurm_operator.decisions")

# An event has room for a thousand letters; the log has a line for each.
TOLD_AT_ONCE = 3


class Reporter:
    """Speaks for every reconciler, in the plan's own words."""

    def __init__(self, client: Client, known: Known, recorder: Recorder) -> None:
        self._client = client
        self._known = known
        self._recorder = recorder
        self._waits_told: dict[tuple[str, ObjectKey], frozenset[Wait]] = {}
        self._without_effect: dict[str, str] = {}
        self._spoke: set[tuple[str, ObjectKey]] = set()

    def tell(self, reconciler: Reconciler[Any], about: HasMeta, plan: Plan, outcome: Outcome) -> None:
        """Events and log lines for what this pass did, could not do, and newly waits for."""
        self._tell_waits(reconciler.name, key_of(about), plan)
        if not (outcome.done or outcome.failed):
            return
        where = regarding(reconciler.kind, about.metadata)
        say = log.bind(reconciler=reconciler.name, key=str(key_of(about)))
        done = [action for action in outcome.done if not isinstance(action, Wait)]
        for action in done:
            say.info(action.message, **_words(action))
        for failure in outcome.failed:
            say.warning(failure.error, **_words(failure.action))
        for words in events(done, outcome.failed):
            self._recorder.record(where, words.reason, words.note, type_=words.type)

    def _tell_waits(self, name: str, key: ObjectKey, plan: Plan) -> None:
        """A wait is told once, not on every pass that it lasts."""
        waits, told = frozenset(plan.waits), self._waits_told.pop((name, key), frozenset())
        for wait in sorted(waits - told, key=str):
            log.info(wait.message, reconciler=name, key=str(key), **_words(wait))
        if waits:
            self._waits_told[name, key] = waits

    def forget(self, name: str, key: ObjectKey) -> None:
        self._waits_told.pop((name, key), None)
        self._spoke.discard((name, key))

    def is_told_before(self, reconciler: Reconciler[Any], about: HasMeta) -> bool:
        """Whether another process before us has spoken about the spec as it is now, and we have not yet."""
        conditions = (reading.plain(getattr(about, "status", None)) or {}).get("conditions") or ()
        generations = {condition.get("observedGeneration") for condition in conditions}
        has_spoken = (reconciler.name, key_of(about)) in self._spoke
        return not has_spoken and generations == {about.metadata.generation}

    async def write_status(
        self, reconciler: Reconciler[Any], about: HasMeta, report: StatusReport, now: datetime
    ) -> str | None:
        """Write `.status` if it differs. Gives what went wrong, in the API server's words, or None."""
        live = reading.plain(getattr(about, "status", None)) or {}
        status = full_status(report, live, generation=about.metadata.generation, now=now)
        if _without_blanks(live) == _without_blanks(status):
            return None
        if self._without_effect.get(about.metadata.uid) == digest(status):
            return None
        try:
            written = await self._client.apply_status(
                reconciler.kind, _status_manifest(reconciler, about, status)
            )
        except NotFound:
            return None
        except KubeError as error:
            return str(error)
        self._spoke.add((reconciler.name, key_of(about)))
        self._learn(about, status, written)
        self._known.note_written(reconciler.kind, written)
        self._tell_transition(reconciler, about, report, live)
        return None

    def _learn(self, about: HasMeta, status: Manifest, written: Manifest) -> None:
        """A write that changed nothing (the difference is not ours) is not repeated until we want more."""
        if written["metadata"].get("resourceVersion") == about.metadata.resource_version:
            self._without_effect[about.metadata.uid] = digest(status)
        else:
            self._without_effect.pop(about.metadata.uid, None)

    def _tell_transition(
        self, reconciler: Reconciler[Any], about: HasMeta, report: StatusReport, live: Mapping[str, Any]
    ) -> None:
        """An event when Ready changes side or reason, so that `kubectl describe` tells the story."""
        before = {c["type"]: (c["status"], c["reason"]) for c in live.get("conditions") or ()}
        where = regarding(reconciler.kind, about.metadata)
        is_bad = any(c.type == DEGRADED and c.status is Truth.TRUE for c in report.conditions)
        for condition in report.conditions:
            is_same = before.get(condition.type) == (condition.status, condition.reason)
            if condition.type == READY and not is_same:
                self._recorder.record(
                    where, condition.reason, condition.message, type_="Warning" if is_bad else "Normal"
                )


class Words(NamedTuple):
    """One event."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"]


def events(done: Iterable[Action], failed: Iterable[Failure]) -> list[Words]:
    """What happened, one event per reason: a thousand new workers are one piece of news, not a thousand."""
    notes: dict[tuple[str, Literal["Normal", "Warning"]], list[str]] = {}
    for action in done:
        is_bad = isinstance(action, Tell) and action.warning
        notes.setdefault((action.reason, "Warning" if is_bad else "Normal"), []).append(action.message)
    for failure in failed:
        note = f"{failure.action.message}: {failure.error}"
        notes.setdefault((failure.action.reason, "Warning"), []).append(note)
    return [Words(reason, _together(told), type_) for (reason, type_), told in notes.items()]


def _together(told: Sequence[str]) -> str:
    """The first few of these sentences."""
    more = len(told) - TOLD_AT_ONCE
    return "; ".join(told[:TOLD_AT_ONCE]) + (f"; and {more} more of the kind" if more > 0 else "")


def full_status(report: StatusReport, live: Mapping[str, Any], *, generation: int, now: datetime) -> Manifest:
    """The whole `.status` to write, with the times at which conditions last changed carried over."""
    old = [reading.read(Condition, condition) for condition in live.get("conditions") or ()]
    conditions = settled(report.conditions, old, generation=generation, now=now)
    return {**reading.plain(report.fields), "conditions": reading.plain(conditions)}


def _status_manifest(reconciler: Reconciler[Any], about: HasMeta, status: Manifest) -> Manifest:
    metadata = {"name": about.metadata.name, "namespace": about.metadata.namespace, "uid": about.metadata.uid}
    return {
        "apiVersion": reconciler.kind.api_version,
        "kind": reconciler.kind.kind,
        "metadata": metadata,
        "status": _without_blanks(status),
    }


def _without_blanks(value: Any) -> Any:
    """Without what Go would leave out: absent, null and empty are the same in a status."""
    match value:
        case dict():
            kept = {key: _without_blanks(item) for key, item in value.items()}
            return {key: item for key, item in kept.items() if item not in (None, "", [], {}, ())}
        case list() | tuple():
            return [_without_blanks(item) for item in value]
        case _:
            return value


def _words(action: Action) -> dict[str, str]:
    return {"action": type(action).__name__, "subject": subject(action), "reason": action.reason}
