"""`jobs`: jobs as rows, with the reason of those that wait in plain words."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rich.text import Text

from slurm_operator import wire
from slurm_operator.insight.explain.job_ids import written_id
from slurm_operator.insight.text.output import BAD, BUSY, GOOD, Cell, paragraph, span, table
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.waiting_reasons import meaning

_COLUMNS = ("JOB", "NAME", "USER", "STATE", "RAN", "LIMIT", "NODES", "WHY")
_WIDE = (
    *("JOB", "NAME", "USER", "ACCOUNT", "PARTITION", "QOS", "STATE", "SUBMITTED"),
    *("RAN", "LIMIT", "CPUS", "ASKED FOR", "NODES", "WHY"),
)

_FAILURES = ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


class JobRow(wire.Record):
    """One job. Times are UTC."""

    job: str
    name: str
    user: str
    account: str
    partition: str
    qos: str
    state: str
    nodes: str
    cpus: int
    requested: str
    submitted: datetime | None = None
    started: datetime | None = None
    expected_start: datetime | None = None
    ran_s: int | None = None
    limit_s: int | None = None
    reason: str = ""
    why: str = ""

    @property
    def called(self) -> str:
        """As `kubectl slurm explain` and `cancel` take it."""
        return f"job/{self.job}"


def rows(jobs: Iterable[JobDetail], now: datetime, *, finished: bool = False) -> list[JobRow]:
    """Running jobs first, then those that wait, each by id; finished ones where they are wanted."""
    kept = [one for one in jobs if finished or not one.job.state.is_finished]
    return [_row(one, now) for one in sorted(kept, key=_order)]


def without_times(found: list[JobRow]) -> list[JobRow]:
    """What makes a difference to somebody who watches: not that a running job has run for a second more."""
    return [
        wire.replace(row, ran_s=None, expected_start=None, why=row.why.partition(";")[0]) for row in found
    ]


def plain_reason(found: JobDetail) -> str:
    """Why it waits, in words, with Slurm's own word behind them; nothing for a job that does not wait."""
    job = found.job
    if not job.state.is_pending:
        return ""
    reason = job.state_reason or "None"
    if reason == "None":
        return "the scheduler has not looked at it yet"
    known = meaning(reason)
    start = (
        f"; expected to start at {found.expected_start:%Y-%m-%d %H:%M} UTC" if found.expected_start else ""
    )
    return (f"{known.says} ({reason})" if known is not None else reason) + start


def text(found: list[JobRow], *, wide: bool = False) -> Text:
    if not found:
        return paragraph("No jobs.")
    return table(_WIDE, map(_wide, found)) if wide else table(_COLUMNS, map(_short, found))


def _order(found: JobDetail) -> tuple[bool, bool, int]:
    return found.job.state.is_finished, found.job.state.is_pending, found.job.job_id


def _row(found: JobDetail, now: datetime) -> JobRow:
    job = found.job
    end = job.end_time if job.state.is_finished else now
    ran = (end or now) - job.start_time if job.start_time is not None else None
    return JobRow(
        job=written_id(found),
        name=job.name,
        user=job.user or str(job.user_id),
        account=job.account,
        partition=job.partition,
        qos=job.qos,
        state=str(job.state),
        nodes=compress(job.nodes) if job.nodes else "",
        cpus=job.cpus,
        requested=found.requested,
        submitted=job.submit_time,
        started=job.start_time,
        expected_start=found.expected_start,
        ran_s=max(0, int(ran.total_seconds())) if ran is not None else None,
        limit_s=int(job.time_limit.total_seconds()) if job.time_limit is not None else None,
        reason=job.state_reason,
        why=plain_reason(found),
    )


def _short(row: JobRow) -> list[str | Cell]:
    return [
        row.job,
        row.name,
        row.user,
        _state(row.state),
        _length(row.ran_s),
        _limit(row),
        row.nodes,
        row.why,
    ]


def _wide(row: JobRow) -> list[str | Cell]:
    submitted = f"{row.submitted:%Y-%m-%d %H:%M} UTC" if row.submitted is not None else ""
    return [
        *(row.job, row.name, row.user, row.account, row.partition, row.qos, _state(row.state), submitted),
        *(_length(row.ran_s), _limit(row), str(row.cpus), row.requested, row.nodes, row.why),
    ]


def _state(state: str) -> Cell:
    if state.startswith(("RUNNING", "COMPLETED")):
        return Cell(state, GOOD)
    return Cell(state, BAD if state.startswith(_FAILURES) else BUSY)


def _limit(row: JobRow) -> str:
    return _length(row.limit_s) if row.limit_s is not None else "none"


def _length(seconds: int | None) -> str:
    return span(timedelta(seconds=seconds)) if seconds is not None else ""
