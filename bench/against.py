"""What workers that come take two operators, ours and one of another commit, by turns on a light API server.

BENCH_ROUNDS and BENCH_SIZE say how often and how many.
"""

import asyncio
import os
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench import scaling
from bench.light import light_rig
from bench.refs import ROOT, checked_out
from bench.rig import GROUP, NAMESPACE, Operator, Rig, nodeset, until
from bench.rows import Row

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "4"))
SIZE = int(os.environ.get("BENCH_SIZE", "1000"))
IDLE_SECONDS = 30.0


class Round(NamedTuple):
    come_cpu_s: float
    idle_cpu_s_per_minute: float
    peak_mb: float
    created_s: float


def measure(ref: str) -> list[Row]:
    """Medians, and the medians of the ratios of each round."""
    with tempfile.TemporaryDirectory() as place, checked_out(ref) as old:
        before, now = asyncio.run(_measure(Path(place), old))
    names = (
        (f"{SIZE:,} workers come: CPU", "CPU s"),
        (f"{SIZE:,} idle workers: CPU", "CPU s/min"),
        (f"{SIZE:,} workers: peak memory", "MB"),
        (f"{SIZE:,} workers come: last pod created", "s"),
    )
    columns = zip(names, zip(*before, strict=True), zip(*now, strict=True), strict=True)
    return [_row(name, unit, old, new, ref) for (name, unit), old, new in columns]


def _row(name: str, unit: str, before: tuple[float, ...], now: tuple[float, ...], ref: str) -> Row:
    ratio = statistics.median(new / old for new, old in zip(now, before, strict=True))
    said = f"{name} (before {statistics.median(before):,.4g})"
    return Row(said, statistics.median(now), unit, f"that of {ref}", ratio)


async def _measure(place: Path, old: Path) -> tuple[list[Round], list[Round]]:
    before: list[Round] = []
    now: list[Round] = []
    async with light_rig(place) as there:
        await there.create(f"{GROUP}/namespaces/{NAMESPACE}/nodesets", nodeset(0))
        async with there.operator() as operator:
            for number in range(ROUNDS):
                turns = [(old, before), (ROOT, now)]
                for tree, found in turns if number % 2 else reversed(turns):
                    found.append(await _round(there, operator, tree))
                    print(f"  {'before' if tree == old else 'now'}: {found[-1]}", flush=True)
    return before, now


async def _round(there: Rig, operator: Operator, tree: Path) -> Round:
    operator.stop()
    operator.tree = tree
    operator.start(NAMESPACE)
    there.stub.requests.clear()
    await until(lambda: "GET jobs" in there.stub.requests, "the operator to look at Slurm")
    await asyncio.sleep(2)
    out = await scaling.scale_out(there, operator, SIZE)
    quiet = await scaling.idle(there, operator, IDLE_SECONDS)
    await scaling.scale_in(there, operator)
    return Round(out.cost.cpu_s, quiet.cpu_s_per_minute, out.cost.peak_mb, out.created_s)
