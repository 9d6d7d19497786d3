"""Two managers and one lease, on a real server, with the signals that operators get."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.client import Client
from slurm_operator.kube.lease import Elector
from slurm_operator.manifests.kinds import LEASE
from testing.audit import entries, user
from testing.control_plane import Plane

CANDIDATE = Path(__file__).with_name("kube_candidate.py")
IDS = ("one", "two")


@asynccontextmanager
async def candidate(
    server: Plane, namespace: str, identity: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    kubeconfig = server.kubeconfig_for(f"{identity}-{namespace}", "system:masters")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CANDIDATE),
        str(kubeconfig),
        namespace,
        identity,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def leads(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        if line.strip() == b"leading":
            return
    raise AssertionError("the candidate ended without ever leading")


def writes(server: Plane, namespace: str) -> list[tuple[str, str]]:
    """Who wrote what in this namespace, oldest first, as the server saw the requests come in."""
    mine = [
        entry
        for entry in entries(server.audit_log)
        if entry.get("objectRef", {}).get("namespace") == namespace
        and entry["verb"] in {"create", "update", "patch"}
        and entry.get("responseStatus", {}).get("code", 0) < 300
    ]
    mine.sort(key=lambda entry: entry["requestReceivedTimestamp"])
    return [(user(entry).partition("-")[0], entry["objectRef"]["resource"]) for entry in mine]


def is_handed_over_once(history: list[tuple[str, str]]) -> bool:
    """Whether everything the first one wrote came before anything the second one wrote."""
    who = [name for name, _ in history]
    return who == sorted(who, key=IDS.index)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and woken up"])
async def test_the_second_takes_over_and_the_first_never_writes_again(
    api_server: Plane, namespace: str, end: signal.Signals
) -> None:
    async with (
        candidate(api_server, namespace, "one") as first,
        candidate(api_server, namespace, "two") as second,
    ):
        first_leads = asyncio.create_task(leads(first))
        second_leads = asyncio.create_task(leads(second))
        await asyncio.wait({first_leads, second_leads}, return_when=asyncio.FIRST_COMPLETED)
        if second_leads.done():
            first, second = second, first
            first_leads, second_leads = second_leads, first_leads
        await asyncio.sleep(1)
        first.send_signal(end)
        await second_leads
        if end is signal.SIGSTOP:
            first.send_signal(signal.SIGCONT)
        ended = await first.wait()
        await asyncio.sleep(1)

    history = writes(api_server, namespace)
    leader = history[0][0]
    renamed = [("one" if who == leader else "two", what) for who, what in history]
    assert is_handed_over_once(renamed)
    assert {who for who, what in renamed if what == "configmaps"} == {"one", "two"}
    assert ended == (-signal.SIGKILL if end is signal.SIGKILL else 0)


async def test_a_lease_given_back_is_taken_within_a_moment(api_server: Plane, namespace: str) -> None:
    key = ObjectKey(namespace, "released")
    async with Client(find(api_server.kubeconfig)) as client:
        first, second = (Elector(client, key, name, retry_seconds=0.2) for name in IDS)
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(0.5)
        before = waiting.done()
        await first.release()
        async with asyncio.timeout(10):  # Far less than the 15 s of a lease that runs out.
            await waiting
        lease = await client.get(LEASE, key)

    assert not before
    assert (first.is_leader, second.is_leader) == (False, True)
    assert lease["spec"]["holderIdentity"] == "two"
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_lease_is_given_back_at_whatever_moment_its_holder_stops(
    api_server: Plane, namespace: str
) -> None:
    """Most of them in the middle of a renewal, which the server carries out all the same."""
    key = ObjectKey(namespace, "stopped")
    async with Client(find(api_server.kubeconfig)) as client:
        left = []
        for moment in range(40):
            elector = Elector(client, key, f"holder-{moment}", retry_seconds=0.005)
            await elector.acquire()
            holding = asyncio.create_task(elector.hold())
            await asyncio.sleep(0.005 + moment * 0.0005)
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)
            await elector.release()
            left.append((await client.get(LEASE, key))["spec"]["holderIdentity"])

    assert left == [""] * 40
