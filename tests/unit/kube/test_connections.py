"""Connections are kept for the next call, unless what comes on them could be another call's answer."""

import asyncio

import pytest
from eventually import eventually
from fake_api_server import Answer, FakeApi, thing

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.manifests.kinds import POD

VIRTUAL_TIME = True

KEY = ObjectKey("ns", "a")


async def ok(answer: Answer) -> None:
    await answer.json(thing("a", 7))


async def hung_up(answer: Answer) -> None:
    """What a server does that was restarted in the moment in which the request was on its way."""
    answer.writer.close()


@pytest.mark.both_loops
async def test_calls_one_after_the_other_share_a_connection() -> None:
    async with FakeApi(others=[ok]) as api, api.client() as client:
        for _ in range(5):
            await client.get(POD, KEY)

    assert (len(api.asked), api.connections) == (5, 1)


@pytest.mark.both_loops
async def test_no_more_connections_than_allowed_however_many_call() -> None:
    async with FakeApi(others=[ok]) as api, api.client(connections=4) as client:
        await asyncio.gather(*(client.get(POD, KEY) for _ in range(40)))

    assert (len(api.asked), api.connections) == (40, 4)


@pytest.mark.both_loops
async def test_a_read_on_a_kept_connection_that_was_just_closed_is_asked_again() -> None:
    async with FakeApi(others=[ok, hung_up, ok]) as api, api.client() as client:
        await client.get(POD, KEY)
        again = await client.get(POD, KEY)

    assert again["metadata"]["name"] == "a"
    assert (len(api.asked), api.connections) == (3, 2)


@pytest.mark.both_loops
async def test_a_write_is_never_sent_twice() -> None:
    async with FakeApi(others=[ok, hung_up, ok]) as api, api.client() as client:
        await client.get(POD, KEY)
        with pytest.raises(errors.Unreachable, match="broke: no answer came") as caught:
            await client.create(POD, thing("b", 1))

    assert caught.value.may_have_happened
    assert [asked.method for asked in api.asked] == ["GET", "POST"]


@pytest.mark.both_loops
async def test_a_read_that_was_answered_in_part_is_not_asked_again() -> None:
    async def break_off(answer: Answer) -> None:
        await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        answer.writer.close()

    async with FakeApi(others=[ok, break_off, ok]) as api, api.client() as client:
        await client.get(POD, KEY)
        with pytest.raises(errors.Unreachable, match="stops in the middle"):
            await client.get(POD, KEY)

    assert len(api.asked) == 2


@pytest.mark.both_loops
async def test_whether_it_may_be_sent_is_asked_when_there_is_a_connection() -> None:
    turns = iter([True, True, True, False])  # Each write asks once before, and once in the moment of sending.

    async with FakeApi(others=[ok]) as api, api.client(may_write=lambda: next(turns)) as client:
        await client.create(POD, thing("a", 1))
        with pytest.raises(errors.NotLeader, match="was not sent"):
            await client.create(POD, thing("b", 1))

    assert [asked.method for asked in api.asked] == ["POST"]


@pytest.mark.both_loops
async def test_a_server_that_always_hangs_up_is_asked_once() -> None:
    async with FakeApi(others=[hung_up]) as api, api.client() as client:
        with pytest.raises(errors.Unreachable, match="no answer came"):
            await client.get(POD, KEY)

    assert len(api.asked) == 1


async def test_the_answer_to_a_call_that_was_given_up_reaches_nobody_else() -> None:
    async def late(answer: Answer) -> None:
        await asyncio.sleep(9)
        await answer.json(thing("of the first", 1))

    async with FakeApi(others=[late, ok]) as api, api.client(connections=1, deadline_seconds=5) as client:
        with pytest.raises(errors.Timeout):
            await client.get(POD, KEY)
        second = await client.get(POD, KEY)
        cancelled = asyncio.create_task(client.get(POD, KEY))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        last = await client.get(POD, KEY)

    assert second["metadata"]["name"] == last["metadata"]["name"] == "a"


async def silent(answer: Answer) -> None:
    """What a server does whose machine lost its power."""
    await asyncio.Event().wait()


async def test_a_server_that_is_gone_costs_one_call_its_deadline_and_not_one_for_each_connection() -> None:
    async with FakeApi(others=[ok, ok, ok, ok, silent, ok]) as api, api.client(deadline_seconds=5) as client:
        await asyncio.gather(*(client.get(POD, KEY) for _ in range(4)))
        await asyncio.sleep(1)
        with pytest.raises(errors.Timeout):
            await client.get(POD, KEY)
        assert api.connections == 4
        await client.get(POD, KEY)

    assert api.connections == 5


async def test_a_connection_that_has_answered_since_is_not_doubted() -> None:
    async with FakeApi(others=[ok, ok, silent, ok]) as api, api.client(deadline_seconds=5) as client:
        await asyncio.gather(*(client.get(POD, KEY) for _ in range(2)))
        unanswered = asyncio.create_task(client.get(POD, KEY))
        await asyncio.sleep(1)
        await client.get(POD, KEY)
        with pytest.raises(errors.Timeout):
            await unanswered
        await client.get(POD, KEY)

    assert api.connections == 2


@pytest.mark.both_loops
@pytest.mark.parametrize(
    ("headers", "after"),
    [
        pytest.param({"Connection": "close"}, b"", id="it says so"),
        pytest.param({}, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="it sends what nobody asked for"),
    ],
)  # fmt: skip
async def test_a_connection_that_cannot_be_trusted_is_not_kept(headers: dict[str, str], after: bytes) -> None:
    async def strange(answer: Answer) -> None:
        await answer.json(thing("a", 7), headers=headers)
        if after:
            await answer.raw(after)

    async with FakeApi(others=[strange, ok]) as api, api.client() as client:
        await client.get(POD, KEY)
        await asyncio.sleep(1)
        found = await client.get(POD, KEY)

    assert found["metadata"]["name"] == "a"
    assert api.connections == 2


@pytest.mark.both_loops
async def test_what_nobody_asked_for_ends_a_kept_connection() -> None:
    async def talkative(answer: Answer) -> None:
        await answer.json(thing("a", 7))
        await asyncio.sleep(0.2)  # By then the call is over.
        await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with FakeApi(others=[talkative, ok]) as api, api.client() as client:
        await client.get(POD, KEY)
        await asyncio.sleep(1)
        found = await client.get(POD, KEY)

    assert found["metadata"]["name"] == "a"
    assert api.connections == 2


@pytest.mark.both_loops
async def test_a_connection_whose_server_did_not_want_all_of_a_request_is_not_kept() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await over.wait()
        writer.close()

    over = asyncio.Event()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Client(Access(server=url), deadline_seconds=5) as client:
        for _ in range(2):
            with pytest.raises(errors.ApiError, match="Too Large"):
                await client.request("POST", "/large", body="x" * 20_000_000)
        over.set()


async def test_an_idle_connection_is_closed_after_a_minute() -> None:
    async with FakeApi(others=[ok]) as api, api.client() as client:
        await asyncio.gather(*(client.get(POD, KEY) for _ in range(3)))
        await asyncio.sleep(50)
        await client.get(POD, KEY)
        assert api.open_connections == 3
        await asyncio.sleep(20)
        await eventually(lambda: api.open_connections == 1)
        await asyncio.sleep(60)
        await eventually(lambda: api.open_connections == 0)
        await client.get(POD, KEY)

    assert api.connections == 4


@pytest.mark.both_loops
async def test_what_is_no_http_is_an_error_of_ours() -> None:
    async def other(answer: Answer) -> None:
        await answer.raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with FakeApi(others=[other]) as api, api.client() as client:
        with pytest.raises(errors.Unreachable, match="broke: it begins with 'SSH"):
            await client.get(POD, KEY)


@pytest.mark.both_loops
async def test_paths_and_parameters_are_written_so_that_the_server_reads_them_as_they_were() -> None:
    async with FakeApi(others=[ok]) as api, api.client() as client:
        await client.request("GET", "/api/v1/namespaces/ns/pods/é a", params={"x": "a=b&c d,é"})

    assert api.asked[0].path == "/api/v1/namespaces/ns/pods/%C3%A9%20a"
    assert api.asked[0].params == {"x": "a=b&c d,é"}
    assert api.asked[0].headers["accept-encoding"] == "identity"
