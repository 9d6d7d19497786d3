"""Everything that a page of metrics is made from. Each part stays as it was last read well."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurm_operator.exporter.records import Diagnosis, Job, Node

# slurmctld gives its clock in whole seconds, and an answer takes a moment.
_CLOCKS_AGREE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Place:
    """What the labels of a Kubernetes node say about where it is."""

    nvlink_group: str = ""
    nodeset: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """None is a part that was never read."""

    nodes: tuple[Node, ...] | None = None
    jobs: tuple[Job, ...] | None = None
    diagnosis: Diagnosis | None = None
    partitions: tuple[str, ...] = ()
    private_data: tuple[str, ...] | None = None  # None: this API version does not say.
    places: Mapping[str, Place] = field(default_factory=dict)
    clock_ahead: timedelta = timedelta(0)  # By how much slurmctld's clock is ahead of ours.

    def slurm_time(self, now: datetime) -> datetime:
        """The time by slurmctld's clock, by which jobs and drains are dated."""
        return now + self.clock_ahead


def clock_ahead(slurm: datetime | None, ours: datetime) -> timedelta:
    """How far slurmctld's clock is ahead; nothing where that cannot be told."""
    if slurm is None or abs(slurm - ours) <= _CLOCKS_AGREE:
        return timedelta(0)
    return slurm - ours
