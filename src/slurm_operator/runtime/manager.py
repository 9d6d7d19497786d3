"""The whole process: start in order, run, stop in reverse.

Servers first, so that probes are answered while caches fill; then the caches, which a standby keeps warm;
then the lease; then the queues. Losing the lease ends the process: another one has taken over.
"""

import asyncio
import contextlib
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog

from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, NotFound
from slurm_operator.kube.events import Recorder
from slurm_operator.kube.lease import Elector
from slurm_operator.kube.presence import IDENTITY, Installation, LeaseWatch
from slurm_operator.kube.served_schemas import ServedSchemas
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.defaults import Defaults
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.belonging import Scope, group_of
from slurm_operator.plan.reconciler import Reconciler, SlurmServer
from slurm_operator.plan.world import Protection, World
from slurm_operator.reconcilers.nebius.kubenode import NAME as KUBE_NODES
from slurm_operator.runtime.claims import Claims
from slurm_operator.runtime.loop.lag import LagMeter
from slurm_operator.runtime.loop.queue import WorkQueue
from slurm_operator.runtime.loop.reconcile import Loop, Shell
from slurm_operator.runtime.loop.retries import Retries
from slurm_operator.runtime.loop.subscriptions import subscribe
from slurm_operator.runtime.metrics import Metrics
from slurm_operator.runtime.metrics_auth import MetricsGuard, self_signed_context
from slurm_operator.runtime.other_operator import OtherOperator, Rival
from slurm_operator.runtime.report.protection import tell_of_protection
from slurm_operator.runtime.report.recording import Recorder as FlightRecorder
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.serve import health_routes, metrics_route, profile_route, serving
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.slinky_operator import SlinkyOperator
from slurm_operator.runtime.step_watch import StepWatch
from slurm_operator.runtime.worker_storage import Places, StorageWatch
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.runtime.world.sources import Sources
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS as SLURM_SECONDS
from slurm_operator.slurmsync.connections import SlurmClusters

log = structlog.get_logger(__name__)

# A loop that stood still for so long missed lease renewals and probes; starting afresh is the best cure.
LONGEST_STALL_SECONDS = 30.0

# Under this name the connections to Slurm ask for their signing keys.
CONNECTIONS = ("connections", ObjectKey("", ""))

# A burst of changes leads to one look at where the Slurm clusters are.
CONNECT_PAUSE_SECONDS = 0.05

# That the server lacks a kind is known after one answer, and a start waits for it.
FILLED_PAUSE_SECONDS = 0.05

# How long a new leader waits for the first answers of the Slurm clusters; one that hangs holds up no more.
FIRST_LOOK_SECONDS = 3.0

# How long it waits for a look at the policies that protect workers, which takes two requests.
PROTECTION_SECONDS = 1.0

# Last events are sent off within this time, or not at all, and so is the lease: another one waits for it.
LAST_WORDS_SECONDS = 5.0

# A call to the API server has this long, if nobody says otherwise.
KUBE_SECONDS = 20.0

LOST_LEASE = 3
BROKEN = 1


@dataclass(frozen=True)
class Program:
    """What an operator consists of: what it watches and who decides about it."""

    sources: Sources
    reconcilers: Sequence[Reconciler[Any]]
    slurm_servers: Callable[[World], Mapping[ObjectKey, SlurmServer]] = lambda world: {}
    says_where: tuple[type[Any], ...] = ()  # The records that `slurm_servers` looks at; none named is all.
    kinds: Registry = field(default_factory=Registry)  # Those of ours that are on.
    scope: Scope | None = None  # Whose objects are acted on; None is those of every kind that is watched.
    measured: Places | None = None  # The Kubernetes nodes of workers whose storage is read.
    rivals: tuple[Rival, ...] = ()  # Other operators that may act on them.


# Something else that runs in the same process, whether we lead or not.
Beside = Callable[[], Coroutine[Any, Any, None]] | None


class Manager:
    """One running operator."""

    def __init__(self, access: Access, program: Program, settings: Settings, beside: Beside = None) -> None:
        self.settings = settings
        self._beside = beside
        self._program = program
        self.metrics = Metrics(
            program.kinds,
            host=urlsplit(access.server).netloc,
            lease=settings.leader_elect_id if settings.leader_elect else "",
            objects=self._objects,
        )
        self._elector: Elector | None = None
        self._ending: asyncio.Future[int]
        self._client = Client(
            access,
            may_write=self._may_write,
            on_call=self.metrics.called,
            deadline_seconds=settings.client_timeout_seconds or KUBE_SECONDS,
        )
        self.slurms = SlurmClusters(
            self._client,
            self._may_write,
            deadline_seconds=settings.client_timeout_seconds or SLURM_SECONDS,
        )
        self.known = Caches(
            self._client,
            program.sources,
            settings.namespaces or ("",),
            self.slurms,
            scope=program.scope,
        )
        self._recorder = Recorder(self._client, instance=socket.gethostname())
        self._lag = LagMeter()
        self._served = ServedSchemas(self._client, wake=self._look_again_at)
        self._reporter = Reporter(self._client, self.known, self._recorder, self._served)
        shell = Shell(
            self._client,
            self.known,
            self._reporter,
            self.metrics,
            Retries(settings.client_max_retries, settings.client_retry_interval_seconds),
            recorder=FlightRecorder(settings.record) if settings.record is not None else None,
            defaults=Defaults(
                image_pull_policy=settings.image_pull_policy, annotations=dict(settings.default_annotations)
            ),
        )
        self._flights = shell.recorder
        self.loops = {
            reconciler.name: Loop(
                reconciler,
                WorkQueue(settings.workers_of(reconciler.name)),
                shell,
                settings.requeue_after_seconds,
            )
            for reconciler in program.reconcilers
        }
        lease = ObjectKey(settings.leader_elect_namespace or access.namespace, settings.leader_elect_id)
        self._others = [
            OtherOperator(
                self._client,
                self.known,
                rival,
                namespaces=(access.namespace, *settings.namespaces),
                ours=lease if settings.leader_elect else None,
                spared=IDENTITY if settings.is_beside_manager else "",
                wake=self._look_again_at,
            )
            for rival in program.rivals
        ]
        if settings.leader_elect:
            identity = f"{IDENTITY}{socket.gethostname()}_{uuid.uuid4()}"
            self._elector = Elector(
                self._client,
                lease,
                identity,
                duration_seconds=settings.lease_seconds,
                renew_deadline_seconds=settings.renew_deadline_seconds,
                retry_seconds=settings.retry_seconds,
            )

        leases = LeaseWatch(self._client)
        self._lease = lease
        self.claims = Claims(
            self._client,
            self.known,
            self._installation,
            SlinkyOperator(self._client, leases, access.namespace, settings.namespaces),
            leases,
            beside=lease.namespace if settings.is_beside_manager else "",
        )
        self.claims.subscribe(self._look_again_at_all)
        if Controller in self.known.records:
            self.known.claims = self.claims

    def _installation(self) -> Installation | None:
        """Ours, by its Lease; None without one."""
        if self._elector is None or not self._elector.uid:
            return None
        return Installation(lease=self._lease, uid=self._elector.uid)

    def _may_write(self) -> bool:
        return self._elector is None or self._elector.is_leader

    async def run(self) -> int:
        """Until SIGTERM or SIGINT (0), until the lease is lost (3), or until a part of us breaks (1)."""
        loop = asyncio.get_running_loop()
        self._ending = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end, 0)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            if self._flights is not None:
                self._flights.start()
                stack.callback(self._flights.close)
            await self._start_servers(stack)
            if self._beside is not None:
                await stack.enter_async_context(self._running("what runs beside", self._beside()))
            await stack.enter_async_context(self._running("lag", self._lag.run()))
            await stack.enter_async_context(self._running("gauges", self._keep_gauges()))
            await self._start_caches(stack)
            return await self._lead()

    def end(self, code: int = 0) -> None:
        """Stop working, in order; `run` then returns the code."""
        if not self._ending.done():
            self._ending.set_result(code)

    async def _start_servers(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        await stack.enter_async_context(
            serving(settings.health, health_routes(self.why_not_alive, self.why_not_ready))
        )
        guard = MetricsGuard(self._client).why_not if settings.metrics_secure else None
        tls = self_signed_context() if settings.metrics_secure and not settings.metrics.is_off else None
        await stack.enter_async_context(
            serving(settings.metrics, metrics_route(self.metrics.text, guard), tls)
        )
        await stack.enter_async_context(serving(settings.profile, profile_route()))

    async def _start_caches(self, stack: AsyncExitStack) -> None:
        for kind, cache in self.known.caches:
            await stack.enter_async_context(self._running(f"cache of {kind}", cache.run()))
        await stack.enter_async_context(self._running("Secrets", self.known.secrets.run()))
        await stack.enter_async_context(self._running("ConfigMaps", self.known.config_maps.run()))
        await stack.enter_async_context(self._running("revisions", self.known.revisions.run()))

    async def _lead(self) -> int:
        """Wait for the caches and the lease, then work until told to stop or replaced."""
        if not await self._unless_ending(self._ready_to_work()):
            return self._ending.result()
        async with self._running("events", self._recorder.run()), self._working():
            if self._elector is None:
                await self._ending
            elif await self._unless_ending(self._elector.hold()):
                log.error("lease lost: another manager has taken over, or the API server is away")
                return LOST_LEASE
        self._reporter.flush()
        await self._last(self._recorder.flush())
        if self._elector is not None:
            await self._last(self._elector.release())
        return self._ending.result()

    async def _last(self, words: Coroutine[Any, Any, None]) -> None:
        """One thing that should still be said. A server that does not answer must not keep us."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await words

    async def _ready_to_work(self) -> None:
        await asyncio.gather(*(self._filled(kind, cache) for kind, cache in self.known.caches))
        for name, loop in self.loops.items():
            kind, cache = loop.reconciler.kind, self.known.records[loop.reconciler.about]
            if loop.reconciler.on_behalf_of and self._is_off(kind, cache):
                log.warning(f"{name} is off: we may not look at {kind.plural}", why=str(cache.trouble))
        log.info("caches filled", objects=sum(len(cache) for _, cache in self.known.caches))
        if self._elector is not None:
            await self._elector.acquire()
            log.info("leading", lease=self.settings.leader_elect_id)

    async def _filled(self, kind: Kind, cache: Cache[Any]) -> None:
        """Until everything of this kind is known. What may be absent is waited for until the server says no.

        Others are waited for however long it takes: to take "I may not look" for "there is none" would be the
        end of somebody's jobs.
        """
        while not cache.synced.is_set():
            if self._is_off(kind, cache):
                log.warning("this kind is left out", kind=str(kind), why=str(cache.trouble))
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(cache.synced.wait(), FILLED_PAUSE_SECONDS)

    def _is_off(self, kind: Kind, cache: Cache[Any]) -> bool:
        return kind in self.known.optional and isinstance(cache.trouble, Forbidden | NotFound)

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        """Wire events to queues, look at everything once, and hand out keys."""
        for loop in self.loops.values():
            subscribe(loop, self.known, self.slurms)
        if self.known.claims is not None:
            await self.claims.look()  # Those of others are not even read.
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.slurms.close)
            await stack.enter_async_context(self._running("connections to Slurm", self._keep_connected()))
            await self._first_look()
            for other in self._others:
                await other.look()
                await stack.enter_async_context(self._running("the Lease of another operator", other.run()))
            if self.known.claims is not None:
                await stack.enter_async_context(self._running("claims", self.claims.run()))
            await stack.enter_async_context(self._running("kinds that come late", self._await_late_kinds()))
            await stack.enter_async_context(self._running("schemas of the CRDs", self._served.run()))
            if Pod in self.known.records:
                steps = StepWatch(self._client, self.known)
                await stack.enter_async_context(self._running("forgotten workers", steps.run()))
            await self._watch_storage(stack)
            looked = asyncio.Event()
            told = tell_of_protection(
                self._client, self.metrics.workers_protected, partial(self._note_protection, looked)
            )
            await stack.enter_async_context(self._running("protection of workers", told))
            # So that it is told with the rest, not in a write of its own.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(looked.wait(), PROTECTION_SECONDS)
            for name, loop in self.loops.items():
                await stack.enter_async_context(self._running(f"queue {name}", loop.queue.run(loop.work)))
            yield

    async def _watch_storage(self, stack: AsyncExitStack) -> None:
        """Where somebody decides about Kubernetes nodes."""
        measured, kubelets = self._program.measured, self.settings.kubelets
        loop = self.loops.get(KUBE_NODES)
        if measured is not None and kubelets is not None and loop is not None:
            watch = StorageWatch(self._client, self.known, kubelets, measured, loop.queue.add)
            await stack.enter_async_context(self._running("storage of workers", watch.run()))

    def _note_protection(self, looked: asyncio.Event, found: Protection) -> None:
        """Show it to every pass; who has workers says so."""
        looked.set()
        self.known.protection = found
        for loop in self.loops.values():
            if loop.reconciler.tells_protection:
                for thing in self.known.records[loop.reconciler.about].values():
                    loop.queue.add(key_of(thing), calm=True)

    def _look_again_at_all(self) -> None:
        for loop in self.loops.values():
            for thing in self.known.records[loop.reconciler.about].values():
                loop.queue.add(key_of(thing), calm=True)

    def _look_again_at(self, group: str) -> None:
        """At all that belongs to this API, which is acted on from now on, or no longer."""
        for loop in self.loops.values():
            for thing in self.known.records[loop.reconciler.about].values():
                about = loop.reconciler.on_behalf_of or group_of(loop.reconciler.kind, thing.metadata)
                if about == group:
                    loop.queue.add(key_of(thing), calm=True)

    async def _await_late_kinds(self) -> None:
        """When the server gets a kind that it lacked, look again at all who would have had some of it."""
        async with asyncio.TaskGroup() as waiting:
            for kind in self._program.sources.optional_children:
                cache = self.known.children[kind]
                if not cache.synced.is_set():
                    waiting.create_task(self._look_again_when_filled(kind, cache))
        await asyncio.Event().wait()

    async def _look_again_when_filled(self, kind: Kind, cache: Cache[Any]) -> None:
        await cache.synced.wait()
        log.info("this kind is now served", kind=str(kind))
        for loop in self.loops.values():
            if kind in loop.reconciler.children:
                for thing in self.known.records[loop.reconciler.about].values():
                    loop.queue.add(key_of(thing), calm=True)

    async def _first_look(self) -> None:
        """Give the Slurm clusters a moment to answer: a restart must not report all of them as away."""
        loop = asyncio.get_running_loop()
        end = loop.time() + FIRST_LOOK_SECONDS
        while loop.time() < end:
            await asyncio.sleep(CONNECT_PAUSE_SECONDS)
            view = self.known.view()
            servers = self._servers(view)
            asked = {key for key, server in servers.items() if server.key is not None}
            if asked <= self.slurms.heard and not view.unread():
                return

    async def _keep_connected(self) -> None:
        """Connect to the Slurm clusters that there are, whenever what says where they are has changed."""
        changed = asyncio.Event()
        changed.set()
        for type_ in self._program.says_where or self.known.records:
            self.known.records[type_].subscribe(lambda old, new: changed.set())
        self.known.secrets.subscribe(lambda key, thing: changed.set())
        if self.known.claims is not None:
            self.claims.subscribe(changed.set)
        while True:
            await changed.wait()
            changed.clear()
            view = self.known.view()
            servers = self._servers(view)
            self.slurms.reconfigure(servers, are_all_known=not view.unread())
            self.known.want(CONNECTIONS, view)
            await asyncio.sleep(CONNECT_PAUSE_SECONDS)

    def _servers(self, view: World) -> Mapping[ObjectKey, SlurmServer]:
        """Where the Slurm clusters answer that are ours to manage."""
        found = self._program.slurm_servers(view)
        if self.known.claims is None:
            return found
        return {key: server for key, server in found.items() if self.claims.covers_slurm(key)}

    def _objects(self) -> Iterator[tuple[str, Any]]:
        """Every object of our kinds that is known, for metrics about what they say of themselves."""
        for one in self._program.kinds:
            if one.model in self.known.records:
                yield from ((one.resource, thing) for thing in self.known.records[one.model].values())

    def why_not_alive(self) -> str | None:
        stall = self._lag.longest_seconds
        if stall > LONGEST_STALL_SECONDS:
            return f"The event loop stood still for {stall:.0f} s within the last minute."
        return None

    def why_not_ready(self) -> str | None:
        waiting = [
            (kind, cache)
            for kind, cache in self.known.caches
            if not cache.synced.is_set() and not self._is_off(kind, cache)
        ]
        if not waiting:
            return None
        troubles = [f"{kind}: {cache.trouble}" for kind, cache in waiting if cache.trouble is not None]
        return "Reading what is there" + (": " + "; ".join(troubles) if troubles else ".")

    async def _keep_gauges(self) -> None:
        """Gauges that nobody sets when they change; read every second."""
        while True:
            for name, loop in self.loops.items():
                self.metrics.queued(name, loop.queue.depth)
            for kind, cache in self.known.caches:
                resource = self._program.kinds.resource(kind.group, kind.plural)
                self.metrics.cached_objects.labels(resource).set(len(cache))
                self.metrics.undecodable_objects.labels(resource).set(len(cache.unreadable))
                self.metrics.watch_age_seconds.labels(resource).set(cache.age_seconds)
            for key, seconds in self.slurms.ages().items():
                self.metrics.snapshot_age_seconds.labels(key.namespace, key.name).set(seconds)
            self.metrics.loop_lag_seconds.set(self._lag.longest_seconds)
            self.metrics.leads(self._may_write())
            self.metrics.events_dropped.set(self._recorder.dropped)
            await asyncio.sleep(1.0)

    async def _unless_ending(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether `work` was done before we were told to end; otherwise it is cancelled."""
        task = asyncio.ensure_future(work)
        try:
            ends: set[asyncio.Future[Any]] = {self._ending, task}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
                return True
            return False
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def _running(self, name: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """Run a part of us during the block. If it ends before that, it is broken, and so are we."""

        def tell(task: "asyncio.Task[None]") -> None:
            if not task.cancelled():
                log.critical("a part of the manager broke", part=name, exc_info=task.exception())
                self.end(BROKEN)

        task = asyncio.create_task(work)
        task.add_done_callback(tell)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
