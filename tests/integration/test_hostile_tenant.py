"""A tenant's slurmrestd answers with hundreds of megabytes, again and again. Another tenant notices nothing of it."""

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.client import SlurmRest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/slurm/recorded"

# 60,000 jobs are 300 MB on the wire. With twice as many their records take more than a cluster may.
JOBS = 120_000
SECONDS = 8.0

# The limit of the operator's pod is 512 MiB.
MOST_MIB = 250


@contextmanager
def slurmrestd(jobs: int = 0) -> Iterator[str]:
    argv = [sys.executable, "-m", "testing.hostile_slurmrestd", "0", str(RECORDED), str(jobs)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def client(url: str) -> SlurmRest:
    return SlurmRest([url], lambda: b"k" * 32, now=lambda: datetime.now(UTC))


async def reactions(healthy: SlurmRest, seconds: float) -> list[float]:
    """How long each look at a small cluster takes, several a second."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert await healthy.read.jobs()
        found.append(time.monotonic() - began)
        await asyncio.sleep(0.02)
    return found


async def read_without_end(hostile: SlurmRest, told: Callable[[str], None]) -> None:
    """Without the pause that a poller makes after what was dear."""
    while True:
        try:
            await hostile.read.jobs()
        except (errors.SlurmListTooLarge, errors.SlurmTimedOut) as failure:
            told(str(failure))


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_huge_answer_costs_its_own_cluster_alone() -> None:
    program = "from test_hostile_tenant import measured; print(*measured())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    alone, beside, slowest, memory, failures = (float(word) for word in done.stdout.split())

    print(f"median {1000 * alone:.1f} ms alone, {1000 * beside:.1f} ms beside: {beside / alone:.1f} times;")
    print(f"95 of 100 within {1000 * slowest:.0f} ms; {memory:.0f} MiB more; {failures:.0f} refused")
    assert failures > 0, "no answer was read to its end and refused"
    assert memory < MOST_MIB
    assert memory > 20, "the answers were not read at all"
    assert slowest < 1.0


def measured() -> tuple[float, float, float, float, int]:
    """In a process of its own: what it takes at most is told for a whole process."""
    refusals: list[str] = []

    async def run(quiet: str, loud: str) -> tuple[float, float, float, float]:
        healthy, hostile = client(quiet), client(loud)
        await reactions(healthy, 1.0)
        before = peak_mib()
        alone, beside = [], []
        for _ in range(2):  # In turns, as other work on the machine changes.
            alone += await reactions(healthy, SECONDS / 2)
            task = asyncio.create_task(read_without_end(hostile, refusals.append))
            beside += await reactions(healthy, 2 * SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        slowest = statistics.quantiles(beside, n=20)[-1]
        return statistics.median(alone), statistics.median(beside), slowest, peak_mib() - before

    with slurmrestd() as quiet, slurmrestd(JOBS) as loud:
        return *asyncio.run(run(quiet, loud)), len(refusals)
