"""HTTP/1.1 as bytes: how a request is written, and how an answer is read while it arrives.

The parser is httptools (llhttp, the one of Node.js). It is strict, and stays so: what two readers could
understand differently is no answer. No connections here, no clocks.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import httptools

# What stands between two pieces of a body, or before the first: headers, sizes of chunks, trailers.
_MAX_HEAD_BYTES = 1 << 16
_WITHOUT_BODY = frozenset({204, 304})


class NotHttp(Exception):  # noqa: N818 - it says what is the case
    """What came back is no answer."""


class TooLarge(Exception):  # noqa: N818
    """The answer is larger than anybody wanted."""


class Head(NamedTuple):
    """What stands before the body. `headers` have names in lower case. The connection of one that `is_last`
    is of no use afterwards.
    """

    status: int
    reason: str
    headers: Mapping[bytes, bytes]
    is_last: bool

    @property
    def has_length(self) -> bool:
        """Its end can be told without the end of the connection."""
        return b"content-length" in self.headers or b"transfer-encoding" in self.headers


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
    """One answer. `feed` it what arrives; whatever comes after the answer is nobody's business.

    `max_bytes` is for what of the body has come and was not taken.
    """

    def __init__(self, method: str, max_bytes: int) -> None:
        self.head: Head | None = None
        self.is_whole = False
        self._is_head_only = method == "HEAD"
        self._max_bytes = max_bytes
        self._begins_with = b""
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._bytes_without_body = 0
        self._has_surplus = False
        self._parser = httptools.HttpResponseParser(self)

    @property
    def has_begun(self) -> bool:
        """Some of the answer has come."""
        return bool(self._begins_with)

    def feed(self, data: bytes) -> bool:
        """Whether that was the rest of it. Raises NotHttp and TooLarge."""
        if self.head is None:
            self._begins_with = (self._begins_with + data[:100])[:100]
        before = self._size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_whole:
                raise NotHttp(self._complaint(error)) from error
            self._has_surplus = True
        if not self.is_whole:
            self._count_without_body(len(data) if self._size == before else 0)
        return self.is_whole

    def end(self) -> None:
        """Nothing more comes: the end of some answers. Raises EOFError when something is missing."""
        if self.head is not None and not self.head.has_length:
            self.is_whole = True
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
        if not self._begins_with.startswith(b"HTTP/1.") or isinstance(
            error, httptools.HttpParserInvalidStatusError
        ):
            first = self._begins_with.partition(b"\r\n")[0].decode("latin-1")
            return f"it begins with {first!r}"
        return f"it is no HTTP: {error}"

    def _count_without_body(self, size: int) -> None:
        """Whoever sends headers for ever fills no memory with them."""
        self._bytes_without_body = self._bytes_without_body + size if size else 0
        if self._bytes_without_body > _MAX_HEAD_BYTES:
            raise NotHttp("no end of its headers")

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._has_surplus = self.is_whole

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is None:  # Headers behind the body say nothing that we ask for.
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.is_whole:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self._reason, self._headers = b"", []  # Whatever is said before the answer is not the answer.
            return
        self.head = self._read_head(status)
        self.is_whole = self._is_head_only or status in _WITHOUT_BODY
        if not self.is_whole:
            self._check_size(int(self.head.headers.get(b"content-length", b"0")))

    def _read_head(self, status: int) -> Head:
        if (version := self._parser.get_http_version()) not in ("1.0", "1.1"):
            raise NotHttp(f"it is HTTP/{version}")
        headers = {name.lower(): value for name, value in self._headers}
        coding = headers.get(b"transfer-encoding", b"chunked").lower()
        if coding != b"chunked":
            raise NotHttp(f"a body in {coding[:20].decode('latin-1')!r}, which nobody asked for")
        is_last = not self._parser.should_keep_alive()
        return Head(status, self._reason.decode("latin-1"), headers, is_last)

    def on_body(self, piece: bytes) -> None:
        if self.is_whole:
            self._has_surplus = True
            return
        self._size += len(piece)
        self._check_size(self._size)
        self._pieces.append(piece)

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise TooLarge(f"{size} bytes, {self._max_bytes} are allowed")

    def on_message_complete(self) -> None:
        self.is_whole = self.head is not None
