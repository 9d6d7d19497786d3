"""The floor: a client that makes only the calls that cannot be avoided, as fast as it can.

Run as a program: `python -m bench.bare URL CA CERTIFICATE KEY FILE CONNECTIONS` posts what is in FILE: each
line is a path, a tab and JSON. Prints what it took.
"""

import asyncio
import json
import ssl
import sys
import time
from pathlib import Path

import aiohttp


async def post_all(
    server: str, tls: ssl.SSLContext, lines: list[bytes], connections: int
) -> dict[str, float]:
    waiting = iter([line.split(b"\t", 1) for line in lines])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def post() -> None:
            for path, body in waiting:
                async with session.post(
                    server + path.decode(), data=body, ssl=tls, headers={"Content-Type": "application/json"}
                ) as response:
                    response.raise_for_status()
                    await response.read()

        began, began_cpu = time.time(), time.process_time()
        await asyncio.gather(*(post() for _ in range(connections)))
    return {"began": began, "ended": time.time(), "cpu": time.process_time() - began_cpu}


def main(url: str, ca: str, certificate: str, key: str, file: str, connections: str) -> None:
    tls = ssl.create_default_context(cafile=ca)
    tls.load_cert_chain(certificate, key)
    print(json.dumps(asyncio.run(post_all(url, tls, Path(file).read_bytes().splitlines(), int(connections)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
