from collections.abc import AsyncIterator, Callable

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
async def connect(clock: FakeClock, slurmrestd: FakeSlurmrestd) -> AsyncIterator[Callable[..., SlurmRest]]:
    """Makes clients that are closed when the test is over."""
    made: list[SlurmRest] = []

    def one(**options: object) -> SlurmRest:
        urls = options.pop("urls", [slurmrestd.url])
        key = options.pop("key", lambda: KEY)
        made.append(SlurmRest(urls, key, now=clock.now, **options))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for client in made:
        await client.close()


@pytest.fixture
def client(connect: Callable[..., SlurmRest]) -> SlurmRest:
    return connect()
