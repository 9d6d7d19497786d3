"""What Slurm and slurmrestd do that a careful client must know. A new Slurm cannot change it unnoticed."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rest_rig import OURS, client_of, cluster_of, raw, reason, running, seen, shown, until

from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import DeleteNodes, DrainNodes, RequeueJob, ResumeNodes, Verdict, WriteResult
from slurm_operator.slurmsync.connection import SlurmCluster
from slurm_operator.slurmsync.remove_nodes import Guard
from testing.boxed.head import TESTER
from testing.daemons import SlurmDaemons

V = "/slurm/v0.0.45"


def verdicts(result: WriteResult) -> dict[str, Verdict]:
    return {subject: answer.verdict for subject, answer in result.answers.items()}


async def test_a_single_node_is_shown_busy_after_its_job_has_ended(slurm: SlurmDaemons) -> None:
    """Only the full list refreshes what is allocated."""
    job = await running(slurm, "--nodelist=w-0")
    raw(slurm, "GET", f"{V}/nodes/")
    slurm.run("scancel", str(job))
    # Not by scontrol, which reads the full list itself.
    await until(
        lambda: raw(slurm, "GET", f"{V}/job/{job}").body["jobs"][0]["job_state"] == ["CANCELLED"], "its end"
    )

    single = raw(slurm, "GET", f"{V}/node/w-0").body["nodes"][0]["state"]
    listed = {node["name"]: node["state"] for node in raw(slurm, "GET", f"{V}/nodes/").body["nodes"]}

    assert "MIXED" in single
    assert "IDLE" in listed["w-0"]


async def test_one_unknown_name_and_no_node_is_drained_but_the_writer_drains_the_others(
    slurm: SlurmDaemons,
) -> None:
    names = ["w-0", "nope", "w-1"]
    reply = raw(slurm, "POST", f"{V}/nodes/", {"name": names, "state": ["DRAIN"], "reason": OURS})
    assert reply.status == 422
    assert not any("DRAIN" in slurm.node_states(name) for name in ("w-0", "w-1"))

    async with cluster_of(slurm) as cluster:
        result = await cluster.write(DrainNodes(nodes=tuple(names), reason=OURS))

    assert verdicts(result) == {"w-0": Verdict.DONE, "nope": Verdict.UNKNOWN, "w-1": Verdict.DONE}
    assert all("DRAIN" in slurm.node_states(name) for name in ("w-0", "w-1"))


async def test_a_second_drain_overwrites_the_reason_but_the_writer_does_not(slurm: SlurmDaemons) -> None:
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", "reason=bad fan")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        slurm.run("scontrol", "update", "nodename=w-1", "state=drain", "reason=also mine")

        drained = await cluster.write(DrainNodes(nodes=("w-0", "w-1"), reason=OURS))
        resumed = await cluster.write(ResumeNodes(nodes=("w-0", "w-1")))
        deleted = await cluster.write(DeleteNodes(nodes=("w-0",)))

    for result in (drained, resumed, deleted):
        assert set(verdicts(result).values()) == {Verdict.FOREIGN}
    assert (reason(slurm, "w-0"), reason(slurm, "w-1")) == ("bad fan", "also mine")

    raw(slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["DRAIN"], "reason": OURS})
    assert reason(slurm, "w-0") == OURS, "Slurm itself does not mind"


async def test_our_own_drain_keeps_its_clock(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        await cluster.write(DrainNodes(nodes=("w-0",), reason=OURS))
        await until(lambda: _reason_changed_at(cluster) is not None, "the drain to be seen")
        first = _reason_changed_at(cluster)
        await asyncio.sleep(1.1)
        result = await cluster.write(DrainNodes(nodes=("w-0",), reason=f"{OURS} again"))
        await asyncio.sleep(0.5)

        assert verdicts(result) == {"w-0": Verdict.ALREADY}
        assert _reason_changed_at(cluster) == first


def _reason_changed_at(cluster: object) -> object:
    snapshot = seen(cluster)  # type: ignore[arg-type]
    return snapshot.nodes["w-0"].reason_changed_at if snapshot else None


async def test_a_write_that_slurmctld_slept_through_is_carried_out_later(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(settings={"MessageTimeout": "2"})
    slurm.reset("w-0", "w-1")
    async with cluster_of(slurm, deadline_s=6) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        slurm.slurmctld.pause()
        # Past the writer's own reading, so that it is the drain that gets no answer.
        reply = await asyncio.to_thread(
            raw, slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["DRAIN"], "reason": OURS}
        )
        result = await cluster.write(DrainNodes(nodes=("w-1",), reason=OURS))
        slurm.slurmctld.resume()

        assert reply.status == 504
        assert verdicts(result) == {"w-1": Verdict.NOT_SENT}, "nodes that cannot be read are not written to"
        await until(lambda: "DRAIN" in slurm.node_states("w-0"), "the late drain")
        result = await cluster.write(DrainNodes(nodes=("w-0", "w-1"), reason=f"{OURS} again"))

    assert verdicts(result) == {"w-0": Verdict.ALREADY, "w-1": Verdict.DONE}
    assert reason(slurm, "w-0") == OURS


async def test_a_suspended_job_holds_its_node_though_no_cpu_shows_it(slurm: SlurmDaemons) -> None:
    job = await running(slurm, "--nodelist=w-0")
    slurm.run("scontrol", "suspend", str(job))
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", f"reason={OURS}")

    client = client_of(slurm)
    nodes, jobs = await client.read.nodes(), await client.read.jobs()

    assert nodes is not None
    assert jobs is not None
    assert nodes.records["w-0"].allocated_cpus == 0
    assert jobs.records[job].state.is_suspended
    assert jobs.records[job].state.holds_node
    assert jobs.by_node["w-0"] == (job,)


async def test_a_node_with_a_job_is_not_deleted_and_an_idle_one_is_while_its_slurmd_lives(
    slurm: SlurmDaemons,
) -> None:
    await running(slurm, "--nodelist=w-0")
    async with cluster_of(slurm) as cluster:
        result = await cluster.write(DeleteNodes(nodes=("w-0", "w-1")))

    assert verdicts(result) == {"w-0": Verdict.REFUSED, "w-1": Verdict.ALREADY}, (
        "it went with the refused one"
    )
    assert slurm.workers["w-1"].slurmd.is_running
    slurm.reconfigure()
    await asyncio.sleep(2)
    assert slurm.node_states("w-1") == {"GONE"}, "it does not come back on its own"
    slurm.workers["w-1"].slurmd.signal(signal.SIGHUP)
    await until(lambda: "IDLE" in slurm.node_states("w-1"), "it to register again")


async def test_one_request_deletes_many_nodes_and_of_those_it_is_refused_for_only_the_busy_stay(
    slurm: SlurmDaemons,
) -> None:
    await running(slurm, "--nodelist=w-0")
    raw(slurm, "POST", f"{V}/new/node/", {"node_conf": "NodeName=x-[0-3] State=CLOUD"})
    assert {"x-0", "x-1", "x-2", "x-3"} < _listed(slurm)

    all_good = raw(slurm, "DELETE", f"{V}/node/x-0%2Cx-1")
    assert (all_good.status, _listed(slurm)) == (200, {"w-0", "w-1", "x-2", "x-3"})
    one_busy = raw(slurm, "DELETE", f"{V}/node/x-2%2Cw-0%2Cw-1")
    assert (one_busy.status, _listed(slurm)) == (422, {"w-0", "x-3"}), "who can go has gone"

    async with cluster_of(slurm) as cluster:
        result = await cluster.write(DeleteNodes(nodes=("x-3", "w-0", "x-2")))

    assert verdicts(result) == {"x-3": Verdict.ALREADY, "w-0": Verdict.REFUSED, "x-2": Verdict.ALREADY}
    assert _listed(slurm) == {"w-0"}


async def test_a_guarded_record_goes_by_what_is_read_right_before(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        job = await running(slurm, "--nodelist=w-0")
        slurm.run("scontrol", "suspend", str(job))  # slurmctld itself would let its node go.

        asked = [cluster.write(DeleteNodes(nodes=(name,)), _unless_named(name)) for name in ("w-0", "w-1")]
        found = [verdicts(result) for result in await asyncio.gather(*asked)]

    assert found == [{"w-0": Verdict.LATE}, {"w-1": Verdict.DONE}]
    assert _listed(slurm) == {"w-0"}


def _unless_named(name: str) -> Guard:
    def objection(facts: Snapshot | Unreachable) -> str | None:
        return "a job is there" if isinstance(facts, Unreachable) or facts.jobs_naming(name) else None

    return objection


def _listed(slurm: SlurmDaemons) -> set[str]:
    return {node["name"] for node in raw(slurm, "GET", f"{V}/nodes/").body["nodes"]}


async def test_a_recreated_worker_is_known_by_address_and_start_and_nothing_else(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    slurm.run("scontrol", "update", "nodename=w-0", "extra=first", "instanceid=first", "comment=first")
    before = await client.read.nodes()
    slurm.remove_worker("w-0")
    await asyncio.sleep(1.1)
    slurm.add_worker("w-0", conf="Features=all CPUs=1")
    await until(lambda: raw(slurm, "GET", f"{V}/ping/").status == 200, "the network to settle")
    after = await client.read.nodes()

    assert before is not None
    assert after is not None
    old, new = before.records["w-0"], after.records["w-0"]
    assert new.address == slurm.workers["w-0"].address != old.address
    assert old.slurmd_start_time is not None
    assert new.slurmd_start_time is not None
    assert new.slurmd_start_time > old.slurmd_start_time
    assert (new.extra, new.instance_id, new.comment) == ("first", "first", "first")
    assert new.cpus == old.cpus, "the record keeps its size, whatever registers"


async def test_a_slurmctld_that_lost_its_state_forgets_living_workers(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm()
    slurm.reset("w-0")
    slurm.slurmctld.stop()
    shutil.rmtree(slurm.head.box.path("/var/spool/slurmctld/state"))
    slurm.slurmctld.start()
    await asyncio.sleep(2)

    listing = await client_of(slurm).read.nodes()

    assert listing is not None
    assert listing.records == {}
    assert slurm.workers["w-0"].slurmd.is_running


async def test_an_unknown_word_among_the_parameters_is_kept_and_shown(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(settings={"SlurmctldParameters": "enable_configless,slurm_operator_digest=abc"})

    parameters = await client_of(slurm).read.slurmctld_parameters()

    assert parameters == ("enable_configless", "slurm_operator_digest=abc")


async def test_an_unknown_signal_cancels_the_job(slurm: SlurmDaemons) -> None:
    """Why SignalJob checks the name."""
    job = await running(slurm)

    reply = raw(slurm, "DELETE", f"{V}/job/{job}?signal=BOGUS")

    assert reply.status == 200
    assert reply.body["errors"]
    await until(lambda: slurm.job_state(job) == "CANCELLED", "the job to be gone")


async def test_asked_to_close_slurmrestd_sends_a_header_behind_the_body(slurm: SlurmDaemons) -> None:
    """Why we do not ask, and read no further than one answer."""
    host, port = slurm.rest_url.removeprefix("http://").split(":")
    stream, writer = await asyncio.open_connection(host, int(port))
    head = ["GET /slurm/v0.0.45/ping/ HTTP/1.1", f"Host: {host}", f"X-SLURM-USER-TOKEN: {slurm.token()}"]
    writer.write("\r\n".join([*head, "Connection: close", "", ""]).encode())

    answer = await stream.read()
    writer.close()
    await writer.wait_closed()

    assert answer.endswith(b"}Connection: Close\r\n")


async def test_stuck_calls_stall_slurmrestd_so_the_poller_makes_few(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(settings={"MessageTimeout": "4"})
    async with cluster_of(slurm, deadline_s=1.0) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        slurm.slurmctld.pause()
        cluster.request_polling("test", soon=True)
        await asyncio.sleep(3)
        beside_poller_s = await asyncio.to_thread(_seconds_to_a_plain_answer, slurm)

    threads = 2 * (os.cpu_count() or 1)
    with ThreadPoolExecutor(threads + 2) as pool:
        stuck = [pool.submit(raw, slurm, "GET", f"{V}/nodes/") for _ in range(threads + 2)]
        await asyncio.sleep(1)
        beside_stuck_s = await asyncio.to_thread(_seconds_to_a_plain_answer, slurm)
        slurm.slurmctld.resume()
    assert all(call.done() for call in stuck)

    assert beside_poller_s < beside_stuck_s / 2


def _seconds_to_a_plain_answer(slurm: SlurmDaemons) -> float:
    """How long slurmrestd takes for something that it can answer alone."""
    began = time.monotonic()
    assert raw(slurm, "GET", "/slurm/v0.0.41/").status == 404
    return time.monotonic() - began


def test_what_resume_does(slurm: SlurmDaemons) -> None:
    refused = raw(slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["RESUME"]})
    undrained = raw(slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["UNDRAIN"]})

    assert refused.body["errors"], "RESUME of a node that is neither drained nor down"
    assert undrained.body["errors"] == [], "UNDRAIN does not mind, so it is what we send"
    assert shown(slurm, "node", "w-0")["State"].startswith("IDLE")


async def test_only_batch_jobs_can_be_requeued_though_others_say_so_too(slurm: SlurmDaemons) -> None:
    batch = await running(slurm, "--nodelist=w-0", "--requeue")
    log = slurm.directory / "srun.log"
    srun = slurm.head.box.start(["srun", "--nodelist=w-1", "--chdir=/tmp", "sleep", "600"], log, user=TESTER)
    async with cluster_of(slurm) as cluster:
        await until(lambda: len(_running(cluster)) == 2, "both to run")
        [interactive] = _running(cluster) - {batch}
        snapshot = seen(cluster)
        assert snapshot is not None

        listed = {job["job_id"]: job for job in raw(slurm, "GET", f"{V}/jobs/").body["jobs"]}
        answers = {
            job: await cluster.write(RequeueJob(job_id=job, address=str(job))) for job in (batch, interactive)
        }

    assert (listed[interactive]["requeue"], listed[interactive]["batch_flag"]) == (True, False)
    assert (snapshot.jobs[batch].is_requeueable, snapshot.jobs[interactive].is_requeueable) == (True, False)
    assert verdicts(answers[batch]) == {str(batch): Verdict.DONE}
    assert verdicts(answers[interactive]) == {str(interactive): Verdict.REFUSED}
    assert slurm.job_state(interactive) == "RUNNING"
    slurm.run("scancel", str(interactive))
    srun.wait(30)


def _running(cluster: SlurmCluster) -> set[int]:
    snapshot = seen(cluster)
    return {job.job_id for job in snapshot.jobs.values() if job.state.is_running} if snapshot else set()
