"""What a page of metrics costs: 3,000 nodes and 10,000 jobs, beside json.loads of the same answers.

The text is also made by prometheus_client from the same families, which is why we write it ourselves.
"""

import dataclasses
import gc
import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bench.rows import Row
from bench.slurmrest import _many, _megabytes, _seconds
from slurm_operator import wire
from slurm_operator.exporter import records
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import Compat, Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.records import Job, Node
from slurm_operator.exporter.table import Family, text
from slurm_operator.exporter.tallies import MOST_REASONS, Tallies
from slurm_operator.slurm.states import NodeState
from slurm_operator.wire import replace

NODES, JOBS = 3_000, 10_000
ROUNDS = 20
FAILURES = 2 * MOST_REASONS // ROUNDS + 1
_UP, _DOWN = NodeState.of("IDLE"), NodeState.of("DOWN")
NOW = datetime(2026, 11, 16, tzinfo=UTC)

_nodes_reply = wire.decoder(records.NodesReply)
_jobs_reply = wire.decoder(records.JobsReply)


def measure() -> list[Row]:
    bodies = [json.dumps(_many(name, count)).encode() for name, count in (("nodes", NODES), ("jobs", JOBS))]
    plain_s = _seconds(lambda: [json.loads(body) for body in bodies])
    plain_mb = _megabytes(lambda: [json.loads(body) for body in bodies])
    read_s, read_mb = _seconds(partial(_facts, bodies)), _megabytes(partial(_facts, bodies))
    what = f"{NODES:,} nodes and {JOBS:,} jobs"
    rows = [
        Row(f"{what}: the answers", sum(map(len, bodies)) / 1e6, "MB"),
        Row(f"{what}: json.loads", plain_s, "s"),
        Row(f"{what}: to records", read_s, "s", "json.loads", read_s / plain_s),
        Row(f"{what}: json.loads keeps", plain_mb, "MB"),
        Row(f"{what}: records keep", read_mb, "MB", "json.loads", read_mb / plain_mb),
    ]
    facts = _facts(bodies)
    for compat in Compat:
        rows += _page(facts, compat, plain_s)
    return [*rows, *_writers(facts), *_lifetime(facts)]


def _facts(bodies: list[bytes]) -> Facts:
    nodes, jobs = _nodes_reply(bodies[0]).nodes or (), _jobs_reply(bodies[1]).jobs or ()
    return Facts(nodes=tuple(map(records.node, nodes)), jobs=tuple(map(records.job, jobs)), private_data=())


def _page(facts: Facts, compat: Compat, plain_s: float) -> list[Row]:
    options, tallies = Options(compat=compat), Tallies()

    def made() -> bytes:
        return text(table(facts, tallies, NOW, options).families, "demo")

    found = table(facts, tallies, NOW, options)
    page_s = _seconds(made)
    return [
        Row(f"page, --compat {compat}: series", found.size, "series"),
        Row(f"page, --compat {compat}: left out by caps", sum(found.dropped.values()), "series"),
        Row(f"page, --compat {compat}: size", len(made()) / 1e6, "MB"),
        Row(f"page, --compat {compat}", page_s, "s", "json.loads", page_s / plain_s),
    ]


def _writers(facts: Facts) -> list[Row]:
    """The same families as text, by us and by prometheus_client."""
    families = table(facts, Tallies(), NOW, Options(compat=Compat.SOPERATOR)).families
    registry = CollectorRegistry()
    registry.register(_Families(families))
    ours_s: float = _seconds(lambda: text(families, "demo"))
    theirs_s: float = _seconds(_latest(registry))
    return [
        Row("text by prometheus_client", theirs_s, "s"),
        Row("text by us", ours_s, "s", "prometheus_client", ours_s / theirs_s),
    ]


def _lifetime(facts: Facts) -> list[Row]:
    """What stays in memory when each reading has other jobs, and nodes fail ever for other reasons.

    Half way through each node has had more reasons than are told apart.
    """
    tallies, page, now = Tallies(), b"", facts
    kept: dict[int, float] = {}
    for number in range(1, ROUNDS + 1):
        for at in range(number * FAILURES, (number + 1) * FAILURES):
            for is_up in (True, False):
                now = dataclasses.replace(now, nodes=_nodes(facts, at, is_up=is_up))
                tallies.nodes_read(now.nodes or (), 60.0 * at + 30.0 * (not is_up))
        now = dataclasses.replace(now, jobs=_other_jobs(facts, number))
        tallies.jobs_read(now.jobs or ())
        page = text(table(now, tallies.frozen(), NOW, Options()).families, "demo")
        kept[number] = _resident_mb()
    half = ROUNDS // 2
    what = "every job new at each reading"
    return [
        Row(f"{what}: memory of the process after {half} readings", kept[half], "MB"),
        Row(
            f"{what}: after {ROUNDS} readings, a page of {len(page) / 1e6:.0f} MB",
            kept[ROUNDS],
            "MB",
            f"{half} readings",
            kept[ROUNDS] / kept[half],
        ),
    ]


def _nodes(facts: Facts, at: int, *, is_up: bool) -> tuple[Node, ...]:
    state, reason = (_UP, "") if is_up else (_DOWN, f"at {at}")
    return tuple(
        replace(one, record=replace(one.record, state=state, reason=reason)) for one in facts.nodes or ()
    )


def _other_jobs(facts: Facts, number: int) -> tuple[Job, ...]:
    return tuple(
        replace(one, record=replace(one.record, job_id=one.record.job_id + number * JOBS))
        for one in facts.jobs or ()
    )


def _resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _latest(registry: CollectorRegistry) -> Callable[[], bytes]:
    return lambda: generate_latest(registry)


class _Families(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for family in self._families:
            made = GaugeMetricFamily(family.name, family.help, labels=("cluster", *family.labels))
            for labels, value in family.rows:
                made.add_metric(("demo", *labels), value)
            yield made
