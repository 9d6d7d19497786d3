"""What slurmrestd sends where it does not keep to HTTP closely, byte for byte: one answer is read of it."""

import asyncio
import json
import re

import pytest
from fake_slurmrestd import RECORDED

from slurm_operator.http.messages import Answer, Reading
from slurm_operator.slurmrest.exchange import exchange

pytestmark = pytest.mark.both_loops

BYTES = {path.stem: path.read_bytes() for path in sorted((RECORDED / "bytes").glob("*.http"))}
ODD = {"asked-to-close", "no-database", "no-route", "no-token", "ping", "unchanged"}


def test_they_are_all_there() -> None:
    assert BYTES.keys() == ODD


def status_in(sent: bytes) -> int:
    found = re.match(rb"HTTP/1\.[01] (\d{3})", sent)
    assert found is not None
    return int(found[1])


def checked(answer: Answer, sent: bytes) -> None:
    assert answer.status == status_in(sent)
    if answer.body.startswith(b"{"):
        json.loads(answer.body)
    assert answer.body in sent


@pytest.mark.parametrize("name", BYTES)
def test_the_first_answer_is_read_however_it_arrives(name: str) -> None:
    sent = BYTES[name]
    for size in (1, 7, 1000, len(sent)):
        reading = Reading(1 << 20)
        pieces = (sent[start : start + size] for start in range(0, len(sent), size))
        if not any(reading.feed(piece) for piece in pieces):
            reading.end()
        checked(reading.answer(), sent)


@pytest.mark.parametrize("name", BYTES)
async def test_a_call_gets_the_first_answer(name: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(BYTES[name])
        await writer.drain()
        await reader.read()  # slurmrestd does not close.
        writer.close()
        is_over.set()

    is_over = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.timeout(20):
        reply = await exchange(url, "GET", "/slurm/v0.0.45/ping/", {}, b"", 1 << 20)
        await is_over.wait()

    assert reply.status == status_in(BYTES[name])
