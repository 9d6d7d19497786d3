"""Questions about Slurm that decisions hang on, answered by the real daemons."""

import asyncio
import base64
import contextlib
import json
import random
import secrets
import time
from collections.abc import Callable

import pytest
from rest_rig import client_of, cluster_of, raw, running, seen, until

from slurm_operator import wire
from slurm_operator.slurm.node import Vitals
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurmrest import session
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.versions import NEWEST_FIRST
from testing.boxed import conf
from testing.boxed.box import Box
from testing.boxed.daemon import Daemon
from testing.daemons import SlurmDaemons, Worker

V = "/slurm/v0.0.45"


# -- "nothing has changed since": can it be believed?


async def churn(slurm: SlurmDaemons, rounds: int) -> None:
    """Jobs come, are suspended, cancelled and end; nodes are drained and resumed."""
    dice = random.Random(7)
    jobs: list[int] = []
    for number in range(rounds):
        name = f"w-{dice.randrange(2)}"
        match dice.randrange(6):
            case 0 | 1:
                jobs.append(await asyncio.to_thread(slurm.submit, "sleep 1", "--mem=10"))
            case 2 if jobs:
                await asyncio.to_thread(_try, slurm, "scancel", str(jobs.pop()))
            case 3 if jobs:
                await asyncio.to_thread(_try, slurm, "scontrol", "suspend", str(jobs[-1]))
                await asyncio.to_thread(_try, slurm, "scontrol", "resume", str(jobs[-1]))
            case 4:
                await asyncio.to_thread(
                    _try, slurm, "scontrol", "update", f"nodename={name}", f"comment=c{number}"
                )
            case _:
                drain = ("state=drain", "reason=churn") if dice.random() < 0.5 else ("state=undrain",)
                await asyncio.to_thread(_try, slurm, "scontrol", "update", f"nodename={name}", *drain)


def _try(slurm: SlurmDaemons, *argv: str) -> None:
    slurm.head.box.run(*argv, check=False)


def _still(nodes: object) -> object:
    return {name: wire.replace(node, vitals=Vitals()) for name, node in nodes.items()}  # type: ignore[attr-defined]


async def compare(client: SlurmRest, rounds: int) -> tuple[int, int]:
    """How often a list was called unchanged, and how often that was wrong, judged by whole lists around it."""
    unchanged = wrong = 0
    nodes, jobs = await client.read.nodes(), await client.read.jobs()
    assert nodes is not None
    assert jobs is not None
    for _ in range(rounds):
        again, jobs_again = (
            await client.read.nodes(nodes.last_update),
            await client.read.jobs(jobs.last_update),
        )
        whole, jobs_whole = await client.read.nodes(), await client.read.jobs()
        assert whole is not None
        assert jobs_whole is not None
        if again is None and (await client.read.nodes(nodes.last_update)) is None:
            unchanged += 1
            wrong += _still(whole.records) != _still(nodes.records)
        if jobs_again is None and (await client.read.jobs(jobs.last_update)) is None:
            unchanged += 1
            wrong += jobs_whole.records != jobs.records
        nodes, jobs = again or nodes, jobs_again or jobs
    return unchanged, wrong


async def test_unchanged_is_never_wrong_under_load(slurm: SlurmDaemons) -> None:
    """Asked between two "unchanged" answers, the whole list is the one we had."""
    load = asyncio.create_task(churn(slurm, 40))

    unchanged, wrong = await compare(client_of(slurm), 120)
    await load

    assert wrong == 0
    assert unchanged > 20, "there was something to be wrong about"


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_each_list_tells_slurmctlds_clock_and_unchanged_is_meant_by_that(
    slurm: SlurmDaemons, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a mark of ours that is ahead of its clock hides every change until it has caught up."""
    monkeypatch.setattr(session, "NEWEST_FIRST", (version,))
    client = client_of(slurm)
    before = int(time.time())
    nodes, jobs = await client.read.nodes(), await client.read.jobs()
    reservations, partitions = await client.read.reservations(), await client.read.partitions()
    after = int(time.time())

    assert nodes is not None
    assert jobs is not None
    assert reservations is not None
    assert partitions is not None
    assert reservations.records == {}, "also where there are none"
    lists = (nodes, jobs, reservations, partitions)
    assert all(before <= listing.last_update <= after for listing in lists)
    slurm.run("scontrol", "update", "nodename=w-0", "comment=changed")
    assert await client.read.nodes(nodes.last_update) is not None
    assert await client.read.nodes(after + 60) is None


async def test_the_snapshot_under_load_ends_where_slurm_does(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        await churn(slurm, 40)
        jobs = await asyncio.to_thread(slurm.run, "squeue", "--noheader", "--array", "--format=%A")

        def agrees() -> bool:
            listed = {int(word) for word in slurm.run("squeue", "--noheader", "--format=%A").split()}
            snapshot = seen(cluster)
            return (
                snapshot is not None and set(snapshot.jobs) == listed and _drains(snapshot) == _slurms(slurm)
            )

        await until(agrees, f"the snapshot to agree with squeue and sinfo; there were {jobs!r}")


def _drains(snapshot: Snapshot) -> set[str]:
    return {name for name, node in snapshot.nodes.items() if node.state.is_drain}


def _slurms(slurm: SlurmDaemons) -> set[str]:
    return {name for name in ("w-0", "w-1") if "DRAIN" in slurm.node_states(name)}


# -- what a reconfigure does to jobs


ALL = conf.LINES[1]
GPU = "PartitionName=gpu Nodes=ALL State=UP MaxTime=UNLIMITED"


async def reconfigured(slurm: SlurmDaemons, lines: tuple[str, ...], settings: dict[str, str]) -> None:
    slurm.write_config(settings, (conf.LINES[0], *lines))
    await client_of(slurm).send.reconfigure()


def slurmd_start(slurm: SlurmDaemons) -> int:
    return raw(slurm, "GET", f"{V}/nodes/").body["nodes"][0]["slurmd_start_time"]["number"]


async def test_reconfigures_that_leave_jobs_alone(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm(lines=(conf.LINES[0], ALL, GPU))
    slurm.reset("w-0", "w-1")
    job = await running(slurm, "--partition=gpu", "--nodelist=w-0", "--mem=10")
    waiting = slurm.submit("true", "--partition=gpu", "--hold", "--mem=10")
    before = slurmd_start(slurm)
    await asyncio.sleep(1.1)
    inactive = GPU.replace("State=UP", "State=INACTIVE")

    for lines, settings in [
        ((ALL, GPU), {"SlurmctldDebug": "verbose"}),
        ((ALL, GPU), {"SchedulerParameters": "bf_interval=5"}),
        ((ALL, inactive), {}),
        ((ALL, GPU.replace("UNLIMITED", "1")), {}),
        ((ALL, GPU, "PartitionName=new Nodes=ALL"), {}),
        ((ALL, GPU.replace("Nodes=ALL", "Nodes=w-1")), {}),
    ]:
        await reconfigured(slurm, lines, settings)
        assert slurm.job_state(job) == "RUNNING", (lines, settings)
        assert slurm.job_state(waiting) == "PENDING", (lines, settings)

    # Right after a reconfigure it reads 0: slurmctld forgets it until the slurmd has registered again.
    slurm.wait_for(lambda: slurmd_start(slurm) > before, "slurmd to restart itself, though no pod restarts")
    assert "PartitionName=new" not in slurm.run("scontrol", "show", "partitions")


async def test_a_reconfigure_without_their_partition_ends_jobs_at_once(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(lines=(conf.LINES[0], ALL, GPU))
    slurm.reset("w-0", "w-1")
    job = await running(slurm, "--partition=gpu", "--mem=10")
    waiting = slurm.submit("true", "--partition=gpu", "--hold", "--mem=10")
    other = await running(slurm, "--partition=all", "--mem=10")

    await reconfigured(slurm, (ALL,), {})

    await until(lambda: slurm.job_state(job) != "RUNNING", "the job to be gone")
    assert slurm.job_state(waiting) != "PENDING"
    assert slurm.job_state(other) == "RUNNING"


async def test_a_configuration_that_does_not_parse_ends_slurmctld_but_no_job(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm()
    slurm.reset("w-0")
    job = await running(slurm)
    await asyncio.sleep(6)  # slurmctld saves its state every five seconds.
    slurm.write_config({"SchedulerTimeSlice": "bogus"})
    with contextlib.suppress(Exception):
        await client_of(slurm, deadline_s=5).send.reconfigure()
    await until(lambda: slurm.slurmctld.has_ended, "slurmctld to end")

    slurm.write_config()
    slurm.slurmctld.start()

    await until(lambda: slurm.job_state(job) == "RUNNING", "the job to be found running")


# -- two slurm keys at once


def jwks(signing: bytes, accepted: bytes | None = None) -> bytes:
    """A slurm.jwks: the first key signs, both are accepted. The id is the key's own beginning."""

    def entry(key: bytes) -> dict[str, str]:
        text = base64.urlsafe_b64encode(key).rstrip(b"=").decode()
        return {"alg": "HS256", "kty": "oct", "kid": key[:4].hex(), "k": text}

    keys = [entry(signing) | {"use": "default"}, *([entry(accepted)] if accepted else [])]
    return json.dumps({"keys": keys}).encode()


def give(box: Box, name: str, content: bytes, owner: tuple[int, int]) -> None:
    for old in ("slurm.key", "slurm.jwks"):
        box.path(f"/etc/slurm/{old}").unlink(missing_ok=True)
    box.write_secret(f"/etc/slurm/{name}", content, owner)


async def test_slurmctld_takes_over_a_second_slurm_key_by_reconfigure(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """Old workers go on as long as the old key is the one that signs."""
    slurm = new_slurm()
    slurm.reset("w-0", "w-1")
    old, new = slurm.head.slurm_key, secrets.token_bytes(1024)
    job = await running(slurm, "--nodes=2", "--mem=10")

    give(slurm.head.box, "slurm.jwks", jwks(old, new), (401, 401))
    slurm.reconfigure()

    await a_new_job_runs(slurm)
    assert slurm.job_state(job) == "RUNNING"


async def test_the_slurm_key_is_changed_under_a_running_job(new_slurm: Callable[..., SlurmDaemons]) -> None:
    """Everybody accepts both, then slurmctld signs with the new one, then the workers, then the old one goes.

    Without a configuration of their own slurmds find slurm.jwks only by SLURM_SACK_JWKS.
    """
    slurm = new_slurm()
    slurm.reset("w-0", "w-1")
    old, new = slurm.head.slurm_key, secrets.token_bytes(1024)
    workers = list(slurm.workers.values())
    for worker in workers:
        give(worker.box, "slurm.jwks", jwks(old, new), (0, 0))
    slurmds = [told_where_the_keys_are(worker) for worker in workers]
    job = await running(slurm, "--nodes=2", "--mem=10")

    for on_head, on_workers in [
        (jwks(old, new), jwks(old, new)),
        (jwks(new, old), jwks(old, new)),
        (jwks(new, old), jwks(new, old)),
        (jwks(new), jwks(new)),
    ]:
        give(slurm.head.box, "slurm.jwks", on_head, (401, 401))
        for worker in workers:
            give(worker.box, "slurm.jwks", on_workers, (0, 0))
        slurm.reconfigure()
        await a_new_job_runs(slurm)
        assert slurm.job_state(job) == "RUNNING"

    slurm.run("scancel", str(job))
    await until(lambda: slurm.node_states("w-0") == {"IDLE", "DYNAMIC_NORM"}, "the job to be cleaned up")
    for slurmd in slurmds:
        slurmd.stop()


async def test_slurmctld_with_a_key_and_workers_with_a_ring_of_it_understand_each_other(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """As after the way back to an operator that mounts the key alone."""
    slurm = new_slurm()
    slurm.reset("w-0", "w-1")
    key = slurm.head.slurm_key
    ours, _ = slurm.workers.values()
    give(ours.box, "slurm.jwks", jwks(key), (0, 0))
    slurmd = told_where_the_keys_are(ours)
    job = await running(slurm, "--nodes=2", "--mem=10")

    slurm.slurmctld.stop()
    slurm.slurmctld.start()

    await until(lambda: slurm.job_state(job) == "RUNNING", "the job to be found running")
    await a_new_job_runs(slurm)
    slurm.run("scancel", str(job))
    await until(lambda: slurm.node_states("w-0") == {"IDLE", "DYNAMIC_NORM"}, "the job to be cleaned up")
    slurmd.stop()


async def test_slurmctld_that_knows_only_the_new_key_hears_nothing_of_workers_that_sign_with_the_old_one(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """Why the way back to an operator that mounts the key alone has to wait for a change of the key."""
    slurm = new_slurm()
    slurm.reset("w-0", "w-1")
    old, new = slurm.head.slurm_key, secrets.token_bytes(1024)
    for worker in slurm.workers.values():
        give(worker.box, "slurm.jwks", jwks(old, new), (0, 0))
    slurmds = [told_where_the_keys_are(worker) for worker in slurm.workers.values()]
    await a_new_job_runs(slurm)

    slurm.slurmctld.stop()
    give(slurm.head.box, "slurm.key", new, (401, 401))
    slurm.slurmctld.start()

    probe = slurm.submit("true", "--nodes=2", "--mem=10")
    await asyncio.sleep(20)
    assert slurm.job_state(probe) != "COMPLETED"
    for slurmd in slurmds:
        slurmd.stop()


def told_where_the_keys_are(worker: Worker) -> Daemon:
    """The worker's slurmd, restarted."""
    worker.slurmd.stop()
    env = {"SLURM_SACK_JWKS": "/etc/slurm/slurm.jwks"}
    slurmd = Daemon(worker.box, worker.slurmd.argv, log=worker.slurmd.log, ready=lambda: True, env=env)
    slurmd.start()
    return slurmd


async def a_new_job_runs(slurm: SlurmDaemons) -> None:
    probe = slurm.submit("true", "--nodes=2", "--mem=10")
    await until(lambda: slurm.job_state(probe) == "COMPLETED", "a new job to run")


async def test_private_data_hides_jobs_of_others_and_says_so(new_slurm: Callable[..., SlurmDaemons]) -> None:
    """An empty job list of an ordinary user is no proof that there is no job."""
    slurm = new_slurm(settings={"PrivateData": "jobs"})
    slurm.reset("w-0", "w-1")
    job = await running(slurm, "--nodelist=w-0", "--mem=10")
    head, nobody = client_of(slurm), client_of(slurm, user="nobody")
    whole, hidden = await head.read.jobs(), await nobody.read.jobs()

    assert whole is not None
    assert job in whole.records
    assert hidden is not None
    assert hidden.records == {}
    assert await nobody.read.private_data() == ("jobs",)
