"""Workers by the thousand: scale-out, rolling update, start-up, idle, scale-in, each beside its floor.

BENCH_SIZES=100,1000,3000 says how many; the largest takes a quarter of an hour on two cores.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bench import reactions, scaling
from bench.plots import plot
from bench.rig import GROUP, NAMESPACE, Operator, Rig, nodeset, rig, until
from bench.rows import Row

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "100,1000,3000").split(","))
PLOTS = Path("build")
COME, REPLACED, GO = "workers come", "workers replaced, 25 % at a time", "idle workers go"

AnyRig = Callable[[Path], AbstractAsyncContextManager[Rig]]


def measure() -> list[Row]:
    return measure_on(rig, "workers")


def measure_on(any_rig: AnyRig, suite: str) -> list[Row]:
    """All sizes on one control plane, and plots of cost against size."""
    rows = asyncio.run(_measure(any_rig))
    found = {row.name: row.value for row in rows}
    for change, file in ((COME, "come"), (REPLACED, "replaced"), (GO, "go")):
        points = [(size, found[f"{size:,} {change}: CPU"]) for size in SIZES]
        plot(PLOTS / f"bench-{suite}-{file}.svg", f"CPU seconds, by their number: {change}", points)
    return rows


async def _measure(any_rig: AnyRig) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        async with any_rig(Path(place)) as there:
            await there.create(f"{GROUP}/namespaces/{NAMESPACE}/nodesets", nodeset(0))
            async with there.operator() as operator:
                async for row in _all(there, operator):
                    print(f"  {row.name}: {row.value:,.4g} {row.unit}", flush=True)
                    rows.append(row)
    return [*rows, *_growth(rows)]


async def _all(there: Rig, operator: Operator) -> AsyncIterator[Row]:
    await until(lambda: "GET jobs" in there.stub.requests, "the operator to look at Slurm")
    async for row in reactions.rows(there):
        yield row
    for size in SIZES:
        async for row in _size(there, operator, size):
            yield row


async def _size(there: Rig, operator: Operator, size: int) -> AsyncIterator[Row]:
    """One size, by an operator that has seen no other: its peak of memory is this size's."""
    operator.stop()
    operator.start(NAMESPACE)
    there.stub.requests.clear()
    await until(lambda: "GET jobs" in there.stub.requests, "the operator to look at Slurm")
    await asyncio.sleep(2)
    bare = await scaling.floor(there, size)
    out = await scaling.scale_out(there, operator, size)
    again = await scaling.floor(there, size)
    for row in _out_rows(f"{size:,} {COME}", size, out, bare, again):
        yield row
    started = await scaling.start_up(there, operator)
    yield Row(f"start-up with {size:,} workers: first pass done", started.seconds, "s")
    yield Row(f"start-up with {size:,} workers: CPU", started.cpu_s, "CPU s")
    yield Row(f"start-up with {size:,} workers: writes", len(started.writes), "requests")
    quiet = await scaling.idle(there, operator)
    yield Row(f"{size:,} idle workers: CPU", quiet.cpu_s_per_minute, "CPU s/min")
    yield Row(f"{size:,} idle workers: writes", len(quiet.writes), "requests")
    yield Row(f"{size:,} idle workers: slurmrestd", quiet.slurm_per_minute, "requests/min")
    rolled = await scaling.roll(there, operator, size, f"slurmd:{size}")
    for row in _cost_rows(f"{size:,} {REPLACED}", size, rolled):
        yield row
    gone = await scaling.scale_in(there, operator)
    for row in _cost_rows(f"{size:,} {GO}", size, gone):
        yield row


def _out_rows(
    name: str, size: int, out: scaling.ScaledOut, before: scaling.Floor, after: scaling.Floor
) -> list[Row]:
    """The bare client posts before and after: other work on the machine is then in both."""
    posts_s = (before.seconds + after.seconds) / 2
    cpu_s = (before.cpu_s + after.cpu_s) / 2
    return [
        Row(
            f"{name}: last pod created", out.created_s, "s", "a bare client's POSTs", out.created_s / posts_s
        ),
        Row(f"{name}: CPU of a bare client that posts, notes and watches them", cpu_s, "CPU s"),
        Row(f"{name}: CPU to that", out.cost.cpu_s, "CPU s", "the bare client's", out.cost.cpu_s / cpu_s),
        Row(f"{name}: last pod ready", out.ready_s, "s"),
        Row(f"{name}: status says so", out.told_after_ready_s, "s later"),
        Row(f"{name}: peak memory", out.cost.peak_mb, "MB"),
        *_cost_rows(name, size, out.cost),
    ]


def _cost_rows(name: str, size: int, cost: scaling.Cost) -> list[Row]:
    return [
        Row(f"{name}: CPU", cost.cpu_s, "CPU s"),
        Row(f"{name}: requests", cost.kube_requests, "requests", "worker", cost.kube_requests / size),
        Row(f"{name}: slurmrestd", cost.slurm_requests, "requests"),
    ]


def _growth(rows: list[Row]) -> list[Row]:
    """Cost per worker with the most of them, against that with the fewest."""
    found = {row.name: row.value for row in rows}
    few = SIZES[0]
    return [
        _grown(f"{change}: {what}", many, few, found)
        for many in SIZES[1:]
        for change in (COME, REPLACED, GO)
        for what in ("CPU", "requests")
    ]


def _grown(what: str, many: int, few: int, found: dict[str, float]) -> Row:
    each, small = (found[f"{size:,} {what}"] / size for size in (many, few))
    return Row(f"per worker with {many:,} {what}", each * 1000, "for a thousand", f"with {few}", each / small)
