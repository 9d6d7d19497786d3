"""A kubelet as far as it tells what pods use, over TLS with a certificate that it signed itself, or another."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from slurm_operator.runtime.metrics_auth import self_signed_context


class Kubelet:
    """Tells what pods use to whoever shows the token; to everybody where there is none."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.used: dict[str, int] = {}
        self.asked = 0
        self.port = 0

    async def summary(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"message": "may not"}, status=403)
        pods = [
            {"podRef": {"uid": uid}, "ephemeral-storage": {"usedBytes": used}}
            for uid, used in self.used.items()
        ]
        return web.json_response({"pods": pods})


@asynccontextmanager
async def kubelet(
    token: str = "ours",  # noqa: S107 - it opens nothing
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Kubelet]:
    there, app = Kubelet(token), web.Application()
    app.router.add_get("/stats/summary", there.summary)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls or self_signed_context())
    await site.start()
    there.port = runner.addresses[0][1]
    try:
        yield there
    finally:
        await runner.cleanup()
