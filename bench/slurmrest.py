"""How much it costs to know a Slurm cluster: reading its lists, and asking for them again and again.

The server here is a stub for benchmarks only. Its replies are made from recorded ones, and like slurmrestd it
answers 304 when nothing has changed.
"""

import asyncio
import copy
import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.rows import Row
from slurm_operator import wire
from slurm_operator.slurm.snapshot import Snapshot, changes, jobs_by_node
from slurm_operator.slurmrest.answers.jobs import WireJob, slurm_job
from slurm_operator.slurmrest.answers.nodes import Nodes
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.incoming import MAX_LIST_BYTES, Incoming
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller

RECORDED = Path(__file__).parents[1] / "tests" / "slurm" / "recorded"
ROUNDS = 5
_job = wire.decoder(WireJob)
MANY = 10_000
SOME = 1_000


def measure() -> list[Row]:
    return [*_decoding("nodes", _nodes), *_decoding("jobs", _jobs), *_comparing(), *_polling()]


# -- decoding


def _decoding(name: str, decode: Callable[[bytes], object]) -> list[Row]:
    body = json.dumps(_many(name, MANY)).encode()
    ours_s, plain_s = _seconds(lambda: decode(body)), _seconds(lambda: json.loads(body))
    ours_mb, plain_mb = _megabytes(lambda: decode(body)), _megabytes(lambda: json.loads(body))
    return [
        Row(f"{MANY:,} {name}: the answer", len(body) / 1e6, "MB"),
        Row(f"{MANY:,} {name}: json.loads", plain_s, "s"),
        Row(f"{MANY:,} {name}: to records", ours_s, "s", "json.loads", ours_s / plain_s),
        Row(f"{MANY:,} {name}: json.loads keeps", plain_mb, "MB"),
        Row(f"{MANY:,} {name}: records keep", ours_mb, "MB", "json.loads", ours_mb / plain_mb),
    ]


def _nodes(body: bytes) -> object:
    incoming = Incoming("nodes", Nodes().one, MAX_LIST_BYTES)
    incoming.take(body, is_last=True)
    return {node.name: node for node in incoming.records}


def _jobs(body: bytes) -> object:
    incoming = Incoming("jobs", lambda entry: slurm_job(_job(entry)), MAX_LIST_BYTES)
    incoming.take(body, is_last=True)
    return incoming.records, jobs_by_node(incoming.records)


def _many(name: str, count: int) -> dict[str, Any]:
    """A recorded list, grown. Every tenth job has eight nodes."""
    body: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())["body"]
    model = next(row for row in body[name] if name == "nodes" or row["job_state"] == ["RUNNING"])
    body[name] = [copy.deepcopy(model) for _ in range(count)]
    for number, row in enumerate(body[name]):
        if name == "nodes":
            row |= {"name": f"w-{number}", "hostname": f"w-{number}", "state": ["IDLE", "DYNAMIC_NORM"]}
        else:
            nodes = f"w-[{number}-{number + 7}]" if number % 10 == 0 else f"w-{number}"
            row |= {"job_id": number + 1, "nodes": nodes, "required_nodes": "", "batch_host": f"w-{number}"}
    return body


def _seconds(action: Callable[[], object]) -> float:
    """The best of a few rounds: the others were disturbed."""
    return min(_once(action) for _ in range(ROUNDS))


def _once(action: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    action()
    return time.process_time() - began


def _megabytes(action: Callable[[], object]) -> float:
    """What the result of the action keeps."""
    gc.collect()
    tracemalloc.start()
    kept = action()
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size / 1e6


# -- comparing


def _comparing() -> list[Row]:
    body = json.dumps(_many("nodes", MANY)).encode()
    old, new = _snapshot(_nodes(body)), _snapshot(_nodes(body))
    both_s, same_s = _seconds(lambda: changes(old, new)), _seconds(lambda: changes(old, old))
    return [
        Row(f"{MANY:,} nodes: what changed, both lists new", both_s, "s"),
        Row(f"{MANY:,} nodes: what changed, list unchanged", same_s, "s", "both new", same_s / both_s),
    ]


def _snapshot(nodes: Any) -> Snapshot:
    now = datetime.now(UTC)
    return Snapshot(nodes=nodes, jobs={}, nodes_asked_at=now, jobs_asked_at=now)


# -- polling


class SkippingClock:
    """Waiting takes no time, work does: a minute of polling is measured in a second."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._skipped)

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        await asyncio.sleep(0)
        if not event.is_set():
            self._skipped += seconds


class StubSlurmrestd:
    """Serves the same lists for ever, called unchanged (`still`) or always new. Counts what it sends."""

    def __init__(self, count: int, *, still: bool) -> None:
        self._still = still
        self._nodes = self._reply(_many("nodes", count))
        self._jobs = self._reply(_many("jobs", count))
        self._other = {
            name: self._reply(json.loads((RECORDED / f"{name}.json").read_text())["body"])
            for name in ("reservations", "partitions", "ping", "conf")
        }
        self._no_jobs = self._reply(json.loads((RECORDED / "jobs-unchanged.json").read_text())["body"])
        self.requests = 0
        self.sent_bytes = 0

    @staticmethod
    def _reply(body: Any) -> bytes:
        text = json.dumps(body).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text

    async def serve(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await stream.read(1 << 16)
        if head:  # Empty when the poller was stopped while it connected.
            await self._serve(head.split(b" ", 2)[1].decode(), writer)
        writer.close()

    async def _serve(self, target: str, writer: asyncio.StreamWriter) -> None:
        reply = self._answer(
            target.split("/")[3].split("?", maxsplit=1)[0], unchanged="update_time" in target and self._still
        )
        self.requests += 1
        self.sent_bytes += len(reply)
        writer.write(reply)
        await writer.drain()

    def _answer(self, name: str, *, unchanged: bool) -> bytes:
        if unchanged:
            return self._no_jobs if name == "jobs" else b"HTTP/1.1 304 NOT MODIFIED\r\n\r\n"
        return {"nodes": self._nodes, "jobs": self._jobs}.get(name) or self._other[name]


def _polling() -> list[Row]:
    rows: list[Row] = []
    naive = StubSlurmrestd(SOME, still=True)
    naive_bytes = 60.0 * (len(naive._nodes) + len(naive._jobs))
    for still in (True, False):
        for soon in (False, True):
            stub, cpu_s = asyncio.run(_minute(still=still, soon=soon))
            who = "somebody waits" if soon else "nobody waits"
            what = f"{SOME:,} {'idle' if still else 'changing'} nodes, {who}"
            rows.append(Row(f"{what}: requests", stub.requests, "per min"))
            ratio = stub.sent_bytes / naive_bytes
            rows.append(Row(f"{what}: bytes", stub.sent_bytes, "per min", "all lists each second", ratio))
            rows.append(Row(f"{what}: CPU, stub included", cpu_s, "s per min"))
    return rows


async def _minute(*, still: bool, soon: bool) -> tuple[StubSlurmrestd, float]:
    """A minute of the poller's life, once it has read everything."""
    stub, clock = StubSlurmrestd(SOME, still=still), SkippingClock()
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    client = SlurmRest([f"http://{host}:{port}"], lambda: b"k" * 32, now=clock.now)
    poller = SlurmPoller(client, clock, Ledger())
    poller.request_polling("bench", soon=soon)
    await poller.poll()
    stub.requests = stub.sent_bytes = 0
    began, began_cpu = clock.monotonic(), time.process_time()
    over = asyncio.Event()
    poller.subscribe(lambda _: over.set() if clock.monotonic() - began >= 60 else None)
    task = asyncio.create_task(poller.run())
    await over.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    server.close()
    return stub, time.process_time() - began_cpu
