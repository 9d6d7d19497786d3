"""An API server at the level of bytes, for what a real one cannot be made to do."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.manifests.meta import Manifest


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def is_watch(self) -> bool:
        return self.params.get("watch") == "true"

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """The other end of one request."""

    asked: Asked
    writer: asyncio.StreamWriter

    async def json(self, body: Manifest, code: int = 200, headers: dict[str, str] | None = None) -> None:
        await self.body(json.dumps(body).encode(), code, headers)

    async def body(self, body: bytes, code: int = 200, headers: dict[str, str] | None = None) -> None:
        given = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
        await self.raw(_head(code, given) + body)

    async def refuse(self, code: int, reason: str, message: str = "", **more: Any) -> None:
        headers = more.pop("headers", None)
        await self.json(status(code, reason, message, **more), code, headers)

    async def begin(self) -> None:
        """The head of a watch; the body follows in chunks."""
        await self.raw(_head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))

    async def event(self, type_: str, thing: Manifest) -> None:
        await self.chunk(json.dumps({"type": type_, "object": thing}, ensure_ascii=False).encode() + b"\n")

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """RST instead of a goodbye."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Answer], Awaitable[None]]


async def hang(answer: Answer) -> None:
    """Accept the watch and never say anything."""
    await answer.begin()
    await asyncio.Event().wait()


@dataclass
class FakeApi:
    """Answers lists, watches and everything else from scripts; when one runs out its last line repeats."""

    lists: list[Handler] = field(default_factory=list)
    watches: list[Handler] = field(default_factory=lambda: [hang])
    others: list[Handler] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await _a_few_turns()  # Who has just connected is accepted by then.
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        await _a_few_turns()  # What was closed is gone by then.

    def client(self, **options: Any) -> Client:
        return Client(Access(server=self.url), **options)

    @property
    def open_connections(self) -> int:
        return len(self._tasks)

    def watches_asked(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.is_watch]

    def lists_asked(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == "GET" and not asked.is_watch]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                await self._next(asked)(Answer(asked, writer))
        writer.close()
        self._tasks.discard(task)

    def _next(self, asked: Asked) -> Handler:
        is_one = asked.path.rstrip("/").count("/") > 5 or asked.method != "GET"
        script = self.watches if asked.is_watch else self.others if is_one and self.others else self.lists
        script = script or self.others
        return script.pop(0) if len(script) > 1 else script[0]


async def _a_few_turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    url = urlsplit(target)
    return Asked(method, url.path, dict(parse_qsl(url.query)), headers, body)


def _head(code: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status(code: int, reason: str, message: str = "", **more: Any) -> Manifest:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    } | more


def listing(*things: Manifest, version: str = "100", next_page: str = "") -> Handler:
    """A script line: answer with this list."""

    async def answer_list(answer: Answer) -> None:
        metadata = {"resourceVersion": version} | ({"continue": next_page} if next_page else {})
        await answer.json({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": list(things)})

    return answer_list


def refusal(code: int, reason: str, message: str = "", **more: Any) -> Handler:
    """A script line: answer with this error."""

    async def refuse(answer: Answer) -> None:
        await answer.refuse(code, reason, message, **more)

    return refuse


def thing(name: str, version: int | str, *, uid: str = "", namespace: str = "ns", **more: Any) -> Manifest:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | more.pop("metadata", {})} | more
