"""The whole process: its own Node is watched, and each change of it is decided about at once."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from slurm_operator import wire
from slurm_operator.agents.rebooter import node as nodes
from slurm_operator.agents.rebooter.api import Api
from slurm_operator.agents.rebooter.decide import (
    Attempt,
    ChangeNode,
    ClaimSlot,
    Decision,
    Evict,
    Limits,
    Reboot,
    ReleaseSlot,
    Seen,
    SetCondition,
    Step,
    decide,
)
from slurm_operator.agents.rebooter.host import Host
from slurm_operator.agents.rebooter.metrics import Metrics
from slurm_operator.agents.rebooter.node import Memo, Node
from slurm_operator.agents.rebooter.pods import Pod, remaining
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.backoff import Backoff
from slurm_operator.kube import errors
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Conflict, KubeError
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import KUBE_NODE
from slurm_operator.manifests.meta import Manifest
from slurm_operator.runtime.metrics_auth import MetricsGuard, self_signed_context
from slurm_operator.runtime.serve import Handler, health_routes, metrics_route, serving
from slurm_operator.runtime.settings import Address

log = structlog.get_logger(__name__)

BROKEN: Final = 1

LEASE_NAME: Final = "slurm-operator-rebooter"

# Between two looks that each changed something: whatever goes wrong, the API server is not flooded.
_BREATH_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Settings:
    """How one rebooter runs."""

    node_name: str
    namespace: str  # Where the list of nodes that are out of service is kept.
    lease_name: str = LEASE_NAME
    max_nodes: int = 1
    limits: Limits = field(default_factory=Limits)
    is_dry_run: bool = False
    health: Address = field(default_factory=lambda: Address("0.0.0.0", 8081))
    metrics: Address = field(default_factory=lambda: Address("0.0.0.0", 8080))
    metrics_secure: bool = False


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Rebooter:
    """Looks at the node, and does what is decided. A later one needs nothing that it keeps in memory."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        host: Host,
        metrics: Metrics,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._settings = settings
        self._host = host
        self._metrics = metrics
        self._now = now
        self._api = Api(client, ObjectKey(settings.namespace, settings.lease_name), settings.max_nodes)
        self._key = ObjectKey("", settings.node_name)
        self.cache: Cache[Node] = Cache(
            client, KUBE_NODE, nodes.decode, field_selector=f"metadata.name={settings.node_name}"
        )
        self._attempts: dict[str, Attempt] = {}
        self._reboot_trouble = ""
        self._lease: Manifest | None = None
        self._may_hold_slot = True  # One that was claimed by a rebooter before us is found at the first look.
        self._news = asyncio.Event()
        self._told = ""
        self._backoff = Backoff(first_seconds=1.0, longest_seconds=settings.limits.look_again.total_seconds())
        self.cache.subscribe(lambda old, new: self._news.set())

    async def run(self) -> None:
        """Until cancelled. What fails is tried again: at the next change of the Node, or after a while."""
        await self.cache.synced.wait()
        while True:
            self._news.clear()
            pause = await self.one_look()
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(_BREATH_SECONDS)

    async def one_look(self) -> float | None:
        """After how many seconds the next look is due if the Node does not change; None is never."""
        try:
            decision = await self._decide()
            has_acted = await self._carry_out(decision)
        except Conflict as error:
            log.debug("somebody else was faster; looking again", why=str(error))
            return 1.0
        except (KubeError, wire.DecodeError, OSError) as error:
            log.warning("cannot go on now; trying again", why=str(error))
            return self._backoff.next_seconds()
        self._backoff.reset()
        if has_acted:
            return 0.0
        return decision.look_again.total_seconds() if decision.look_again is not None else None

    # ---- Facts

    async def _decide(self) -> Decision:
        node = self.cache.get(self._key)
        if node is None:
            return Decision(why=f"there is no Node {self._settings.node_name}")
        return decide(await self.observe(node), self._now())

    async def observe(self, node: Node) -> Seen:
        seen = Seen(
            node=node,
            boot_id=self._host.boot_id(),
            booted_at=self._host.booted_at(),
            limits=self._settings.limits,
            attempts=self._attempts,
            reboot_trouble=self._reboot_trouble,
        )
        if not (seen.is_asked or node.memo != Memo() or self._may_hold_slot):
            return seen
        pods, neighbours = await self._pods(node) if seen.is_asked else (None, ())
        slots, self._lease = await self._api.slots(node.name)
        self._may_hold_slot = node.name in slots.holders
        self._forget_attempts(pods or ())
        return replace(seen, attempts=self._attempts, pods=pods, neighbours=neighbours, slots=slots)

    async def _pods(self, node: Node) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
        """Those on the node; and where slurmctld is among them, those around it."""
        pods = await self._api.pods_on(node.name)
        namespaces = {pod.metadata.namespace for pod in remaining(pods) if pod.is_slurmctld}
        around = [await self._api.pods_in(namespace) for namespace in sorted(namespaces)]
        return pods, tuple(pod for found in around for pod in found)

    def _forget_attempts(self, pods: tuple[Pod, ...]) -> None:
        there = {pod.uid for pod in pods}
        self._attempts = {uid: attempt for uid, attempt in self._attempts.items() if uid in there}

    # ---- Effects

    async def _carry_out(self, decision: Decision) -> bool:
        """Whether something was done."""
        self._tell(decision)
        if self._settings.is_dry_run:
            return False
        for step in decision.steps:
            await self._one(step)
        return bool(decision.steps)

    def _tell(self, decision: Decision) -> None:
        """Each decision once, however often it is taken again."""
        told = "; ".join(map(_text, decision.steps)) or decision.why
        if told != self._told and (decision.steps or self._told):
            log.info("would do" if self._settings.is_dry_run else "next", step=told)
        self._told = told

    async def _one(self, step: Step) -> None:
        node, now = self.cache.get(self._key), self._now()
        if node is None:
            raise errors.conflict(f"there is no Node {self._settings.node_name} any more")
        match step:
            case ChangeNode():
                window = self._settings.limits.window
                self.cache.note_written(await self._api.change(node, step, now, window))
            case SetCondition():
                self.cache.note_written(await self._api.tell(node, step, now))
            case ClaimSlot():
                slots, self._lease = await self._api.slots(node.name)
                if slots.is_free_for(node.name):
                    await self._api.claim(node, slots, self._lease, now)
                self._may_hold_slot = True
            case ReleaseSlot():
                slots, self._lease = await self._api.slots(node.name)
                await self._api.release(node.name, slots, self._lease)
            case Evict(pods=pods):
                for pod in pods:
                    await self._evict(pod, now)
            case Reboot():
                await self._reboot()

    async def _evict(self, pod: Pod, now: datetime) -> None:
        refusal = await self._api.evict(pod)
        self._attempts = {**self._attempts, pod.uid: Attempt(now, refusal)}
        self._metrics.evictions.labels("refused" if refusal else "accepted").inc()

    async def _reboot(self) -> None:
        log.warning("rebooting the Kubernetes node", node=self._settings.node_name)
        self._reboot_trouble = await self._host.reboot()
        self._metrics.reboots.labels("failed" if self._reboot_trouble else "done").inc()
        if self._reboot_trouble:
            log.error("the reboot command failed", why=self._reboot_trouble)


def _text(step: Step) -> str:
    match step:
        case ChangeNode(message=message, cordon=cordon, taint=taint):
            changes = (("cordon", cordon), ("taint", taint))
            done = [f"{'set' if is_set else 'lift'} {name}" for name, is_set in changes if is_set is not None]
            return f"{' and '.join(done) or 'note'}: {message}"
        case SetCondition():
            return f"{step.type} {step.status}/{step.reason}: {step.message}"
        case ClaimSlot(message=message):
            return f"count the node as out of service: {message}"
        case ReleaseSlot(message=message):
            return f"no longer count the node as out of service: {message}"
        case Evict(pods=pods):
            return f"evict {', '.join(pod.name for pod in pods)}"
        case Reboot(message=message):
            return f"reboot: {message}"


class Program:
    """One running rebooter, with its health and metrics."""

    def __init__(self, access: Access, settings: Settings, host: Host) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._client = Client(access, on_call=self._metrics.called)
        self.rebooter = Rebooter(self._client, settings, host, self._metrics)

    async def run(self) -> int:
        """Until SIGTERM or SIGINT (0), or until a part of us breaks (1)."""
        ending, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            await self._start_servers(stack)
            parts = [self.rebooter.cache.run(), self.rebooter.run(), ending.wait()]
            tasks: list[asyncio.Task[Any]] = [asyncio.create_task(part) for part in parts]
            stack.push_async_callback(_ended, tasks)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ending.is_set():
                return 0
            broken = next(task for task in tasks if task.done())
            log.critical("a part of the rebooter broke", exc_info=broken.exception())
            return BROKEN

    async def _start_servers(self, stack: AsyncExitStack) -> None:
        settings = self._settings
        await self._serve(stack, settings.health, health_routes(lambda: None, self.why_not_ready))
        guard = MetricsGuard(self._client).why_not if settings.metrics_secure else None
        tls = self_signed_context() if settings.metrics_secure and not settings.metrics.is_off else None
        await self._serve(stack, settings.metrics, metrics_route(self._metrics.text, guard), tls)

    async def _serve(
        self, stack: AsyncExitStack, address: Address, routes: dict[str, Handler], tls: Any = None
    ) -> None:
        """In the network of the Kubernetes node a port may be somebody else's: that must not stop a drain."""
        try:
            await stack.enter_async_context(serving(address, routes, tls))
        except OSError as error:
            log.warning("cannot listen; going on without", port=address.port, why=str(error))

    def why_not_ready(self) -> str | None:
        cache = self.rebooter.cache
        if cache.synced.is_set():
            return None
        return "Reading the Node" + (f": {cache.trouble}" if cache.trouble is not None else ".")


async def _ended(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
