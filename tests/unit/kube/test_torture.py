"""Answers that a fuzzer found, and worse ones: each is read or refused in our words, and the next call works."""

import asyncio

import pytest
from fake_api_server import Answer, FakeApi, thing

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.http import calls
from slurm_operator.kube import errors
from slurm_operator.manifests.kinds import POD

pytestmark = pytest.mark.both_loops

KEY = ObjectKey("ns", "a")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
NESTED = b"[" * 5000


async def ok(answer: Answer) -> None:
    await answer.json(thing("a", 7))


def sends(*pieces: bytes):
    async def send(answer: Answer) -> None:
        for piece in pieces:
            await answer.raw(piece)
            await asyncio.sleep(0.001)

    return send


def refusal(body: bytes) -> bytes:
    return b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    ("sent", "error", "said"),
    [
        pytest.param([CHUNKED, b"2\r\n{}\r\n0\x1d\r\n\r\n"], errors.Unreachable, "Invalid character in chunk size", id="a size that only Python reads"),
        pytest.param([OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "], errors.Unreachable, "Content-Length", id="two lengths"),
        pytest.param([OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"], errors.Unreachable, "Content-Length", id="a length and chunks"),
        pytest.param([refusal(NESTED)], errors.Conflict, r"\[\[\[", id="an error nested deep"),
        pytest.param([refusal(b'{"a":' * 1500)], errors.Conflict, '"a":', id="an error nested deep where nobody looks"),
        pytest.param([OK + b"Content-Length: 99999999999\r\n\r\n{"], errors.Unreachable, "are allowed", id="too large, by what it says"),
        pytest.param([CHUNKED + b"3e8\r\n" + b"x" * 1000 + b"\r\n", *[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 20], errors.Unreachable, "10000 are allowed", id="too large, by what came"),
        pytest.param([OK + b"\r\n", *[b"x" * 1000] * 20], errors.Unreachable, "10000 are allowed", id="too large, without a length"),
        pytest.param([OK + b"X: " + b"y" * 100_000], errors.Unreachable, "no end of its headers", id="a header without an end"),
        pytest.param([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nxx"], errors.Unreachable, "another protocol", id="another protocol"),
    ],
)  # fmt: skip
async def test_a_bad_answer_has_a_name_and_harms_nobody_else(
    monkeypatch: pytest.MonkeyPatch, sent: list[bytes], error: type[Exception], said: str
) -> None:
    monkeypatch.setattr(calls.CallConnection.__init__, "__defaults__", (None, 10_000))

    async with FakeApi(others=[sends(*sent), ok]) as api, api.client() as client:
        with pytest.raises(error, match=said):
            await client.get(POD, KEY)
        found = await client.get(POD, KEY)

    assert found["metadata"]["name"] == "a"


async def test_why_a_watch_is_refused_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_operator.kube.transport._MAX_REFUSAL_BYTES", 1000)
    head = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"

    async with FakeApi(others=[sends(head, *[chunk] * 9)]) as api, api.client() as client:
        with pytest.raises(errors.Unreachable, match="more than 1000 bytes"):
            async with client.follow("/api/v1/namespaces/ns/pods/a/log") as pieces:
                await anext(pieces)


async def test_a_stream_ends_when_it_is_aborted_and_forgets_its_pause() -> None:
    async def talk(answer: Answer) -> None:
        await answer.begin()
        for _ in range(100):
            await answer.chunk(b"word")
            await asyncio.sleep(0.002)

    async with FakeApi(others=[talk]) as api, api.client() as client:
        async with client.follow("/api/v1/namespaces/ns/pods/a/log") as pieces:
            heard = [await anext(pieces) for _ in range(4)]
        await asyncio.sleep(0.05)

    assert b"".join(heard).startswith(b"wordword")
