"""A server that answers with bytes recorded from a real slurmrestd, or worse. It understands nothing."""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

RECORDED = Path(__file__).parents[2] / "slurm" / "recorded"

KEY = b"k" * 32

HANG = b"hang"  # Accept the request and never answer.
DROP = b"drop"  # Accept the request and close the connection.


def recorded(name: str) -> dict[str, Any]:
    return json.loads((RECORDED / f"{name}.json").read_text())


def body_of(name: str) -> Any:
    return recorded(name)["body"]


def answer(name: str) -> bytes:
    """A recorded reply as slurmrestd sends it."""
    reply = recorded(name)
    return http(reply["status"], reply["body"])


def http(status: int, body: Any, cut: int = 0) -> bytes:
    """A reply; `cut` leaves out so many bytes of its end, while its length still counts them."""
    text = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = "text/plain" if isinstance(body, str) else "application/json"
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n"
    length = "" if status == 304 else f"Content-Length: {len(text)}\r\n"
    return (head + length + "\r\n").encode() + (text[:-cut] if cut else text)


@dataclass
class Heard:
    method: str
    path: str
    query: dict[str, str]
    token: str
    body: Any


@dataclass
class FakeSlurmrestd:
    """Each call gets the next of its replies, and the last one for ever. `{v}` in a path is any version."""

    serves: tuple[str, ...] = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
    heard: list[Heard] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    before_answer: Callable[[], None] = lambda: None
    hung: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._replies: defaultdict[str, list[bytes]] = defaultdict(list)
        self._server: asyncio.Server | None = None
        self._hanging: set[asyncio.StreamWriter] = set()
        self.on("GET /slurm/{v}/ping/", answer("ping"))

    def on(self, call: str, *replies: bytes) -> None:
        self._replies[call] = list(replies)

    def calls(self, call: str) -> list[Heard]:
        return [heard for heard in self.heard if _call(heard) == call]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._hanging:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            heard = await _request(reader)
            self.heard.append(heard)
            self.before_answer()
            reply = self._reply(heard)
            if reply == HANG:
                self._hanging.add(writer)
                self.hung.set()
                await reader.read()
            elif reply != DROP:
                writer.write(reply)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.in_flight -= 1
            writer.close()

    def _reply(self, heard: Heard) -> bytes:
        if heard.path.split("/")[2] not in self.serves:
            return answer("version-not-served")
        replies = self._replies[_call(heard)]
        if not replies:
            return answer("version-not-served")
        return replies.pop(0) if len(replies) > 1 else replies[0]


def _call(heard: Heard) -> str:
    return f"{heard.method} {re.sub(r'/v[0-9.]+/', '/{v}/', heard.path, count=1)}"


async def _request(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = first.split(" ")
    parts = urlsplit(target)
    return Heard(
        method,
        parts.path,
        dict(parse_qsl(parts.query)),
        headers.get("x-slurm-user-token", ""),
        json.loads(body) if body else None,
    )
