"""What the exporter asks of slurmrestd: whole lists, finished jobs included, each in one call."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from slurm_operator import wire
from slurm_operator.exporter import records
from slurm_operator.exporter.records import Diagnosis, Job, Node
from slurm_operator.slurmrest.answers import lists
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.errors import NotServed, SlurmAnswerUnreadable
from slurm_operator.slurmrest.session import Session, trusted
from slurm_operator.slurmrest.versions import Capability

T = TypeVar("T")

# The books are asked until a little later than now: clocks differ.
_AHEAD: Final = timedelta(minutes=5)

# A job that slurmdbd takes for waiting after so long was lost: slurmctld has never told of its end.
_ZOMBIE: Final = timedelta(days=30)

_nodes = wire.decoder(records.NodesReply)
_jobs = wire.decoder(records.JobsReply)
_booked = wire.decoder(records.BookedJobsReply)
_diag = wire.decoder(records.DiagReply)
_partitions = wire.decoder(lists.PartitionsReply)
_config = wire.decoder(records.PrivateReply)


class Reading:
    """One Slurm cluster, asked for everything. Raises SlurmFailure."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def move_on(self) -> None:
        """Ask another slurmrestd from now on, where there are several; it may be of another release."""
        self._session.transport.next_url()
        self._session.forget_version()

    async def nodes(self) -> tuple[Node, ...]:
        def read(body: bytes) -> tuple[Node, ...]:
            reply = _trusted("read the nodes", _nodes(body))
            return tuple(map(records.node, _present("read the nodes", reply.nodes)))

        return await self._get("read the nodes", "/slurm/{version}/nodes/", read)

    async def jobs(self) -> tuple[Job, ...]:
        def read(body: bytes) -> tuple[Job, ...]:
            reply = _trusted("read the jobs", _jobs(body))
            return _each_once(map(records.job, _present("read the jobs", reply.jobs)))

        return await self._get("read the jobs", "/slurm/{version}/jobs/", read, {"flags": "ALL"})

    async def booked_jobs(self, cluster: str, now: datetime, lookback: timedelta) -> tuple[Job, ...]:
        """Jobs of the last while, from slurmdbd: also those that slurmctld has forgotten."""

        def read(body: bytes) -> tuple[Job, ...]:
            reply = _trusted("read the booked jobs", _booked(body))
            found = map(records.booked_job, _present("read the booked jobs", reply.jobs))
            return _each_once(job for job in found if not _is_zombie(job, now))

        query = {
            "start_time": f"uts{int((now - lookback).timestamp())}",
            "end_time": f"uts{int((now + _AHEAD).timestamp())}",
            "disable_truncate_usage_time": "true",
            "skip_steps": "true",
            **({"cluster": cluster} if cluster else {}),
        }
        return await self._get("read the booked jobs", "/slurmdb/{version}/jobs/", read, query)

    async def diagnosis(self) -> Diagnosis:
        def read(body: bytes) -> Diagnosis:
            reply = _trusted("read slurmctld's counters", _diag(body))
            found = reply.statistics or {}
            return records.diagnosis(found, lists.diagnosis(found).counters)

        return await self._get("read slurmctld's counters", "/slurm/{version}/diag/", read)

    async def partitions(self) -> tuple[str, ...]:
        def read(body: bytes) -> tuple[str, ...]:
            reply = _trusted("read the partitions", _partitions(body))
            found = _present("read the partitions", reply.partitions)
            return tuple(sorted(partition.name for partition in found))

        return await self._get("read the partitions", "/slurm/{version}/partitions/", read)

    async def private_data(self) -> tuple[str, ...] | None:
        """What slurm.conf hides from users; None where the API version does not say."""

        def read(body: bytes) -> tuple[str, ...]:
            return records.private_data(_trusted("read the configuration", _config(body)))

        attempt, path = "read the configuration", "/slurm/{version}/conf"
        try:
            reply = await self._session.call(attempt, "GET", path, needs=Capability.READ_CONFIG)
        except NotServed:
            return None
        return await self._session.content(attempt, reply, read)

    async def _get(
        self, attempt: str, path: str, read: Callable[[bytes], T], query: dict[str, str] | None = None
    ) -> T:
        reply = await self._session.call(attempt, "GET", path, query=query)
        return await self._session.content(attempt, reply, read)


def _is_zombie(job: Job, now: datetime) -> bool:
    submitted = job.record.submit_time
    return job.record.state.is_pending and submitted is not None and now - submitted > _ZOMBIE


def _each_once(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """A requeued job is in the books once for each time that it ran: the last one is what it is now."""
    return tuple({job.record.job_id: job for job in jobs}.values())


def _trusted(attempt: str, reply: T) -> T:
    assert isinstance(reply, Envelope)
    trusted(attempt, reply)
    return reply


def _present(attempt: str, found: list[T] | None) -> list[T]:
    """A missing list is not an empty one."""
    if found is None:
        raise SlurmAnswerUnreadable(attempt, "the answer has no list in it")
    return found
