"""The operator's process: the real manager, queues, caches and Slurm connections, over simulated wires."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context

from simulation.client import SimulatedClient
from simulation.slurmrest import SimulatedRest
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.lease import Elector
from slurm_operator.kube.served_schemas import ServedSchemas
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.runtime.loop.queue import WorkQueue
from slurm_operator.runtime.loop.reconcile import Loop, Shell
from slurm_operator.runtime.manager import Manager, Program
from slurm_operator.runtime.metrics import Metrics
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.slurmrest.tokens import Keys
from slurm_operator.slurmsync.books import Books
from slurm_operator.slurmsync.connection import SlurmCluster
from slurm_operator.slurmsync.connections import SlurmClusters
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.writer import SlurmWriter
from testing.virtual_time import PROCESS, Process, VirtualClock

LEASE = ObjectKey("operators", "slurm-operator")

METRICS = Metrics()  # Nobody looks at them here.


class SimulatedSlurmCluster(SlurmCluster):
    """The real poller, ledger and writer, with another client behind them."""

    def __init__(
        self, name: str, rest: SimulatedRest, clock: VirtualClock, may_write: Callable[[], bool]
    ) -> None:
        ledger = Ledger()
        self.name = name
        self.client = rest
        self.poller = SlurmPoller(rest, clock, ledger)
        self.books = Books(rest, clock)
        self.writer = SlurmWriter(rest, self.poller, ledger, clock, may_write)


class SimulatedSlurmClusters(SlurmClusters):
    def __init__(
        self,
        client: SimulatedClient,
        rest: SimulatedRest,
        clock: VirtualClock,
        may_write: Callable[[], bool],
    ) -> None:
        super().__init__(client, may_write)
        self._may_send = may_write
        self._rest = rest
        self._clock = clock
        self._since = clock.steady()

    def _connection(self, name: str, server: SlurmServer, keys: Keys) -> SlurmCluster:
        self._rest.offered = keys
        return SimulatedSlurmCluster(name, self._rest, self._clock, self._may_send)


class Ears:
    """Metrics and events of the operator: only what shows a mistake of ours is kept."""

    def __init__(self, passed: Callable[[str, str], None]) -> None:
        self._passed = passed

    def reconciled(self, reconciler: str, result: str, seconds: float) -> None:
        self._passed(reconciler, result)

    def record(self, *words, **more) -> None:
        """An event. People read them; nothing here depends on them."""


class OperatorProcess(Manager):
    """One life of the operator, from its start to its crash. With a Lease it acts while that is its own."""

    def __init__(
        self,
        program: Program,
        client: SimulatedClient,
        rest: SimulatedRest,
        clock: VirtualClock,
        passed: Callable[[str, str], None],
        identity: str = "",
    ) -> None:
        self.process = Process()
        self.identity = identity
        self.is_cut_off = False  # From the API server, it alone.
        self._elector = None
        if identity:
            self._elector = Elector(client, LEASE, identity, clock=asyncio.get_running_loop().time)
        self.settings = Settings()
        self.metrics = METRICS
        self._client = client
        self._program = program
        self.slurms = SimulatedSlurmClusters(client, rest, clock, self._may_write)
        self.known = Caches(client, program.sources, ("",), self.slurms, clock, program.scope)
        self._others = []  # No other operator acts in this world.
        self._served = ServedSchemas(client)  # Never asked: its CRDs are ours.
        ears = Ears(passed)
        shell = Shell(
            client, self.known, Reporter(client, self.known, ears), ears, now=clock.now, spent=clock.monotonic
        )
        self.loops = {
            reconciler.name: Loop(reconciler, WorkQueue(4), shell) for reconciler in program.reconcilers
        }
        self.task: asyncio.Task[None] | None = None

    def start(self, ends: Callable[[BaseException | None], None]) -> None:
        """`ends` hears when it ends on its own: why, or that it has lost the Lease."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                ends(task.exception())

        context = copy_context()
        context.run(PROCESS.set, self.process)
        self.task = asyncio.get_running_loop().create_task(self._live(), context=context)
        self.task.add_done_callback(ended)

    @property
    def is_leader(self) -> bool:
        return self._may_write()

    async def crash(self) -> None:
        """Ends it between any two things that it waits for."""
        assert self.task is not None
        self.process.thaw()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _live(self) -> None:
        self._ending = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            named = (self.known.secrets, self.known.config_maps, self.known.revisions)
            caches = [cache for _, cache in self.known.caches]
            watched = [tasks.create_task(one.run()) for one in (*caches, *named)]
            for _, cache in self.known.caches:
                await cache.synced.wait()
            if self._elector is not None:
                await self._elector.acquire()
            async with self._working():
                await self._until_it_is_lost()
            for task in watched:
                task.cancel()

    async def _until_it_is_lost(self) -> None:
        if self._elector is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._elector.hold()
