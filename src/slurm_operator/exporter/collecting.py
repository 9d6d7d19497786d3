"""Reads Slurm in the background and keeps what was last read well. A scrape only looks at that."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from slurm_operator.clock import Clock
from slurm_operator.exporter.facts import Facts, Place, clock_ahead
from slurm_operator.exporter.options import Compat, Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.reading import Reading
from slurm_operator.exporter.table import Family, Table, counter, gauge, text
from slurm_operator.exporter.tallies import Tallies
from slurm_operator.kube.errors import KubeError
from slurm_operator.slurmrest.errors import SlurmFailure

log = structlog.get_logger(__name__)

# What reads the labels of Kubernetes nodes, by name.
Places = Callable[[], Awaitable[Mapping[str, Place]]]

_TOPOLOGY_SECONDS: Final = 60.0

Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How one cluster is read."""

    cluster: str
    interval_seconds: float = 30.0
    most_in_flight: int = 1
    is_accounting: bool = False
    lookback: timedelta = timedelta(hours=1)


class Part:
    """One of several readings that run beside each other, and how it fared."""

    def __init__(self, name: str, read: Callable[[], Awaitable[Change]], move_on: Change) -> None:
        self.name = name
        self._read = read
        self._move_on = move_on
        self.in_flight = 0
        self.errors = 0
        self.skipped = 0
        self.duration_seconds = 0.0
        self.succeeded_at = 0.0
        self._number = 0
        self._newest = 0
        self._is_failing = False

    async def run(self, clock: Clock, most_in_flight: int) -> bool:
        """Whether it went well. One too many at a time is left out, and counted."""
        if self.in_flight >= most_in_flight:
            self.skipped += 1
            return True
        self._number += 1
        number, began = self._number, clock.monotonic()
        self.in_flight += 1
        try:
            change = await self._read()
        except (SlurmFailure, KubeError, TimeoutError) as failure:
            self.errors += 1
            if not self._is_failing:  # It is tried again and again; saying so each time would help nobody.
                log.warning("not read; the last data stay", part=self.name, error=str(failure))
            self._is_failing = True
            if isinstance(failure, SlurmFailure):
                self._move_on()
            return False
        finally:
            self.in_flight -= 1
            self.duration_seconds = clock.monotonic() - began
        if self._is_failing:
            log.info("read again", part=self.name)
        self._is_failing = False
        if number > self._newest:  # One that began earlier and took longer knows less.
            self._newest = number
            change()
            self.succeeded_at = clock.now().timestamp()
        return True


class Collector:
    """The last good facts about one cluster, and the pages that are made from them."""

    def __init__(
        self, reading: Reading, plan: Plan, options: Options, clock: Clock, places: Places | None = None
    ) -> None:
        self._reading = reading
        self._plan = plan
        self._options = options
        self._clock = clock
        self._places = places
        self._tallies = Tallies()
        self.facts = Facts()
        parts = {"nodes": self._nodes, "jobs": self._jobs, "diag": self._diag}
        if places is not None:
            parts["topology"] = self._topology
        self.parts = [Part(name, read, self._move_on) for name, read in parts.items()]
        self._attempts = 0
        self._failures = 0
        self._duration_seconds = 0.0
        self._requests = 0
        self._changes = 0
        self._made: tuple[int, Table, bytes] | None = None
        self._making = asyncio.Lock()
        self._rounds: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """At once, and then at every interval, whether the last round has ended or not."""
        try:
            while True:
                task = asyncio.create_task(self.collect())
                self._rounds.add(task)
                task.add_done_callback(self._rounds.discard)
                await asyncio.sleep(self._plan.interval_seconds)
        finally:
            for task in self._rounds:
                task.cancel()
            await asyncio.gather(*self._rounds, return_exceptions=True)

    async def collect(self) -> None:
        """One round: all parts beside each other. One that fails or hangs holds up no other."""
        self._attempts += 1
        began = self._clock.monotonic()
        most = self._plan.most_in_flight
        went_well = await asyncio.gather(*(part.run(self._clock, most) for part in self.parts))
        self._duration_seconds = self._clock.monotonic() - began
        self._failures += not all(went_well)

    async def page(self) -> bytes:
        """The metrics of Slurm."""
        self._requests += 1
        _, page = await self._latest()
        return page

    async def _latest(self) -> tuple[Table, bytes]:
        """Made once for each change, off the event loop, whoever asks first."""
        async with self._making:
            if self._made is None or self._made[0] != self._changes:
                facts, tallies = self.facts, self._tallies.frozen()
                changes, now = self._changes, self._clock.now()
                self._made = changes, *await asyncio.to_thread(self._make, facts, tallies, now)
            return self._made[1:]

    def _make(self, facts: Facts, tallies: Tallies, now: datetime) -> tuple[Table, bytes]:
        made = table(facts, tallies, now, self._options)
        return made, text(made.families, self._plan.cluster)

    async def self_page(self) -> bytes:
        """How the exporter itself is doing, also where nobody has asked for the metrics of Slurm yet."""
        made, _ = await self._latest()
        return text(self.self_families(made), self._plan.cluster)

    def why_not_ready(self) -> str | None:
        """Until each list was read once."""
        waiting = [part.name for part in self.parts if not part.succeeded_at]
        return f"Not read yet: {', '.join(waiting)}." if waiting else None

    async def _nodes(self) -> Change:
        nodes = await self._reading.nodes()
        is_slinky = self._options.compat is Compat.SLINKY
        partitions = await self._reading.partitions() if is_slinky else ()

        def change() -> None:
            self._tallies.nodes_read(nodes, self._clock.monotonic())
            self._keep(replace(self.facts, nodes=nodes, partitions=partitions))

        return change

    async def _jobs(self) -> Change:
        plan = self._plan
        if plan.is_accounting:
            jobs = await self._reading.booked_jobs(plan.cluster, self._clock.now(), plan.lookback)
        else:
            jobs = await self._reading.jobs()

        def change() -> None:
            self._tallies.jobs_read(jobs)
            self._keep(replace(self.facts, jobs=jobs))

        return change

    async def _diag(self) -> Change:
        private = await self._reading.private_data()
        found = await self._reading.diagnosis()
        ahead = clock_ahead(found.asked_at, self._clock.now())
        return lambda: self._keep(
            replace(self.facts, diagnosis=found, private_data=private, clock_ahead=ahead)
        )

    async def _topology(self) -> Change:
        assert self._places is not None
        async with asyncio.timeout(_TOPOLOGY_SECONDS):
            places = await self._places()
        return lambda: self._keep(replace(self.facts, places=places))

    def _move_on(self) -> None:
        self._reading.move_on()

    def _keep(self, facts: Facts) -> None:
        self.facts = facts
        self._changes += 1

    def self_families(self, made: Table) -> list[Family]:
        """Metrics of the exporter, whose last page is this one."""
        parts = self.parts
        families = [
            _one("collection_duration_seconds", "How long the last round took.", self._duration_seconds),
            _one("collection_attempts_total", "Rounds that were started.", self._attempts),
            _one("collection_failures_total", "Rounds in which a part failed.", self._failures),
            _each("collector_duration_seconds", "How long a part took.", parts, "duration_seconds"),
            _each("collector_errors_total", "Times that a part failed.", parts, "errors"),
            _each("collector_inflight", "Runs of a part that have not ended.", parts, "in_flight"),
            _each("collector_skipped_total", "Times that a part was still busy.", parts, "skipped"),
            _each(
                "last_success_timestamp_seconds",
                "Unix time at which a part was last read well; 0 is never.",
                parts,
                "succeeded_at",
            ),
            _one("metrics_requests_total", "Times that the metrics of Slurm were asked for.", self._requests),
            _one("metrics_exported", "Series of the last page.", made.size),
            gauge(
                "slurm_exporter_series_dropped",
                "Series of a family that its cap left out of the last page.",
                ("family",),
                (((name,), dropped) for name, dropped in sorted(made.dropped.items())),
            ),
        ]
        return families + (self._aliases() if self._options.aliases else [])

    def _aliases(self) -> list[Family]:
        requests, errors = "soperator_metrics_requests_total", "scollector_collection_errors_total"
        return [
            counter(requests, "Same as slurm_exporter_metrics_requests_total.", (), [((), self._requests)]),
            counter(errors, "Same as slurm_exporter_collection_failures_total.", (), [((), self._failures)]),
        ]


def _one(name: str, about: str, found: float) -> Family:
    make = counter if name.endswith("_total") else gauge
    return make(f"slurm_exporter_{name}", about, (), [((), found)])


def _each(name: str, about: str, parts: list[Part], attribute: str) -> Family:
    make = counter if name.endswith("_total") else gauge
    rows = [((part.name,), getattr(part, attribute)) for part in parts]
    return make(f"slurm_exporter_{name}", about, ("collector",), rows)
