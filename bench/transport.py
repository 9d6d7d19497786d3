"""CPU of the transport alone, for one small call and one event of a watch, against that of another commit.

`python -m bench.transport REF` runs a server that sends bytes made beforehand, over TLS, and clients of both
commits by turns, each a process of its own. Whatever else the machine does, both feel.
"""

import asyncio
import json
import os
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bench.kube_server import pod_template
from bench.refs import ROOT, checked_out
from bench.rows import Row

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
IN_FLIGHT = 32
POSTS = 6000
EVENTS = 20_000
# So many events come together, then there is a pause: pods come in crowds.
BURST = 20
PAUSE_SECONDS = 0.002

POD = pod_template()
HEAD = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 1b5f5d4e-1a8e-4f43-a0f1-3a04ab33ad0f\r\n"
    b"Cache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 2f6c6b87-3a69-4d9a-8f5e-4f7c7d3f2f41\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 5f1e3d6a-9d8b-4a37-8d7e-0b1a2c3d4e5f\r\n"
    b"Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
)
SMALL = b"s" * 500
CREATED = {body: HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in (SMALL, POD)}
_LINE = b'{"type":"MODIFIED","object":' + POD + b"}\n"
EVENT = b"%x\r\n%s\r\n" % (len(_LINE), _LINE)


class Server(asyncio.Protocol):
    """Answers every request with the same bytes, as fast as it can: the client is what is measured."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._arrived = b""

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if self._arrived.startswith(b"GET"):
            self._arrived = b""
            self._watching = asyncio.create_task(self._watch())
        for body, answer in CREATED.items():
            if self._arrived.endswith(body):  # One call at a time on each connection.
                self._arrived = b""
                self._transport.write(answer)

    def pause_writing(self) -> None:
        self._is_full = asyncio.Event()

    def resume_writing(self) -> None:
        self._is_full.set()

    async def _watch(self) -> None:
        self._is_full = asyncio.Event()
        self._is_full.set()
        self._transport.write(HEAD.replace(b"201 Created", b"200 OK") + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(EVENTS // BURST):
            for _ in range(BURST):
                self._transport.write(EVENT)
            await self._is_full.wait()
            await asyncio.sleep(PAUSE_SECONDS)
        self._transport.write(b"0\r\n\r\n")


async def serve(certificate: str, key: str) -> int:
    """Prints its port and serves until it is killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
    return 0


def use(url: str, ca: str) -> None:
    """The client. Imports what PYTHONPATH leads to, on the loop that the operator of that commit has."""
    try:
        from slurm_operator.http.loops import run
    except ImportError:
        from slurm_operator.runtime.loop.gathering import run  # type: ignore[no-redef]
    run(_use(url, ca))


async def _use(url: str, ca: str) -> int:
    from slurm_operator.http.pool import Connections

    tls = ssl.create_default_context(cafile=ca)
    host, _, port = url.removeprefix("https://").partition(":")
    address = (host, int(port), host)
    connections = Connections(_address(*address))
    found: dict[str, float] = {}
    for name, body in (("small", SMALL), ("pod", POD)):
        await _posts(connections, tls, body, IN_FLIGHT * 10)  # Connections are made by then.
        began, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        await _posts(connections, tls, body, POSTS)
        found |= _cpu(name, cpu, POSTS)
        found[f"{name}_a_second"] = POSTS / (time.monotonic() - began)
    connections.close()
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    events = await _watched(_address(*address), tls)
    found |= _cpu("event", cpu, EVENTS)
    assert events == EVENTS, f"{events} events came of {EVENTS}"
    print(json.dumps(found))
    return 0


def _cpu(name: str, before: resource.struct_rusage, count: int) -> dict[str, float]:
    """Of each, all of it and what is not the kernel's, which does the same for everybody."""
    now = resource.getrusage(resource.RUSAGE_SELF)
    user, system = now.ru_utime - before.ru_utime, now.ru_stime - before.ru_stime
    return {f"{name}_us": (user + system) / count * 1e6, f"{name}_user_us": user / count * 1e6}


async def _posts(connections: Any, tls: ssl.SSLContext, body: bytes, count: int) -> None:
    left = iter(range(count))
    message = b"POST /api/v1/pods HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def send() -> None:
        for _ in left:
            answer = await _exchange(connections, message, tls)
            assert len(answer.body) == len(body)

    await asyncio.gather(*(send() for _ in range(IN_FLIGHT)))


async def _watched(address: Any, tls: ssl.SSLContext) -> int:
    stream = await _stream(address, tls)
    await stream.begin(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: here\r\n\r\n", 60)
    found = 0
    async for piece in stream.pieces(60):
        found += piece.count(b"\n")
    stream.abort()
    return found


# What is called differently in commits before httptools.


async def _exchange(connections: Any, message: bytes, tls: ssl.SSLContext) -> Any:
    """A call with a deadline."""
    if connections.exchange.__code__.co_argcount == 6:
        ends = asyncio.get_running_loop().time() + 60
        return await connections.exchange("POST", message, tls, lambda: None, ends)
    async with asyncio.timeout(60):
        return await connections.exchange("POST", message, tls, lambda: None)


def _address(host: str, port: int, name: str) -> Any:
    try:
        from slurm_operator.http.connection import Address
    except ImportError:
        from slurm_operator.http.links import Address  # type: ignore[no-redef]
    return Address(host, port, name)


async def _stream(address: Any, tls: ssl.SSLContext) -> Any:
    from slurm_operator.http.streams import Stream

    try:
        from slurm_operator.http.connection import connect
    except ImportError:
        from slurm_operator.http.links import connected

        return Stream(await connected(address, tls))
    return await connect(address, tls, Stream)


@contextmanager
def _served(place: Path) -> Iterator[tuple[str, Path]]:
    from slurm_local.kubernetes.commands import Certificates

    pki = Certificates(place / "pki", addresses=())
    files = (str(pki.api_server.certificate), str(pki.api_server.key))
    argv = [sys.executable, "-m", "bench.transport", "serve", *files]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield f"https://127.0.0.1:{int(process.stdout.readline())}", pki.ca
        finally:
            process.terminate()


def _measured(tree: Path, url: str, ca: Path) -> dict[str, float]:
    """This file by the code of that tree, which may be older than this file."""
    argv = [sys.executable, "-m", "bench.transport", "use", url, str(ca)]
    env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{ROOT}"}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(ref: str) -> list[Row]:
    """Medians, and the median of the ratios of each round."""
    before: list[dict[str, float]] = []
    now: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as place, checked_out(ref) as old, _served(Path(place)) as (url, ca):
        for number in range(ROUNDS):
            turns = [(old, before), (ROOT, now)]
            for tree, found in turns if number % 2 else reversed(turns):
                found.append(_measured(tree, url, ca))
    return [
        _row(name, unit, [one[key] for one in before], [one[key] for one in now], ref)
        for name, key, unit in (
            ("one POST of half a KB, answered by as much: CPU", "small_us", "µs"),
            ("one POST of a pod of 8 KB, answered by as much: CPU", "pod_us", "µs"),
            ("one event of 8 KB of a watch: CPU", "event_us", "µs"),
            ("the small POST: CPU outside the kernel", "small_user_us", "µs"),
            ("the POST of a pod: CPU outside the kernel", "pod_user_us", "µs"),
            ("the event: CPU outside the kernel", "event_user_us", "µs"),
            ("POSTs of half a KB, 32 at a time", "small_a_second", "a second"),
        )
    ]


def _row(name: str, unit: str, before: list[float], now: list[float], ref: str) -> Row:
    ratio = statistics.median(new / old for new, old in zip(now, before, strict=True))
    said = f"{name} (before {statistics.median(before):,.4g}, now {min(now):,.4g} to {max(now):,.4g})"
    return Row(said, statistics.median(now), unit, f"that of {ref}", ratio)


def main(role: str, *rest: str) -> None:
    if role == "serve":
        from slurm_operator.http import loops

        loops.run(serve(*rest))
    elif role == "use":
        use(*rest)
    else:
        for row in measure(role):
            print(f"{row.name}: {row.value:,.4g} {row.unit}, {row.ratio:.2f} of {row.ratio_to}")


if __name__ == "__main__":
    main(*sys.argv[1:])
