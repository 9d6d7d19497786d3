"""One HTTP exchange with slurmrestd: a deadline, a bounded answer, and exceptions in our words."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import aiohttp

from slurm_operator import wire
from slurm_operator.slurmrest.errors import (
    SlurmAnswerUnreadable,
    SlurmCutOff,
    SlurmFailure,
    SlurmTimedOut,
    SlurmUnreachable,
)

# slurmrestd itself gives up on a silent slurmctld after MessageTimeout, 10 s by default; with a little more
# patience we hear its reason instead of our own impatience.
DEADLINE_SECONDS = 12.0

CONNECT_SECONDS = 3.0

# A job takes 5 KB, and one of a thousand large nodes some MB: this is far more than a slurmctld survives.
MAX_ANSWER_BYTES = 1 << 30

_CHUNK_BYTES = 1 << 18


class Request(NamedTuple):
    """`attempt` says to people what it is for: "drain gpu-3"."""

    attempt: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: object = None
    deadline_s: float | None = None


class Reply(NamedTuple):
    status: int
    body: bytes


class Transport:
    """Connections to one of several base URLs of the same Slurm cluster. `next_url` moves on to another."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        deadline_s: float = DEADLINE_SECONDS,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        if not urls:
            raise ValueError("a Slurm cluster needs at least one URL of slurmrestd")
        self._urls = [url.rstrip("/") for url in urls]
        self._deadline_s = deadline_s
        self._max_answer_bytes = max_answer_bytes
        self._http: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        return self._urls[0]

    def next_url(self) -> None:
        self._urls.append(self._urls.pop(0))

    async def exchange(self, request: Request, token: str) -> Reply:
        """Whatever slurmrestd answers, good or bad; an exception when it does not."""
        deadline_s = request.deadline_s or self._deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                return await self._send(request, token)
        except SlurmFailure:
            raise
        except aiohttp.ServerTimeoutError as error:  # Of connecting: nothing else has a limit of its own.
            raise SlurmUnreachable(request.attempt, f"no connection to {self.url}") from error
        except TimeoutError as error:
            raise SlurmTimedOut(request.attempt, f"{self.url} was silent for {deadline_s:g} s") from error
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise SlurmUnreachable(request.attempt, str(error)) from error
        except aiohttp.ClientResponseError as error:
            raise SlurmAnswerUnreadable(request.attempt, f"not HTTP: {error.message}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SlurmCutOff(request.attempt, str(error) or type(error).__name__) from error

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _send(self, request: Request, token: str) -> Reply:
        # Asked to close the connection, slurmrestd 26.05 sends "Connection: Close" behind the body instead of
        # before it. So we do not ask, and close it ourselves.
        headers = {"X-SLURM-USER-TOKEN": token, "Accept": "application/json", "Connection": "keep-alive"}
        data = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            data = wire.encode(request.body)
        async with self._session().request(
            request.method, self.url + request.path, params=request.query, data=data, headers=headers
        ) as response:
            return Reply(response.status, await self._body(request, response))

    async def _body(self, request: Request, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            if len(body) > self._max_answer_bytes:
                raise SlurmAnswerUnreadable(request.attempt, f"more than {self._max_answer_bytes} bytes")
        return bytes(body)

    def _session(self) -> aiohttp.ClientSession:
        """Made on first use, inside the loop.

        A fresh connection for each call: on a kept one that slurmrestd has just dropped, aiohttp repeats what
        HTTP calls idempotent, and with slurmrestd that includes GET /reconfigure/.
        """
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=4),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                auto_decompress=True,
            )
        return self._http
