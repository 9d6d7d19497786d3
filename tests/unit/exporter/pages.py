"""Pages of the exporter from recorded answers, and made-up clusters of any size."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from slurm_operator import wire
from slurm_operator.exporter import records
from slurm_operator.exporter.collecting import Collector, Plan
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.reading import Reading
from slurm_operator.exporter.records import Diagnosis, Job, Node
from slurm_operator.exporter.table import text
from slurm_operator.exporter.tallies import Tallies
from slurm_operator.slurmrest.answers.lists import diagnosis
from slurm_operator.slurmrest.session import Session
from slurm_operator.slurmrest.tokens import TokenSource
from slurm_operator.slurmrest.transport import Transport
from testing.virtual_time import FakeClock
from unit.slurmrest.fake_slurmrestd import KEY, FakeSlurmrestd, answer, body_of

GOLDEN = Path(__file__).parent / "golden"

# A quarter of an hour after the answers were recorded.
NOW = datetime.fromtimestamp(1794786841, UTC)

NODES = "GET /slurm/{v}/nodes/"
JOBS = "GET /slurm/{v}/jobs/"
DIAG = "GET /slurm/{v}/diag/"
PARTITIONS = "GET /slurm/{v}/partitions/"
CONF = "GET /slurm/{v}/conf"
BOOKS = "GET /slurmdb/{v}/jobs/"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def nodes(*changes: dict[str, Any]) -> tuple[Node, ...]:
    """One recorded node for each of these changes."""
    model = body_of("nodes")["nodes"][0]
    return tuple(records.node(wire.convert(model | one, records.WireExportedNode)) for one in changes)


def jobs(*changes: dict[str, Any]) -> tuple[Job, ...]:
    model = body_of("jobs")["jobs"][0]
    return tuple(records.job(wire.convert(model | one, records.WireExportedJob)) for one in changes)


def diag(**changes: Any) -> Diagnosis:
    found = body_of("diag")["statistics"] | changes
    return records.diagnosis(found, diagnosis(found).counters)


def recorded(version: str = "") -> Facts:
    """What slurmrestd said when the answers were recorded."""
    end = f"-{version}" if version else ""
    found = body_of(f"diag{end}")["statistics"]
    return Facts(
        nodes=tuple(
            records.node(wire.convert(one, records.WireExportedNode))
            for one in body_of(f"nodes{end}")["nodes"]
        ),
        jobs=tuple(
            records.job(wire.convert(one, records.WireExportedJob)) for one in body_of(f"jobs{end}")["jobs"]
        ),
        diagnosis=records.diagnosis(found, diagnosis(found).counters),
        partitions=tuple(one["name"] for one in body_of(f"partitions{end}")["partitions"]),
        private_data=(),
    )


def page(facts: Facts, options: Options, tallies: Tallies | None = None, now: datetime = NOW) -> str:
    return text(table(facts, tallies or Tallies(), now, options).families, "demo").decode()


def series(page: str) -> Series:
    """Every series by name and labels, as Prometheus' own library for Python reads it. None is there twice."""
    found: Series = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(found: Series, name: str) -> dict[frozenset[tuple[str, str]], float]:
    """The series of one name, without the label of the cluster."""
    return {
        frozenset(pair for pair in labels if pair[0] != "cluster"): value
        for (called, labels), value in found.items()
        if called == name
    }


def labels(**given: str) -> frozenset[tuple[str, str]]:
    return frozenset(given.items())


def assert_golden(name: str, page: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(page)
    assert page == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


def serve_recorded(slurmrestd: FakeSlurmrestd) -> None:
    for call, name in (
        (NODES, "nodes"),
        (JOBS, "jobs"),
        (DIAG, "diag"),
        (PARTITIONS, "partitions"),
        (CONF, "conf"),
    ):
        slurmrestd.on(call, answer(name))
    slurmrestd.on(BOOKS, answer("books-jobs"))


def collector(
    slurmrestd: FakeSlurmrestd,
    clock: FakeClock,
    options: Options | None = None,
    deadline_s: float = 0.3,
    **plan: Any,
) -> Collector:
    tokens = TokenSource(lambda: KEY, now=clock.now)
    session = Session(Transport([slurmrestd.url], deadline_s=deadline_s), tokens)
    return Collector(Reading(session), Plan("demo", **plan), options or Options(), clock)


def names(found: Iterable[tuple[str, frozenset[tuple[str, str]]]]) -> set[str]:
    return {name for name, _ in found}
