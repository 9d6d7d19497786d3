"""How much the loop costs: from a changed object in a cache to a finished pass over it."""

import asyncio
import time
from datetime import UTC, datetime

from bench.rows import Row
from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.events import Recorder
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.plan import Plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.runtime.loop.queue import WorkQueue
from slurm_operator.runtime.loop.reconcile import Loop, Shell
from slurm_operator.runtime.metrics import Metrics
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.runtime.world.sources import Source, Sources
from slurm_operator.slurmsync.connections import SlurmClusters

ROUNDS = 5
NOTHING = Plan()

IDLE = Reconciler(
    name="idle",
    kind=kinds.CONFIG_MAP,
    about=ConfigMap,
    observe=lambda key, world: world.get(ConfigMap, key.namespace, key.name),
    decide=lambda seen, now: NOTHING,
    status=lambda seen, plan, outcome: StatusReport(conditions=()),
)
SOURCES = Sources(
    records=(Source(ConfigMap, kinds.CONFIG_MAP, wire.decoder(ConfigMap)),), children=(), child_selector=""
)


def measure() -> list[Row]:
    small, large = (asyncio.run(_kernel(count)) for count in (1_000, 10_000))
    bare = asyncio.run(_bare(10_000))
    return [
        Row("events to passes, bare asyncio queue", bare, "per CPU s"),
        Row("events to passes, our loop, 1,000 objects", small, "per CPU s", "bare queue", small / bare),
        Row("events to passes, our loop, 10,000 objects", large, "per CPU s", "1,000 objects", large / small),
    ]


def things(count: int, version: int) -> list[ConfigMap]:
    return [
        ConfigMap(
            metadata=Meta(
                name=str(n), namespace=f"ns-{n % 50}", uid=str(n), resource_version=str(version + n)
            )
        )
        for n in range(count)
    ]


async def _kernel(count: int) -> float:
    client = Client(Access(server="http://127.0.0.1:1"))
    known = Caches(client, SOURCES, ("",), SlurmClusters(client, lambda: True))
    reporter = Reporter(client, known, Recorder(client))
    queue = WorkQueue(4)
    loop = Loop(IDLE, queue, Shell(client, known, reporter, Metrics()))
    cache = known.records[ConfigMap]
    cache.subscribe(lambda old, new: queue.add(key_of(new or old)))
    rounds = [things(count, version * count + 1) for version in range(ROUNDS)]
    passes, all_done = 0, asyncio.Event()

    async def work(key: ObjectKey) -> None:
        nonlocal passes
        await loop.work(key)
        passes += 1
        if passes % count == 0:
            all_done.set()

    worker = asyncio.create_task(queue.run(work))
    start = time.process_time()
    for changed in rounds:
        for thing in changed:
            cache.put(thing)
        await all_done.wait()
        all_done.clear()
    spent = time.process_time() - start
    worker.cancel()
    return ROUNDS * count / spent


async def _bare(count: int) -> float:
    """The least a loop can do: keep the newest object, hand its key to a worker, call the same functions."""
    objects: dict[ObjectKey, ConfigMap] = {}
    queue: asyncio.Queue[ObjectKey] = asyncio.Queue()

    class World:
        @staticmethod
        def get(type_: type, namespace: str, name: str) -> ConfigMap:
            return objects[ObjectKey(namespace, name)]

    async def work() -> None:
        while True:
            key = await queue.get()
            seen = IDLE.observe(key, World)
            IDLE.status(seen, IDLE.decide(seen, datetime.now(UTC)), None)
            queue.task_done()

    rounds = [things(count, version * count + 1) for version in range(ROUNDS)]
    workers = [asyncio.create_task(work()) for _ in range(4)]
    start = time.process_time()
    for changed in rounds:
        for thing in changed:
            objects[key_of(thing)] = thing
            queue.put_nowait(key_of(thing))
        await queue.join()
    spent = time.process_time() - start
    for worker in workers:
        worker.cancel()
    return ROUNDS * count / spent
