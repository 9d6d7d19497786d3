"""A Slurm that runs elsewhere: read with a token that somebody else signed, never written to."""

import asyncio
from collections.abc import Callable

import pytest
from fake_slurmrestd import FakeSlurmrestd, http
from slurmrest_replies import PING, UPDATE, nodes, serve

from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import DrainNodes
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmUnauthorised
from slurm_operator.slurmrest.tokens import Keys, ReadyToken
from slurm_operator.slurmsync.connections import connection

TOKEN = b"eyJ.somebody.else\n"


async def test_it_is_read_with_the_token_as_it_is_and_refuses_every_write(slurmrestd: FakeSlurmrestd) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    handle = SecretHandle(namespace="ns", name="login", key="SLURM_JWT")
    server = SlurmServer((slurmrestd.url,), handle, is_only_watched=True)
    slurm = connection("ns/cluster/demo", server, Keys(TOKEN), lambda: True)
    seen = asyncio.Event()
    slurm.subscribe(lambda _: seen.set())
    task = asyncio.create_task(slurm.run())

    await seen.wait()
    result = await slurm.write(DrainNodes(nodes=("a",), reason="slurm-operator: ScaleIn: leaving"))
    task.cancel()

    assert isinstance(slurm.latest(), Snapshot)
    assert not result.is_good
    assert slurmrestd.calls(UPDATE) == []
    assert {heard.token for heard in slurmrestd.heard} == {"eyJ.somebody.else"}
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_token_that_ran_out_is_told_as_such(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    slurmrestd.on(PING, http(401, "Authentication failure"))

    with pytest.raises(SlurmUnauthorised, match="Authentication failure"):
        await connect(key=ReadyToken("old")).read.ping()


async def test_an_empty_token_is_not_even_tried(connect: Callable[..., SlurmRest]) -> None:
    with pytest.raises(SlurmUnauthorised, match="the token is empty"):
        await connect(key=ReadyToken(" \n")).read.ping()


async def test_a_token_of_two_lines_is_not_even_tried(connect: Callable[..., SlurmRest]) -> None:
    with pytest.raises(SlurmUnauthorised, match="line breaks"):
        await connect(key=ReadyToken("SLURM_JWT=one\nSLURM_JWT=two\n")).read.ping()


@pytest.mark.parametrize("url", ["http://slurm:68200", "http://[fd00::1:6820"])
async def test_an_address_that_is_none_is_told_as_such(url: str) -> None:
    handle = SecretHandle(namespace="ns", name="login", key="SLURM_JWT")
    server = SlurmServer((url,), handle, is_only_watched=True)
    slurm = connection("ns/cluster/demo", server, Keys(TOKEN), lambda: True)

    await slurm.poller.poll()

    facts = slurm.latest()
    assert isinstance(facts, Unreachable)
    assert f"{url} is no address" in facts.why
