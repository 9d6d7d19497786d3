"""A slurmrestd that belongs to somebody else, and means harm: it costs its own cluster, and nobody else."""

import asyncio
import json
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_slurmrestd import KEY, FakeSlurmrestd, answer, body_of, http
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.answers.values import hosts
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.list_split import MAX_ENTRY_BYTES, ListSplit
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import COST_FACTOR, SlurmPoller
from testing.virtual_time import FakeClock

JOBS = "GET /slurm/{v}/jobs/"
NODES = "GET /slurm/{v}/nodes/"
JOB = next(job for job in body_of("jobs")["jobs"] if job["job_state"] == ["RUNNING"])


def jobs(count: int, **fields: Any) -> dict[str, Any]:
    rows = [JOB | {"job_id": number + 1, "name": f"train-{number}", **fields} for number in range(count)]
    return {**body_of("jobs"), "jobs": rows}


def pretty(body: object) -> str:
    """As slurmrestd writes it."""
    return json.dumps(body, indent=2)


@asynccontextmanager
async def hostile(pieces: Callable[[], Iterator[bytes]], pause_s: float = 0.0) -> AsyncIterator[str]:
    """A server that answers a ping, and everything else with these bytes, one piece after the other."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
            for piece in iter([answer("ping")]) if target.endswith(b"/ping/") else pieces():
                writer.write(piece)
                await writer.drain()
                if pause_s:
                    await asyncio.sleep(pause_s)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()


def endless(first: bytes, again: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n" + first
        while True:
            yield again

    return pieces


ONE_JOB = json.dumps(JOB).encode()
ENDLESS = {
    "jobs": (b'{"jobs":[' + ONE_JOB, b"," + ONE_JOB),
    "one job": (b'{"jobs":[{"job_id":1,"name":"', b"x" * 65536),
    "objects in objects": (b'{"jobs":[', b'{"a":' * 10_000),
    "arrays in arrays": (b'{"jobs":[{"a":', b"[" * 65536),
    "strings in front of the list": (b'{"meta":"', b"x" * 65536),
    "keys in front of the list": (b'{"a":1', b',"a":1' * 10_000),
    "what follows the list": (b'{"jobs":[],"a":[1', b",1" * 30_000),
    "white space": (b'{"jobs":[', b" " * 65536),
    "white space in front": (b"{", b" " * 65536),
    "commas": (b'{"jobs":[{"job_id":1}', b"," * 65536),
    "quotes": (b'{"jobs":[{"a":', b'"",' * 20_000),
    "backslashes": (b'{"jobs":[{"a":"', b"\\" * 65536),
    "short arrays as jobs": (b'{"jobs":[[]', b",[]" * 20_000),
    "false ends of jobs": (b'{"jobs":[{"a":[{}', b",{}" * 20_000),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_never_ends_is_given_up_and_little_of_it_kept(what: str, clock: FakeClock) -> None:
    async with hostile(endless(*ENDLESS[what])) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now, deadline_s=0.5, max_list_bytes=1 << 19)
        tracemalloc.start()
        try:
            with pytest.raises(errors.SlurmFailure) as raised:
                await client.read.jobs()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert isinstance(
        raised.value, errors.SlurmAnswerUnreadable | errors.SlurmListTooLarge | errors.SlurmTimedOut
    )
    assert peak < 5 * MAX_ENTRY_BYTES


async def test_a_list_beyond_its_bound_is_named_with_the_number_of_its_jobs(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    slurmrestd.on(JOBS, http(200, pretty(jobs(700))))

    with pytest.raises(errors.SlurmListTooLarge) as raised:
        await connect(max_list_bytes=200_000).read.jobs()

    assert str(raised.value).startswith(
        "too much came from Slurm to read the jobs: 700 jobs take more memory than the 0.190735 MiB"
    )
    assert raised.value.cost_seconds > 0


async def test_a_list_that_goes_on_beyond_its_bound_is_still_counted(clock: FakeClock) -> None:
    async with hostile(endless(*ENDLESS["jobs"])) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now, deadline_s=0.5, max_list_bytes=1 << 19)
        with pytest.raises(errors.SlurmListTooLarge, match=r"more than [1-9][\d,]+ jobs take more memory"):
            await client.read.jobs()


async def test_a_list_that_does_not_come_in_time_says_how_much_did(clock: FakeClock) -> None:
    most = pretty(jobs(100)).encode()[:-100_000]

    def trickle() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n" + most
        while True:
            yield b" "

    async with hostile(trickle, pause_s=0.02) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now, deadline_s=1.5)
        with pytest.raises(errors.SlurmTimedOut, match=r"\d+ jobs came in time, and that was not all"):
            await client.read.jobs()


@pytest.mark.parametrize(
    ("length", "error"),
    [
        pytest.param(b"99999999999999", errors.SlurmAnswerUnreadable, id="huge"),
        pytest.param(b"9" * 400, errors.SlurmAnswerUnreadable, id="no number that anybody can hold"),
        pytest.param(b"60000000", errors.SlurmCutOff, id="more than comes"),
        pytest.param(b"20", errors.SlurmAnswerUnreadable, id="less than comes"),
    ],
)
async def test_a_length_that_is_a_lie_is_not_believed(
    clock: FakeClock, length: bytes, error: type[Exception]
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n" + pretty(jobs(2)).encode()

    async with hostile(pieces) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now)
        with pytest.raises(error):
            await client.read.jobs()


async def test_a_refusal_is_short(clock: FakeClock) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 500 Oops\r\n\r\n"
        while True:
            yield b'{"errors":[' + b"[" * 65536

    async with hostile(pieces) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now, deadline_s=2.0)
        for attempt in (client.read.jobs, client.read.diagnosis):
            with pytest.raises(errors.SlurmAnswerUnreadable, match="bytes"):
                await attempt()


@pytest.mark.both_loops
async def test_of_a_large_answer_only_the_records_are_ever_in_memory(clock: FakeClock) -> None:
    reply = http(200, pretty(jobs(3000)))

    def pieces() -> Iterator[bytes]:
        return (reply[at : at + 65536] for at in range(0, len(reply), 65536))

    async with hostile(pieces) as url:
        client = SlurmRest([url], lambda: KEY, now=clock.now)
        tracemalloc.start()
        try:
            listing = await client.read.jobs()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert listing is not None
    assert len(listing.records) == 3000
    assert len(reply) > 20_000_000
    assert peak < len(reply) / 2, "3 MB are records, and sockets are in it"


async def test_a_large_answer_is_read_off_the_loop(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    feed = ListSplit.feed

    def noted(split: ListSplit, piece: bytes, *, is_last: bool = False) -> Any:
        threads.add(threading.get_ident())
        return feed(split, piece, is_last=is_last)

    monkeypatch.setattr(ListSplit, "feed", noted)
    slurmrestd.on(JOBS, http(200, pretty(jobs(200))))
    await client.read.jobs()

    assert threads
    assert threading.get_ident() not in threads


async def test_jobs_that_stay_the_same_are_the_same_records(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(JOBS, http(200, jobs(3)), http(200, jobs(3)), http(200, jobs(3, comment="new")))
    first, again, changed = [await client.read.jobs() for _ in range(3)]

    assert first is not None
    assert again is not None
    assert changed is not None
    assert all(again.records[job_id] is job for job_id, job in first.records.items())
    assert {job.comment for job in changed.records.values()} == {"new"}


async def test_a_list_that_stands_there_twice_is_refused(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    for second in (b'"jobs":[{"job_id":9}]', b'"job\\u0073":[{"job_id":9}]'):
        body = json.dumps(jobs(1)).encode()[:-1] + b"," + second + b"}"
        slurmrestd.on(JOBS, http(200, body.decode()))
        with pytest.raises(errors.SlurmAnswerUnreadable, match="twice"):
            await client.read.jobs()


@pytest.mark.parametrize("field", ["nodes", "required_nodes", "excluded_nodes"])
async def test_a_few_letters_cannot_name_more_nodes_than_fit(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest], field: str
) -> None:
    rows = [JOB | {"job_id": n + 1, field: f"w{n}-[0-65535]", "batch_host": ""} for n in range(30)]
    slurmrestd.on(JOBS, http(200, {**body_of("jobs"), "jobs": rows}))

    with pytest.raises(errors.SlurmListTooLarge, match="30 jobs"):
        await connect(max_list_bytes=20 << 20).read.jobs()


def test_what_all_clusters_share_is_bounded() -> None:
    seen = [hosts(f"hostile{number}-[0-65535]") for number in range(8)]

    assert {len(names) for names in seen} == {65536}
    again = [hosts(f"hostile{number}-[0-65535]") for number in range(8)]
    assert sum(new is old for new, old in zip(again, seen, strict=True)) < 4
    assert hosts("w-[0-3]") is hosts("w-[0-3]")


async def test_a_state_of_any_length_is_no_state(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on(JOBS, http(200, jobs(1, job_state=["X" * 2000])))

    with pytest.raises(errors.SlurmAnswerUnreadable, match="a state of 2000 letters"):
        await client.read.jobs()


async def test_a_cluster_beyond_the_bound_is_out_of_reach_and_left_alone_for_a_while(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest], clock: FakeClock
) -> None:
    slurmrestd.on(NODES, answer("nodes"))
    slurmrestd.on(JOBS, http(200, pretty(jobs(700))))
    poller = SlurmPoller(connect(max_list_bytes=200_000), clock, Ledger())
    await poller.poll()

    known = poller.latest()
    assert isinstance(known, Unreachable)
    assert "700 jobs" in known.why
    assert poller._left_s() >= COST_FACTOR * poller._failed_cost_s > 0


# -- what stands between

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["jobs", "a", "{", "]", '"', "\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)
entries = st.lists(st.dictionaries(st.sampled_from(["jobs", "a", "},{", '"', "\\"]), values, max_size=3))


@settings(deadline=None)
@given(
    before=st.dictionaries(st.sampled_from(["a", "b", "jobs "]), values, max_size=2),
    listed=entries,
    behind=st.dictionaries(st.sampled_from(["c", "d"]), values, max_size=2),
    indent=st.sampled_from([None, 0, 2]),
    sizes=st.lists(st.integers(1, 40), min_size=1),
)
def test_entries_and_what_stands_around_are_the_same_in_pieces_of_any_size(
    before: dict[str, Any], listed: list[Any], behind: dict[str, Any], indent: int | None, sizes: list[int]
) -> None:
    document = {**before, "jobs": listed, **behind}
    text = json.dumps(document, indent=indent).encode()
    split = ListSplit("jobs")
    found: list[Any] = []
    at = number = 0
    while at < len(text):
        size = sizes[number % len(sizes)]
        found += split.feed(text[at : at + size])
        at, number = at + size, number + 1
    found += split.feed(b"", is_last=True)

    assert [json.loads(bytes(entry)) for entry in found] == listed
    assert json.loads(split.rest) == {**document, "jobs": []}


@pytest.mark.parametrize(
    "listed",
    ["[1]", "[null]", "[[]]", "[{},]", "[,{}]", "[{} {}]", "[{}", "[{}]]", "[{},,{}]", "[", "[{}}]", '["}"]'],
)
def test_what_is_no_list_of_objects_is_refused(listed: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        _rest(f'{{"jobs":{listed}}}'.encode())


def _rest(document: bytes) -> Any:
    split = ListSplit("jobs")
    split.feed(document, is_last=True)
    return json.loads(split.rest)
