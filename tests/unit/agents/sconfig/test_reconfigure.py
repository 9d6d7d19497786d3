"""Whether Slurm has read its files: slurmctld answers, and every slurmd has started again."""

import copy
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from fake_slurmrestd import HANG, KEY, FakeSlurmrestd, answer, body_of, http
from slurmrest_replies import NODES, OK, PING, RECONFIGURE

from slurm_operator.agents.sconfig.reconfigure import behind, reconfigure, start_times
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurmrest.client import SlurmRest

VIRTUAL_TIME = True


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC)


def node(name: str, second: int | None, state: str = "IDLE") -> SlurmNode:
    started = at(second) if second is not None else None
    return SlurmNode(name=name, state=NodeState.of(*state.split("+")), slurmd_start_time=started)


def by_name(*nodes: SlurmNode) -> dict[str, SlurmNode]:
    return {each.name: each for each in nodes}


@pytest.mark.parametrize(
    ("after", "late"),
    [
        pytest.param(node("a", 2), [], id="started again"),
        pytest.param(node("a", 1), ["a"], id="runs as before"),
        pytest.param(node("a", 1, "IDLE+NOT_RESPONDING"), [], id="stopped responding: reads when it starts"),
        pytest.param(node("a", 1, "IDLE+POWERING_DOWN"), [], id="powering down"),
        pytest.param(node("a", 1, "IDLE+POWERED_DOWN"), [], id="powered down"),
        pytest.param(node("a", 1, "IDLE+DRAIN"), ["a"], id="drained, but it runs"),
        pytest.param(node("b", 1), [], id="record gone"),
        pytest.param(node("a", None), [], id="never registered since"),
    ],
)
def test_who_is_behind(after, late):
    assert behind(start_times(by_name(node("a", 1))), by_name(after)) == late


def test_nobody_waits_for_a_node_that_was_away_before():
    assert start_times(by_name(node("a", 1, "DOWN+NOT_RESPONDING"), node("b", None), node("c", 3))) == {
        "c": at(3)
    }


def nodes(**seconds: int) -> bytes:
    body = copy.deepcopy(body_of("nodes"))
    model = body["nodes"][0]
    started = {"set": True, "infinite": False}
    body["nodes"] = [
        model
        | {"name": name, "state": ["IDLE"], "slurmd_start_time": started | {"number": 1_790_000_000 + second}}
        for name, second in seconds.items()
    ]
    return http(200, body)


@pytest.fixture
async def slurmrestd() -> AsyncIterator[FakeSlurmrestd]:
    server = FakeSlurmrestd()
    server.on(RECONFIGURE, OK)
    await server.start()
    yield server
    await server.stop()


async def tried(server: FakeSlurmrestd) -> str:
    slurm = SlurmRest([server.url], lambda: KEY, now=lambda: datetime.now(UTC), user="root")
    return (await reconfigure(slurm, poll_seconds=20.0, wait_seconds=60.0)).trouble


async def test_all_slurmds_started_again(slurmrestd):
    slurmrestd.on(NODES, nodes(a=1, b=1), nodes(a=5, b=1), nodes(a=5, b=6))

    assert await tried(slurmrestd) == ""
    assert len(slurmrestd.calls(RECONFIGURE)) == 1
    assert len(slurmrestd.calls(NODES)) == 3


async def test_a_slurmd_that_never_starts_again_is_named(slurmrestd):
    slurmrestd.on(NODES, nodes(a=1, b=1), nodes(a=5, b=1))

    trouble = await tried(slurmrestd)

    assert (
        trouble
        == "slurmd on b has not read the files; check these nodes. 60 s have passed since the reconfigure."
    )
    assert len(slurmrestd.calls(RECONFIGURE)) == 1
    assert 5 <= len(slurmrestd.calls(NODES)) <= 10, "polled soon, then rarely"


async def test_a_cluster_without_nodes_needs_only_slurmctld(slurmrestd):
    slurmrestd.on(NODES, nodes())

    assert await tried(slurmrestd) == ""


async def test_a_slurmctld_that_does_not_respond_afterwards_is_said(slurmrestd):
    slurmrestd.on(NODES, nodes(a=1), nodes(a=2))
    slurmrestd.on(PING, answer("ping"), answer("ping-slurmctld-hung"))

    assert (await tried(slurmrestd)).startswith("slurmctld does not respond.")


async def test_a_moment_without_slurmctld_is_waited_for(slurmrestd):
    slurmrestd.on(NODES, nodes(a=1), answer("nodes-slurmctld-gone"), nodes(a=2))

    assert await tried(slurmrestd) == ""


async def test_an_unreachable_slurm_is_not_asked_to_reconfigure(slurmrestd):
    slurmrestd.on(NODES, answer("nodes-slurmctld-gone"))

    assert await tried(slurmrestd)
    assert slurmrestd.calls(RECONFIGURE) == []


async def test_a_reconfigure_without_an_answer_shows_in_the_slurmds(slurmrestd):
    slurmrestd.on(RECONFIGURE, HANG)
    slurmrestd.on(NODES, nodes(a=1), nodes(a=2))

    assert await tried(slurmrestd) == ""


async def test_a_reconfigure_without_an_answer_and_without_slurmds_is_not_taken_for_done(slurmrestd):
    slurmrestd.on(RECONFIGURE, HANG)
    slurmrestd.on(NODES, nodes())

    assert "No answer in time" in await tried(slurmrestd)


async def test_a_refused_reconfigure_is_told_in_slurms_words(slurmrestd):
    slurmrestd.on(RECONFIGURE, answer("not-allowed"))
    slurmrestd.on(NODES, nodes(a=1))

    assert (await tried(slurmrestd)).startswith("Slurm refused to reconfigure: ")
