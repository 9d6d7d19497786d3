"""Whom an id means: the last task of an array has the id of all of them, the first part of a pack that of the whole."""

import asyncio
from collections.abc import Callable

import pytest
from recording import check
from rest_rig import client_of, raw, until

from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurmrest import errors, session
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.versions import NEWEST_FIRST
from testing.daemons import SlurmDaemons

V = "/slurm/v0.0.45"
TASKS = {0, 1, 2, 3}


@pytest.fixture(params=NEWEST_FIRST)
def client(slurm: SlurmDaemons, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SlurmRest:
    """One of each version that we speak."""
    monkeypatch.setattr(session, "NEWEST_FIRST", (request.param,))
    return client_of(slurm)


async def started(slurm: SlurmDaemons) -> int:
    """An array whose four tasks all run: Slurm says so before their scripts begin, which then miss a signal."""
    begun = "touch /tmp/$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID"
    array = slurm.submit(f"{begun}; sleep 600", "--array=0-3", "--mem=10", "--requeue")
    places = [worker.box.path("/tmp") for worker in slurm.workers.values()]
    await until(lambda: sum(len([*place.glob(f"{array}.*")]) for place in places) == 4, "its tasks to run")
    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") == 4, "Slurm to say so")
    return array


async def unfinished(client: SlurmRest) -> list[SlurmJob]:
    listing = await client.read.jobs()
    assert listing is not None
    return sorted(listing.records.values(), key=lambda job: job.address)


async def running(client: SlurmRest) -> set[int | None]:
    return {job.array_task_id for job in await unfinished(client) if job.state.is_running}


async def settled(client: SlurmRest, left: set[int], seconds: float = 40) -> set[int | None]:
    """The tasks that run once no others than `left` do, and a moment later, when more may have ended."""
    async with asyncio.timeout(seconds):
        while not await running(client) <= left:  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    return await running(client)


async def last_of(client: SlurmRest, array: int) -> SlurmJob:
    [last] = [job for job in await unfinished(client) if job.job_id == array]
    return last


async def test_the_last_task_has_the_id_of_the_array_and_an_address_of_its_own(
    slurm: SlurmDaemons, client: SlurmRest
) -> None:
    array = await started(slurm)
    found = await unfinished(client)

    assert [job.address for job in found] == [f"{array}_{task}" for task in TASKS]
    assert (await last_of(client, array)).array_task_id == 3
    assert {job.requeue_address for job in found} == {job.address for job in found}


async def test_a_task_is_cancelled_by_its_address_and_the_others_run_on(
    slurm: SlurmDaemons, client: SlurmRest
) -> None:
    array = await started(slurm)

    await client.send.cancel_job((await last_of(client, array)).address)

    assert await settled(client, TASKS - {3}) == TASKS - {3}
    with pytest.raises(errors.JobFinished):
        await client.send.cancel_job(f"{array}_3")


async def test_the_plain_id_cancels_the_whole_array(slurm: SlurmDaemons, client: SlurmRest) -> None:
    """Why nobody is cancelled by that."""
    array = await started(slurm)

    await client.send.cancel_job(str(array))

    assert await settled(client, set()) == set()


async def test_a_signal_goes_to_one_task_by_its_address(slurm: SlurmDaemons, client: SlurmRest) -> None:
    array = await started(slurm)

    await client.send.signal_job(f"{array}_3", "USR2")

    assert await settled(client, TASKS - {3}) == TASKS - {3}, "which ends on it"
    with pytest.raises(errors.JobFinished):
        await client.send.signal_job(str(array), "USR2")
    assert await settled(client, set()) == set(), (
        "by the plain id all the others do, whatever the answer says"
    )


async def test_an_update_takes_plain_ids_and_means_the_one(slurm: SlurmDaemons, client: SlurmRest) -> None:
    """Unlike scontrol, which changes the whole array by that id."""
    array = await started(slurm)

    await client.send.update_job(array, {"admin_comment": "for the last one"})
    with pytest.raises(errors.SlurmRefused, match="array task id"):
        await client.send.update_job(f"{array}_1", {"admin_comment": "x"})  # type: ignore[arg-type]

    told = {job.array_task_id: job.admin_comment for job in await unfinished(client)}
    assert told == {0: "", 1: "", 2: "", 3: "for the last one"}


async def test_a_task_is_requeued_by_its_address_and_the_others_run_on(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    array = await started(slurm)

    await client.send.requeue_job((await last_of(client, array)).address)
    assert await settled(client, TASKS - {3}) == TASKS - {3}
    await client.send.requeue_job(f"{array}_0")
    assert {1, 2} <= await settled(client, TASKS - {0}), "the last one may run again by now"

    assert (await last_of(client, array)).restarts == 1
    assert {job.restarts for job in await unfinished(client) if job.array_task_id in (1, 2)} == {0}


async def test_the_plain_id_requeues_the_whole_array(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    array = await started(slurm)

    await client.send.requeue_job(str(array))

    await until(lambda: slurm.run("squeue", "--noheader", "--states=R") == "", "nobody to run")
    assert {job.restarts for job in await unfinished(client)} == {1}


async def test_what_becomes_of_a_requeued_task_is_told_in_a_shape_of_its_own(slurm: SlurmDaemons) -> None:
    array = await started(slurm)
    for name in ("requeue-task", "requeue-task-refused"):
        reply = raw(slurm, "GET", f"{V}/job/{array}_3/requeue")
        check(name, f"GET {V}/job/1_3/requeue", reply.status, reply.body)

    with pytest.raises(errors.JobPending):
        await client_of(slurm).send.requeue_job(f"{array}_3")


async def test_a_pack_is_requeued_as_a_whole_or_not_at_all(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm(settings={"SchedulerParameters": "bf_interval=1"})  # Only backfill starts packs.
    slurm.reset("w-0", "w-1")
    client = client_of(slurm)
    parts = ("--mem=10", "-n1", "--requeue", "--nodelist=w-0", "--time=5", ":", "--mem=10", "-n1")
    pack = slurm.submit("sleep 600", *parts, "--nodelist=w-1")
    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") == 2, "the pack to run")
    first, second = await unfinished(client)

    assert (first.job_id, first.nodes, second.nodes) == (pack, ("w-0",), ("w-1",))
    assert first.requeue_address == second.requeue_address == str(pack)
    with pytest.raises(errors.SlurmRefused, match="2107"):
        await client.send.requeue_job(second.address)

    await client.send.update_job(pack, {"admin_comment": "for the first"})
    assert [job.admin_comment for job in await unfinished(client)] == ["for the first", ""]
    await client.send.requeue_job(second.requeue_address)
    assert [job.restarts for job in await unfinished(client)] == [1, 1]
    with pytest.raises(errors.JobPending):
        await client.send.requeue_job(first.requeue_address)

    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") == 2, "it to run again")
    await client.send.cancel_job(second.address)
    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") < 2, "it to end")
    await asyncio.sleep(0.5)
    assert [job.job_id for job in await unfinished(client) if job.state.is_running] == [pack]
