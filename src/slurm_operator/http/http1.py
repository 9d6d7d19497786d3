"""HTTP/1.1 as bytes: how a request is written, and how an answer is read while it arrives.

No connections here, no clocks.
"""

import re
from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

# Stops where bytes are missing and goes on when there are more.
_Reader: TypeAlias = Generator[None, None, T]

_MAX_HEAD_BYTES = 1 << 16
_WITHOUT_BODY = frozenset({204, 304})
_LENGTH = {10: re.compile("[0-9]{1,15}"), 16: re.compile("[0-9a-fA-F]{1,12}")}


class NotHttp(Exception):  # noqa: N818 - it says what is the case
    """What came back is no answer."""


class TooLarge(Exception):  # noqa: N818
    """The answer is larger than anybody wanted."""


class Answer(NamedTuple):
    """`headers` have names in lower case. After one that `is_last` the connection is of no use."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    is_last: bool


class Head(NamedTuple):
    """What stands before the body. `headers` have names in lower case."""

    version: str
    status: int
    reason: str
    headers: dict[str, str]

    @property
    def is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"


def request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Raises ValueError for a line break where none may be: it would begin a header of somebody else's."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError(f"a line break in {method} {target!r} or in one of its headers")
    return head.encode() + b"\r\n\r\n" + body


class _Arriving:
    """Bytes that come as they like, read in order."""

    def __init__(self, max_bytes: int) -> None:
        self.has_begun = False
        self._max_bytes = max_bytes
        self._arrived = bytearray()
        self._is_over = False

    def _more(self, data: bytes) -> None:
        self.has_begun = True
        self._arrived += data

    def _missing(self) -> EOFError:
        return EOFError("the answer stops in the middle" if self.has_begun else "no answer came")

    def _head(self) -> _Reader[Head]:
        head = _head((yield from self._until(b"\r\n\r\n")))
        while head.status < 200:  # Whatever is said before the answer is not the answer.
            head = _head((yield from self._until(b"\r\n\r\n")))
        return head

    def _until(self, mark: bytes) -> _Reader[str]:
        searched = 0
        while (end := self._arrived.find(mark, max(0, searched - len(mark)))) < 0:
            searched = len(self._arrived)
            if searched > _MAX_HEAD_BYTES:
                raise NotHttp("no end of its headers")
            yield
        found = self._arrived[:end].decode("latin-1")
        del self._arrived[: end + len(mark)]
        return found

    def _exactly(self, size: int) -> _Reader[bytes]:
        while len(self._arrived) < size:
            yield
        found = bytes(self._arrived[:size])
        del self._arrived[:size]
        return found

    def _chunk(self, max_bytes: int) -> _Reader[bytes]:
        """The next one. Empty is the last, and what stands behind it has been read."""
        line = yield from self._until(b"\r\n")
        size = _bounded(line.partition(";")[0], 16, max_bytes)
        if size == 0:
            while (yield from self._until(b"\r\n")):
                pass  # Headers behind the body say nothing that we ask for.
            return b""
        chunk = yield from self._exactly(size)
        if (yield from self._exactly(2)) != b"\r\n":
            raise NotHttp("a chunk is longer than it says")
        return chunk


class Reading(_Arriving):
    """One answer. `feed` it what arrives; whatever comes after the answer is nobody's business."""

    def __init__(self, method: str, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._answer = self._read(method)
        next(self._answer)

    def feed(self, data: bytes) -> Answer | None:
        """The answer, when that was the rest of it. Raises NotHttp and TooLarge."""
        self._more(data)
        return self._go_on()

    def end(self) -> Answer:
        """Nothing more comes. Raises EOFError when something is missing."""
        self._is_over = True
        answer = self._go_on()
        if answer is None:
            raise self._missing()
        return answer

    def _go_on(self) -> Answer | None:
        try:
            next(self._answer)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        return None

    def _read(self, method: str) -> _Reader[Answer]:
        yield  # Until there is something.
        head = yield from self._head()
        is_last = head.version == "HTTP/1.0" or head.headers.get("connection", "").lower() == "close"
        if method == "HEAD" or head.status in _WITHOUT_BODY:
            body = b""
        elif head.is_chunked:
            body = yield from self._chunks()
        elif "content-length" in head.headers:
            body = yield from self._exactly(_bounded(head.headers["content-length"], 10, self._max_bytes))
        else:
            body, is_last = (yield from self._all()), True
        return Answer(head.status, head.reason, head.headers, body, is_last or bool(self._arrived))

    def _chunks(self) -> _Reader[bytes]:
        pieces = []
        left = self._max_bytes
        while chunk := (yield from self._chunk(left)):
            pieces.append(chunk)
            left -= len(chunk)
        return b"".join(pieces)

    def _all(self) -> _Reader[bytes]:
        while not self._is_over:
            _bounded(str(len(self._arrived)), 10, self._max_bytes)
            yield
        return (yield from self._exactly(len(self._arrived)))


class Following(_Arriving):
    """One answer whose body is passed on while it arrives: `head` when it is there, then piece by piece.

    Of a body in chunks every piece is whole chunks. `max_bytes` is for one of them.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self.head: Head | None = None
        self.is_whole = False
        self._pieces: list[bytes] = []
        self._body = self._follow()
        next(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """What of the body is in it. Raises NotHttp and TooLarge."""
        self._more(data)
        return self._go_on()

    def end(self) -> list[bytes]:
        """Nothing more comes. Raises EOFError when something is missing."""
        self._is_over = True
        pieces = self._go_on()
        if not self.is_whole:
            raise self._missing()
        return pieces

    def _go_on(self) -> list[bytes]:
        next(self._body, None)
        pieces, self._pieces = self._pieces, []
        return pieces

    def _follow(self) -> _Reader[None]:
        yield  # Until there is something.
        self.head = yield from self._head()
        if self.head.is_chunked:
            while chunk := (yield from self._chunk(self._max_bytes)):
                self._pieces.append(chunk)
        elif "content-length" in self.head.headers:
            yield from self._pass_on(_bounded(self.head.headers["content-length"], 10, self._max_bytes))
        elif self.head.status not in _WITHOUT_BODY:
            yield from self._pass_on(None)
        self.is_whole = True

    def _pass_on(self, left: int | None) -> _Reader[None]:
        """So many bytes; without a number until the connection ends."""
        while left != 0:
            if self._arrived:
                piece = bytes(self._arrived[:left])
                del self._arrived[: len(piece)]
                self._pieces.append(piece)
                left = left - len(piece) if left is not None else None
            elif left is None and self._is_over:
                return
            else:
                yield


def _head(text: str) -> Head:
    first, *lines = text.split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise NotHttp(f"it begins with {first[:100]!r}")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Head(version, int(rest[:3]), rest[4:], headers)


def _bounded(digits: str, base: int, max_bytes: int) -> int:
    if not _LENGTH[base].fullmatch(digits.strip()):
        raise NotHttp(f"a length of {digits[:20]!r}")
    size = int(digits, base)
    if size > max_bytes:
        raise TooLarge(f"{size} bytes, {max_bytes} are allowed")
    return size
