"""What the watch caches cost, against the least that Python can do with the same bytes.

Every figure comes from a fresh process. Time is CPU time, which other programs on the machine disturb least.
"""

import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from bench.rows import Row
from slurm_operator import wire
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod

MANY, FEW = 10_000, 1_000
EVENTS = 20_000
REPEATS = 3

Figures = dict[str, float]


def measure() -> list[Row]:
    """List, watch and memory of 10,000 worker pods of 8 KB."""
    with serving(MANY, EVENTS) as many, serving(FEW, 0) as few:
        ours, base = median("list", many), median("list-json", many)
        small = median("list", few)
        watch, lines = median("watch", many), median("watch-lines", many)
    return [
        *list_rows(ours, base),
        *watch_rows(watch, lines),
        *growth_rows(small, ours),
    ]


def list_rows(ours: Figures, base: Figures) -> list[Row]:
    to = "json.loads of the same bytes"
    return [
        Row("list, decode and cache 10,000 pods", ours["cpu"], "CPU s", to, ours["cpu"] / base["cpu"]),
        Row("memory held by 10,000 pods", ours["held"], "MB", to, ours["held"] / base["held"]),
        Row("peak memory of the list", ours["peak"], "MB", to, ours["peak"] / base["peak"]),
        Row(
            "one full collection with them alive", ours["pause"], "CPU ms", to, ours["pause"] / base["pause"]
        ),
    ]


def watch_rows(ours: Figures, base: Figures) -> list[Row]:
    rate, bare = EVENTS / ours["cpu"], EVENTS / base["cpu"]
    return [
        Row("watch events into the cache", rate, "per CPU s", "a bare aiohttp line reader", rate / bare),
        Row("bare aiohttp line reader", bare, "per CPU s", "", None),
    ]


def growth_rows(few: Figures, many: Figures) -> list[Row]:
    def per_object(figures: Figures, what: str, count: int) -> float:
        return figures[what] / count

    cpu = per_object(many, "cpu", MANY) / per_object(few, "cpu", FEW)
    held = per_object(many, "held", MANY) / per_object(few, "held", FEW)
    to = "per object with 1,000"
    return [
        Row("resident with 1,000 pods cached", few["rss"], "MB", "", None),
        Row("resident with 10,000 pods cached", many["rss"], "MB", "", None),
        Row("memory per object with 10,000", many["held"] * 1000 / MANY, "KB", to, held),
        Row("CPU per object with 10,000", many["cpu"] * 1e6 / MANY, "us", to, cpu),
    ]


@contextmanager
def serving(count: int, events: int) -> Iterator[str]:
    argv = [sys.executable, "-m", "bench.kube_server", str(count), str(events)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    finally:
        server.kill()
        server.communicate()


def median(what: str, url: str) -> Figures:
    """The middle of several fresh processes, figure by figure."""
    runs = [_run(what, url) for _ in range(REPEATS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _run(what: str, url: str) -> Figures:
    done = subprocess.run(
        [sys.executable, "-m", "bench.kube", what, url], stdout=subprocess.PIPE, check=True, text=True
    )
    figures: Figures = json.loads(done.stdout)
    return figures


# From here on: what the fresh processes do.


async def list_ours(url: str) -> Figures:
    async with Client(Access(server=url)) as client:
        cache = Cache(client, POD, wire.decoder(Pod))
        before = Usage()
        running = asyncio.create_task(cache.run())
        await cache.synced.wait()
        figures = before.until_now()
        await _end(running)
        return figures


async def list_json(url: str) -> Figures:
    async with aiohttp.ClientSession() as session:
        before = Usage()
        pods: list[Any] = []
        token: str | None = "0"
        while token:
            async with session.get(f"{url}/api/v1/pods", params={"continue": token}) as response:
                page = json.loads(await response.read())
            pods += page["items"]
            token = page["metadata"]["continue"]
        return before.until_now()


async def watch_ours(url: str) -> Figures:
    async with Client(Access(server=url)) as client:
        cache = Cache(client, POD, wire.decoder(Pod))
        running = asyncio.create_task(cache.run())
        await cache.synced.wait()
        before = time.process_time()
        while cache.events < EVENTS:  # noqa: ASYNC110  Once in 50 ms costs nothing; a callback per event would.
            await asyncio.sleep(0.05)
        cpu = time.process_time() - before
        await _end(running)
        return {"cpu": cpu}


async def watch_lines(url: str) -> Figures:
    async with aiohttp.ClientSession() as session:
        before = time.process_time()
        async with session.get(f"{url}/api/v1/pods", params={"watch": "true"}) as response:
            for _ in range(EVENTS):
                await response.content.readline()
        return {"cpu": time.process_time() - before}


class Usage:
    """What this process has used since."""

    def __init__(self) -> None:
        gc.collect()
        self.cpu = time.process_time()
        self.rss = _resident_mb()

    def until_now(self) -> Figures:
        cpu = time.process_time() - self.cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        began = time.perf_counter()
        gc.collect()
        pause = time.perf_counter() - began
        rss = _resident_mb()
        return {
            "cpu": cpu,
            "held": rss - self.rss,
            "peak": peak - self.rss,
            "rss": rss,
            "pause": pause * 1000,
        }


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


CHILDREN = {"list": list_ours, "list-json": list_json, "watch": watch_ours, "watch-lines": watch_lines}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(CHILDREN[sys.argv[1]](sys.argv[2]))))
