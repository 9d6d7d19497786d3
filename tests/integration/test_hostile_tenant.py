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
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/slurm/recorded"

# A gigabyte on the wire, and more records than a cluster may have.
JOBS = 155_000
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


def client(url: str, deadline_s: float = DEADLINE_SECONDS) -> SlurmRest:
    return SlurmRest([url], lambda: b"k" * 32, now=lambda: datetime.now(UTC), deadline_s=deadline_s)


async def is_too_large(hostile: SlurmRest) -> bool:
    """Whether the answer is refused for its size by whoever has time to read it."""
    try:
        await hostile.read.jobs()
    except errors.SlurmListTooLarge:
        return True
    return False


async def reactions(healthy: SlurmRest, seconds: float) -> list[float]:
    """How long each look at a small cluster takes, several a second."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert await healthy.read.jobs()
        found.append(time.monotonic() - began)
        await asyncio.sleep(0.02)
    return found


async def read_without_end(hostile: SlurmRest, told: Callable[[float], None]) -> None:
    """Without the pause that a poller makes after what was expensive. Tells how long each one took."""
    while True:
        began = time.monotonic()
        try:
            await hostile.read.jobs()
        except (errors.SlurmListTooLarge, errors.SlurmTimedOut):
            told(time.monotonic() - began)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.full
@pytest.mark.timeout(600)
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
    alone, beside, slowest, memory, failures, huge = (float(word) for word in done.stdout.split())

    print(f"median {1000 * alone:.1f} ms alone, {1000 * beside:.1f} ms beside: {beside / alone:.1f} times;")
    print(f"95 of 100 within {1000 * slowest:.0f} ms; {memory:.0f} MiB more")
    print(f"{failures:.0f} answers refused, or cut off at the deadline, one within {huge:.1f} s")
    assert failures > 0
    assert memory < MOST_MIB
    assert slowest < huge / 4, "whoever waits for one huge answer waits as long as that takes"


def measured() -> tuple[float, float, float, float, int, float]:
    """In a process of its own: what it takes at most is told for a whole process."""
    refused_after: list[float] = []

    async def run(quiet: str, loud: str) -> tuple[float, float, float, float]:
        healthy, hostile = client(quiet), client(loud)
        await reactions(healthy, 1.0)
        before = peak_mib()
        alone, beside = [], []
        for _ in range(2):  # In turns, as other work on the machine changes.
            alone += await reactions(healthy, SECONDS / 2)
            task = asyncio.create_task(read_without_end(hostile, refused_after.append))
            beside += await reactions(healthy, 2 * SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        slowest = statistics.quantiles(beside, n=20)[-1]
        return statistics.median(alone), statistics.median(beside), slowest, peak_mib() - before

    with slurmrestd() as quiet, slurmrestd(JOBS) as loud:
        seconds = asyncio.run(run(quiet, loud))
        assert asyncio.run(is_too_large(client(loud, deadline_s=400))), "the answer is not huge"
    return *seconds, len(refused_after), min(refused_after, default=0.0)
