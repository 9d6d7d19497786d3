"""python -m testing.hostile_slurmrestd PORT FOLDER [JOBS]: answers a ping, and every list with recorded jobs.

With a number, each list has so many jobs: 60,000 are 300 MB.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The same ones come again and again: the server is to be cheap.
AT_ONCE = 200


def recorded(folder: Path, name: str) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())["body"]
    return reply


def bodies(folder: Path, count: int) -> Iterator[bytes]:
    """A list of jobs in pieces; without a number, as it was recorded."""
    body = recorded(folder, "jobs")
    if not count:
        yield json.dumps(body).encode()
        return
    job = next(one for one in body["jobs"] if one["job_state"] == ["RUNNING"])
    some = (
        json.dumps(job | {"job_id": number, "name": f"train-{number}"}, indent=2) for number in range(AT_ONCE)
    )
    piece = ", ".join(some).encode()
    yield b'{"jobs": [' + piece
    for _ in range(count // AT_ONCE - 1):
        yield b", " + piece
    rest = json.dumps({**body, "jobs": None})
    yield b"], " + rest.replace('"jobs": null, ', "").lstrip("{").encode()


def main() -> None:
    port, folder, count = int(sys.argv[1]), Path(sys.argv[2]), int([*sys.argv, "0"][3])
    listed, ping = tuple(bodies(folder, count)), json.dumps(recorded(folder, "ping")).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
                pieces = (ping,) if target.endswith(b"/ping/") else listed
                writer.write(head % sum(len(piece) for piece in pieces))
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    main()
