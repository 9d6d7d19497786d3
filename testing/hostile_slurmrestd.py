"""python -m testing.hostile_slurmrestd PORT FOLDER [JOBS]: answers a ping, and every list with recorded jobs.

With a number, each list has so many jobs: 60,000 are 400 MB.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# So many are one piece, in which only their numbers change: the server is to be cheap.
AT_ONCE = 200
_PIECE = b"@@@@"


def recorded(folder: Path, name: str) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())["body"]
    return reply


def pieces(folder: Path, count: int) -> tuple[int, Callable[[], Iterator[bytes]]]:
    """How long a list of jobs is, and its pieces; without a number, it is as recorded."""
    body = recorded(folder, "jobs")
    if not count:
        whole = json.dumps(body).encode()
        return len(whole), lambda: iter([whole])
    job = next(one for one in body["jobs"] if one["job_state"] == ["RUNNING"])
    some = (json.dumps(job | {"job_id": "ID", "name": "train-ID"}, indent=2) for _ in range(AT_ONCE))
    numbered = (
        one.replace('"ID"', f"1@@@@{n:03}").replace("ID", f"1@@@@{n:03}") for n, one in enumerate(some)
    )
    piece = ", ".join(numbered).encode()
    rest = json.dumps({**body, "jobs": None})
    start, end = b'{"jobs": [', b"], " + rest.replace('"jobs": null, ', "").lstrip("{").encode()
    number = count // AT_ONCE

    def made() -> Iterator[bytes]:
        for one in range(number):
            yield (b", " if one else start) + piece.replace(_PIECE, b"%04d" % one)
        yield end

    return len(start) + number * len(piece) + 2 * (number - 1) + len(end), made


def main() -> None:
    port, folder, count = int(sys.argv[1]), Path(sys.argv[2]), int([*sys.argv, "0"][3])
    length, listed = pieces(folder, count)
    ping = json.dumps(recorded(folder, "ping")).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
                is_ping = target.endswith(b"/ping/")
                writer.write(head % (len(ping) if is_ping else length))
                for piece in (ping,) if is_ping else listed():
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
