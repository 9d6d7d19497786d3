"""Everything we read from slurmctld through slurmrestd.

There is no way here to read a single node: slurmrestd answers with an allocation that only the full list
refreshes, and shows MIXED long after the job has gone, or for a node just set down.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from slurm_operator import wire
from slurm_operator.slurm.health import ControllerPing, Diagnosis, License
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import jobs_by_node
from slurm_operator.slurmrest.answers import lists
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.jobs import (
    JobDetailsReply,
    JobsReply,
    WireJob,
    ended_job,
    ids,
    job_detail,
    slurm_job,
)
from slurm_operator.slurmrest.answers.nodes import Nodes, NodesReply
from slurm_operator.slurmrest.answers.values import count, job_state
from slurm_operator.slurmrest.errors import SlurmAnswerUnreadable
from slurm_operator.slurmrest.session import Session, trusted
from slurm_operator.slurmrest.versions import Capability

K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E", bound=Envelope)

PING_SECONDS = 4.0


class Listing(NamedTuple, Generic[K, V]):
    """A whole list, and the mark to ask with whether it has changed since; 0 when there is no mark."""

    records: Mapping[K, V]
    last_update: int
    cluster: str = ""
    release: str = ""


class JobListing(NamedTuple):
    """The unfinished jobs, by id and by the nodes they name, and how those ended that are not forgotten yet.

    The tasks of an array are also known by its id, and the parts of a heterogeneous job: `open_ids` are all
    ids of which something is not finished.
    """

    records: Mapping[int, SlurmJob]
    by_node: Mapping[str, tuple[int, ...]]
    last_update: int
    ended: Mapping[int, tuple[EndedJob, ...]] = {}
    open_ids: frozenset[int] = frozenset()


_nodes_reply = wire.decoder(NodesReply)
_jobs_reply = wire.decoder(JobsReply)
_job_details_reply = wire.decoder(JobDetailsReply)
_reservations_reply = wire.decoder(lists.ReservationsReply)
_partitions_reply = wire.decoder(lists.PartitionsReply)
_ping_reply = wire.decoder(lists.PingReply)
_licenses_reply = wire.decoder(lists.LicensesReply)
_diag_reply = wire.decoder(lists.DiagReply)
_config_reply = wire.decoder(lists.ConfigReply)


class Reader:
    """Lists take `since`, the mark of an earlier list, and give None when nothing has changed since then."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._nodes = Nodes()

    async def nodes(self, since: int = 0) -> Listing[str, SlurmNode] | None:
        def read(body: bytes) -> Listing[str, SlurmNode]:
            reply = _whole("read the nodes", _nodes_reply(body))
            found = self._nodes.read(_present("read the nodes", reply.nodes))
            return _listing(reply, {node.name: node for node in found})

        return await self._list("read the nodes", "/slurm/{version}/nodes/", since, read)

    async def jobs(self, since: int = 0) -> JobListing | None:
        """Unfinished jobs only: slurmrestd cannot filter by state, so it happens here, off the loop."""

        def read(body: bytes) -> JobListing | None:
            reply = _whole("read the jobs", _jobs_reply(body))
            found = _present("read the jobs", reply.jobs)
            if not found and not count(reply.last_update):
                _check_unchanged(since)
                return None
            over = [job for job in found if job_state(job.job_state).is_finished]
            ids_over = {job.job_id for job in over}
            left = [job for job in found if job.job_id not in ids_over]
            jobs = {job.job_id: slurm_job(job) for job in left}
            return JobListing(
                records=jobs,
                by_node=jobs_by_node(jobs.values()),
                last_update=count(reply.last_update),
                ended=_ends(over),
                open_ids=frozenset(job_id for job in left for job_id in ids(job)),
            )

        # Without DETAIL the cores of every node of every job are left out: most of the bytes, and none of our
        # business. Jobs in hidden partitions are in either way.
        return await self._list("read the jobs", "/slurm/{version}/jobs/", since, read, flags="ALL")

    async def job_details(self) -> list[JobDetail]:
        """Every job that slurmctld still has a record of, finished ones included: for somebody who asks."""

        def read(body: bytes) -> list[JobDetail]:
            reply = _whole("read the jobs", _job_details_reply(body))
            return list(map(job_detail, _present("read the jobs", reply.jobs)))

        found = await self._list("read the jobs", "/slurm/{version}/jobs/", 0, read, flags="ALL")
        return found or []

    async def reservations(self, since: int = 0) -> Listing[str, Reservation] | None:
        def read(body: bytes) -> Listing[str, Reservation]:
            reply = _whole("read the reservations", _reservations_reply(body))
            found = map(lists.reservation, _present("read the reservations", reply.reservations))
            return _listing(reply, {reservation.name: reservation for reservation in found})

        return await self._list("read the reservations", "/slurm/{version}/reservations/", since, read)

    async def partitions(self, since: int = 0) -> Listing[str, Partition] | None:
        def read(body: bytes) -> Listing[str, Partition]:
            reply = _whole("read the partitions", _partitions_reply(body))
            found = map(lists.partition, _present("read the partitions", reply.partitions))
            return _listing(reply, {partition.name: partition for partition in found})

        return await self._list("read the partitions", "/slurm/{version}/partitions/", since, read)

    async def ping(self) -> tuple[ControllerPing, ...]:
        """Every slurmctld, primary and standby. An answer does not mean that any of them responds."""
        reply = await self._get(
            "ping slurmctld", "/slurm/{version}/ping/", _ping_reply, deadline_s=PING_SECONDS
        )
        return tuple(map(lists.controller_ping, _present("ping slurmctld", reply.pings)))

    async def licenses(self) -> dict[str, License]:
        reply = await self._get("read the licences", "/slurm/{version}/licenses/", _licenses_reply)
        found = map(lists.license_, _present("read the licences", reply.licenses))
        return {license_.name: license_ for license_ in found}

    async def diagnosis(self) -> Diagnosis:
        reply = await self._get("read slurmctld's counters", "/slurm/{version}/diag/", _diag_reply)
        return lists.diagnosis(reply.statistics or {})

    async def slurmctld_parameters(self) -> tuple[str, ...]:
        """SlurmctldParameters as slurmctld has read them; NotServed where the version cannot say."""
        attempt, path = "read the configuration", "/slurm/{version}/conf"
        reply = await self._get(attempt, path, _config_reply, needs=Capability.READ_CONFIG)
        return lists.slurmctld_parameters(reply)

    async def private_data(self) -> tuple[str, ...]:
        """What slurmctld shows to its operators only; NotServed where the version cannot say."""
        attempt, path = "read the configuration", "/slurm/{version}/conf"
        reply = await self._get(attempt, path, _config_reply, needs=Capability.READ_CONFIG)
        return lists.private_data(reply)

    async def _list(
        self, attempt: str, path: str, since: int, read: Callable[[bytes], V], flags: str = ""
    ) -> V | None:
        query = {"update_time": str(since)} if since else {}
        if flags:
            query["flags"] = flags
        reply = await self._session.call(attempt, "GET", path, query=query)
        if reply.status != 304:
            return await self._session.content(attempt, reply, read)
        if not since:
            raise SlurmAnswerUnreadable(attempt, "nothing has changed, it says, but since when?")
        return None

    async def _get(
        self,
        attempt: str,
        path: str,
        decode: Callable[[bytes], E],
        *,
        needs: Capability | None = None,
        deadline_s: float | None = None,
    ) -> E:
        reply = await self._session.call(attempt, "GET", path, needs=needs, deadline_s=deadline_s)
        return _whole(attempt, await self._session.content(attempt, reply, decode))


def _ends(over: Iterable[WireJob]) -> dict[int, tuple[EndedJob, ...]]:
    """How these ended, by every id that they are known by."""
    found: defaultdict[int, list[EndedJob]] = defaultdict(list)
    for job in over:
        end = ended_job(job)
        for job_id in ids(job):
            found[job_id].append(end)
    return {job_id: tuple(ends) for job_id, ends in found.items()}


def _whole(attempt: str, reply: E) -> E:
    trusted(attempt, reply)
    return reply


def _present(attempt: str, found: list[V] | None) -> list[V]:
    """A missing list is not an empty one."""
    if found is None:
        raise SlurmAnswerUnreadable(attempt, "the answer has no list in it")
    return found


def _listing(reply: Envelope, records: Mapping[K, V]) -> Listing[K, V]:
    return Listing(records, count(reply.last_update), reply.cluster, reply.release)


def _check_unchanged(since: int) -> None:
    """An empty list with a mark of 0 is slurmrestd's way to say that no job has changed.

    Taken for what it looks like, it would mean that no job runs, anywhere.
    """
    if not since:
        raise SlurmAnswerUnreadable("read the jobs", "an empty list, and no time it was made at")
