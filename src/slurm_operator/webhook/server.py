"""HTTP around the answers: whatever is sent here gets a clear one, and nothing ends the process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import structlog
from aiohttp import web

from slurm_operator import wire
from slurm_operator.api.schema.problems import warning
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.metrics import Metrics
from slurm_operator.webhook.review import Asked, Malformed, Request, Verdict, answer, read
from slurm_operator.webhook.serving import Served

log = structlog.get_logger(__name__)

# An object may have 1.5 MB in etcd, and a review brings two of them with their JSON around.
LARGEST_BYTES: Final = 8 * 1024 * 1024

# Before the API server gives up on us, which by default is after 10 s.
ANSWER_SECONDS: Final = 7.0

Answerer = Callable[[Request], Awaitable[Verdict]]


class Reply(wire.Record):
    """An HTTP answer, and the word by which it is counted."""

    status: int
    body: bytes
    content_type: str
    word: str


class Admission:
    """Answers reviews, by the path that they are sent to."""

    def __init__(self, answerers: Mapping[str, Answerer], metrics: Metrics) -> None:
        self._answerers = answerers
        self._metrics = metrics

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BYTES)
        app.add_routes([web.post(path, self.handle) for path in self._answerers])
        return app

    async def handle(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        reply = await self._reply(request)
        self._metrics.answered(request.path, reply.word, time.perf_counter() - started)
        return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)

    async def _reply(self, request: web.Request) -> Reply:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _complaint(413, f"More than {LARGEST_BYTES} bytes are not read.")
        except (web.PayloadAccessError, aiohttp.ClientPayloadError, ValueError) as error:
            return _complaint(400, f"The request could not be read: {error}")
        return await self.reply(request.path, body)

    async def reply(self, path: str, body: bytes) -> Reply:
        """What to send back for the body of a request."""
        try:
            asked = read(body)
        except Malformed as why:
            return _complaint(400, str(why))
        verdict, word = await self._verdict(path, asked)
        return Reply(status=200, body=answer(asked, verdict), content_type="application/json", word=word)

    async def _verdict(self, path: str, asked: Asked) -> tuple[Verdict, str]:
        """What to answer. When we fail the request passes: reconcilers ask the same, and say it there."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                verdict = await self._answerers[path](asked.request)
        except Exception as error:
            log.exception("not checked", path=path, uid=asked.request.uid)
            told = warning("", f"this was not checked ({type(error).__name__}); see the object's conditions")
            return Verdict(problems=(told,)), "unchecked"
        if verdict.errors:
            log.info("refused", path=path, key=_key(asked.request), why=[str(one) for one in verdict.errors])
            return verdict, "refused"
        return verdict, "warned" if verdict.warnings else "allowed"


def _complaint(status: int, why: str) -> Reply:
    return Reply(status=status, body=f"{why}\n".encode(), content_type="text/plain", word="malformed")


def _key(request: Request) -> str:
    return f"{request.namespace}/{request.name}"[:256]


@asynccontextmanager
async def listening(app: web.Application, address: Address, served: Served) -> AsyncIterator[None]:
    """Answer over TLS while the block runs; requests that are under way at its end are finished."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=ANSWER_SECONDS)
    await runner.setup()
    site = web.TCPSite(runner, address.host, address.port, ssl_context=served.context)
    try:
        await site.start()
        yield
    finally:
        await runner.cleanup()
