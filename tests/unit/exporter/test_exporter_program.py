"""The whole exporter with its two servers, until it is told to stop."""

import asyncio
import os
import signal

import aiohttp
import pytest

from slurm_operator.exporter.collecting import Plan
from slurm_operator.exporter.program import Login, Program, Settings
from slurm_operator.runtime.settings import Address
from testing.managers import free_port
from unit.exporter.pages import JOBS, of, series
from unit.slurmrest.fake_slurmrestd import HANG, FakeSlurmrestd


async def asked(port: int, path: str) -> tuple[int, str, str]:
    """Status, type and text; (0, "", "") before anybody listens."""
    try:
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.headers["Content-Type"], await answer.text()
    except aiohttp.ClientConnectorError:
        return 0, "", ""


async def until_asked(port: int, path: str, status: int, without: str = "\0") -> str:
    for _ in range(500):
        found, _, text = await asked(port, path)
        if found == status and without not in text:
            return text
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path}: {found} {text}")


@pytest.fixture
def settings(slurmrestd: FakeSlurmrestd) -> Settings:
    return Settings(
        Plan("demo", interval_seconds=0.1),
        urls=(slurmrestd.url,),
        login=Login(static_token="t"),
        metrics=Address("127.0.0.1", free_port()),
        monitoring=Address("127.0.0.1", free_port()),
    )


async def test_it_shows_slurm_on_one_port_and_itself_on_another_and_ends_when_told(settings: Settings):
    slurm, own = settings.metrics.port, settings.monitoring.port
    running = asyncio.create_task(Program(settings, None).run())
    try:
        await until_asked(own, "/readyz", 200)

        assert (await asked(slurm, "/health"))[::2] == (200, "healthy")
        status, kind, text = await asked(slurm, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert len(of(series(text), "slurm_node_info")) == 2
        _, _, text = await asked(own, "/metrics")
        assert of(series(text), "slurm_exporter_metrics_requests_total") == {frozenset(): 1}
        assert (await asked(own, "/healthz"))[0] == 200
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(running, 10) == 0


async def test_while_a_list_hangs_it_says_which_and_ends_all_the_same(
    settings: Settings, slurmrestd: FakeSlurmrestd
):
    slurmrestd.on(JOBS, HANG)
    running = asyncio.create_task(Program(settings, None).run())
    try:
        await asyncio.wait_for(slurmrestd.hung.wait(), 10)

        assert "jobs" in await until_asked(settings.monitoring.port, "/readyz", 503, without="nodes")
        assert "slurm_node_info" in (await asked(settings.metrics.port, "/metrics"))[2]
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(running, 10) == 0
