"""HTTP/1.1 as bytes: how a request is written, and how an answer is read while it arrives.

For calls with one body there and one back, which is nearly all that is sent. No connections here, no clocks.
"""

import re
from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

# Stops where bytes are missing and goes on when there are more.
_Reader: TypeAlias = Generator[None, None, T]

_MAX_HEAD_BYTES = 1 << 16
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


class _Head(NamedTuple):
    version: str
    status: int
    reason: str
    headers: dict[str, str]


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
    """One answer. `feed` it what arrives; whatever comes after the answer is nobody's business."""

    def __init__(self, method: str, max_bytes: int) -> None:
        self.has_begun = False
        self._arrived = bytearray()
        self._is_over = False
        self._answer = self._read(method, max_bytes)
        next(self._answer)

    def feed(self, data: bytes) -> Answer | None:
        """The answer, when that was the rest of it. Raises NotHttp and TooLarge."""
        self.has_begun = True
        self._arrived += data
        return self._go_on()

    def end(self) -> Answer:
        """Nothing more comes. Raises EOFError when something is missing."""
        self._is_over = True
        answer = self._go_on()
        if answer is None:
            raise EOFError("the answer stops in the middle" if self.has_begun else "no answer came")
        return answer

    def _go_on(self) -> Answer | None:
        try:
            next(self._answer)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        return None

    def _read(self, method: str, max_bytes: int) -> _Reader[Answer]:
        yield  # Until there is something.
        head = _head((yield from self._until(b"\r\n\r\n")))
        while head.status < 200:  # Whatever is said before the answer is not the answer.
            head = _head((yield from self._until(b"\r\n\r\n")))
        is_last = head.version == "HTTP/1.0" or head.headers.get("connection", "").lower() == "close"
        if method == "HEAD" or head.status in (204, 304):
            body = b""
        elif head.headers.get("transfer-encoding", "").lower() == "chunked":
            body = yield from self._chunked(max_bytes)
        elif "content-length" in head.headers:
            body = yield from self._exactly(_bounded(head.headers["content-length"], 10, max_bytes))
        else:
            body, is_last = (yield from self._all(max_bytes)), True
        return Answer(head.status, head.reason, head.headers, body, is_last or bool(self._arrived))

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

    def _chunked(self, max_bytes: int) -> _Reader[bytes]:
        pieces = []
        left = max_bytes
        while True:
            line = yield from self._until(b"\r\n")
            size = _bounded(line.partition(";")[0], 16, left)
            if size == 0:
                break
            pieces.append((yield from self._exactly(size)))
            left -= size
            if (yield from self._exactly(2)) != b"\r\n":
                raise NotHttp("a chunk is longer than it says")
        while (yield from self._until(b"\r\n")):
            pass  # Headers behind the body say nothing that we ask for.
        return b"".join(pieces)

    def _all(self, max_bytes: int) -> _Reader[bytes]:
        while not self._is_over:
            _bounded(str(len(self._arrived)), 10, max_bytes)
            yield
        return (yield from self._exactly(len(self._arrived)))


def _head(text: str) -> _Head:
    first, *lines = text.split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise NotHttp(f"it begins with {first[:100]!r}")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return _Head(version, int(rest[:3]), rest[4:], headers)


def _bounded(digits: str, base: int, max_bytes: int) -> int:
    if not _LENGTH[base].fullmatch(digits.strip()):
        raise NotHttp(f"a length of {digits[:20]!r}")
    size = int(digits, base)
    if size > max_bytes:
        raise TooLarge(f"{size} bytes, {max_bytes} are allowed")
    return size
