"""The floor: a client that makes only the calls that cannot be avoided, as fast as it can.

Run as a program: `python -m bench.bare URL CA CERTIFICATE KEY FILE CONNECTIONS` watches the namespace of the
pods that are in FILE (each line is a path, a tab and JSON), posts them, and then writes a note on each. It
decodes nothing. Prints what it took: when the posting began and ended, and CPU for all of it.
"""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

NOTE = b'{"metadata":{"annotations":{"bench/noted":"true"}}}'
QUIET_SECONDS = 1.0  # So long after the last event no more are waited for.


class Bare:
    def __init__(self, session: aiohttp.ClientSession, server: str, tls: ssl.SSLContext) -> None:
        self._session, self._server, self._tls = session, server, tls
        self.events = 0

    async def post_all(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            path, body = line.split(b"\t", 1)
            await self._send("POST", path.decode(), body, "application/json")

    async def note_all(self, paths: Iterator[str]) -> None:
        for path in paths:
            await self._send("PATCH", path, NOTE, "application/merge-patch+json")

    async def _send(self, method: str, path: str, body: bytes, type_: str) -> None:
        async with self._session.request(
            method, self._server + path, data=body, ssl=self._tls, headers={"Content-Type": type_}
        ) as response:
            response.raise_for_status()
            await response.read()

    async def watch(self, path: str) -> None:
        """Counts the lines."""
        limits = aiohttp.ClientTimeout(total=None)
        url = f"{self._server}{path}?watch=true"
        async with self._session.get(url, ssl=self._tls, timeout=limits) as response:
            async for chunk in response.content.iter_any():
                self.events += chunk.count(b"\n")

    async def quiet(self) -> None:
        """Until no event has come for a while."""
        seen = -1
        while seen != self.events:
            seen = self.events
            await asyncio.sleep(QUIET_SECONDS)


async def measured(
    server: str, tls: ssl.SSLContext, lines: list[bytes], connections: int
) -> dict[str, float]:
    pods = lines[0].split(b"\t", 1)[0].decode()
    names = [json.loads(line.split(b"\t", 1)[1])["metadata"]["name"] for line in lines]
    posts, notes = iter(lines), iter([f"{pods}/{name}" for name in names])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections + 1)) as session:
        bare = Bare(session, server, tls)
        began_cpu = time.process_time()
        watching = asyncio.create_task(bare.watch(pods))
        began = time.time()
        await asyncio.gather(*(bare.post_all(posts) for _ in range(connections)))
        ended = time.time()
        await asyncio.gather(*(bare.note_all(notes) for _ in range(connections)))
        await bare.quiet()
        cpu_s = time.process_time() - began_cpu
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return {"began": began, "ended": ended, "cpu": cpu_s, "events": bare.events}


def main(url: str, ca: str, certificate: str, key: str, file: str, connections: str) -> None:
    tls = ssl.create_default_context(cafile=ca)
    tls.load_cert_chain(certificate, key)
    print(json.dumps(asyncio.run(measured(url, tls, Path(file).read_bytes().splitlines(), int(connections)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
