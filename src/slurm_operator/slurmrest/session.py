"""Calls to slurmrestd: the right version, a valid token, and an answer that can be trusted."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from slurm_operator import wire
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.answers.envelope import Envelope, Trouble, troubles_text
from slurm_operator.slurmrest.exchange import Reply, Taker
from slurm_operator.slurmrest.incoming import MAX_LIST_BYTES, Incoming, R, decoded
from slurm_operator.slurmrest.tokens import Tokens
from slurm_operator.slurmrest.transport import Request, Transport
from slurm_operator.slurmrest.versions import NEWEST_FIRST, Capability

T = TypeVar("T")

# Up to this size decoding takes some milliseconds; what is larger is decoded in a thread, piece by piece.
ON_LOOP_BYTES = 1 << 18

# One for all clusters: their pieces take turns, and only one thread is in the way of the event loop.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="slurmrest")

_UNREADABLE = (wire.DecodeError, ValueError, OverflowError, OSError, RecursionError)

# As 26.05 says it, and 24.11 (tests/slurm/test_older_slurm.py).
_NO_ROUTE = (b"Unable to find requested URL", b"Unable find requested URL")


class Session:
    """Speaks the newest API version that both sides know; `version` is empty until the first call."""

    def __init__(self, transport: Transport, tokens: Tokens, *, max_list_bytes: int = MAX_LIST_BYTES) -> None:
        self.transport = transport
        self.version = ""
        self._max_list_bytes = max_list_bytes
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
        taker: Taker | None = None,
    ) -> Reply:
        """A reply with 2xx or 304. Whether its content can be trusted shows when it is decoded: `content`.

        `path` has a `{version}` where the version belongs.
        """
        version = await self._negotiate(attempt)
        if needs is not None and not needs.is_in(version):
            raise errors.NotServed(attempt, f"{version} has no such call, {needs.value.since} has")
        request = Request(attempt, method, path.format(version=version), query or {}, body, deadline_s, taker)
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
                return decoded(reply.body, decode)
            return await _in_thread(partial(decoded, reply.body, decode))
        except _UNREADABLE as error:
            raise errors.SlurmAnswerUnreadable(attempt, str(error)) from error

    async def listed(
        self,
        attempt: str,
        path: str,
        name: str,
        read: Callable[[bytes], R],
        made: Callable[[list[R], bytes], T],
        query: Mapping[str, str] | None = None,
    ) -> T | None:
        """What `made` makes of the records of the list `name` and of what stands around it, None for 304.

        `read` makes a record of one entry. Of a long list only the records are ever in memory.
        """
        incoming = Incoming(name, read, self._max_list_bytes)
        taker = _Taker(incoming)
        try:
            reply = await self.call(attempt, "GET", path, query=query, taker=taker)
            if reply.status == 304:
                return None
            await taker.take(reply.body, is_last=True)
            if incoming.is_too_large:
                raise _too_large(attempt, incoming, "")
            make = partial(_made, made, incoming)
            return make() if incoming.size_bytes <= ON_LOOP_BYTES else await _in_thread(make)
        except _UNREADABLE as error:
            raise _costing(errors.SlurmAnswerUnreadable(attempt, str(error)), incoming) from error
        except errors.SlurmFailure as failure:
            if incoming.is_too_large and not isinstance(failure, errors.SlurmListTooLarge):
                failure = _too_large(attempt, incoming, "more than ")
            elif incoming.count and isinstance(failure, errors.SlurmTimedOut):
                said = f"{incoming.count:,} {name} came in time, and that was not all"
                failure = errors.SlurmTimedOut(attempt, said)
            raise _costing(failure, incoming) from failure.__cause__

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


class _Taker:
    """Reads pieces off the loop, unless the first is the last one."""

    def __init__(self, incoming: Incoming[R]) -> None:
        self._incoming = incoming

    async def take(self, piece: bytes, *, is_last: bool = False) -> None:
        if is_last and not self._incoming.size_bytes and len(piece) <= ON_LOOP_BYTES:
            self._incoming.take(piece, is_last=True)
        else:
            await _in_thread(partial(self._incoming.take, piece, is_last=is_last))


def _made(made: Callable[[list[R], bytes], T], incoming: Incoming[R]) -> T:
    return decoded(incoming.rest, partial(made, incoming.records))


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work)


def _too_large(attempt: str, incoming: Incoming[R], more_than: str) -> errors.SlurmListTooLarge:
    most = f"{incoming.max_bytes / (1 << 20):g} MiB"
    return errors.SlurmListTooLarge(
        attempt,
        f"{more_than}{incoming.count:,} {incoming.name} take more memory than the {most} that a list of one "
        "cluster may take. Nothing is decided about this cluster until there are fewer",
    )


def _costing(failure: errors.SlurmFailure, incoming: Incoming[R]) -> errors.SlurmFailure:
    failure.cost_seconds = incoming.spent_seconds
    return failure


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
