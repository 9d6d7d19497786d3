"""A program between slurmrestd and its callers that spoils answers: `proxy.py slow|truncated|errors|expired`.

It reads an expired token from its standard input, since arguments can be seen by everybody. It needs nothing
but the standard library: it runs in the network of slurmrestd's pod, with this machine's Python.
"""

import asyncio
import re
import sys
from contextlib import suppress

PORT = 16820
_SLURMRESTD = ("127.0.0.1", 6820)
_SLOW_S = 4.0
_TOKEN = re.compile(rb"(?i)(x-slurm-user-token: |authorization: bearer )[^\r\n]*")
_SORRY = (
    b'{"errors": [{"error_number": -1, "error": "Unspecified error", "source": "chaos"}], "warnings": []}'
)
_ERROR = (
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SORRY), _SORRY)
)


class Proxy:
    def __init__(self, mode: str, expired_token: bytes) -> None:
        self._mode, self._expired = mode, expired_token

    def request(self, sent: bytes) -> bytes:
        """What slurmrestd gets to read instead."""
        if self._mode != "expired":
            return sent
        return _TOKEN.sub(lambda header: header[1] + self._expired, sent)

    def answer(self, given: bytes) -> bytes:
        """What the caller gets to read instead; a shorter one is its last."""
        return given[: len(given) // 2] if self._mode == "truncated" else given

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a caller."""
        with suppress(OSError):
            if self._mode == "errors":
                await reader.read(65536)
                writer.write(_ERROR)
                await writer.drain()
            else:
                await self._between(reader, writer)
        writer.close()

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*_SLURMRESTD)
        forth = asyncio.ensure_future(self._forth(reader, far_writer))
        while given := await far_reader.read(65536):
            if self._mode == "slow":
                await asyncio.sleep(_SLOW_S)
            kept = self.answer(given)
            writer.write(kept)
            await writer.drain()
            if len(kept) < len(given):
                break
        forth.cancel()
        far_writer.close()

    async def _forth(self, reader: asyncio.StreamReader, far_writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while sent := await reader.read(65536):
                far_writer.write(self.request(sent))
                await far_writer.drain()
            far_writer.close()


async def main() -> None:
    proxy = Proxy(sys.argv[1], sys.stdin.readline().strip().encode())
    server = await asyncio.start_server(proxy.serve, "0.0.0.0", PORT)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
