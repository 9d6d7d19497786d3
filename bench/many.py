"""Many Slurm clusters in one operator: what a few that hang, or hundreds at the start, do to the others."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from bench.light import light_rig
from bench.rig import GROUP, NAMESPACE, Rig, nodeset, until
from bench.rows import Row
from bench.stub_slurm import StubSlurm
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod

CLUSTERS, HANGING, CROWD = 60, 50, 400
SCALED_IN = 10
PATIENCE_SECONDS = 20.0  # After so long every reading of a cluster that hangs waits for an answer.

Work = Callable[[Rig, AsyncExitStack], Awaitable[list[Row]]]


def measure() -> list[Row]:
    """Told as soon as they are known: the second part takes minutes."""
    rows = []
    for work in (_hanging, _crowd):
        for row in asyncio.run(_in_a_rig(work)):
            print(f"  {row.name}: {row.value:,.4g} {row.unit}", flush=True)
            rows.append(row)
    return rows


async def _in_a_rig(work: Work) -> list[Row]:
    """The light API server: what is measured is how clusters get into each other's way in the operator."""
    with tempfile.TemporaryDirectory() as place:
        async with light_rig(Path(place), machines=0) as there, AsyncExitStack() as stack:
            return await work(there, stack)


async def _clusters(there: Rig, stack: AsyncExitStack, count: int, replicas: int) -> dict[str, StubSlurm]:
    """So many Controllers, each with a Slurm and a NodeSet of its own."""
    stubs: dict[str, StubSlurm] = {}

    def follow(old: Pod | None, new: Pod | None) -> None:
        name = new.metadata.labels.get(names.LABEL_CLUSTER, "") if new is not None else ""
        if name in stubs:
            stubs[name].follow(old, new)

    there.pods.subscribe(follow)
    for number in range(count):
        name, stub = f"c{number}", StubSlurm()
        stack.callback((await stub.listen()).close)
        stubs[name] = stub
        await there.controller(name, stub)
        await there.create(
            f"{GROUP}/namespaces/{NAMESPACE}/nodesets", nodeset(replicas, f"set-{name}", controller=name)
        )
    return stubs


async def _hanging(there: Rig, stack: AsyncExitStack) -> list[Row]:
    """Ten react as before while fifty others take connections and never answer."""
    stubs = await _clusters(there, stack, CLUSTERS, replicas=1)
    healthy = [f"c{number}" for number in range(HANGING, CLUSTERS)]
    async with there.operator():
        await _all_registered(stubs, 1)
        before = await _reactions(there, stubs, healthy)
        for number in range(HANGING):
            stubs[f"c{number}"].hangs = True
        await asyncio.sleep(PATIENCE_SECONDS)
        during = await _reactions(there, stubs, healthy)
    for stub in stubs.values():
        stub.hangs = False
    await asyncio.sleep(1)  # Whoever hung says goodbye.
    return [
        Row(f"{what} in ten clusters, {HANGING} others hang", now, "s", "before they hung", now / then)
        for what, now, then in zip(
            ("+1 to the pod created", "-1 to the pod gone"), during, before, strict=True
        )
    ]


async def _reactions(there: Rig, stubs: dict[str, StubSlurm], clusters: list[str]) -> tuple[float, float]:
    """Medians over these clusters: one worker more, and one less."""
    more, less = [], []
    for name in clusters:
        more.append(await _change(there, name, 2))
        await _all_registered({name: stubs[name]}, 2)
        less.append(await _change(there, name, 1))
    return statistics.median(more), statistics.median(less)


async def _change(there: Rig, cluster: str, replicas: int) -> float:
    began = time.time()
    await there.patch({"replicas": replicas}, f"set-{cluster}")
    return await until(lambda: len(_workers(there, cluster)) == replicas, "pods", pause=0.002) - began


def _workers(there: Rig, cluster: str) -> list[Pod]:
    return [pod for pod in there.workers() if pod.metadata.labels.get(names.LABEL_CLUSTER) == cluster]


async def _all_registered(stubs: dict[str, StubSlurm], count: int) -> None:
    await until(lambda: all(len(s.states()) == count for s in stubs.values()), "all registered", pause=0.05)


async def _crowd(there: Rig, stack: AsyncExitStack) -> list[Row]:
    """Hundreds of clusters at the start, ten of them scaled in meanwhile, with jobs on all their workers."""
    stubs = await _clusters(there, stack, CROWD, replicas=2)
    async with there.operator():
        await _all_registered(stubs, 2)
    busy = [f"c{number}" for number in range(SCALED_IN)]
    for name in busy:
        for number, worker in enumerate(sorted(stubs[name].states())):
            stubs[name].start_job(number + 1, worker)
    async with there.operator() as operator:
        await asyncio.sleep(1)
        for name in busy:
            await there.patch({"replicas": 1}, f"set-{name}")
        began = operator.started_at
        drained = await until(lambda: all(_drains(stubs[n]) for n in busy), "the drains", pause=0.1) - began
        await asyncio.sleep(5)
        lost = sum(len(_workers(there, name)) != 2 for name in busy)
        for name in busy:
            for number in (1, 2):
                stubs[name].end_job(number)
        gone = await until(
            lambda: all(len(_workers(there, n)) == 1 for n in busy), "the pods gone", pause=0.1
        )
        cpu_s = operator.usage().cpu_s
    return [
        Row(f"{CROWD} clusters at the start, {SCALED_IN} scaled in: drained", drained, "s after the start"),
        Row("workers lost under their jobs", lost, f"of {SCALED_IN}"),
        Row("gone once their jobs had ended", gone - began, "s after the start"),
        Row(f"{CROWD} clusters: CPU until then", cpu_s, "CPU s"),
    ]


def _drains(stub: StubSlurm) -> bool:
    return any("DRAIN" in words for words in stub.states().values())
