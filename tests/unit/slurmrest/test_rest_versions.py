"""Every API version becomes the same records."""

from datetime import UTC, datetime

import pytest
from fake_slurmrestd import FakeSlurmrestd, answer

from slurm_operator import wire
from slurm_operator.slurm.node import Vitals
from slurm_operator.slurm.writes import SIGNALS, SignalJob
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.client import SlurmRest

OLDER = ("v0.0.42", "v0.0.43", "v0.0.44")


@pytest.mark.parametrize("version", OLDER)
async def test_nodes_are_the_same_in_every_version(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, version: str
) -> None:
    slurmrestd.on("GET /slurm/{v}/nodes/", answer("nodes"), answer(f"nodes-{version}"))

    newest, older = await client.read.nodes(), await client.read.nodes()

    assert newest is not None
    assert older is not None
    still = {name: wire.replace(node, vitals=Vitals()) for name, node in newest.records.items()}
    assert {name: wire.replace(node, vitals=Vitals()) for name, node in older.records.items()} == still
    assert {str(node.state) for node in still.values()} >= {"MIXED+DRAIN+DYNAMIC_NORM"}


@pytest.mark.parametrize("version", OLDER)
async def test_jobs_are_the_same_in_every_version(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, version: str
) -> None:
    slurmrestd.on("GET /slurm/{v}/jobs/", answer("jobs"), answer(f"jobs-{version}"))

    newest, older = await client.read.jobs(), await client.read.jobs()

    assert newest is not None
    assert older is not None
    assert newest.records
    assert older.records == newest.records


@pytest.mark.parametrize("version", OLDER)
async def test_the_small_lists_are_the_same_in_every_version(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, version: str
) -> None:
    slurmrestd.on("GET /slurm/{v}/reservations/", answer("reservations"), answer(f"reservations-{version}"))
    slurmrestd.on("GET /slurm/{v}/partitions/", answer("partitions"), answer(f"partitions-{version}"))
    slurmrestd.on("GET /slurm/{v}/ping/", answer(f"ping-{version}"))

    reservations = [await client.read.reservations(), await client.read.reservations()]
    newest, older = await client.read.partitions(), await client.read.partitions()

    assert reservations[0] is not None
    assert reservations[1] is not None
    assert reservations[1].records == reservations[0].records
    assert newest is not None
    assert older is not None
    assert older.records["all"].is_default is None, "these versions do not say"
    assert newest.records["all"] == wire.replace(older.records["all"], is_default=True, topology="")
    assert [(ping.is_primary, ping.is_responding) for ping in await client.read.ping()] == [(True, True)]


async def test_the_books_are_read(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    for name in ("accounts", "users", "qos", "associations", "clusters", "jobs"):
        slurmrestd.on(f"GET /slurmdb/{{v}}/{name}/", answer(f"books-{name}"))
    database = client.database

    assert "root" in await database.accounts()
    assert (await database.users())["root"].administrator_level == {"Administrator"}
    assert "normal" in await database.qos()
    assert {(row.account, row.user) for row in await database.associations()} >= {("root", "root")}
    assert (await database.clusters())["test"].controller_port == 6817
    jobs = await database.jobs(since=datetime(2026, 1, 1, tzinfo=UTC))
    assert "COMPLETED" in {job.state.base for job in jobs}
    assert all(job.nodes for job in jobs if job.state.base == "COMPLETED")


async def test_licences_are_read(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on("GET /slurm/{v}/licenses/", answer("licenses"))

    assert (await client.read.licenses())["matlab"].total == 4


async def test_an_unknown_job_is_an_error_though_errors_is_empty(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    """slurmrestd answers 200 with no `errors`; the trouble stands in `status`."""
    slurmrestd.on("DELETE /slurm/{v}/job/99999", answer("job-unknown"))

    with pytest.raises(errors.UnknownJob, match="Invalid job id"):
        await client.send.cancel_job("99999")


async def test_a_task_is_requeued_by_its_address_and_told_in_its_own_way(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    """For tasks of arrays `status` has another shape than for jobs that are cancelled, and is there when all is well."""
    slurmrestd.on("GET /slurm/{v}/job/1_3/requeue", answer("requeue-task"), answer("requeue-task-refused"))

    await client.send.requeue_job("1_3")
    with pytest.raises(errors.JobPending, match=r"pending execution \(error 2024\)"):
        await client.send.requeue_job("1_3")


def test_a_signal_with_an_unknown_name_is_never_sent() -> None:
    """slurmrestd would cancel the job."""
    with pytest.raises(ValueError, match="BOGUS"):
        SignalJob(job_id=1, address="1", signal="BOGUS")
    assert SignalJob(job_id=1, address="1", signal="USR1").signal in SIGNALS
