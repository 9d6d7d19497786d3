"""One pass over one object. Every reconciler in the project runs through here."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog

from slurm_operator.api.shared.meta import HasMeta, Meta, ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.manifests.defaults import NO_DEFAULTS, Defaults
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers.shared import spec_refusal
from slurm_operator.runtime.act.held_actions import Hold
from slurm_operator.runtime.act.perform import Performer, Written, wait_until_seen
from slurm_operator.runtime.act.refused_writes import Refusals
from slurm_operator.runtime.act.stages import act
from slurm_operator.runtime.loop.queue import WorkQueue
from slurm_operator.runtime.loop.retries import NEXT_PASS, Retries
from slurm_operator.runtime.metrics import Metrics
from slurm_operator.runtime.report.recording import Recorder
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.world.caches import Caches, CacheView
from slurm_operator.runtime.world.recording_world import RecordingWorld

log = structlog.get_logger(__name__)

# How long a pass waits for its own last writes to come back through the watch, and for named objects to be
# read. Both are bounded, because neither is needed for safety: only for not doing things twice.
WRITES_SEEN_WITHIN_SECONDS = 5.0
REFERENCES_READ_WITHIN_SECONDS = 5.0
# A server that has not answered at all yet is slow. To tell people so would only be taken back in a moment.
REFERENCES_SILENT_SECONDS = 30.0
# An object that the watch has not shown, and of which nobody knows that it is gone, is looked at again.
GONE_IN_SECONDS = 5.0

# Looking at one object takes a fiftieth of the time at most: with thousands of workers a pass is expensive,
# and they come by the hundred. Where that would be more than a second, a fifteenth is allowed, to be sooner.
COST_FACTOR, LARGE_COST_FACTOR = 50, 15
LONG_REST_SECONDS = 1.0


def utc_now() -> datetime:
    return datetime.now(UTC)


def rest_seconds(cost: float) -> float:
    """How long to leave an object alone after a pass that took so many seconds of work."""
    return min(COST_FACTOR * cost, max(LONG_REST_SECONDS, LARGE_COST_FACTOR * cost))


@dataclass
class Shell:
    """The hands and eyes that all passes share."""

    client: Client
    known: Caches
    reporter: Reporter
    metrics: Metrics
    retries: Retries = NEXT_PASS
    now: Callable[[], datetime] = utc_now
    spent: Callable[[], float] = time.thread_time  # Seconds of work so far; waiting is none.
    recorder: Recorder | None = None
    refusals: Refusals = field(default_factory=Refusals)
    defaults: Defaults = NO_DEFAULTS


@dataclass
class Loop:
    """One reconciler at work: its queue, and what its passes left for the next one."""

    reconciler: Reconciler[Any]
    queue: WorkQueue
    shell: Shell
    requeue_after_seconds: float | None = None
    _unseen: dict[ObjectKey, list[Written]] = field(default_factory=dict)
    _unread_since: dict[ObjectKey, float] = field(default_factory=dict)
    _waits_on: dict[ObjectKey, tuple[ObjectKey, ...]] = field(default_factory=dict)

    async def work(self, key: ObjectKey) -> None:
        """A pass that never raises: what goes wrong is logged, counted, and tried again later."""
        started = time.perf_counter()
        try:
            result = await self.reconcile(key)
        except Exception:
            delay = self.queue.retry(key)
            log.exception("pass failed", reconciler=self.reconciler.name, key=str(key), retry_seconds=delay)
            result = "error"
        self.shell.metrics.reconciled(self.reconciler.name, result, time.perf_counter() - started)

    async def reconcile(self, key: ObjectKey) -> str:
        await wait_until_seen(self._unseen.pop(key, ()), WRITES_SEEN_WITHIN_SECONDS)
        began = self.shell.spent()
        view = self.shell.known.view()
        if self._is_left_alone(view.get(self.reconciler.about, key.namespace, key.name)):
            self._forget(key)
            return "ignored"
        world = view if self.shell.recorder is None else RecordingWorld(view)
        seen = self._observe(key, view, world)
        if seen is _NOT_YET:
            return "waiting"
        there = world.get(self.reconciler.about, key.namespace, key.name)
        about = there if there is not None or seen is None else await self._gone(key, seen)
        if there is None and self._is_left_alone(about):
            self._forget(key)
            return "ignored"  # What it left behind is somebody else's.
        if seen is None or about is None:
            self._forget(key)
            if seen is not None:
                self.queue.add(key, GONE_IN_SECONDS)
            return "gone"  # Owner references take its children along.

        now, awaited = view.clock.now(), view.awaited_seconds()
        plan = spec_refusal.decide(self.reconciler, about, seen, world, now)
        self._record(key, world, plan, now)
        self.queue.hold_off(key, rest_seconds(self.shell.spent() - began))
        self._want_slurm(key, plan.waits_on)
        shell, is_wanted = self.shell, partial(self._is_wanted, about)
        hold = Hold((self.reconciler.name, key), about, shell.refusals, shell.known)
        clock, live = view.clock, partial(self._live, about)
        performer = Performer(
            shell.client,
            shell.known,
            clock.now,
            shell.retries,
            is_wanted,
            live,
            told=clock.dated,
            hold=hold,
            defaults=shell.defaults,
        )
        outcome = await act(plan, performer.perform)
        self._unseen[key] = performer.written
        shell.refusals.tidy((self.reconciler.name, key))
        if there is None:
            shell.reporter.tell(self.reconciler, about, plan, outcome)
            return self._settle(key, plan, outcome, None)
        trouble = await self._report(about, seen, plan, outcome, awaited)
        return self._settle(key, plan, outcome, trouble)

    async def _gone(self, key: ObjectKey, seen: Any) -> HasMeta | None:
        """What can be told of an object that is no more. The server has to say so: a watch may be late."""
        if self.reconciler.gone is None:
            return None
        try:
            await self.shell.client.get(self.reconciler.kind, key)
        except NotFound:
            return self.reconciler.gone(seen)
        except KubeError as error:
            log.info(
                "whether it is gone is not known",
                reconciler=self.reconciler.name,
                key=str(key),
                why=str(error),
            )
        return None

    def _is_wanted(self, about: HasMeta) -> bool:
        """Whether its spec is the one that the plan was made for, or it is being deleted: nothing stays."""
        live = self._live(about)
        if live is None or live.uid != about.metadata.uid or self._is_left_alone(about):
            return False
        return live.is_terminating or live.generation == about.metadata.generation

    def _is_left_alone(self, about: HasMeta | None) -> bool:
        """Whether it belongs to an API that is off, or that another operator acts on."""
        if about is None:
            return False
        return not self.shell.known.is_ours(self.reconciler.kind, about, self.reconciler.on_behalf_of)

    def _live(self, about: HasMeta) -> Meta | None:
        """Its metadata as it is known now."""
        found: HasMeta | None = self.shell.known.records[self.reconciler.about].get(key_of(about))
        return found.metadata if found is not None else None

    def _record(self, key: ObjectKey, world: CacheView | RecordingWorld, plan: Plan, now: datetime) -> None:
        if self.shell.recorder is not None and isinstance(world, RecordingWorld):
            name, answers = self.reconciler.name, world.answers
            self.shell.recorder.note(name, key, answers, plan, seen_at=world.now, decided_at=now)

    def _observe(self, key: ObjectKey, view: CacheView, world: CacheView | RecordingWorld) -> Any:
        """What the reconciler chose from the World, or _NOT_YET while objects it names are being read.

        They wake this key when they have been read, so a pass ends here instead of waiting. One that cannot
        be read for seconds is left to the reconciler, which sees it as Unread.
        """
        owner = (self.reconciler.name, key)
        seen = self.reconciler.observe(key, world)
        self.shell.known.want(owner, view)
        if not view.unread():
            self._unread_since.pop(key, None)
            return seen
        clock = asyncio.get_running_loop().time()
        waited = clock - self._unread_since.setdefault(key, clock)
        patience = REFERENCES_READ_WITHIN_SECONDS if view.is_refused() else REFERENCES_SILENT_SECONDS
        if waited >= patience:
            return seen
        self.queue.add(key, REFERENCES_READ_WITHIN_SECONDS)
        return _NOT_YET

    async def _report(
        self, about: HasMeta, seen: Any, plan: Plan, outcome: Outcome, awaited_seconds: float
    ) -> str | None:
        """What went wrong with it, or None. While Slurm is awaited, what was said before we began stands."""
        reporter = self.shell.reporter
        reporter.tell(self.reconciler, about, plan, outcome)
        if self.reconciler.writes_no_status:
            return None
        if (
            awaited_seconds
            and not outcome.changed_anything
            and reporter.is_told_before(self.reconciler, about)
        ):
            self.queue.add(key_of(about), awaited_seconds)
            return None
        report = spec_refusal.status(self.reconciler, seen, plan, outcome)
        told = await reporter.write_status(self.reconciler, about, report, self.shell.now())
        if told.waits_seconds:
            self.queue.add(key_of(about), told.waits_seconds)
        return told.trouble

    def _settle(self, key: ObjectKey, plan: Plan, outcome: Outcome, trouble: str | None) -> str:
        """Back off after a failure; otherwise look again when the plan says so.

        A refused write has a time of its own, and holds up nothing else.
        """
        if trouble is not None:
            log.warning("status not written", reconciler=self.reconciler.name, key=str(key), error=trouble)
        failed = [failure.retry_after or 0.0 for failure in outcome.failed if not failure.is_refused]
        refused = [failure.retry_after or 0.0 for failure in outcome.failed if failure.is_refused]
        if refused:
            self.queue.add(key, min(refused))
        if failed or trouble is not None:
            self.queue.retry(key, max(failed, default=0.0))
            return "failed"
        self.queue.reset_backoff(key)
        look_again = plan.look_again.total_seconds() if plan.look_again is not None else None
        soonest = min((s for s in (look_again, self.requeue_after_seconds) if s is not None), default=None)
        if soonest is not None:
            self.queue.add(key, soonest)
        if refused:
            return "failed"
        return "done" if plan.is_idle else "acted"

    def _want_slurm(self, key: ObjectKey, clusters: tuple[ObjectKey, ...]) -> None:
        """Have the Slurm clusters read often that this object waits for, and no longer those it does not."""
        who, before = f"{self.reconciler.name} {key}", self._waits_on.pop(key, ())
        for cluster in {*before, *clusters}:
            self.shell.known.slurms.request_polling(ObjectKey(*cluster), who, soon=cluster in clusters)
        if clusters:
            self._waits_on[key] = clusters

    def waiting_on(self, cluster: ObjectKey) -> list[ObjectKey]:
        """The objects whose last plan waits for this Slurm cluster."""
        return [key for key, clusters in self._waits_on.items() if cluster in clusters]

    def _forget(self, key: ObjectKey) -> None:
        self._want_slurm(key, ())
        self.queue.forget(key)
        self._unread_since.pop(key, None)
        self.shell.known.forget((self.reconciler.name, key))
        self.shell.reporter.forget(self.reconciler.name, key)
        self.shell.refusals.forget((self.reconciler.name, key))


_NOT_YET = object()
