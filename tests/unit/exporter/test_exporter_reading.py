"""The exporter and a slurmrestd that is well, away, hanging, or of another mind than before."""

import asyncio

import pytest

from slurm_operator.exporter.options import Compat, Options
from testing.virtual_time import FakeClock
from unit.exporter.pages import (
    BOOKS,
    CONF,
    DIAG,
    JOBS,
    NODES,
    PARTITIONS,
    collector,
    diag,
    labels,
    of,
    series,
)
from unit.kube.eventually import eventually
from unit.slurmrest.fake_slurmrestd import DROP, HANG, FakeSlurmrestd, answer, body_of, http


async def shown(made) -> dict:
    return series((await made.page()).decode())


async def test_a_scrape_never_asks_slurm(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    made = collector(slurmrestd, clock)
    await made.collect()
    asked = len(slurmrestd.heard)

    pages = {await made.page() for _ in range(5)}
    await made.self_page()

    assert len(pages) == 1
    assert len(slurmrestd.heard) == asked


async def test_the_last_data_stay_while_slurmrestd_is_away(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    made = collector(slurmrestd, clock)
    await made.collect()
    before = await made.page()
    for call in (NODES, JOBS, DIAG, CONF):
        slurmrestd.on(call, DROP)

    clock.advance(30)
    await made.collect()

    assert await made.page() == before
    own = series((await made.self_page()).decode())
    assert of(own, "slurm_exporter_collection_failures_total") == {frozenset(): 1}
    assert of(own, "slurm_exporter_collector_errors_total")[labels(collector="nodes")] == 1
    since = of(own, "slurm_exporter_last_success_timestamp_seconds")[labels(collector="nodes")]
    assert clock.now().timestamp() - since == 30


async def test_a_part_that_hangs_holds_up_no_other(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    made = collector(slurmrestd, clock, deadline_s=30.0)
    slurmrestd.on(JOBS, HANG)

    first = asyncio.create_task(made.collect())
    await slurmrestd.hung.wait()
    await eventually(lambda: made.facts.nodes is not None and made.facts.diagnosis is not None, 0.01)
    second = asyncio.create_task(made.collect())
    await eventually(lambda: made.parts[1].skipped == 1, 0.01)

    found = await shown(made)
    assert of(found, "slurm_node_info")
    assert not of(found, "slurm_job_info")
    own = series((await made.self_page()).decode())
    assert of(own, "slurm_exporter_collector_inflight")[labels(collector="jobs")] == 1
    assert of(own, "slurm_exporter_collector_skipped_total")[labels(collector="jobs")] == 1
    assert made.why_not_ready() == "Not read yet: jobs."
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_what_caps_leave_out_is_told_before_anybody_asks_for_slurms_metrics(
    slurmrestd: FakeSlurmrestd, clock: FakeClock
):
    made = collector(slurmrestd, clock, Options(most_series=1))
    await made.collect()

    own = series((await made.self_page()).decode())

    assert of(own, "slurm_exporter_series_dropped")[labels(family="slurm_node_info")] == 1
    assert of(own, "slurm_exporter_metrics_requests_total") == {frozenset(): 0}


async def test_an_older_answer_never_replaces_a_newer_one(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    made = collector(slurmrestd, clock, most_in_flight=2, deadline_s=30.0)
    slow, fast = asyncio.Event(), body_of("nodes")
    nodes = made.parts[0]

    async def read():
        if not slow.is_set():
            slow.set()
            await released.wait()
            return lambda: kept.append("old")
        return lambda: kept.append("new")

    released, kept = asyncio.Event(), []
    nodes._read = read
    old = asyncio.create_task(nodes.run(clock, 2))
    await slow.wait()
    await nodes.run(clock, 2)
    released.set()
    await old

    assert fast
    assert kept == ["new"]


async def test_a_restarted_slurmctld_resets_its_counters_and_a_restarted_exporter_ours(
    slurmrestd: FakeSlurmrestd, clock: FakeClock
):
    made = collector(slurmrestd, clock)
    await made.collect()
    clock.advance(30)
    await made.collect()
    calls = of(await shown(made), "slurm_controller_rpc_calls_total")[labels(message_type="REQUEST_JOB_INFO")]
    assert sum(of(await shown(made), "slurm_pool_node_seconds_total").values()) == 60
    rpc = body_of("diag")["statistics"]["rpcs_by_message_type"][0] | {"count": 2}
    restarted = body_of("diag") | {"statistics": {"rpcs_by_message_type": [rpc], "server_thread_count": 1}}
    slurmrestd.on(DIAG, http(200, restarted))

    await made.collect()
    again = collector(slurmrestd, clock)
    await again.collect()

    after = of(await shown(made), "slurm_controller_rpc_calls_total")
    assert calls == 9
    assert after == {labels(message_type="REQUEST_JOB_INFO"): 2}, "what slurmctld says now, not a sum"
    assert not of(await shown(again), "slurm_pool_node_seconds_total"), "ours begin at zero"


async def test_private_data_are_read_from_the_running_configuration(
    slurmrestd: FakeSlurmrestd, clock: FakeClock
):
    options = Options(compat=Compat.SOPERATOR)
    open_ = collector(slurmrestd, clock, options)
    await open_.collect()
    private = body_of("conf")
    private["slurm_conf"]["PrivateData"] = ["JOBS", "USERS"]
    slurmrestd.on(CONF, http(200, private))
    hidden = collector(slurmrestd, clock, options)
    await hidden.collect()

    assert b"tester" in await open_.page()
    assert b"tester" not in await hidden.page()


async def test_an_api_version_without_the_configuration_says_nothing_about_private_data(
    slurmrestd: FakeSlurmrestd, clock: FakeClock
):
    slurmrestd.serves = ("v0.0.44",)
    made = collector(slurmrestd, clock)

    await made.collect()

    assert made.facts.private_data is None
    assert made.facts.diagnosis is not None


async def test_accounting_is_asked_for_the_last_while(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    made = collector(slurmrestd, clock, Options(compat=Compat.SOPERATOR), is_accounting=True)

    await made.collect()

    (asked,) = slurmrestd.calls(BOOKS)
    now = int(clock.now().timestamp())
    assert asked.query == {
        "start_time": f"uts{now - 3600}",
        "end_time": f"uts{now + 300}",
        "disable_truncate_usage_time": "true",
        "skip_steps": "true",
        "cluster": "demo",
    }
    assert not slurmrestd.calls(JOBS)
    assert of(await shown(made), "slurm_job_info")


async def test_partitions_are_read_for_slinkys_families_only(slurmrestd: FakeSlurmrestd, clock: FakeClock):
    await collector(slurmrestd, clock).collect()
    assert not slurmrestd.calls(PARTITIONS)

    made = collector(slurmrestd, clock, Options(compat=Compat.SLINKY))
    await made.collect()

    assert slurmrestd.calls(PARTITIONS)
    assert of(await shown(made), "slurm_partition_nodes_total") == {labels(partition="all"): 2}


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(answer("token-refused"), id="token refused"),
        pytest.param(http(200, {"errors": [{"error_number": 1}]}), id="errors in a 200"),
        pytest.param(http(200, {"errors": []}), id="no list"),
        pytest.param(http(200, "not JSON"), id="not JSON"),
    ],
)
async def test_a_bad_answer_is_counted_and_not_taken(
    slurmrestd: FakeSlurmrestd, clock: FakeClock, reply: bytes
):
    slurmrestd.on(NODES, reply)
    made = collector(slurmrestd, clock)

    await made.collect()

    assert made.facts.nodes is None
    assert made.parts[0].errors == 1
    assert made.facts.jobs is not None


async def test_the_clock_of_slurmctld_is_taken_from_its_diagnosis(
    slurmrestd: FakeSlurmrestd, clock: FakeClock
):
    made = collector(slurmrestd, clock)

    await made.collect()

    assert made.facts.slurm_time(clock.now()) == diag().asked_at
