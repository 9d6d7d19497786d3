"""Records that go before their pods: by what was read a moment before, and read again as often as it takes."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from fake_slurmrestd import FakeSlurmrestd, Heard, answer
from slurmrest_replies import JOBS, NODES, OK, jobs, nodes
from writing_cluster import Cluster, verdicts

from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import DeleteNodes, Verdict
from slurm_operator.slurmsync.remove_nodes import RECORDS_PER_REQUEST, Guard
from testing.virtual_time import FakeClock

REASON = "slurm-operator: ScaleIn: leaving"
DRAINED = ("IDLE+DRAIN", REASON)
MANY = [f"n{number}" for number in range(3 * RECORDS_PER_REQUEST)]


def free(slurm: Snapshot | Unreachable) -> str | None:
    """A guard that never objects."""
    return None


def unless_busy(name: str) -> Guard:
    def objection(slurm: Snapshot | Unreachable) -> str | None:
        return "a job is there" if not isinstance(slurm, Snapshot) or slurm.jobs_naming(name) else None

    return objection


async def removed(
    cluster: Cluster, names: Sequence[str], guard: Callable[[str], Guard] = lambda name: free
) -> dict[str, Verdict]:
    """What becomes of each, all asked for in the same moment."""
    asked = [cluster.cluster.write(DeleteNodes(nodes=(name,)), guard(name)) for name in names]
    found: dict[str, Verdict] = {}
    for result in await asyncio.gather(*asked):
        found |= verdicts(result)
    return found


def deletions(slurmrestd: FakeSlurmrestd) -> list[list[str]]:
    """Which names each of them had."""
    return [_names(heard) for heard in slurmrestd.heard if heard.method == "DELETE"]


def _names(heard: Heard) -> list[str]:
    return heard.path.rpartition("/")[2].replace("%2C", ",").split(",")


def holds(slurmrestd: FakeSlurmrestd, names: Sequence[str]) -> None:
    """These are drained, and whatever is asked to go goes."""
    slurmrestd.on(NODES, nodes(**dict.fromkeys(names, DRAINED)))
    for start in range(0, len(names), RECORDS_PER_REQUEST):
        part = names[start : start + RECORDS_PER_REQUEST]
        slurmrestd.on(f"DELETE /slurm/{{v}}/node/{'%2C'.join(part)}", OK)


async def test_many_records_go_with_few_requests_by_one_reading(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    holds(slurmrestd, MANY)

    assert set((await removed(cluster, MANY)).values()) == {Verdict.DONE}
    assert [len(names) for names in deletions(slurmrestd)] == [RECORDS_PER_REQUEST] * 3
    assert (len(slurmrestd.calls(NODES)), len(slurmrestd.calls(JOBS))) == (1, 1)


async def test_slurm_is_read_again_when_what_it_said_is_too_old(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    """Reading takes 4.4 s, and then there is time for one request."""
    holds(slurmrestd, MANY)
    await cluster.poll()
    slurmrestd.before_answer = lambda: clock.advance(1.1)

    assert set((await removed(cluster, MANY)).values()) == {Verdict.DONE}
    assert len(slurmrestd.calls(NODES)) == 1 + 3


async def test_nothing_goes_when_reading_takes_longer_than_an_answer_may_be_relied_on(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    holds(slurmrestd, ["a"])
    slurmrestd.before_answer = lambda: clock.advance(1.5)

    assert await removed(cluster, ["a"]) == {"a": Verdict.LATE}
    assert deletions(slurmrestd) == []


async def test_who_is_objected_to_stays_and_the_others_go(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(a=DRAINED, b=DRAINED, c=DRAINED))
    slurmrestd.on(JOBS, jobs(j7="b"))
    slurmrestd.on("DELETE /slurm/{v}/node/a%2Cc", OK)

    found = await removed(cluster, ["a", "b", "c"], unless_busy)

    assert found == {"a": Verdict.DONE, "b": Verdict.LATE, "c": Verdict.DONE}


async def test_a_job_that_came_between_two_readings_is_seen(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    holds(slurmrestd, MANY)
    await cluster.poll()
    slurmrestd.on(JOBS, jobs(1000), jobs(2000), jobs(3000, j7=MANY[-1]))
    slurmrestd.on(f"DELETE /slurm/{{v}}/node/{'%2C'.join(MANY[2 * RECORDS_PER_REQUEST : -1])}", OK)
    slurmrestd.before_answer = lambda: clock.advance(1.1)

    found = await removed(cluster, MANY, unless_busy)

    assert [name for name, verdict in found.items() if verdict is not Verdict.DONE] == [MANY[-1]]
    assert not any(MANY[-1] in names for names in deletions(slurmrestd))


async def test_after_a_refusal_those_that_are_left_go_one_by_one(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    """slurmctld removes whom it can, and does not say whom a refusal is about."""
    slurmrestd.on(NODES, nodes(a=DRAINED, b=DRAINED, c=DRAINED), nodes(b=DRAINED, c=DRAINED))
    slurmrestd.on("DELETE /slurm/{v}/node/a%2Cb%2Cc", answer("node-delete-busy"))
    slurmrestd.on("DELETE /slurm/{v}/node/b", answer("node-delete-busy"))
    slurmrestd.on("DELETE /slurm/{v}/node/c", OK)

    assert await removed(cluster, ["a", "b", "c"]) == {
        "a": Verdict.ALREADY,
        "b": Verdict.REFUSED,
        "c": Verdict.DONE,
    }


async def test_who_is_unknown_to_slurmctld_was_not_fenced_by_it(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    slurmrestd.on(NODES, nodes(a=DRAINED))
    slurmrestd.on("DELETE /slurm/{v}/node/a", answer("node-unknown-post"))

    assert await removed(cluster, ["a"]) == {"a": Verdict.UNKNOWN}


async def test_what_a_human_drained_meanwhile_stays(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    slurmrestd.on(NODES, nodes(a=("IDLE+DRAIN", "bad fan")))

    assert await removed(cluster, ["a"]) == {"a": Verdict.FOREIGN}
    assert deletions(slurmrestd) == []


@pytest.mark.parametrize("leads_for", [0, 1])
async def test_nothing_is_removed_by_who_does_not_lead(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, leads_for: int
) -> None:
    holds(slurmrestd, MANY)
    cluster.leads_for = leads_for

    found = await removed(cluster, MANY)

    assert len(deletions(slurmrestd)) == leads_for
    assert list(found.values()).count(Verdict.NOT_SENT) == len(MANY) - leads_for * RECORDS_PER_REQUEST


async def test_hundreds_who_need_a_new_reading_share_it(slurmrestd: FakeSlurmrestd, cluster: Cluster) -> None:
    """The first one's has begun when the others ask, so they wait for the next."""
    await asyncio.gather(*(cluster.cluster.refresh() for _ in range(300)))

    assert len(slurmrestd.calls(NODES)) == 2


async def test_who_needs_a_new_reading_hears_nothing_of_a_failed_one_and_sees_what_was_known(
    slurmrestd: FakeSlurmrestd, cluster: Cluster
) -> None:
    known = await cluster.poll()
    slurmrestd.on(NODES, answer("nodes-slurmctld-gone"))

    await cluster.cluster.refresh()

    assert cluster.cluster.latest() == known


async def test_workers_who_become_ready_to_go_one_by_one_gather_while_slurm_is_left_alone(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    """The first one goes at once. The others come while it goes, and share what the next one has read."""
    slurmrestd.on(NODES, nodes(a=DRAINED, b=DRAINED, c=DRAINED))
    slurmrestd.on("DELETE /slurm/{v}/node/a", OK)
    slurmrestd.on("DELETE /slurm/{v}/node/b%2Cc", OK)
    slurmrestd.before_answer = lambda: clock.advance(0.01)
    late: list[asyncio.Task[dict[str, Verdict]]] = []

    def comes(name: str) -> Guard:
        def objection(slurm: Snapshot | Unreachable) -> str | None:
            late.extend(asyncio.create_task(removed(cluster, [other])) for other in ("b", "c"))
            return None

        return objection

    first = await removed(cluster, ["a"], comes)
    others = [await task for task in late]

    assert [first, *others] == [{name: Verdict.DONE} for name in ("a", "b", "c")]
    assert deletions(slurmrestd) == [["a"], ["b", "c"]]
    assert len(slurmrestd.calls(NODES)) == 2


@pytest.mark.parametrize(("answers_in", "pause"), [(0.01, 0.2), (0.5, 1.0)])
async def test_the_pause_before_the_next_ones_go_is_as_long_as_reading_was_dear(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock, answers_in: float, pause: float
) -> None:
    """Four lists and a removal, each of them answered in so many seconds."""
    slurmrestd.on(NODES, nodes(a=DRAINED, b=DRAINED))
    for name in "ab":
        slurmrestd.on(f"DELETE /slurm/{{v}}/node/{name}", OK)
    await cluster.poll()
    slurmrestd.before_answer = lambda: clock.advance(answers_in)

    await removed(cluster, ["a"])
    ended = clock.monotonic()
    slurmrestd.before_answer = lambda: None
    await removed(cluster, ["b"])

    assert clock.monotonic() - ended == pytest.approx(pause, abs=0.03)
