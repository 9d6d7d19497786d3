from collections.abc import AsyncIterator

import pytest

from testing.virtual_time import FakeClock
from unit.exporter.pages import serve_recorded
from unit.slurmrest.fake_slurmrestd import FakeSlurmrestd


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def slurmrestd() -> AsyncIterator[FakeSlurmrestd]:
    server = FakeSlurmrestd()
    await server.start()
    serve_recorded(server)
    yield server
    await server.stop()
