"""HTTP/1.1 as bytes: how a request is written, and how an answer is read while it arrives.

The parser is httptools (llhttp, the one of Node.js). It is strict, and stays so: what two readers could
understand differently is no answer. No connections here, no clocks.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

import httptools

# What stands between two pieces of a body, or before the first: headers, sizes of chunks, trailers.
_MAX_HEAD_BYTES = 1 << 16
_LINE_END = b"\r\n"
_VERSIONS = frozenset({"1.0", "1.1"})


class NotHttp(Exception):  # noqa: N818 - it says what is the case
    """What came back is no answer."""


class TooLarge(Exception):  # noqa: N818
    """The answer is larger than anybody wanted."""


class Head(NamedTuple):
    """What stands before the body. The connection of one that `is_last` is of no use afterwards.

    Few ask for the headers, so they are read when somebody does.
    """

    status: int
    is_last: bool
    arrived: bytes

    @property
    def reason(self) -> str:
        return _Headers(self.arrived).reason.decode("latin-1")

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """Names are in lower case."""
        return {name.lower(): value for name, value in _Headers(self.arrived).found}


class Answer(NamedTuple):
    """A whole one."""

    head: Head
    body: bytes
    is_last: bool

    @property
    def status(self) -> int:
        return self.head.status


def request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Raises ValueError for a line break where none may be: it would begin a header of somebody else's."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError(f"a line break in {method} {target!r} or in one of its headers")
    return head.encode() + b"\r\n\r\n" + body


class Reading:
    """One answer, and when that is whole the next. `feed` it what arrives; whatever comes after the answer is
    nobody's business. `max_bytes` is for what of the body has come and was not taken.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parser = httptools.HttpResponseParser(self)
        self.begin("GET")

    def begin(self, method: str) -> None:
        """Expect the answer to such a request."""
        self.head: Head | None = None
        self.is_whole = False
        self._is_head_only = method == "HEAD"
        self._arrived = b""
        self._pieces: list[bytes] = []
        self._size = 0
        self._bytes_without_body = 0
        self._has_surplus = False

    @property
    def has_begun(self) -> bool:
        """Some of the answer has come."""
        return bool(self._arrived)

    @property
    def waiting_bytes(self) -> int:
        """So much of the body has come and was not taken."""
        return self._size

    def feed(self, data: bytes) -> bool:
        """Whether that was the rest of it. Raises NotHttp and TooLarge."""
        had_head, before = self.head is not None, self._size
        if not had_head:
            self._arrived = self._arrived + data if self._arrived else data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_whole:
                raise NotHttp(self._complaint(error)) from error
            self._has_surplus = True
        if self.is_whole:
            return True
        if self.head is not None and not had_head:
            self._check_size(int(self.head.headers.get(b"content-length", b"0")))
        self._count_without_body(len(data) if self._size == before else 0)
        return False

    def end(self) -> None:
        """Nothing more comes: the end of some answers. Raises EOFError when something is missing."""
        if self.head is not None and not self.is_whole:
            self.is_whole = not _has_length(self.head.headers)
        if not self.is_whole:
            raise EOFError("the answer stops in the middle" if self.has_begun else "no answer came")

    def taken(self) -> bytes:
        """What of the body has come since the last time."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def answer(self) -> Answer:
        """When it is whole."""
        assert self.head is not None
        return Answer(self.head, self.taken(), self.head.is_last or self._has_surplus)

    def _complaint(self, error: Exception) -> str:
        if isinstance(error, httptools.HttpParserUpgrade):
            return "it goes on in another protocol"
        is_odd = isinstance(error, httptools.HttpParserInvalidStatusError)
        if is_odd or not self._arrived.startswith(b"HTTP/1."):
            return f"it begins with {self._arrived[:100].partition(_LINE_END)[0].decode('latin-1')!r}"
        return f"it is no HTTP: {error}"

    def _count_without_body(self, size: int) -> None:
        """Whoever sends headers for ever fills no memory with them."""
        self._bytes_without_body = self._bytes_without_body + size if size else 0
        if self._bytes_without_body > _MAX_HEAD_BYTES:
            raise NotHttp("no end of its headers")

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise TooLarge(f"{size} bytes, {self._max_bytes} are allowed")

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._has_surplus = self.is_whole

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.is_whole or status < 200:
            return  # Whatever is said before or behind the answer is not the answer.
        if (version := self._parser.get_http_version()) not in _VERSIONS:
            raise NotHttp(f"it is HTTP/{version}")
        # Whether a body follows an answer to HEAD is for the server to know: nothing can follow that.
        self.head = Head(status, self._is_head_only or not self._parser.should_keep_alive(), self._arrived)
        self.is_whole = self._is_head_only

    def on_body(self, piece: bytes) -> None:
        if not self.is_whole:
            self._size += len(piece)
            self._check_size(self._size)
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self.is_whole = self.head is not None


class _Headers:
    """Those of the answer whose head is among these bytes, without what was said before it."""

    def __init__(self, arrived: bytes) -> None:
        self.reason = b""
        self.found: list[tuple[bytes, bytes]] = []
        self._is_done = False
        self._parser = httptools.HttpResponseParser(self)
        with suppress(httptools.HttpParserError):  # Behind the head, which has been read once before.
            self._parser.feed_data(arrived)

    def on_status(self, reason: bytes) -> None:
        if not self._is_done:
            self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_done:
            self.found.append((name, value))

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() >= 200:
            self._is_done = True
        elif not self._is_done:
            self.reason, self.found = b"", []


def _has_length(headers: Mapping[bytes, bytes]) -> bool:
    """Its end can be told without the end of the connection."""
    is_chunked = headers.get(b"transfer-encoding", b"").lower().endswith(b"chunked")
    return is_chunked or b"content-length" in headers
