"""The traps of slurmrestd, one by one, against the bytes that a real one sent."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from fake_slurmrestd import FakeSlurmrestd, answer, body_of, http

from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.session import ON_LOOP_BYTES

NODES = "GET /slurm/{v}/nodes/"
JOBS = "GET /slurm/{v}/jobs/"


async def test_an_unchanged_job_list_is_not_an_empty_one(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(JOBS, answer("jobs"), answer("jobs-unchanged"))
    listing = await client.read.jobs()
    assert listing is not None

    assert listing.records
    assert await client.read.jobs(listing.last_update) is None
    assert slurmrestd.heard[-1].query["update_time"] == str(listing.last_update)


async def test_the_mark_of_an_unchanged_job_list_is_never_used(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(JOBS, answer("jobs-unchanged"))

    with pytest.raises(errors.SlurmAnswerUnreadable):
        await client.read.jobs()


@pytest.mark.parametrize(("is_batch", "requeue"), [(True, True), (False, True), (True, False)])
async def test_only_a_batch_job_can_be_requeued_whatever_its_wishes(
    is_batch: bool, requeue: bool, slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    """What srun began says so as well, by default, and slurmctld refuses it."""
    body = copy.deepcopy(body_of("jobs"))
    for job in body["jobs"]:
        job |= {"batch_flag": is_batch, "requeue": requeue}
    slurmrestd.on(JOBS, http(200, body))

    listing = await client.read.jobs()

    assert listing is not None
    assert {job.is_requeueable for job in listing.records.values()} == {is_batch and requeue}


async def test_a_queue_without_jobs_is_read_as_such(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    body = body_of("jobs") | {"jobs": []}
    slurmrestd.on(JOBS, http(200, body))

    listing = await client.read.jobs(since=17)

    assert listing is not None
    assert listing.records == {}
    assert listing.last_update > 0


async def test_an_unchanged_node_list_is_told_from_an_empty_one(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(NODES, answer("nodes"), answer("nodes-unchanged"))
    listing = await client.read.nodes()
    assert listing is not None

    assert await client.read.nodes(listing.last_update) is None


async def test_a_node_list_that_is_not_there_is_no_list_without_nodes(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = body_of("nodes")
    del body["nodes"]
    slurmrestd.on(NODES, http(200, body))

    with pytest.raises(errors.SlurmAnswerUnreadable, match="no list"):
        await client.read.nodes()


async def test_errors_in_an_http_200_are_errors(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on(NODES, answer("node-unknown-get"))

    with pytest.raises(errors.SlurmRefused, match="Failure to query node"):
        await client.read.nodes()


async def test_only_unfinished_jobs_are_kept(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on(JOBS, answer("jobs"))
    recorded = {job["job_id"]: job["job_state"] for job in body_of("jobs")["jobs"]}

    listing = await client.read.jobs()

    assert listing is not None
    assert set(listing.records) == {job_id for job_id, state in recorded.items() if state == ["RUNNING"]}
    assert len(recorded) > len(listing.records) > 0
    (job,) = listing.records.values()
    assert listing.by_node == dict.fromkeys(job.nodes, (job.job_id,))


async def test_words_of_a_newer_slurm_are_carried_through(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = copy.deepcopy(body_of("nodes"))
    body["nodes"][0] |= {"state": ["IDLE", "TRANSMOGRIFIED"], "a_new_field": {"deep": [1]}, "gres": None}
    body["news"] = "at the top, too"
    slurmrestd.on(NODES, http(200, body))

    listing = await client.read.nodes()

    assert listing is not None
    node = listing.records[body["nodes"][0]["name"]]
    assert node.state.unknown_words == {"TRANSMOGRIFIED"}
    assert node.gres == ""


async def test_a_job_in_a_state_we_do_not_know_is_not_finished(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = copy.deepcopy(body_of("jobs"))
    body["jobs"][0]["job_state"] = ["TELEPORTING"]
    slurmrestd.on(JOBS, http(200, body))

    listing = await client.read.jobs()

    assert listing is not None
    assert body["jobs"][0]["job_id"] in listing.records


async def test_numbers_and_lists_are_read_in_either_dress(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    plain, dressed = copy.deepcopy(body_of("nodes")), copy.deepcopy(body_of("nodes"))
    plain["nodes"][0] |= {"features": "a,b", "weight": 7, "boot_time": 100, "free_mem": 5}
    dressed["nodes"][0] |= {
        "features": ["a", "b"],
        "weight": {"set": True, "infinite": False, "number": 7},
        "boot_time": {"set": True, "infinite": False, "number": 100},
        "free_mem": {"set": True, "infinite": False, "number": 5},
    }
    slurmrestd.on(NODES, http(200, plain), http(200, dressed))

    assert await client.read.nodes() == await client.read.nodes()


@pytest.mark.parametrize(
    ("limit", "read"),
    [
        ({"set": True, "infinite": False, "number": 10}, timedelta(minutes=10)),
        ({"set": False, "infinite": True, "number": 0}, None),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": True, "infinite": False, "number": 4294967295}, None),
        (30, timedelta(minutes=30)),
    ],
)
async def test_a_time_limit_is_a_length_or_none(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, limit: object, read: timedelta | None
) -> None:
    body = copy.deepcopy(body_of("jobs"))
    body["jobs"] = [body["jobs"][0] | {"time_limit": limit, "job_state": ["RUNNING"]}]
    slurmrestd.on(JOBS, http(200, body))

    listing = await client.read.jobs()

    assert listing is not None
    (job,) = listing.records.values()
    assert job.time_limit == read


async def test_a_hostlist_that_makes_no_sense_hides_no_job(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = copy.deepcopy(body_of("jobs"))
    body["jobs"][0]["nodes"] = "w-[0-"
    slurmrestd.on(JOBS, http(200, body))

    with pytest.raises(errors.SlurmAnswerUnreadable):
        await client.read.jobs()


@pytest.mark.parametrize("padding", [0, ON_LOOP_BYTES])
async def test_a_name_in_another_encoding_hides_no_job(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, padding: int
) -> None:
    """slurmrestd passes on the bytes that people gave."""
    body = copy.deepcopy(body_of("jobs"))
    body["jobs"] = [body["jobs"][0] | {"name": "f_r", "comment": "x" * padding, "job_state": ["RUNNING"]}]
    slurmrestd.on(JOBS, http(200, body).replace(b'"f_r"', b'"f\xfcr"'))

    listing = await client.read.jobs()

    assert listing is not None
    assert [job.name for job in listing.records.values()] == ["f\ufffdr"]


async def test_guesses_of_the_scheduler_do_not_count_as_news(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    first, second = copy.deepcopy(body_of("jobs")), copy.deepcopy(body_of("jobs"))
    for body, guess in ((first, 100), (second, 200)):
        body["jobs"] = [body["jobs"][0] | {"job_state": ["PENDING"], "nodes": "", "start_time": guess}]
    slurmrestd.on(JOBS, http(200, first), http(200, second))

    assert await client.read.jobs() == await client.read.jobs()


async def test_reservations_partitions_pings_and_counters_are_read(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on("GET /slurm/{v}/reservations/", answer("reservations"))
    slurmrestd.on("GET /slurm/{v}/partitions/", answer("partitions"))
    slurmrestd.on("GET /slurm/{v}/diag/", answer("diag"))

    reservations = await client.read.reservations()
    partitions = await client.read.partitions()
    pings = await client.read.ping()
    diagnosis = await client.read.diagnosis()

    assert reservations is not None
    assert partitions is not None
    (reservation,) = reservations.records.values()
    assert reservation.nodes
    assert {"MAINT", "IGNORE_JOBS"} <= reservation.flags
    assert reservation.end_time
    assert reservation.start_time
    assert partitions.records["all"].is_default
    assert partitions.records["all"].takes_jobs
    assert partitions.records["all"].max_time is None
    assert [ping.is_responding for ping in pings] == [True]
    assert diagnosis.counters["schedule_cycle_mean"] > 0


async def test_a_ping_that_nobody_answered_is_read_as_such(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on("GET /slurm/{v}/ping/", answer("ping-slurmctld-hung"))

    (ping,) = await client.read.ping()

    assert not ping.is_responding
    assert "Unable to contact" in ping.status


async def test_there_is_no_way_to_read_a_single_node(client: SlurmRest) -> None:
    """GET /node/NAME shows stale allocations: whoever wants a node takes it from the whole list."""
    assert not hasattr(client.read, "node")


async def test_somebody_who_asks_for_a_job_gets_guesses_and_finished_ones_too(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = copy.deepcopy(body_of("jobs"))
    model = body["jobs"][0]
    code = {"return_code": {"set": True, "number": 2}, "signal": {"id": {"set": False}, "name": ""}}
    body["jobs"] = [
        {**model, "job_id": 1, "job_state": ["PENDING"], "start_time": {"set": True, "number": 2000}},
        {**model, "job_id": 2, "job_state": ["FAILED"], "exit_code": code},
    ]
    slurmrestd.on(JOBS, http(200, body))
    waiting, failed = await client.read.job_details()

    assert (waiting.job.start_time, waiting.expected_start is not None) == (None, True)
    assert waiting.requested == "cpu=1,mem=24103M,node=1,billing=1"
    assert waiting.eligible_since is not None
    assert (failed.job.state.is_finished, failed.return_code, failed.expected_start) == (True, 2, None)


async def test_a_job_is_found_in_the_books_by_its_id(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on("GET /slurmdb/{v}/job/1", answer("books-jobs"))
    [found] = await client.database.job(1)

    assert (found.job_id, str(found.state), found.return_code) == (1, "COMPLETED", 0)
    assert (found.array_job_id, found.array_task_id) == (None, None)


async def test_what_users_see_of_their_own_only_stands_in_the_configuration(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    body = copy.deepcopy(body_of("conf"))
    slurmrestd.on("GET /slurm/{v}/conf", http(200, body), http(200, _private(body, ["JOBS", "NODES"])))

    assert await client.read.private_data() == ()
    assert await client.read.private_data() == ("jobs", "nodes")


def _private(body: dict[str, Any], words: list[str]) -> dict[str, Any]:
    return {**body, "slurm_conf": {**body["slurm_conf"], "PrivateData": words}}
