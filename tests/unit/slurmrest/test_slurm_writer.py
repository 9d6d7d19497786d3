import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from fake_slurmrestd import HANG, KEY, FakeSlurmrestd, answer
from slurmrest_replies import IDLE4, NODES, OK, RECONFIGURE, UPDATE, nodes, serve
from writing_cluster import Cluster, verdicts

from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import (
    AddNodes,
    CancelJob,
    DeleteNodes,
    DrainNodes,
    Reconfigure,
    RequeueJob,
    Reserve,
    ResumeNodes,
    Unreserve,
    UpdateJob,
    UpdateNodes,
    Verdict,
)
from slurm_operator.slurmsync.connection import SlurmCluster
from slurm_operator.slurmsync.lists import ASKED_EARLIER_SECONDS
from slurm_operator.slurmsync.remove_nodes import RECORDS_PER_REQUEST
from testing.virtual_time import FakeClock

REASON = "slurm-operator: ScaleIn: leaving"


def drain(*names: str, reason: str = REASON) -> DrainNodes:
    return DrainNodes(nodes=names, reason=reason)


async def test_one_request_drains_what_several_ask_for(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    found = await cluster.write(drain("a"), drain("b", "a"), drain("c", reason="slurm-operator: Cordon"))

    assert found == [{"a": Verdict.DONE}, {"b": Verdict.DONE, "a": Verdict.DONE}, {"c": Verdict.DONE}]
    assert [heard.body for heard in slurmrestd.calls(UPDATE)] == [
        {"name": ["a", "b"], "state": ["DRAIN"], "reason": REASON},
        {"name": ["c"], "state": ["DRAIN"], "reason": "slurm-operator: Cordon"},
    ]


async def test_writes_about_the_same_node_keep_their_order(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    drained = nodes(a=("IDLE+DRAIN", REASON), b="IDLE")
    slurmrestd.on(NODES, nodes(a="IDLE", b="IDLE"), drained, nodes(a="IDLE", b="IDLE"))

    await cluster.write(drain("a"), ResumeNodes(nodes=("a",)), drain("a"), drain("b"))

    sent = [(heard.body["state"], heard.body["name"]) for heard in slurmrestd.calls(UPDATE)]
    assert sent == [(["DRAIN"], ["a"]), (["UNDRAIN"], ["a"]), (["DRAIN"], ["a", "b"])]


async def test_a_node_that_slurm_gave_up_is_resumed_and_one_that_drains_undrained(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(a=("DOWN+DRAIN", REASON), b=("IDLE+DRAIN", REASON)))

    await cluster.write(ResumeNodes(nodes=("a",), from_down=True), ResumeNodes(nodes=("b",)))

    sent = [(heard.body["state"], heard.body["name"]) for heard in slurmrestd.calls(UPDATE)]
    assert sent == [(["RESUME"], ["a"]), (["UNDRAIN"], ["b"])]


async def test_never_more_than_one_write_is_in_flight(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    await cluster.write(*(UpdateNodes(nodes=(name,), comment=name) for name in "abcd"))

    assert len(slurmrestd.calls(UPDATE)) == 4
    assert slurmrestd.most_in_flight == 1


# -- other people's drains


async def test_a_drain_set_a_moment_ago_is_not_overwritten(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(a="IDLE", b="IDLE"), nodes(a=("IDLE+DRAIN", "bad fan"), b="IDLE"))
    await cluster.poll()

    (found,) = await cluster.write(drain("a", "b"))

    assert found == {"a": Verdict.FOREIGN, "b": Verdict.DONE}
    assert [heard.body["name"] for heard in slurmrestd.calls(UPDATE)] == [["b"]]


async def test_a_foreign_drain_is_not_lifted(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    slurmrestd.on(NODES, nodes(a=("IDLE+DRAIN", "bad fan"), b=("IDLE+DRAIN", REASON), c="IDLE"))

    (found,) = await cluster.write(ResumeNodes(nodes=("a", "b", "c")))

    assert found == {"a": Verdict.FOREIGN, "b": Verdict.DONE, "c": Verdict.ALREADY}
    assert [heard.body["name"] for heard in slurmrestd.calls(UPDATE)] == [["b"]]


async def test_our_own_drain_is_not_written_twice(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    slurmrestd.on(NODES, nodes(a=("MIXED+DRAIN", REASON)))

    assert await cluster.write(drain("a")) == [{"a": Verdict.ALREADY}]

    assert slurmrestd.calls(UPDATE) == []


# -- all or nothing


async def test_an_unknown_name_does_not_hold_up_the_others(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    (found,) = await cluster.write(drain("a", "nope", "b"))

    assert found == {"a": Verdict.DONE, "nope": Verdict.UNKNOWN, "b": Verdict.DONE}
    assert [heard.body["name"] for heard in slurmrestd.calls(UPDATE)] == [["a", "b"]]


async def test_a_node_that_vanishes_before_the_request_is_found_out(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, IDLE4, nodes(a="IDLE", b="IDLE", d="IDLE"))
    slurmrestd.on(UPDATE, answer("node-unknown-post"), OK)

    (found,) = await cluster.write(drain("a", "b", "c", "d"))

    assert found == dict.fromkeys("abd", Verdict.DONE) | {"c": Verdict.UNKNOWN}


async def test_a_node_that_slurm_refuses_is_found_by_halving(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    refusal = answer("state-unknown")
    slurmrestd.on(UPDATE, refusal, refusal, OK, refusal, OK)

    (found,) = await cluster.write(drain("a", "b", "c", "d"))

    assert [heard.body["name"] for heard in slurmrestd.calls(UPDATE)] == [
        ["a", "b", "c", "d"],
        ["a", "b"],
        ["a"],
        ["b"],
        ["c", "d"],
    ]
    assert found == dict.fromkeys("acd", Verdict.DONE) | {"b": Verdict.REFUSED}


async def test_what_we_may_not_do_at_all_is_not_tried_for_each(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(UPDATE, answer("not-allowed"))

    assert await cluster.write(drain("a", "b")) == [dict.fromkeys("ab", Verdict.REFUSED)]
    assert len(slurmrestd.calls(UPDATE)) == 1


# -- no answer


@pytest.mark.parametrize("silence", [answer("nodes-slurmctld-hung"), HANG], ids=["504", "our own deadline"])
async def test_a_write_without_an_answer_is_not_repeated_but_read(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, silence: bytes
) -> None:
    slurmrestd.on(NODES, IDLE4, answer("nodes-unchanged"), nodes(a=("IDLE+DRAIN", REASON), b="IDLE"))
    await cluster.poll()
    slurmrestd.on(UPDATE, silence)

    assert await cluster.write(drain("a")) == [{"a": Verdict.UNSURE}]
    assert len(slurmrestd.calls(UPDATE)) == 1
    assert await cluster.write(drain("a")) == [{"a": Verdict.ALREADY}]

    assert len(slurmrestd.calls(UPDATE)) == 1, "the whole list showed that it had happened"
    assert [heard.query for heard in slurmrestd.calls(NODES)] == [
        {},
        {"update_time": str(1000 - ASKED_EARLIER_SECONDS)},
        {},
    ]


async def test_an_update_without_an_answer_is_read_before_the_next(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(UPDATE, answer("nodes-slurmctld-hung"), OK)
    update = UpdateNodes(nodes=("a",), weight=7)
    assert await cluster.write(update) == [{"a": Verdict.UNSURE}]
    assert slurmrestd.calls(NODES) == []

    assert await cluster.write(update) == [{"a": Verdict.DONE}]

    assert [heard.query for heard in slurmrestd.calls(NODES)] == [{}]


async def test_without_knowing_the_nodes_nothing_is_sent(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, answer("nodes-slurmctld-gone"))

    assert await cluster.write(drain("a")) == [{"a": Verdict.NOT_SENT}]
    assert slurmrestd.calls(UPDATE) == []


async def test_a_lost_lease_holds_everything_back(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    cluster.leads_for = 0

    found = await cluster.write(drain("a"), Reconfigure(), CancelJob(job_id=1, address="1"))

    assert [set(answers.values()) for answers in found] == [{Verdict.NOT_SENT}] * 3
    assert {heard.method for heard in slurmrestd.heard} == {"GET"}
    assert slurmrestd.calls(RECONFIGURE) == []


async def test_a_lease_lost_between_two_requests_is_noticed(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    cluster.leads_for = 1
    slurmrestd.on(UPDATE, answer("node-unknown-post"))

    (found,) = await cluster.write(drain("a", "b"))

    assert set(found.values()) == {Verdict.NOT_SENT}
    assert len(slurmrestd.calls(UPDATE)) == 1


async def test_whoever_waits_when_it_stops_is_told(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    slurmrestd.on(UPDATE, HANG)
    comment = UpdateNodes(nodes=("a",), comment="x")
    sent = asyncio.create_task(cluster.cluster.write(comment))
    await slurmrestd.hung.wait()
    queued = asyncio.create_task(cluster.cluster.write(drain("b")))
    await asyncio.sleep(0)

    cluster.task.cancel()

    assert verdicts(await sent) == {"a": Verdict.UNSURE}
    assert verdicts(await queued) == {"b": Verdict.NOT_SENT}
    assert await cluster.write(drain("c")) == [{"c": Verdict.NOT_SENT}], "and whoever comes later"


# -- the snapshot


async def test_a_written_node_is_behind_until_the_next_reading(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    await cluster.poll()
    clock.advance(1)
    await cluster.write(drain("a"))

    facts = cluster.cluster.latest()
    assert isinstance(facts, Snapshot)
    assert not facts.is_current("a")
    assert facts.is_current("b")
    assert (await cluster.poll()).is_current("a")


# -- reconfigure


async def test_several_reconfigures_become_one(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    found = await cluster.write(Reconfigure(), Reconfigure(), UpdateNodes(nodes=("a",), comment="x"))

    assert found == [{"slurmctld": Verdict.DONE}, {"slurmctld": Verdict.DONE}, {"a": Verdict.DONE}]
    assert len(slurmrestd.calls(RECONFIGURE)) == 1
    assert slurmrestd.heard[-1].path.endswith("reconfigure/"), "what need not wait goes first"
    assert any(1.5 < wait <= 2.0 for wait in clock.waits), "it waited for more of them"


# -- the rest


async def test_after_a_refused_deletion_each_has_its_own_answer_and_gone_is_good(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(a="IDLE", b="MIXED", c=("IDLE+DRAIN", "bad fan")))
    slurmrestd.on("DELETE /slurm/{v}/node/a%2Cb", answer("node-delete-busy"))
    slurmrestd.on("DELETE /slurm/{v}/node/a", OK)
    slurmrestd.on("DELETE /slurm/{v}/node/b", answer("node-delete-busy"))

    result = await cluster.cluster.write(DeleteNodes(nodes=("a", "b", "c", "gone")))

    assert verdicts(result) == {
        "a": Verdict.DONE,
        "b": Verdict.REFUSED,
        "c": Verdict.FOREIGN,
        "gone": Verdict.ALREADY,
    }
    assert set(result.problems) == {"b", "c"}
    assert "busy" in result.problems["b"].message


async def test_records_of_one_size_are_made_by_one_request_and_those_that_are_there_are_left(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(b="IDLE"))
    slurmrestd.on("POST /slurm/{v}/new/node/", OK)
    names = ("a", "b", "c")
    asked = [
        asyncio.create_task(cluster.cluster.write(AddNodes(nodes=(name,), conf="CPUs=2 State=CLOUD")))
        for name in names
    ]

    results = [verdicts(await task)[name] for name, task in zip(names, asked, strict=True)]

    assert results == [Verdict.DONE, Verdict.ALREADY, Verdict.DONE]
    [heard] = slurmrestd.calls("POST /slurm/{v}/new/node/")
    assert heard.body == {"node_conf": "NodeName=a,c CPUs=2 State=CLOUD"}


async def test_a_record_that_only_we_still_knew_is_removed_and_read_anew(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    """slurmctld called its list unchanged, and knows nobody of that name."""
    slurmrestd.on(NODES, nodes(a="IDLE"))
    await cluster.cluster.poller.poll()
    slurmrestd.on("DELETE /slurm/{v}/node/a", answer("node-unknown-post"))

    result = await cluster.cluster.write(DeleteNodes(nodes=("a",)))

    assert verdicts(result) == {"a": Verdict.ALREADY}
    await cluster.cluster.poller.poll()
    asked = [heard.query for heard in slurmrestd.calls(NODES)]
    assert "update_time" in asked[1], "before the deletion: what has changed since"
    assert asked[2] == {}, "and then everything"


async def test_whose_record_has_gone_need_not_wait_for_the_records_of_others(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    names = [f"n{number}" for number in range(RECORDS_PER_REQUEST + 1)]
    slurmrestd.on(NODES, nodes(**dict.fromkeys(names, ("IDLE+DRAIN", REASON))))
    slurmrestd.on(f"DELETE /slurm/{{v}}/node/{'%2C'.join(names[:-1])}", OK)
    slurmrestd.on(f"DELETE /slurm/{{v}}/node/{names[-1]}", HANG)
    asked = [asyncio.create_task(cluster.cluster.write(DeleteNodes(nodes=(name,)))) for name in names]

    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)

    assert [task.done() for task in asked] == [*[True] * RECORDS_PER_REQUEST, False]
    assert verdicts(await asked[0]) == {"n0": Verdict.DONE}
    assert verdicts(await asked[-1]) == {names[-1]: Verdict.UNSURE}


async def test_jobs_and_reservations_are_written_one_by_one(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on("POST /slurm/{v}/job/7", OK)
    slurmrestd.on("GET /slurm/{v}/job/7/requeue", OK)
    slurmrestd.on("DELETE /slurm/{v}/job/99999", answer("job-unknown"))
    slurmrestd.on("POST /slurm/{v}/reservation", answer("reservation-create"))
    slurmrestd.on("DELETE /slurm/{v}/reservation/old", answer("reservation-unknown"))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    found = await cluster.write(
        UpdateJob(job_id=7, admin_comment="the node will go"),
        RequeueJob(job_id=7, address="7", hold=True),
        CancelJob(job_id=99999, address="99999"),
        Reserve(name="m", nodes=("a",), start_time=noon, duration=timedelta(hours=1), users=("slurm",)),
        Unreserve(name="old"),
    )

    assert found == [
        {"7": Verdict.DONE},
        {"7": Verdict.DONE},
        {"99999": Verdict.UNKNOWN},
        {"m": Verdict.DONE},
        {"old": Verdict.ALREADY},
    ]
    bodies = {heard.path.split("/", 3)[3]: heard.body for heard in slurmrestd.heard if heard.body}
    assert bodies["job/7"] == {"admin_comment": "the node will go"}
    assert bodies["reservation"] == {
        "name": "m",
        "start_time": {"set": True, "number": int(noon.timestamp())},
        "duration": {"set": True, "number": 60},
        "node_list": ["a"],
        "users": ["slurm"],
    }


async def test_a_write_about_nobody_is_done_before_it_begins(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    assert await cluster.write(drain()) == [{}]
    assert slurmrestd.heard == []


async def test_a_running_cluster_reads_and_writes_and_ends(
    slurmrestd: FakeSlurmrestd, clock: FakeClock, connect: Callable[..., object]
) -> None:
    serve(slurmrestd, node_lists=[IDLE4])
    slurm = SlurmCluster("demo", [slurmrestd.url], lambda: KEY, may_write=lambda: True, clock=clock)
    seen = asyncio.Event()
    slurm.subscribe(lambda _: seen.set())
    task = asyncio.create_task(slurm.run())

    await seen.wait()
    result = await slurm.write(drain("a"))
    task.cancel()

    assert result.is_good
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_many_writes_of_one_moment_are_held_against_one_reading_of_the_nodes(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    await cluster.write(*(drain(name, reason=f"{REASON} (pod {name * 4})") for name in "abcd"))

    assert len(slurmrestd.calls(UPDATE)) == 4, "each has a reason of its own"
    assert len(slurmrestd.calls(NODES)) == 1
