"""How a job ended: from the list that is read anyway, and from accounting where slurmctld has forgotten it."""

import asyncio
import copy

import pytest
from fake_slurmrestd import FakeSlurmrestd, body_of, http

from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.states import JobState
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import NotServed, SlurmUnreachable
from slurm_operator.slurmsync.books import AGAIN_SECONDS, Books
from testing.virtual_time import FakeClock

JOBS = "GET /slurm/{v}/jobs/"


def job(job_id: int, *states: str, **fields) -> dict:
    template = copy.deepcopy(body_of("jobs")["jobs"][0])
    plain = {"job_id": job_id, "job_state": list(states), "array_job_id": 0, "het_job_id": 0}
    return {**template, **plain, **fields}


async def listing(slurmrestd: FakeSlurmrestd, client: SlurmRest, *jobs: dict):
    slurmrestd.on(JOBS, http(200, body_of("jobs") | {"jobs": list(jobs)}))
    found = await client.read.jobs()
    assert found is not None
    return found


async def test_a_finished_job_is_no_fact_about_nodes_but_its_end_is_known(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    found = await listing(
        slurmrestd, client, job(1, "RUNNING"), job(2, "TIMEOUT", nodes="cpu-[1-2]", state_reason="TimeLimit")
    )

    assert set(found.records) == {1}
    [end] = found.ended[2]
    assert (end.state.base, end.nodes, end.reason) == ("TIMEOUT", ("cpu-1", "cpu-2"), "TimeLimit")
    assert found.open_ids == {1}


async def test_an_epilog_that_still_runs_is_no_end(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    found = await listing(slurmrestd, client, job(2, "FAILED", "COMPLETING"))

    assert not found.ended
    assert found.open_ids == {2}


async def test_the_tasks_of_an_array_are_found_under_its_id(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    found = await listing(
        slurmrestd, client, job(7, "COMPLETED", array_job_id=7), job(8, "FAILED", array_job_id=7)
    )

    assert sorted(end.job_id for end in found.ended[7]) == [7, 8]
    assert [end.job_id for end in found.ended[8]] == [8]


async def test_an_array_is_open_while_a_task_runs(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    found = await listing(
        slurmrestd, client, job(7, "RUNNING", array_job_id=7), job(8, "FAILED", array_job_id=7)
    )

    assert found.open_ids == {7}


class Accounting:
    """Answers, or raises, what it is told to."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.database = self

    async def job(self, job_id: int):
        self.asked.append(job_id)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def booked(state: str) -> AccountedJob:
    return AccountedJob(job_id=5, state=JobState.of(state), nodes=("cpu-0",))


@pytest.mark.parametrize(
    ("answer", "ends", "why"),
    [
        pytest.param([booked("FAILED")], ["FAILED"], "", id="it has it"),
        pytest.param([], [], "", id="it does not know it"),
        pytest.param([booked("RUNNING")], [], "accounting has it as RUNNING", id="no end yet"),
        pytest.param(NotServed("read", "no such call"), [], "", id="there is no accounting"),
        pytest.param(SlurmUnreachable("read", "timed out"), [], "cannot be asked", id="it does not answer"),
    ],
)
async def test_what_accounting_says(answer, ends, why) -> None:
    books = Books(Accounting(answer), FakeClock())  # type: ignore[arg-type]

    assert books.entry(5).read_at is None
    await books.read_due()
    found = books.entry(5)

    assert [end.state.base for end in found.ends] == ends
    assert why in found.why
    assert bool(found.why) == bool(why)


async def test_a_record_that_comes_late_is_found_and_then_never_asked_for_again() -> None:
    clock, accounting = FakeClock(), Accounting([], [booked("FAILED")])
    books = Books(accounting, clock)  # type: ignore[arg-type]
    books.entry(5)
    await books.read_due()
    await books.read_due()
    assert accounting.asked == [5]

    clock.advance(AGAIN_SECONDS + 1)
    books.entry(5)
    await books.read_due()
    clock.advance(AGAIN_SECONDS + 1)
    books.entry(5)
    await books.read_due()

    assert accounting.asked == [5, 5]
    assert books.entry(5).ends


async def test_asking_stirs_the_reader() -> None:
    books = Books(Accounting([booked("FAILED")]), FakeClock())  # type: ignore[arg-type]
    running = asyncio.create_task(books.run())
    try:
        books.entry(5)
        await asyncio.sleep(0.01)
        assert books.entry(5).ends
    finally:
        running.cancel()
