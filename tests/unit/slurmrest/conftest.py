import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fake_slurmrestd import KEY, FakeSlurmrestd
from slurmrest_replies import IDLE4, serve
from writing_cluster import Cluster

from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.virtual_time import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def slurmrestd() -> AsyncIterator[FakeSlurmrestd]:
    server = FakeSlurmrestd()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def connect(clock: FakeClock, slurmrestd: FakeSlurmrestd) -> Callable[..., SlurmRest]:
    """Makes clients of the server, or of other URLs."""

    def one(**options: Any) -> SlurmRest:
        urls = options.pop("urls", [slurmrestd.url])
        key = options.pop("key", lambda: KEY)
        return SlurmRest(urls, key, now=clock.now, **options)

    return one


@pytest.fixture
def client(connect: Callable[..., SlurmRest]) -> SlurmRest:
    return connect()


@pytest.fixture
async def cluster(slurmrestd: FakeSlurmrestd, clock: FakeClock) -> AsyncIterator[Cluster]:
    serve(slurmrestd, node_lists=[IDLE4])
    made: list[Cluster] = []
    slurm = SlurmCluster(
        "demo",
        [slurmrestd.url],
        lambda: KEY,
        may_write=lambda: made[0].may_write(),
        clock=clock,
        deadline_s=0.5,
    )
    made.append(Cluster(slurm))
    yield made[0]
    made[0].task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await made[0].task
