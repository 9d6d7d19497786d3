from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fake_clock import FakeClock
from fake_slurmrestd import KEY, FakeSlurmrestd

from slurm_operator.slurmrest.client import SlurmRest


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
