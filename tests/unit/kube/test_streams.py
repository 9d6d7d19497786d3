"""A watch tells its first event at once, and of many it gathers those that come together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from fake_api_server import Answer, FakeApi

from slurm_operator.http.streams import GATHERED_SECONDS
from slurm_operator.kube import errors
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.kinds import POD

VIRTUAL_TIME = True

ALL = Selection(kind=POD, namespace="ns")


def watching(client: Client) -> AbstractAsyncContextManager[AsyncIterator[list[bytes]]]:
    return client.watch(ALL, resource_version="1", timeout_seconds=60, idle_seconds=30)


async def batches(api: FakeApi) -> list[list[bytes]]:
    async with api, api.client() as client, watching(client) as found:
        return [lines async for lines in found]


async def test_the_first_event_is_told_at_once_and_of_many_those_that_come_together() -> None:
    async def thousand(answer: Answer) -> None:
        await answer.begin()
        for number in range(1000):
            await answer.chunk(b"%d\n" % number)
            await asyncio.sleep(GATHERED_SECONDS / 10)
        await answer.end()

    found = await batches(FakeApi(watches=[thousand]))

    assert [line for lines in found for line in lines] == [b"%d" % number for number in range(1000)]
    assert found[0] == [b"0"]
    assert len(found) < 250


async def test_an_event_now_and_then_is_not_waited_for() -> None:
    clock = asyncio.get_running_loop().time
    told: list[float] = []
    heard: list[float] = []

    async def ten(answer: Answer) -> None:
        await answer.begin()
        for _ in range(10):
            await asyncio.sleep(3 * GATHERED_SECONDS)
            told.append(clock())
            await answer.chunk(b"event\n")
        await answer.end()

    api = FakeApi(watches=[ten])
    async with api, api.client() as client, watching(client) as found:
        async for lines in found:
            heard += [clock() for _ in lines]

    assert heard == told


@pytest.mark.both_loops
@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param("Transfer-Encoding: chunked", b"6\r\nwhole\n\r\n6\r\nhal", id="in a chunk"),
        pytest.param("Transfer-Encoding: chunked", b"6\r\nwhole\n\r\n", id="between two"),
        pytest.param("Content-Length: 9", b"whole\n", id="of a length"),
    ],
)  # fmt: skip
async def test_what_came_before_a_watch_broke_counts(head: str, body: bytes) -> None:
    async def break_off(answer: Answer) -> None:
        await answer.raw(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)
        answer.writer.close()

    found: list[bytes] = []

    async def follow() -> None:
        api = FakeApi(watches=[break_off])
        async with api, api.client() as client, watching(client) as lines:
            async for batch in lines:
                found.extend(batch)

    with pytest.raises(errors.Unreachable, match="stops in the middle"):
        await follow()
    assert found == [b"whole"]


@pytest.mark.both_loops
async def test_what_is_no_http_ends_a_watch() -> None:
    async def nonsense(answer: Answer) -> None:
        await answer.begin()
        await answer.raw(b"xyz\r\n")
        await asyncio.Event().wait()

    with pytest.raises(errors.Unreachable, match="Invalid character in chunk size"):
        await batches(FakeApi(watches=[nonsense]))


@pytest.mark.both_loops
@pytest.mark.parametrize(
    "head",
    [
        pytest.param("Content-Length: 12", id="of a length"),
        pytest.param("Connection: close", id="until it is closed"),
    ],
)
async def test_a_body_may_end_in_other_ways(head: str) -> None:
    async def whole(answer: Answer) -> None:
        await answer.raw(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\none\n".encode())
        await asyncio.sleep(0.01)
        await answer.raw(b"two\nsix\n")
        answer.writer.close()

    found = await batches(FakeApi(watches=[whole]))

    assert [line for lines in found for line in lines] == [b"one", b"two", b"six"]


@pytest.mark.both_loops
async def test_a_watch_ends_with_the_client() -> None:
    async def hang(answer: Answer) -> None:
        await answer.begin()
        await asyncio.Event().wait()

    async with FakeApi(watches=[hang]) as api:
        async with api.client() as client:
            watch = watching(client)
            waiting = asyncio.create_task(anext(await watch.__aenter__()))
            await asyncio.sleep(1)
        with pytest.raises(EOFError):
            await waiting
        await watch.__aexit__(None, None, None)
