"""Jobs that are ended: by what Slurm says when it is their turn, however long they stood in line."""

import asyncio

import pytest
from fake_slurmrestd import HANG, FakeSlurmrestd, answer
from slurmrest_replies import NODES, OK, RECONFIGURE, jobs, serve
from slurmrest_replies import nodes as node_list
from writing_cluster import Cluster, verdicts

from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import CancelJob, Reconfigure, RequeueJob, Verdict
from slurm_operator.slurmsync.pending_writes import MESSAGE_TIMEOUT_SECONDS, SETTLE_SECONDS
from slurm_operator.slurmsync.remove_nodes import Guard
from testing.virtual_time import FakeClock

BUSY = node_list(a="MIXED+DRAIN")
RUNNING = {f"j{number}": "a" for number in range(1, 31)}


def while_on(job_id: int, node: str = "a") -> Guard:
    """Objects unless the job is there."""

    def objection(slurm: Snapshot | Unreachable) -> str | None:
        is_there = isinstance(slurm, Snapshot) and job_id in slurm.jobs and node in slurm.jobs[job_id].nodes
        return None if is_there else "it is not there any more"

    return objection


async def ended(cluster: Cluster, *job_ids: int) -> dict[str, Verdict]:
    """What becomes of these, all asked for in the same moment."""
    asked = (
        cluster.cluster.write(CancelJob(job_id=number, address=str(number)), while_on(number))
        for number in job_ids
    )
    return {
        name: verdict for result in await asyncio.gather(*asked) for name, verdict in verdicts(result).items()
    }


def cancellations(slurmrestd: FakeSlurmrestd) -> list[str]:
    return [heard.path.rpartition("/")[2] for heard in slurmrestd.heard if heard.method == "DELETE"]


async def test_a_job_behind_a_slow_reconfigure_is_looked_at_again_and_may_stay(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[BUSY], job_lists=[jobs(1000, j1="a", j2="a"), jobs(2000, j1="b", j2="a")])
    slurmrestd.on("DELETE /slurm/{v}/job/2", OK)
    slurmrestd.on(RECONFIGURE, answer("reconfigure"))
    await cluster.poll()
    slow = asyncio.create_task(cluster.cluster.write(Reconfigure()))
    await asyncio.sleep(0)
    clock.advance(3)

    def reconfigures() -> None:
        slurmrestd.before_answer = lambda: None
        clock.advance(50)

    slurmrestd.before_answer = reconfigures

    found = await ended(cluster, 1, 2)

    await slow
    assert found == {"1": Verdict.LATE, "2": Verdict.DONE}
    assert cancellations(slurmrestd) == ["2"]


async def test_many_in_a_row_share_a_reading_and_do_not_wait_for_each_other(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[BUSY], job_lists=[jobs(1000, **RUNNING)])
    for number in range(1, 31):
        slurmrestd.on(f"DELETE /slurm/{{v}}/job/{number}", OK)
    await cluster.poll()
    clock.advance(20)
    began = clock.monotonic()
    slurmrestd.before_answer = lambda: clock.advance(0.01)

    assert set((await ended(cluster, *range(1, 31))).values()) == {Verdict.DONE}
    assert len(slurmrestd.calls(NODES)) == 2
    assert clock.monotonic() - began < 1


async def test_nothing_is_ended_when_slurm_cannot_be_read(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[BUSY, answer("nodes-slurmctld-gone")], job_lists=[jobs(1000, j1="a")])
    await cluster.poll()
    clock.advance(20)

    assert await ended(cluster, 1) == {"1": Verdict.NOT_SENT}
    assert cancellations(slurmrestd) == []


REQUEUE = "GET /slurm/{v}/job/7/requeue"


@pytest.mark.parametrize("silence", [answer("nodes-slurmctld-hung"), HANG], ids=["504", "our own deadline"])
async def test_a_job_is_not_requeued_twice_because_the_first_answer_was_lost(
    slurmrestd: FakeSlurmrestd, cluster: Cluster, clock: FakeClock, silence: bytes
) -> None:
    """slurmctld carries both out when it wakes up: the second may meet the job where it has started again."""
    serve(slurmrestd, node_lists=[BUSY], job_lists=[jobs(1000, j7="a", j8="a")])
    slurmrestd.on(REQUEUE, silence, OK)
    await cluster.poll()

    async def requeued(job_id: int) -> Verdict:
        """Both are parts of one job, which goes as a whole."""
        result = await cluster.cluster.write(RequeueJob(job_id=job_id, address="7"), while_on(job_id))
        return verdicts(result)[str(job_id)]

    assert await requeued(7) is Verdict.UNSURE
    assert await requeued(8) is Verdict.LATE, "by another part of it"
    await cluster.poll()
    assert await requeued(7) is Verdict.LATE, "slurmctld has only just answered again"
    clock.advance(SETTLE_SECONDS)
    await cluster.poll()
    assert await requeued(7) is Verdict.LATE, "it may be under way"
    clock.advance(MESSAGE_TIMEOUT_SECONDS)
    await cluster.poll()
    assert await requeued(7) is Verdict.DONE, "it was lost"
    assert len(slurmrestd.calls(REQUEUE)) == 2
