"""Everything between us and Slurm breaks; it is named, in time, and heals without help."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from rest_rig import client_of, cluster_of, running, seen, until

from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmsync import poller
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.daemons import SlurmDaemons

DEADLINE_S = 5.0
Act = Callable[[SlurmDaemons], None]


@pytest.fixture
def quick(new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    """slurmrestd gives up on slurmctld after 2 s."""
    slurm = new_slurm(settings={"MessageTimeout": "2"})
    slurm.reset("w-0")
    return slurm


class Fault(NamedTuple):
    strike: Act
    heal: Act
    errors: tuple[type[errors.SlurmFailure], ...]


FAULTS = {
    "slurmctld stopped": Fault(
        lambda slurm: slurm.slurmctld.stop(),
        lambda slurm: slurm.slurmctld.start(),
        (errors.SlurmUnreachable,),
    ),
    "slurmctld hung": Fault(
        lambda slurm: slurm.slurmctld.pause(), lambda slurm: slurm.slurmctld.resume(), (errors.SlurmTimedOut,)
    ),
    "slurmrestd killed": Fault(
        lambda slurm: slurm.slurmrestd.kill(),
        lambda slurm: slurm.slurmrestd.start(),
        (errors.SlurmUnreachable,),
    ),
    "slurmrestd hung": Fault(
        lambda slurm: slurm.slurmrestd.pause(),
        lambda slurm: slurm.slurmrestd.resume(),
        (errors.SlurmTimedOut,),
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_is_named_in_time_and_heals(
    quick: SlurmDaemons, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "TOO_OLD_SECONDS", 3.0)
    monkeypatch.setattr(poller, "LONGEST_BACKOFF_SECONDS", 1.0)
    job = await running(quick)
    async with cluster_of(quick, deadline_s=DEADLINE_S) as cluster:
        cluster.request_polling("test", soon=True)
        await until(lambda: _sees(cluster, job), "the job to be seen")
        fault.strike(quick)

        began = time.monotonic()
        with pytest.raises(fault.errors):
            await client_of(quick, deadline_s=DEADLINE_S).read.nodes()
        assert time.monotonic() - began < DEADLINE_S + 2
        await until(lambda: isinstance(cluster.latest(), Unreachable), "facts to be too old")
        fault.heal(quick)

        await until(lambda: _sees(cluster, job), "the job to be seen again")
    assert quick.job_state(job) == "RUNNING"


def _sees(cluster: SlurmCluster, job: int) -> bool:
    snapshot = seen(cluster)
    return snapshot is not None and job in snapshot.jobs


async def test_restarts_are_sat_out(slurm: SlurmDaemons) -> None:
    job = await running(slurm)
    async with cluster_of(slurm) as cluster:
        cluster.request_polling("test", soon=True)
        await until(lambda: _sees(cluster, job), "the job to be seen")
        for daemon in (slurm.slurmctld, slurm.slurmrestd):
            await asyncio.to_thread(daemon.restart)
            began = datetime.now(UTC)
            await until(lambda at=began: _looked_after(cluster, at), "a look after the restart")  # type: ignore[misc]
            assert _sees(cluster, job)


def _looked_after(cluster: SlurmCluster, moment: datetime) -> bool:
    snapshot = seen(cluster)
    return snapshot is not None and snapshot.asked_at > moment


async def test_a_wrong_key_is_unauthorised_and_a_right_one_is_taken_up(slurm: SlurmDaemons) -> None:
    keys = [slurm.jwt_key, b"wrong" * 8]
    client = client_of(slurm, key=lambda: keys[-1])
    with pytest.raises(errors.SlurmUnauthorised):
        await client.read.nodes()

    keys.pop()

    assert await client.read.nodes()


async def test_an_expired_token_is_signed_anew(slurm: SlurmDaemons) -> None:
    """The clock of the operator stood still for an hour, and then went on."""
    behind = [timedelta(hours=1)]
    client = client_of(slurm, now=lambda: datetime.now(UTC) - behind[-1])
    with pytest.raises(errors.SlurmUnauthorised):
        await client.read.nodes()

    behind.append(timedelta(0))

    assert await client.read.nodes()


@pytest.mark.parametrize("skew_s", [-60, 60])
async def test_a_minute_of_skew_does_no_harm(slurm: SlurmDaemons, skew_s: int) -> None:
    client = client_of(slurm, now=lambda: datetime.now(UTC) + timedelta(seconds=skew_s))

    assert await client.read.nodes()


async def test_slurm_does_not_mind_a_token_from_the_future(slurm: SlurmDaemons) -> None:
    """We backdate tokens all the same: other checkers of the same token do mind, and Slurm may learn to."""
    client = client_of(slurm, now=lambda: datetime.now(UTC) + timedelta(minutes=5))

    assert await client.read.nodes()


@contextlib.asynccontextmanager
async def cutting_proxy(slurm: SlurmDaemons, passes_bytes: list[int]) -> AsyncIterator[str]:
    """A way to slurmrestd that closes after so many bytes of each answer."""
    host, port = slurm.rest_url.removeprefix("http://").split(":")

    served: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        there_reader, there = await asyncio.open_connection(host, int(port))
        head = await reader.readuntil(b"\r\n\r\n")
        there.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        left = passes_bytes[-1]
        with contextlib.suppress(ConnectionError):
            while left > 0 and (data := await there_reader.read(min(left, 4096))):
                writer.write(data)
                await writer.drain()
                left -= len(data)
        for end in (there, writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*filter(None, served))


@pytest.mark.parametrize("passes", [0, 20, 300, 1500])
async def test_a_cut_answer_is_no_shorter_list(slurm: SlurmDaemons, passes: int) -> None:
    passes_bytes = [1 << 30]
    async with cutting_proxy(slurm, passes_bytes) as url:
        client = SlurmRest([url], lambda: slurm.jwt_key, now=lambda: datetime.now(UTC))
        whole = await client.read.nodes()
        passes_bytes.append(passes)
        with pytest.raises(errors.SlurmCutOff):
            await client.read.nodes()
        passes_bytes.pop()
        again = await client.read.nodes()

    assert whole is not None
    assert again is not None
    assert set(again.records) == set(whole.records) == {"w-0", "w-1"}
