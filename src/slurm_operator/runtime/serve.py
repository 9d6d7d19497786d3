"""The manager's two small web servers: health for the kubelet, metrics for Prometheus."""

import asyncio
import cProfile
import io
import pstats
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from slurm_operator.runtime.settings import Address

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Why something is not well, in a sentence; None when it is.
Check = Callable[[], str | None]


@asynccontextmanager
async def serving(
    address: Address, routes: dict[str, Handler], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve these paths while the block runs; gives the port (0 when the address is off)."""
    if address.is_off:
        yield 0
        return
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    site = web.TCPSite(runner, address.host, address.port, ssl_context=tls)
    try:
        await site.start()
        yield address.port
    finally:
        await runner.cleanup()


def health_routes(alive: Check, ready: Check) -> dict[str, Handler]:
    """`/healthz` and `/readyz`: 200 `ok`, or 503 with the reason."""
    return {"/healthz": _answering(alive), "/readyz": _answering(ready)}


def _answering(check: Check) -> Handler:
    async def handle(_request: web.Request) -> web.StreamResponse:
        why = check()
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")

    return handle


def metrics_route(
    text: Callable[[], bytes], allowed: Callable[[web.Request], Awaitable[str | None]] | None
) -> dict[str, Handler]:
    """`/metrics`, for anybody or for those whom `allowed` gives no reason against."""

    async def handle(request: web.Request) -> web.StreamResponse:
        why_not = await allowed(request) if allowed is not None else None
        if why_not is not None:
            return web.Response(status=403, text=f"{why_not}\n")
        return web.Response(body=text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return {"/metrics": handle}


def profile_route() -> dict[str, Handler]:
    """`/debug/profile?seconds=5`: where the event loop spends its time, as text."""

    async def handle(request: web.Request) -> web.StreamResponse:
        seconds = min(60.0, float(request.query.get("seconds", "5")))
        profile = cProfile.Profile()
        profile.enable()
        await asyncio.sleep(seconds)
        profile.disable()
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(60)
        return web.Response(text=text.getvalue())

    return {"/debug/profile": handle}
