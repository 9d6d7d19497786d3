"""Calls to slurmrestd: the right version, a valid token, and an answer that can be trusted."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import quote

from slurm_operator import wire
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.answers.envelope import Envelope, Trouble, troubles_text
from slurm_operator.slurmrest.exchange import Reply
from slurm_operator.slurmrest.tokens import Tokens
from slurm_operator.slurmrest.transport import Request, Transport
from slurm_operator.slurmrest.versions import NEWEST_FIRST, Capability

T = TypeVar("T")

# Up to this size decoding takes about a millisecond; a larger body is decoded in a thread.
ON_LOOP_BYTES = 1 << 19

_NO_ROUTE = b"Unable to find requested URL"


class Session:
    """Speaks the newest API version that both sides know; `version` is empty until the first call."""

    def __init__(self, transport: Transport, tokens: Tokens) -> None:
        self.transport = transport
        self.version = ""
        self._tokens = tokens

    async def call(
        self,
        attempt: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        needs: Capability | None = None,
        deadline_s: float | None = None,
    ) -> Reply:
        """A reply with 2xx or 304. Whether its content can be trusted shows when it is decoded: `content`.

        `path` has a `{version}` where the version belongs.
        """
        version = await self._negotiate(attempt)
        if needs is not None and not needs.is_in(version):
            raise errors.NotServed(attempt, f"{version} has no such call, {needs.value.since} has")
        request = Request(attempt, method, path.format(version=version), query or {}, body, deadline_s)
        reply = await self._exchange(request)
        if _is_missing_route(reply):
            self.version = ""  # slurmrestd may have been replaced by another release: ask again next time.
            raise errors.NotServed(attempt, f"slurmrestd has no {request.path}")
        if not _is_good(reply):
            raise _failure(attempt, reply)
        return reply

    async def content(self, attempt: str, reply: Reply, decode: Callable[[bytes], T]) -> T:
        """The decoded body. `decode` must raise DecodeError on a body of another shape."""
        try:
            if len(reply.body) <= ON_LOOP_BYTES:
                return _decoded(reply.body, decode)
            return await asyncio.to_thread(_decoded, reply.body, decode)
        except (wire.DecodeError, ValueError, OverflowError, OSError, RecursionError) as error:
            raise errors.SlurmAnswerUnreadable(attempt, str(error)) from error

    def forget_version(self) -> None:
        self.version = ""

    async def _negotiate(self, attempt: str) -> str:
        """The version in use. A ping, because it exists in all of them and asks for nothing."""
        if self.version:
            return self.version
        for version in NEWEST_FIRST:
            reply = await self._exchange(Request(attempt, "GET", f"/slurm/{version}/ping/"))
            if _is_missing_route(reply):
                continue
            if not _is_good(reply):
                raise _failure(attempt, reply)
            self.version = version
            return version
        raise errors.VersionUnknown(attempt, f"it serves none of {', '.join(NEWEST_FIRST)}")

    async def _exchange(self, request: Request) -> Reply:
        """A reply, after one more try with a fresh token when the first one was not accepted."""
        token = self._tokens.token()
        reply = await self.transport.exchange(request, token)
        if reply.status in (401, 511):
            self._tokens.reject(token)
            reply = await self.transport.exchange(request, self._tokens.token())
        return reply


def trusted(attempt: str, envelope: Envelope) -> None:
    """Raises unless the answer is free of errors: slurmrestd puts some into an HTTP 200."""
    if envelope.errors:
        raise failure(attempt, envelope.errors)


def failure(attempt: str, troubles: list[Trouble], status: int = 200) -> errors.SlurmFailure:
    """What these errors mean. The first number that we know decides; then the HTTP status.

    What neither of them explains, and is no refusal, was lost somewhere: it may have happened all the same.
    """
    numbers = [trouble.error_number or 0 for trouble in troubles]
    known = [errors.BY_NUMBER[number] for number in numbers if number in errors.BY_NUMBER]
    kind = known[0] if known else errors.BY_STATUS.get(status)
    return (kind or _unknown(numbers, status))(attempt, troubles_text(troubles))


def _unknown(numbers: list[int], status: int) -> type[errors.SlurmFailure]:
    is_refused = any(number in refusals for number in numbers for refusals in errors.REFUSALS)
    return errors.SlurmRefused if is_refused or status < 500 else errors.SlurmCutOff


def segment(name: str) -> str:
    """A name as one part of a path, whatever characters it has."""
    return quote(name, safe="")


def _decoded(body: bytes, decode: Callable[[bytes], T]) -> T:
    """Slurm passes on whatever bytes people use in names and comments: one job must not hide all others."""
    try:
        return decode(body)
    except UnicodeDecodeError:
        return decode(body.decode(errors="replace").encode())


def _failure(attempt: str, reply: Reply) -> errors.SlurmFailure:
    try:
        troubles = wire.decode(reply.body, Envelope).errors or []
    except (wire.DecodeError, UnicodeDecodeError, RecursionError):
        return _failure_in_between(attempt, reply)
    return failure(attempt, troubles or [Trouble(description=f"HTTP {reply.status}")], reply.status)


def _failure_in_between(attempt: str, reply: Reply) -> errors.SlurmFailure:
    """Without Slurm's JSON it is slurmrestd's own short text, or a proxy that lost slurmrestd on the way."""
    text = reply.body[:500].decode(errors="replace").strip() or f"HTTP {reply.status}"
    if reply.status in (401, 511):
        return errors.SlurmUnauthorised(attempt, text)
    return errors.SlurmCutOff(attempt, text) if reply.status >= 500 else errors.SlurmRefused(attempt, text)


def _is_good(reply: Reply) -> bool:
    return 200 <= reply.status < 300 or reply.status == 304


def _is_missing_route(reply: Reply) -> bool:
    return reply.status == 404 and reply.body.lstrip().startswith(_NO_ROUTE)
