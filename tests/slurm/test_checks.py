"""ActiveChecks with real daemons: how jobs end, what is done about their nodes, and the program that submits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rest_rig import cluster_of, seen, until

from slurm_operator.api.nebius import ActiveCheck, names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Unread
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurmsync.connection import SlurmCluster
from testing import checks
from testing.checks import SLURM, check, decide, passed, patched, told, waits, with_run, writes
from testing.daemons import SlurmDaemons

REPOSITORY = Path(__file__).parents[2]


def world_of(cluster: SlurmCluster, *ids: int, **spec):
    """A check whose last run submitted these jobs, in a world with the facts of a real Slurm."""
    there = with_run(checks.world(check(**spec)), ids=",".join(map(str, ids)), made_at=datetime.now(UTC))
    return look(there, cluster, *ids)


def look(there, cluster: SlurmCluster, *ids: int):
    facts = cluster.latest()
    assert isinstance(facts, Snapshot)
    there.slurms[SLURM] = facts
    there.job_ends = {job_id: cluster.job_end(job_id) for job_id in ids}
    there.now = datetime.now(UTC)
    return there


async def ended(cluster: SlurmCluster, *ids: int, deadline_s: float = 60) -> None:
    """Until Slurm says how each of them ended: before it was read again, it knows nothing of a new job."""
    for job_id in ids:
        await until(lambda job_id=job_id: is_known(cluster.job_end(job_id)), "its end", deadline_s)


def is_known(end: Sequence[EndedJob] | Unread) -> bool:
    return not isinstance(end, Unread) and len(end) > 0


async def done(cluster: SlurmCluster, plan) -> None:
    for write in writes(plan):
        result = await cluster.write(write)
        assert result.is_good, result.problems
    await cluster.refresh()


async def test_each_final_state_and_what_follows(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        fine = slurm.submit("exit 0", "--nodelist=w-0")
        failed = slurm.submit("exit 3", "--nodelist=w-1")
        cancelled = slurm.submit("sleep 600", "--nodelist=w-0", "--hold")
        slurm.run("scancel", str(cancelled))
        await ended(cluster, fine, failed, cancelled)
        there = world_of(cluster, fine, failed, cancelled)
        _, plan = decide(there)

        [write] = writes(plan)
        assert write.nodes == ("w-1",)
        await done(cluster, plan)
        shown = slurm.run("scontrol", "show", "node", "w-1")
        assert f"Reason=[node_problem] gpus: job {failed} [slurm_job]" in shown
        status = told(there)["slurmJobsStatus"]
        assert status["lastRunStatus"] == "Failed"
        assert {one["jobID"]: one["state"] for one in status["lastRunResults"]} == {
            str(fine): "COMPLETED", str(failed): "FAILED", str(cancelled): "CANCELLED"
        }  # fmt: skip
        assert status["lastRunCancelledJobs"] == [str(cancelled)]


async def test_a_job_that_takes_too_long_is_a_failure(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        slow = slurm.submit("sleep 600", "--nodelist=w-0", "--time=1")
        await ended(cluster, slow, deadline_s=150)
        _, plan = decide(world_of(cluster, slow))

        assert [one.state.base for one in cluster.job_end(slow)] == ["TIMEOUT"]
        assert [write.nodes for write in writes(plan)] == [("w-0",)]


async def test_a_running_job_and_an_array_are_open_until_all_of_them_ended(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        array = slurm.submit("exit $SLURM_ARRAY_TASK_ID", "--array=0-1", "--nodelist=w-0")
        await ended(cluster, array)
        running = slurm.submit("sleep 600", "--nodelist=w-1")
        await until(lambda: running in (getattr(seen(cluster), "jobs", {})), "the job to be seen")

        assert sorted(str(one.state.base) for one in cluster.job_end(array)) == ["COMPLETED", "FAILED"]
        assert isinstance(cluster.job_end(running), Unread)


async def test_the_brake_and_a_person_with_real_nodes(slurm: SlurmDaemons) -> None:
    """Two workers, both fail: one may be drained, so nothing is, until a person says so."""
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        jobs = [slurm.submit("exit 1", f"--nodelist=w-{number}") for number in (0, 1)]
        await ended(cluster, *jobs)
        there = world_of(cluster, *jobs)
        _, plan = decide(there)

        assert "BrakeOn" in waits(plan)
        assert not writes(plan)
        found = there.get(ActiveCheck, "ns", "gpus")
        found.metadata.annotations[names.BRAKE_RELEASE] = "gpus-initial-run"
        _, plan = decide(there)
        await done(cluster, plan)
        assert all("DRAIN" in slurm.node_states(f"w-{number}") for number in (0, 1))
        assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""


async def test_what_depends_on_a_check_whose_job_failed_submits_nothing(slurm: SlurmDaemons) -> None:
    """a, then b, then c; the job of b fails. When b is run again and passes, c runs."""
    there = checks.world(check("a"), check("b", dependsOn=["a"]), check("c", dependsOn=["b"]))
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        jobs: list[int] = []

        async def passes() -> dict[str, str]:
            """How each check ended, after some passes over all of them."""
            await ended(cluster, *jobs)
            look(there, cluster, *jobs)
            for name in "abcabc":
                await done(cluster, decide(there, name)[1])
                passed(look(there, cluster, *jobs), name)
            every = {name: told(there, name) for name in "abc"}
            return {name: one["slurmJobsStatus"].get("lastRunStatus", "") for name, one in every.items()}

        def submits(run: str, script: str, worker: str) -> None:
            """As the pod of this Job does."""
            jobs.append(slurm.submit(script, f"--nodelist={worker}"))
            with_run(there, run[0], ids=str(jobs[-1]), run=run, made_at=datetime.now(UTC))

        def runs() -> set[str]:
            return {job.metadata.name for job in there.children_.get(kinds.JOB, ())}

        await until(lambda: seen(cluster) is not None, "a first look")
        await passes()
        assert runs() == {"a-initial-run"}
        submits("a-initial-run", "exit 0", "w-0")
        assert (await passes())["a"] == "Complete"
        assert runs() == {"a-initial-run", "b-initial-run"}

        submits("b-initial-run", "exit 4", "w-1")
        assert await passes() == {"a": "Complete", "b": "Failed", "c": "Skipped"}
        assert told(there, "c")["skippedBy"] == ["b"]
        assert "c-initial-run" not in runs()
        reason = f"Reason=[node_problem] b: job {jobs[-1]} [slurm_job]"
        assert reason in slurm.run("scontrol", "show", "node", "w-1")

        slurm.run("scontrol", "update", "nodename=w-1", "state=resume")
        submits("b-again", "exit 0", "w-1")
        assert (await passes())["b"] == "Complete"
        assert "c-initial-run" in runs()
        assert "DRAIN" not in slurm.node_states("w-1")


async def test_a_reservation_is_made_for_a_node_and_removed(slurm: SlurmDaemons) -> None:
    reactions = {
        "failureReactions": {"addReservation": {"prefix": "suspicious-node"}},
        "successReactions": {"removeReservation": {"prefix": "suspicious-node"}},
    }
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        runner = slurm.submit("sleep 600", "--nodelist=w-1", "--mem=10")
        await until(lambda: slurm.job_state(runner) == "RUNNING", "the job of a user to run")
        failed = slurm.submit("exit 1", "--nodelist=w-1", "--mem=10")
        await ended(cluster, failed)
        _, plan = decide(world_of(cluster, failed, **reactions))
        for write in writes(plan):
            result = await cluster.write(_for_root(write))
            assert result.is_good, result.problems
        await cluster.refresh()

        shown = slurm.run("scontrol", "show", "reservation", "suspicious-node-w-1")
        assert "Nodes=w-1" in shown
        assert "MAINT" in shown
        assert "IGNORE_JOBS" in shown
        assert slurm.job_state(runner) == "RUNNING"
        fine = slurm.submit("exit 0", "--nodelist=w-0")
        await ended(cluster, fine)
        there = world_of(cluster, fine, **reactions)
        there.job_ends[fine] = (checks.ended(fine, "COMPLETED", "w-1"),)
        await done(cluster, decide(there)[1])
        assert "suspicious-node-w-1" not in slurm.run("scontrol", "show", "reservation")


def _for_root(write):
    """The image of these tests has no user of checks, and slurmctld takes no reservation for nobody."""
    from slurm_operator import wire

    return wire.replace(write, users=("root",))


async def test_what_slurmctld_forgot_is_asked_of_accounting(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        failed = slurm.submit("exit 1", "--nodelist=w-0")
        await ended(cluster, failed)
        await until(lambda: "FAILED" in slurm.run("sacct", "--noheader", "-j", str(failed)), "sacct to know")
        cluster.poller._lists._jobs = cluster.poller._lists._jobs._replace(ended={})

        assert isinstance(cluster.books.entry(failed).ends, tuple)
        await cluster.books.read_due()
        [end] = cluster.books.entry(failed).ends
        assert (end.state.base, end.nodes) == ("FAILED", ("w-0",))
        assert cluster.books.entry(987654).ends == ()
        await cluster.books.read_due()
        assert cluster.books.entry(987654).why == ""


async def test_without_accounting_nobody_knows_a_forgotten_job(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        await cluster.refresh()
        cluster.books.entry(987654)
        await cluster.books.read_due()
        found = cluster.books.entry(987654)

        assert (found.ends, found.why) == ((), "")


@pytest.mark.parametrize("most", [0, 1])
def test_the_program_submits_to_each_worker_that_can_run_it(slurm: SlurmDaemons, most: int) -> None:
    """With the real commands; what it would note on its Job is printed."""
    from images.entry.submit_check import Check, Submission

    def run(argv):
        return slurm.head.box.run(*argv, check=False)

    slurm.head.box.path("/tmp/sbatch.sh").write_text("#!/bin/sh\nexit 0\n")
    noted: list[dict[str, str]] = []
    submission = Submission(run, lambda notes: noted.append(dict(notes)))
    wanted = Check("gpus", "#!/bin/sh\nexit 0\n", for_each_worker=True, most=most, path="/tmp/sbatch.sh")

    assert submission.submit(wanted) == 0
    ids = noted[-1]["slurm-job-id"].split(",")
    assert len(ids) == (most or 2)
    for job in ids:
        slurm.wait_for(lambda job=job: slurm.job_state(int(job)) == "COMPLETED", f"job {job} to end")


async def test_a_drained_worker_gets_no_check_and_keeps_its_reason(slurm: SlurmDaemons) -> None:
    slurm.run("scontrol", "update", "nodename=w-1", "state=drain", "reason=disk is loud")
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        failed = slurm.submit("exit 1", "--nodelist=w-0")
        await ended(cluster, failed)
        there = world_of(cluster, failed, brake={"maxPercent": 100})
        there.job_ends[failed] = (checks.ended(failed, "FAILED", "w-0", "w-1"),)
        _, plan = decide(there)
        await done(cluster, plan)
        passed(there)

        assert "Reason=disk is loud" in slurm.run("scontrol", "show", "node", "w-1")
        assert "[node_problem] gpus" in slurm.run("scontrol", "show", "node", "w-0")


RUNNER = REPOSITORY / "images/entry/passive_checks.py"
SCRIPT = """\
#!/bin/sh
export CHECKS_CONTEXT={context} CHECKS_CONFIG=/opt/checks.json CHECKS_OUTPUTS_BASE_DIR=/tmp/outputs
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec python3 /opt/passive_checks.py
"""


def checked_worker(slurm: SlurmDaemons, name: str, listed: str) -> None:
    """A worker whose prolog runs these checks."""
    box = slurm.add_worker(name).box
    box.path("/opt").mkdir(exist_ok=True)
    box.path("/opt/passive_checks.py").write_text(RUNNER.read_text())
    box.path("/opt/checks.json").write_text(listed)
    script = box.path("/opt/prolog.sh")
    script.write_text(SCRIPT.format(context="prolog"))
    script.chmod(0o755)


FAILS = '[{"name": "disk", "command": "echo full >&3; exit 1", "on_fail": "drain"}]'
HANGS = '[{"name": "disk", "command": "sleep 600", "on_fail": "drain", "timeout_seconds": 1}]'
PASSES = '[{"name": "disk", "command": "true", "on_fail": "drain"}]'
PROLOG = {"Prolog": "/opt/prolog.sh", "SchedulerParameters": "nohold_on_prolog_fail"}


def test_a_failed_check_of_a_prolog_sends_the_job_elsewhere(new_slurm) -> None:
    slurm = new_slurm(settings=PROLOG)
    checked_worker(slurm, "w-0", FAILS)
    job = slurm.submit("exit 0", "--requeue")
    slurm.wait_for(lambda: "DRAIN" in slurm.node_states("w-0"), "w-0 to be drained")
    checked_worker(slurm, "w-1", PASSES)
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job to run elsewhere", deadline_s=180)

    assert "Reason=[node_problem] disk: full [prolog]" in slurm.run("scontrol", "show", "node", "w-0")
    assert "NodeList=w-1" in slurm.run("scontrol", "show", "job", str(job))


def test_a_hanging_check_of_a_prolog_holds_up_no_job(new_slurm) -> None:
    slurm = new_slurm(settings=PROLOG)
    checked_worker(slurm, "w-0", HANGS)
    job = slurm.submit("exit 0")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job to run", deadline_s=60)

    assert "DRAIN" not in slurm.node_states("w-0")
