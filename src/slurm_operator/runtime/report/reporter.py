"""Telling people: status where it differs, events for what was done, one log line per decision."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import structlog

from slurm_operator.api.schema import codec
from slurm_operator.api.schema.crd import root_schema
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.conditions import Reason
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.kube.events import Recorder, regarding
from slurm_operator.kube.served_schemas import Schema, ServedSchemas, completed, fitting, is_schema_trouble
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Action, Wait, subject
from slurm_operator.plan.conditions import Condition, settled
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.runtime.act.refused_writes import Asked, Refusals, is_passing, is_refusal
from slurm_operator.runtime.report import event_batches
from slurm_operator.runtime.report.event_batches import News, Words
from slurm_operator.runtime.report.ready_events import Readiness
from slurm_operator.runtime.report.status_throttle import StatusThrottle, is_mere_progress, is_on_its_way
from slurm_operator.runtime.world.caches import Caches

log = structlog.get_logger("slurm_operator.decisions")


# Nothing goes on until a person has corrected something.
REFUSED = frozenset(
    {
        Reason.BRAKE_ON,
        Reason.CONFIG_PUT_BACK,
        Reason.CONFIG_REFUSED,
        Reason.FILES_COLLIDE,
        Reason.FILES_TOO_LARGE,
        Reason.REHEARSAL_REFUSED,
        Reason.SPEC_REFUSED,
    }
)


class Told(NamedTuple):
    """What became of a status: what went wrong, in the API server's words, or how long it still waits."""

    trouble: str | None = None
    waits_seconds: float = 0.0


TOLD = Told()


class Reporter:
    """Speaks for every reconciler, in the plan's own words."""

    def __init__(
        self, client: Client, known: Caches, recorder: Recorder, served: ServedSchemas | None = None
    ) -> None:
        self._client = client
        self._known = known
        self._served = served
        self._news = News(recorder)
        self._pace = StatusThrottle()
        self._readiness = Readiness()
        self._refusals = Refusals()
        self._waits_told: dict[tuple[str, ObjectKey], frozenset[Wait]] = {}
        self._without_effect: dict[str, str] = {}
        self._spoke: set[tuple[str, ObjectKey]] = set()

    def tell(self, reconciler: Reconciler[Any], about: HasMeta, plan: Plan, outcome: Outcome) -> None:
        """Events and log lines for what this pass did, could not do, and newly waits for."""
        self._tell_waits(reconciler, about, plan)
        tried = [failure for failure in outcome.failed if not failure.is_held]
        if not (outcome.done or tried):
            return
        where = regarding(reconciler.kind, about.metadata)
        say = log.bind(reconciler=reconciler.name, key=str(key_of(about)))
        done = [action for action in outcome.done if not isinstance(action, Wait)]
        for action in done:
            say.info(action.message, **_words(action))
        for failure in tried:
            say.warning(failure.error, **_words(failure.action))
        for words in event_batches.of_pass(done, tried):
            self._news.tell(where, words)

    def _tell_waits(self, reconciler: Reconciler[Any], about: HasMeta, plan: Plan) -> None:
        """A wait is told once, not on every pass that it lasts. What a person has to fix is an event, too."""
        name, key = reconciler.name, key_of(about)
        waits, told = frozenset(plan.waits), self._waits_told.pop((name, key), frozenset())
        say = log.bind(reconciler=name, key=str(key))
        for wait in sorted(waits - told, key=str):
            if wait.reason not in REFUSED:
                say.info(wait.message, **_words(wait))
                continue
            say.warning(wait.message, **_words(wait))
            if not _is_in_status(about, wait):  # Another process of ours has said it.
                where = regarding(reconciler.kind, about.metadata)
                self._news.tell(where, Words(wait.reason, (wait.message,), "Warning", at_once=True))
        if waits:
            self._waits_told[name, key] = waits

    def forget(self, name: str, key: ObjectKey) -> None:
        self._waits_told.pop((name, key), None)
        self._spoke.discard((name, key))
        self._readiness.forget((name, key))
        self._refusals.forget((name, key))
        self._pace.settle((name, key))

    def flush(self) -> None:
        """Hand over the events that wait for more: for the end of a process.

        Progress that was not told is not: the next pass sees it again.
        """
        self._news.flush()

    def is_told_before(self, reconciler: Reconciler[Any], about: HasMeta) -> bool:
        """Whether another process before us has spoken about the spec as it is now, and we have not yet."""
        conditions = (codec.plain(getattr(about, "status", None)) or {}).get("conditions") or ()
        generations = {condition.get("observedGeneration") for condition in conditions}
        has_spoken = (reconciler.name, key_of(about)) in self._spoke
        return not has_spoken and generations == {about.metadata.generation}

    async def write_status(
        self, reconciler: Reconciler[Any], about: HasMeta, report: StatusReport, now: datetime
    ) -> Told:
        """Write `.status` if it differs, and if that cannot wait."""
        who = (reconciler.name, key_of(about))
        live = codec.plain(getattr(about, "status", None)) or {}
        schema = await self._schema(reconciler)
        status = fitting(full_status(report, live, generation=about.metadata.generation, now=now), schema)
        before, wanted = _without_blanks(fitting(live, schema)), _without_blanks(status)
        if not is_on_its_way(wanted):
            self._news.arrived(about.metadata.uid)
        if before == wanted or self._without_effect.get(about.metadata.uid) == digest(status):
            self._pace.settle(who)
            return TOLD
        if is_mere_progress(before, wanted, reconciler.urgent_status_fields):
            left = self._pace.left_seconds(who, asyncio.get_running_loop().time())
            if left:
                return Told(waits_seconds=left)
        # Whatever it says: what is wrong with one is wrong with the next, until somebody changes something.
        asked = Asked("status", lambda: f"{about.metadata.uid} {about.metadata.generation}")
        if (held := self._refusals.held(who, asked)) is not None:
            return Told(waits_seconds=held[1])
        try:
            manifest = _status_manifest(reconciler, about, completed(wanted, schema))
            written = await self._client.apply_status(reconciler.kind, manifest)
        except NotFound:
            return TOLD
        except KubeError as error:
            if await self._is_about_old_schema(reconciler, error):
                return await self.write_status(reconciler, about, report, now)
            if not is_refusal(error):
                return Told(trouble=str(error))
            seconds = self._refusals.note(who, asked, str(error), passing=is_passing(error))
            log.warning("status refused", reconciler=reconciler.name, key=str(who[1]), error=str(error))
            return Told(waits_seconds=seconds)
        self._refusals.taken(who, asked)
        self._pace.settle(who)
        self._spoke.add(who)
        self._learn(about, status, written)
        self._known.note_written(reconciler.kind, written)
        words = self._readiness.news(who, live, report.conditions, about.metadata.generation)
        if words is not None:
            self._news.tell(regarding(reconciler.kind, about.metadata), words)
        return TOLD

    async def _schema(self, reconciler: Reconciler[Any]) -> Schema:
        """What the server takes for a status; an empty one, which takes everything, where nobody can tell."""
        if self._served is None:
            return {}
        return await self._served.status_of(reconciler.kind, _status_schema(reconciler.about)) or {}

    async def _is_about_old_schema(self, reconciler: Reconciler[Any], error: KubeError) -> bool:
        """Whether the CRD was exchanged for one with fewer fields since its schema was read."""
        if self._served is None or not is_schema_trouble(error):
            return False
        return await self._served.has_changed(reconciler.kind)

    def _learn(self, about: HasMeta, status: Manifest, written: Manifest) -> None:
        """A write that changed nothing (the difference is not ours) is not repeated until we want more."""
        if written["metadata"].get("resourceVersion") == about.metadata.resource_version:
            self._without_effect[about.metadata.uid] = digest(status)
        else:
            self._without_effect.pop(about.metadata.uid, None)


def full_status(report: StatusReport, live: Mapping[str, Any], *, generation: int, now: datetime) -> Manifest:
    """The whole `.status` to write, with the times at which conditions last changed carried over."""
    old = [codec.read(Condition, condition) for condition in live.get("conditions") or ()]
    conditions = settled(report.conditions, old, generation=generation, now=now)
    return {**codec.plain(report.fields), "conditions": codec.plain(conditions)}


def _status_manifest(reconciler: Reconciler[Any], about: HasMeta, status: Manifest) -> Manifest:
    metadata = {"name": about.metadata.name, "namespace": about.metadata.namespace, "uid": about.metadata.uid}
    return {
        "apiVersion": reconciler.kind.api_version,
        "kind": reconciler.kind.kind,
        "metadata": metadata,
        "status": status,
    }


@cache
def _status_schema(model: type[Any]) -> Schema:
    schema: Schema = root_schema(model)["properties"]["status"]
    return schema


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


def _is_in_status(about: HasMeta, wait: Wait) -> bool:
    conditions = getattr(getattr(about, "status", None), "conditions", None) or ()
    return any(wait.message in condition.message for condition in conditions)


def _words(action: Action) -> dict[str, str]:
    return {"action": type(action).__name__, "subject": subject(action), "reason": action.reason}
