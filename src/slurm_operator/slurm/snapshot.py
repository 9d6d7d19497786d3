"""Everything known about one Slurm cluster at one moment, or that nothing is known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from slurm_operator import wire
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation

K = TypeVar("K")
V = TypeVar("V")

# Clocks are corrected by this much all the time.
CLOCK_SLACK = timedelta(seconds=1)


class Unreachable(wire.Record, tag="Unreachable"):
    """Nothing can be said about the cluster. `since` is the last moment we knew better, or began to ask.

    `is_refused`: somebody answers there, and does not accept our tokens.
    """

    since: datetime
    why: str
    is_refused: bool = False


class Snapshot(wire.Record, tag="Snapshot"):
    """Nodes, and then the jobs that are not finished, read one after the other.

    The times say when each request *started*: what happened before is here, what came later may be missing.
    `behind` are nodes that we have written to since, so what stands here about them may be old; and so are
    jobs that we asked to end (`job 7`). Until `settles_at` that may be so of any: whoever was in charge
    before us may have written without an answer. `clock_behind` is how far slurmctld's clock is behind ours,
    or less by a second; it is negative where that is ahead.
    `slurmctld_parameters` are None where the API version does not show them, and in the beginning, as long as
    `is_config_known` is false: then nobody has answered yet.
    `unstarted_since`: since when slurmctld has not known the start of a node's slurmd. It forgets that at
    every reconfigure and restart, until slurmd has registered again (seen on 26.05).
    """

    nodes: Mapping[str, SlurmNode]
    jobs: Mapping[int, SlurmJob]
    nodes_asked_at: datetime
    jobs_asked_at: datetime
    reservations: Mapping[str, Reservation] = {}
    partitions: Mapping[str, Partition] = {}
    pings: tuple[ControllerPing, ...] = ()
    slurmctld_parameters: tuple[str, ...] | None = None
    is_config_known: bool = True
    cluster: str = ""
    release: str = ""
    api_version: str = ""
    can_add_nodes: bool = True  # Whether the API version in use can make records.
    url: str = ""  # The slurmrestd that was asked, of several.
    behind: frozenset[str] = frozenset()
    settles_at: datetime | None = None
    clock_behind: timedelta = timedelta(0)
    jobs_by_node: Mapping[str, tuple[int, ...]] = {}
    unstarted_since: Mapping[str, datetime] = {}

    @property
    def asked_at(self) -> datetime:
        """How old the oldest part is on which a decision about nodes and jobs rests."""
        return min(self.nodes_asked_at, self.jobs_asked_at)

    def is_fresh(self, now: datetime, lifetime: timedelta) -> bool:
        """Asked for within the last of this time. Who set the clock back has made nothing fresh by that."""
        return -CLOCK_SLACK <= now - self.asked_at <= lifetime

    def is_current(self, node: str) -> bool:
        """Nodes and jobs were both asked for after our last write to `node`."""
        return node not in self.behind

    @property
    def is_settled(self) -> bool:
        """What was written by others of us before we began to read has happened, or never does."""
        return self.settles_at is None or self.asked_at >= self.settles_at

    def jobs_naming(self, node: str) -> list[SlurmJob]:
        """Unfinished jobs that are on the node or insist on it, pending ones included."""
        return [self.jobs[job_id] for job_id in self.jobs_by_node.get(node, ())]

    def jobs_on(self, node: str) -> list[SlurmJob]:
        """Unfinished jobs that hold the node, suspended ones included; pending ones only wish for it."""
        return [job for job in self.jobs_naming(node) if job.state.holds_node]

    def reservations_naming(self, node: str) -> list[Reservation]:
        return [reservation for reservation in self.reservations.values() if node in reservation.nodes]

    def jobs_in(self, partition: str) -> list[SlurmJob]:
        """Unfinished jobs of a partition; a job may be waiting for any of several."""
        return [job for job in self.jobs.values() if partition in job.partition.split(",")]


def dated(facts: Snapshot | Unreachable, later: timedelta) -> Snapshot | Unreachable:
    """The same by a clock that is ahead of ours by so much, and of slurmctld's by so much more."""
    if isinstance(facts, Unreachable):
        return wire.replace(facts, since=facts.since + later)
    return wire.replace(
        facts,
        nodes_asked_at=facts.nodes_asked_at + later,
        jobs_asked_at=facts.jobs_asked_at + later,
        settles_at=facts.settles_at + later if facts.settles_at is not None else None,
        clock_behind=facts.clock_behind + later,
        unstarted_since={name: since + later for name, since in facts.unstarted_since.items()},
    )


def jobs_by_node(jobs: Iterable[SlurmJob]) -> dict[str, tuple[int, ...]]:
    """Which of these jobs name each node."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for job in jobs:
        for node in job.named_nodes:
            found[node].append(job.job_id)
    return {node: tuple(sorted(job_ids)) for node, job_ids in found.items()}


class Changes(wire.Record):
    """What is different between two looks. A node also counts when only its jobs changed.

    `everything`: the cluster came into sight or went out of it, so whoever looks at it should look again.
    """

    nodes: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()
    reservations: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    everything: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.everything or self.nodes or self.jobs or self.reservations or self.partitions)


def changes(old: Snapshot | Unreachable, new: Snapshot | Unreachable) -> Changes:
    """What `new` says that `old` did not."""
    if isinstance(old, Unreachable) or isinstance(new, Unreachable):
        return Changes(everything=type(old) is not type(new))
    jobs = frozenset(_differing(old.jobs, new.jobs))
    return Changes(
        nodes=frozenset(_changed_nodes(old.nodes, new.nodes)) | _named_by(jobs, old) | _named_by(jobs, new),
        jobs=jobs,
        reservations=frozenset(_differing(old.reservations, new.reservations)),
        partitions=frozenset(_differing(old.partitions, new.partitions)),
        everything=_head(old) != _head(new),
    )


def _head(snapshot: Snapshot) -> tuple[object, ...]:
    """What is about slurmctld itself; how long a ping took is not."""
    pings = tuple((ping.hostname, ping.is_primary, ping.is_responding) for ping in snapshot.pings)
    ways = (snapshot.url, snapshot.api_version)
    config = (snapshot.is_config_known, snapshot.slurmctld_parameters)
    return (pings, config, snapshot.cluster, snapshot.release, ways)


def _changed_nodes(old: Mapping[str, SlurmNode], new: Mapping[str, SlurmNode]) -> Iterator[str]:
    if old is new:
        return
    yield from old.keys() ^ new.keys()
    for name, node in new.items():
        before = old.get(name)
        if before is not None and node.differs_from(before):
            yield name


def _differing(old: Mapping[K, V], new: Mapping[K, V]) -> Iterator[K]:
    if old is new:
        return
    for key in old.keys() | new.keys():
        if old.get(key) != new.get(key):
            yield key


def _named_by(jobs: Iterable[int], snapshot: Snapshot) -> frozenset[str]:
    known = (snapshot.jobs[job_id] for job_id in jobs if job_id in snapshot.jobs)
    return frozenset(node for job in known for node in job.named_nodes)
