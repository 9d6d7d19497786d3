"""Strangers who ask for metrics must not use up the connections that the operator needs."""

import asyncio
from typing import Any, cast

from aiohttp.test_utils import make_mocked_request

from slurm_operator.kube.client import Client
from slurm_operator.runtime.metrics_auth import AT_ONCE, MetricsGuard


class Slow:
    """Knows nobody, and takes a while to say so."""

    def __init__(self) -> None:
        self.asked = self.at_once = self.most_at_once = 0

    async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return {"status": {"authenticated": False}}


async def test_a_hundred_strangers_are_asked_about_a_few_at_a_time() -> None:
    api = Slow()
    guard = MetricsGuard(cast("Client", api))
    stranger = make_mocked_request("GET", "/metrics", {"Authorization": "Bearer guessed"})

    told = await asyncio.gather(*(guard.why_not(stranger) for _ in range(100)))

    assert set(told) == {"The API server does not know this token."}
    assert (api.asked, api.most_at_once) == (100, AT_ONCE)
