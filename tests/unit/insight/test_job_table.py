"""Jobs as rows."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator.insight.jobs.table import rows, text, without_times
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.states import JobState

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def job(number: int, state: str, reason: str = "", **more: object) -> JobDetail:
    detail = {key: more.pop(key) for key in ("expected_start", "requested") if key in more}
    found = SlurmJob(
        job_id=number,
        state=JobState(frozenset({state})),
        name=f"job{number}",
        user="ada",
        state_reason=reason,
        **more,
    )  # type: ignore[arg-type]
    return JobDetail(job=found, **detail)  # type: ignore[arg-type]


RUNNING = job(
    7,
    "RUNNING",
    nodes=("cpu-0", "cpu-1"),
    start_time=NOW - timedelta(minutes=5),
    time_limit=timedelta(hours=1),
)
WAITING = job(3, "PENDING", "Resources", expected_start=NOW + timedelta(minutes=30))
TASK = job(9, "PENDING", "Priority", array_job_id=9, array_tasks="1-3")
OVER = job(1, "FAILED", start_time=NOW - timedelta(hours=2), end_time=NOW - timedelta(hours=1))


def test_running_jobs_stand_before_those_that_wait_and_finished_ones_are_left_out() -> None:
    found = rows([WAITING, OVER, TASK, RUNNING], NOW)

    assert [row.called for row in found] == ["job/7", "job/3", "job/9_[1-3]"]
    assert [row.job for row in rows([OVER, RUNNING], NOW, finished=True)] == ["7", "1"]


def test_the_screen_says_in_words_why_a_job_waits() -> None:
    shown = text(rows([WAITING, RUNNING], NOW)).plain.splitlines()

    assert shown[0].split() == ["JOB", "NAME", "USER", "STATE", "RAN", "LIMIT", "NODES", "WHY"]
    assert shown[1].split() == ["7", "job7", "ada", "RUNNING", "5m", "60m", "cpu-[0-1]"]
    assert shown[2].endswith(
        "the nodes that it needs are busy, and it is the next one in line (Resources); "
        "expected to start at 2026-11-18 12:30 UTC"
    )


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("", "the scheduler has not looked at it yet"),
        ("Dependency", "it waits for another job to end (Dependency)"),
        (
            "QOSMaxJobsPerUserLimit",
            "jobs that run or are pending already reach a limit of its QOS or account",
        ),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_a_reason_is_told_in_plain_words_where_there_are_any(reason: str, why: str) -> None:
    assert rows([job(1, "PENDING", reason)], NOW)[0].why.startswith(why)


def test_nobody_is_told_again_that_a_second_has_passed() -> None:
    before, after = rows([RUNNING, WAITING], NOW), rows([RUNNING, WAITING], NOW + timedelta(seconds=2))

    assert before != after
    assert without_times(before) == without_times(after)


def test_without_jobs_the_screen_says_so() -> None:
    assert text([]).plain == "No jobs.\n"


def test_the_wide_table_has_what_was_asked_for() -> None:
    shown = text(
        rows([job(1, "PENDING", "Priority", requested="cpu=2,mem=4G", account="lab")], NOW), wide=True
    )

    assert "cpu=2,mem=4G" in shown.plain
    assert "lab" in shown.plain
