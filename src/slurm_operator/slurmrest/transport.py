"""Calls to slurmrestd with a deadline and a bounded answer, and their failures in our words."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from slurm_operator import wire
from slurm_operator.http.messages import NotHttp, TooLarge
from slurm_operator.slurmrest import exchange
from slurm_operator.slurmrest.errors import (
    SlurmAnswerUnreadable,
    SlurmCutOff,
    SlurmTimedOut,
    SlurmUnreachable,
)
from slurm_operator.slurmrest.exchange import Reply, Taker

# slurmrestd itself gives up on a silent slurmctld after MessageTimeout, 10 s by default; with a little more
# patience we hear its reason instead of our own impatience.
DEADLINE_SECONDS = 12.0

# A job takes 5 KB, and one of a thousand large nodes some MB: this is far more than a slurmctld survives.
MAX_ANSWER_BYTES = 1 << 30

# Answers without a list in them, refusals among them.
MAX_SHORT_BYTES = 1 << 22


class Request(NamedTuple):
    """`attempt` says to people what it is for: "drain gpu-3"."""

    attempt: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: object = None
    deadline_s: float | None = None
    taker: Taker | None = None  # Of a large answer, while it arrives.

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Transport:
    """One of several base URLs of the same Slurm cluster. `next_url` moves on to another."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        deadline_s: float = DEADLINE_SECONDS,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        max_short_bytes: int = MAX_ANSWER_BYTES,
        authorities: str = "",
    ) -> None:
        """`authorities` are certificates in PEM that vouch for slurmrestd; else those of the machine do."""
        if not urls:
            raise ValueError("a Slurm cluster needs at least one URL of slurmrestd")
        self._urls = [url.rstrip("/") for url in urls]
        self._deadline_s = deadline_s
        self._authorities = authorities
        self._max_answer_bytes = max_answer_bytes
        self._max_short_bytes = min(max_short_bytes, max_answer_bytes)

    @property
    def url(self) -> str:
        return self._urls[0]

    def next_url(self) -> None:
        self._urls.append(self._urls.pop(0))

    def use(self, urls: Sequence[str]) -> None:
        """Take these from now on; the one in use stays so if it is among them."""
        in_use = self.url
        self._urls = sorted((url.rstrip("/") for url in urls), key=lambda url: url != in_use)

    async def exchange(self, request: Request, token: str) -> Reply:
        """Whatever slurmrestd answers, good or bad; an exception when it does not."""
        deadline_s = request.deadline_s or self._deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                return await self._send(request, token)
        except exchange.NoConnection as error:
            raise SlurmUnreachable(request.attempt, str(error)) from error
        except TimeoutError as error:
            raise SlurmTimedOut(request.attempt, f"{self.url} was silent for {deadline_s:g} s") from error
        except (NotHttp, TooLarge) as error:
            raise SlurmAnswerUnreadable(request.attempt, str(error)) from error
        except (EOFError, OSError) as error:
            raise SlurmCutOff(request.attempt, str(error)) from error

    async def _send(self, request: Request, token: str) -> Reply:
        # Slurm checks the token; it goes nowhere but into this header.
        headers = {"X-SLURM-USER-TOKEN": token, "Accept": "application/json"}
        body = b""
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            body = wire.encode(request.body)
        url, method, target, most = self.url, request.method, request.target, self._max_short_bytes
        if request.taker is None:
            return await exchange.exchange(url, method, target, headers, body, most, self._authorities)
        return await exchange.download(
            url,
            target,
            headers,
            request.taker,
            max_bytes=self._max_answer_bytes,
            max_other_bytes=most,
            authorities=self._authorities,
        )
