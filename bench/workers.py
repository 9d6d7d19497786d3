"""Workers by the thousand: scale-out, rolling update, start-up, idle, scale-in, each beside its floor.

BENCH_SIZES=100,1000,3000 says how many; the largest takes a quarter of an hour on two cores.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench import reactions, scaling
from bench.plots import plot
from bench.rig import GROUP, NAMESPACE, Operator, Rig, nodeset, rig, until
from bench.rows import Row

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "100,1000,3000").split(","))
PLOTS = Path("build")


def measure() -> list[Row]:
    rows = asyncio.run(_measure())
    found = {row.name: row.value for row in rows}
    for what in ("CPU", "requests"):
        points = [(size, found[_come(size, what)]) for size in SIZES]
        plot(PLOTS / f"bench-{what}.svg", f"{what} until all workers are there, by their number", points)
    return rows


def _come(size: int, what: str) -> str:
    return f"{size:,} workers come: {what}"


async def _measure() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        async with rig(Path(place)) as there:
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
    for row in _out_rows(f"{size:,} workers come", size, out, (bare + again) / 2):
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
    for row in _cost_rows(f"{size:,} workers replaced, 25 % at a time", size, rolled):
        yield row
    gone = await scaling.scale_in(there, operator)
    for row in _cost_rows(f"{size:,} idle workers go", size, gone):
        yield row


def _out_rows(name: str, size: int, out: scaling.ScaledOut, floor: float) -> list[Row]:
    return [
        Row(f"{name}: last pod created", out.created_s, "s", "a bare client's POSTs", out.created_s / floor),
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
    few, many = SIZES[0], SIZES[-1]
    found = {row.name: row.value for row in rows}
    each = {
        (what, size): found[_come(size, what)] / size for what in ("CPU", "requests") for size in (few, many)
    }
    return [
        Row(
            f"{what} per worker with {many:,}",
            each[what, many],
            "",
            f"with {few}",
            each[what, many] / each[what, few],
        )
        for what in ("CPU", "requests")
        if few != many
    ]
