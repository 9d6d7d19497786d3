"""The lists that make up a Snapshot, each read anew only when slurmctld says that it has changed."""

from collections.abc import Mapping

from slurm_operator.runtime.clock import Clock
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurmrest.reader import JobListing, Listing, Reader

# "Nothing has changed since" was never wrong when tested under load; this bounds the cost if it ever is.
WHOLE_EVERY_SECONDS = 300.0


class Lists:
    """Remembers each list with its mark. After `forget` the next ones are read whole."""

    def __init__(self, read: Reader, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._nodes: Listing[str, SlurmNode] = Listing({}, 0)
        self._jobs = JobListing({}, {}, 0)
        self._reservations: Listing[str, Reservation] = Listing({}, 0)
        self._partitions: Listing[str, Partition] = Listing({}, 0)
        self._whole_at = clock.monotonic()

    def forget(self) -> None:
        """Never again ask what changed since; what was read stays until it is replaced."""
        self._nodes = self._nodes._replace(last_update=0)
        self._jobs = self._jobs._replace(last_update=0)
        self._reservations = self._reservations._replace(last_update=0)
        self._partitions = self._partitions._replace(last_update=0)
        self._whole_at = self._clock.monotonic()

    async def nodes(self) -> Mapping[str, SlurmNode]:
        self._nodes = await self._read.nodes(self._nodes.last_update) or self._nodes
        return self._nodes.records

    async def snapshot(self) -> Snapshot:
        """Nodes first, then jobs: a job that starts in between shows in the second list."""
        if self._clock.monotonic() - self._whole_at >= WHOLE_EVERY_SECONDS:
            self.forget()
        nodes_asked_at = self._clock.now()
        await self.nodes()
        jobs_asked_at = self._clock.now()
        self._jobs = await self._read.jobs(self._jobs.last_update) or self._jobs
        self._reservations = (
            await self._read.reservations(self._reservations.last_update) or self._reservations
        )
        self._partitions = await self._read.partitions(self._partitions.last_update) or self._partitions
        return Snapshot(
            nodes=self._nodes.records,
            jobs=self._jobs.records,
            jobs_by_node=self._jobs.by_node,
            nodes_asked_at=nodes_asked_at,
            jobs_asked_at=jobs_asked_at,
            reservations=self._reservations.records,
            partitions=self._partitions.records,
            cluster=self._nodes.cluster,
            release=self._nodes.release,
        )
