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
    OverJob,
    WireJob,
    WireJobDetail,
    ids,
    job_detail,
    over_job,
    slurm_job,
)
from slurm_operator.slurmrest.answers.nodes import Nodes, NodesReply
from slurm_operator.slurmrest.answers.values import count, job_state
from slurm_operator.slurmrest.errors import SlurmAnswerUnreadable
from slurm_operator.slurmrest.session import Session, trusted
from slurm_operator.slurmrest.versions import Capability

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=wire.Record)
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


_job = wire.decoder(WireJob)
_job_detail = wire.decoder(WireJobDetail)
_reservation = wire.decoder(lists.WireReservation)
_partition = wire.decoder(lists.WirePartition)
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
        self._jobs: Mapping[int, SlurmJob] = {}

    async def nodes(self, since: int = 0) -> Listing[str, SlurmNode] | None:
        reading = self._nodes.reading()

        def made(found: list[SlurmNode], rest: bytes) -> Listing[str, SlurmNode]:
            reply = _whole("read the nodes", _nodes_reply(rest))
            _check_list("read the nodes", reply.nodes)
            self._nodes = reading
            return _listing(reply, {node.name: node for node in found})

        path = "/slurm/{version}/nodes/"
        return await self._list("read the nodes", path, "nodes", since, reading.one, made)

    async def jobs(self, since: int = 0) -> JobListing | None:
        """Unfinished jobs, and the ends of others: slurmrestd cannot filter by state, so it happens here."""
        before = self._jobs

        def read(entry: bytes) -> SlurmJob | OverJob:
            found = _job(entry)
            if job_state(found.job_state).is_finished:
                return over_job(found)
            job = slurm_job(found)
            known = before.get(job.job_id)
            return known if known is not None and known == job else job

        def made(found: list[SlurmJob | OverJob], rest: bytes) -> JobListing | None:
            reply = _whole("read the jobs", _jobs_reply(rest))
            _check_list("read the jobs", reply.jobs)
            if not found and not count(reply.last_update):
                _check_unchanged(since)
                return None
            over = [job for job in found if isinstance(job, OverJob)]
            ids_over = {job.end.job_id for job in over}
            left = (job for job in found if isinstance(job, SlurmJob) and job.job_id not in ids_over)
            jobs = {job.job_id: job for job in left}
            self._jobs = jobs
            return JobListing(
                records=jobs,
                by_node=jobs_by_node(jobs.values()),
                last_update=count(reply.last_update),
                ended=_ends(over),
                open_ids=frozenset(job_id for job in jobs.values() for job_id in ids(job)),
            )

        # Without DETAIL the cores of every node of every job are left out: most of the bytes, and none of our
        # business. Jobs in hidden partitions are in either way.
        return await self._list("read the jobs", "/slurm/{version}/jobs/", "jobs", since, read, made, "ALL")

    async def job_details(self) -> list[JobDetail]:
        """Every job that slurmctld still has a record of, finished ones included: for somebody who asks."""

        def made(found: list[JobDetail], rest: bytes) -> list[JobDetail]:
            _check_list("read the jobs", _whole("read the jobs", _job_details_reply(rest)).jobs)
            return found

        def read(entry: bytes) -> JobDetail:
            return job_detail(_job_detail(entry))

        return await self._list("read the jobs", "/slurm/{version}/jobs/", "jobs", 0, read, made, "ALL") or []

    async def reservations(self, since: int = 0) -> Listing[str, Reservation] | None:
        def made(found: list[Reservation], rest: bytes) -> Listing[str, Reservation]:
            reply = _whole("read the reservations", _reservations_reply(rest))
            _check_list("read the reservations", reply.reservations)
            return _listing(reply, {reservation.name: reservation for reservation in found})

        def read(entry: bytes) -> Reservation:
            return lists.reservation(_reservation(entry))

        path = "/slurm/{version}/reservations/"
        return await self._list("read the reservations", path, "reservations", since, read, made)

    async def partitions(self, since: int = 0) -> Listing[str, Partition] | None:
        def made(found: list[Partition], rest: bytes) -> Listing[str, Partition]:
            reply = _whole("read the partitions", _partitions_reply(rest))
            _check_list("read the partitions", reply.partitions)
            return _listing(reply, {partition.name: partition for partition in found})

        def read(entry: bytes) -> Partition:
            return lists.partition(_partition(entry))

        path = "/slurm/{version}/partitions/"
        return await self._list("read the partitions", path, "partitions", since, read, made)

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
        self,
        attempt: str,
        path: str,
        name: str,
        since: int,
        read: Callable[[bytes], R],
        made: Callable[[list[R], bytes], V | None],
        flags: str = "",
    ) -> V | None:
        """See `Session.listed`."""
        query = {"update_time": str(since)} if since else {}
        if flags:
            query["flags"] = flags
        is_unchanged = True

        def noted(found: list[R], rest: bytes) -> V | None:
            nonlocal is_unchanged
            is_unchanged = False
            return made(found, rest)

        listing = await self._session.listed(attempt, path, name, read, noted, query)
        if is_unchanged and not since:
            raise SlurmAnswerUnreadable(attempt, "nothing has changed, it says, but since when?")
        return listing

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


def _ends(over: Iterable[OverJob]) -> dict[int, tuple[EndedJob, ...]]:
    """How these ended, by every id that they are known by."""
    found: defaultdict[int, list[EndedJob]] = defaultdict(list)
    for job in over:
        for job_id in job.ids:
            found[job_id].append(job.end)
    return {job_id: tuple(ends) for job_id, ends in found.items()}


def _whole(attempt: str, reply: E) -> E:
    trusted(attempt, reply)
    return reply


def _present(attempt: str, found: list[V] | None) -> list[V]:
    """A missing list is not an empty one."""
    if found is None:
        raise SlurmAnswerUnreadable(attempt, "the answer has no list in it")
    return found


def _check_list(attempt: str, beside: list[V] | None) -> None:
    """The list was read while it arrived: an empty one is left. A missing one is not an empty one."""
    if _present(attempt, beside):
        raise SlurmAnswerUnreadable(attempt, "the answer has its list twice")


def _listing(reply: Envelope, records: Mapping[K, V]) -> Listing[K, V]:
    return Listing(records, count(reply.last_update), reply.cluster, reply.release)


def _check_unchanged(since: int) -> None:
    """An empty list with a mark of 0 is slurmrestd's way to say that no job has changed.

    Taken for what it looks like, it would mean that no job runs, anywhere.
    """
    if not since:
        raise SlurmAnswerUnreadable("read the jobs", "an empty list, and no time it was made at")
