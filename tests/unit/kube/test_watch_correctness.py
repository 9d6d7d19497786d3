"""Everything that a server, a network or a stranger's annotation can do to a watch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from eventually import eventually
from fake_api_server import Answer, FakeApi, hang, listing, refusal, status, thing
from structlog.testing import capture_logs

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, Timeout
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import POD
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.runtime.world.sources import Source, Sources
from slurm_operator.slurmsync.connections import SlurmClusters

VIRTUAL_TIME = True


class Spec(wire.CamelRecord):
    node_name: str = ""


class Pod(wire.CamelRecord):
    metadata: Meta
    spec: Spec = Spec()


class Watched:
    """A cache and everything it has told."""

    def __init__(self, client: Client) -> None:
        self.cache = Cache(client, POD, wire.decoder(Pod), namespaces=("ns",))
        self.told: list[tuple[str, str]] = []
        self.cache.subscribe(lambda old, new: self.told.append((_version(old), _version(new))))

    def versions(self) -> dict[str, str]:
        return {pod.metadata.name: pod.metadata.resource_version for pod in self.cache.values()}


def _version(pod: Pod | None) -> str:
    return f"{pod.metadata.name}@{pod.metadata.resource_version}" if pod else "-"


@asynccontextmanager
async def watched(api: FakeApi) -> AsyncIterator[Watched]:
    async with api, api.client() as client:
        it = Watched(client)
        running = asyncio.create_task(it.cache.run())
        try:
            yield it
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@pytest.mark.both_loops
async def test_the_list_comes_in_pages_and_the_watch_goes_on_from_it() -> None:
    async def one_more(answer: Answer) -> None:
        await answer.begin()
        await answer.event("ADDED", thing("c", 103))
        await asyncio.Event().wait()

    api = FakeApi(
        lists=[
            listing(thing("a", 90), version="100", next_page="more"),
            listing(thing("b", 95), version="100"),
        ],
        watches=[one_more],
    )
    async with watched(api) as it:
        await it.cache.synced.wait()
        await eventually(lambda: len(it.cache) == 3)

    assert it.versions() == {"a": "90", "b": "95", "c": "103"}
    assert [asked.params.get("continue") for asked in api.lists_asked()] == [None, "more"]
    assert api.lists_asked()[0].params["limit"] == "500"
    watch = api.watches_asked()[0]
    assert watch.params["resourceVersion"] == "100"
    assert watch.params["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch.params["timeoutSeconds"]) <= 600


@pytest.mark.both_loops
async def test_410_in_the_watch_lists_again_and_tells_what_went_missing() -> None:
    async def expired(answer: Answer) -> None:
        await answer.begin()
        await answer.event("ERROR", status(410, "Expired", "too old resource version: 100 (900)"))
        await answer.end()

    api = FakeApi(
        lists=[
            listing(thing("a", 90), thing("b", 95), version="100"),
            listing(thing("b", 950), thing("c", 960), version="1000"),
        ],
        watches=[expired, hang],
    )
    async with watched(api) as it:
        await eventually(lambda: len(api.watches_asked()) == 2)

    assert it.versions() == {"b": "950", "c": "960"}
    assert set(it.told[2:]) == {("b@95", "b@950"), ("-", "c@960"), ("a@90", "-")}
    assert api.watches_asked()[1].params["resourceVersion"] == "1000"
    assert it.cache.lists == 2


@pytest.mark.parametrize(
    "strange",
    [
        pytest.param({"code": "many"}, id="of another shape"),
        pytest.param({"kind": "Status"}, id="without a code"),
        pytest.param("no object", id="no object"),
    ],
)
async def test_an_error_of_a_shape_that_nobody_knows_ends_a_watch_and_not_the_cache(strange: Any) -> None:
    async def fail(answer: Answer) -> None:
        await answer.begin()
        await answer.event("ERROR", strange)
        await answer.end()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[fail, hang])
    async with watched(api) as it:
        await eventually(lambda: len(api.watches_asked()) == 2)

    assert it.versions() == {"a": "90"}


@pytest.mark.both_loops
async def test_410_as_the_answer_to_the_watch_lists_again() -> None:
    api = FakeApi(
        lists=[listing(thing("a", 90)), listing(thing("a", 91), version="1000")],
        watches=[refusal(410, "Expired", "too old"), hang],
    )
    async with watched(api) as it:
        await eventually(lambda: len(api.watches_asked()) == 2)

    assert it.versions() == {"a": "91"}


async def test_410_between_pages_takes_the_list_in_one_piece() -> None:
    api = FakeApi(
        lists=[
            listing(thing("a", 90), version="100", next_page="more"),
            refusal(410, "Expired", "The provided continue parameter is too old"),
            listing(thing("a", 90), thing("b", 120), version="130"),
        ]
    )
    async with watched(api) as it:
        await it.cache.synced.wait()

    assert it.versions() == {"a": "90", "b": "120"}
    assert "limit" not in api.lists_asked()[2].params


async def test_a_server_that_refuses_every_version_is_not_asked_in_a_frenzy() -> None:
    api = FakeApi(lists=[listing(thing("a", 90))], watches=[refusal(410, "Expired", "too old")])
    async with watched(api):
        await asyncio.sleep(60)

    # Doubling pauses up to 30 s: a dozen rounds in a minute, where a client without them makes thousands.
    assert len(api.asked) < 40


async def test_a_server_that_wants_to_be_left_alone_for_a_day_is_asked_again_after_a_minute() -> None:
    away = refusal(503, "ServiceUnavailable", "maintenance", headers={"Retry-After": "86400"})
    api = FakeApi(lists=[listing(thing("a", 90))], watches=[away, hang])
    async with watched(api):
        await asyncio.sleep(50)
        before = len(api.watches_asked())
        await asyncio.sleep(20)

    assert (before, len(api.watches_asked())) == (1, 2)


@pytest.mark.both_loops
async def test_after_a_bookmark_and_a_close_the_watch_goes_on_from_the_bookmark() -> None:
    async def bookmark(answer: Answer) -> None:
        await answer.begin()
        await answer.event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "777"}})
        await answer.end()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[bookmark, hang])
    async with watched(api) as it:
        await eventually(lambda: len(api.watches_asked()) == 2)
        reached = it.cache.passed(ObjectKey("ns", "a"), "777")

    assert api.watches_asked()[1].params["resourceVersion"] == "777"
    assert reached
    assert it.cache.lists == 1
    assert it.told == [("-", "a@90")]


@pytest.mark.both_loops
async def test_a_reset_in_the_middle_of_a_line_loses_nothing() -> None:
    async def torn(answer: Answer) -> None:
        await answer.begin()
        await answer.event("MODIFIED", thing("a", 101))
        await answer.chunk(b'{"type":"MODIFIED","object":{"metadata":{"name":"a","names')
        await asyncio.sleep(1)
        answer.reset()

    async def rest(answer: Answer) -> None:
        await answer.begin()
        await answer.event("MODIFIED", thing("a", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[torn, rest])
    async with watched(api) as it:
        await eventually(lambda: it.versions() == {"a": "102"})

    assert it.told == [("-", "a@90"), ("a@90", "a@101"), ("a@101", "a@102")]
    assert api.watches_asked()[1].params["resourceVersion"] == "101"
    assert it.cache.undecodable == 0


@pytest.mark.both_loops
async def test_line_ends_of_other_alphabets_do_not_end_a_line() -> None:
    odd = {"note": "next line: \u0085 line separator: \u2028 paragraph: \u2029 form feed: \u000c"}

    async def annotated(answer: Answer) -> None:
        await answer.begin()
        await answer.event("MODIFIED", thing("a", 101, metadata={"annotations": odd}))
        await answer.event("MODIFIED", thing("b", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90), thing("b", 91))], watches=[annotated])
    async with watched(api) as it:
        await eventually(lambda: it.versions() == {"a": "101", "b": "102"})
        pod = it.cache.get(ObjectKey("ns", "a"))

    assert pod is not None
    assert pod.metadata.annotations == odd
    assert it.cache.undecodable == 0


@pytest.mark.both_loops
async def test_an_object_of_more_than_a_megabyte_arrives_whole() -> None:
    large = {"blob": "x" * 1_250_000}

    async def big(answer: Answer) -> None:
        await answer.begin()
        await answer.event("ADDED", thing("big", 101, metadata={"annotations": large}))
        await answer.event("ADDED", thing("next", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing()], watches=[big])
    async with watched(api) as it:
        await eventually(lambda: len(it.cache) == 2)
        pod = it.cache.get(ObjectKey("ns", "big"))

    assert pod is not None
    assert pod.metadata.annotations == large


@pytest.mark.both_loops
async def test_an_object_that_does_not_decode_is_passed_over_and_the_rest_goes_on() -> None:
    bad = thing("bad", 91, spec={"nodeName": 7})

    async def more(answer: Answer) -> None:
        await answer.begin()
        await answer.event("MODIFIED", thing("worse", 101, spec=[]))
        await answer.event("ADDED", thing("b", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90), bad, thing("worse", 92))], watches=[more])
    async with watched(api) as it:
        await eventually(lambda: "b" in it.versions())
        unreadable = dict(it.cache.unreadable)

    # What was known of `worse` stays: an object that cannot be read is not an object that is gone.
    assert it.versions() == {"a": "90", "worse": "92", "b": "102"}
    assert it.cache.undecodable == 2
    assert set(unreadable) == {ObjectKey("ns", "bad"), ObjectKey("ns", "worse")}
    assert "nodeName" in unreadable[ObjectKey("ns", "bad")]


async def test_reconcilers_are_told_what_is_there_and_cannot_be_read() -> None:
    api = FakeApi(lists=[listing(thing("a", 90), thing("bad", 91, spec=[]))])
    async with api, api.client() as client:
        sources = Sources(records=(Source(Pod, POD, wire.decoder(Pod)),), children=(), child_selector="")
        known = Caches(client, sources, ("ns",), SlurmClusters(client, lambda: False))
        running = asyncio.create_task(known.records[Pod].run())
        await known.records[Pod].synced.wait()
        view = known.view()
        running.cancel()
        await asyncio.wait([running])

    assert [pod.metadata.name for pod in view.all(Pod, "ns")] == ["a"]
    assert view.unreadable(Pod, "ns") == ["bad"]
    assert view.unreadable(Pod, "other") == []


async def test_a_list_that_cannot_be_read_in_part_keeps_what_was_known_of_that_part() -> None:
    api = FakeApi(
        lists=[
            listing(thing("a", 90), thing("bad", 91, spec=[])),
            listing(thing("a", 950, spec=[]), version="1000"),
        ],
        watches=[refusal(410, "Expired", "too old"), hang],
    )
    async with watched(api) as it:
        await eventually(lambda: len(api.watches_asked()) == 2)
        unreadable = set(it.cache.unreadable)

    assert it.versions() == {"a": "90"}
    assert unreadable == {ObjectKey("ns", "a")}, "the other one is gone, and is no trouble any more"


async def test_what_cannot_be_read_is_not_absent_while_it_is_listed_again() -> None:
    async def late(answer: Answer) -> None:
        await asyncio.Event().wait()

    api = FakeApi(
        lists=[
            listing(thing("bad", 91, spec=[])),
            listing(thing("a", 95), version="1000", next_page="more"),
            late,
        ],
        watches=[refusal(410, "Expired", "too old"), hang],
    )
    async with watched(api) as it:
        await eventually(lambda: len(api.lists_asked()) == 3)

        assert set(it.cache.unreadable) == {ObjectKey("ns", "bad")}


async def test_a_watch_that_ends_in_peace_is_opened_anew_at_once_every_time() -> None:
    clock = asyncio.get_running_loop().time
    began: list[float] = []
    ended: list[float] = []

    async def a_minute(answer: Answer) -> None:
        began.append(clock())
        await answer.begin()
        await asyncio.sleep(60)
        ended.append(clock())
        await answer.end()

    api = FakeApi(lists=[listing()], watches=[a_minute])
    async with watched(api):
        await eventually(lambda: len(began) == 13, step_seconds=10)

    gaps = [start - end for start, end in zip(began[1:], ended, strict=False)]
    assert max(gaps) < 1


@pytest.mark.parametrize(("tells", "most"), [(True, 0.1), (False, 30)])
async def test_a_server_that_ends_watches_soon_is_asked_again_at_once_if_it_tells_something(
    tells, most
) -> None:
    clock = asyncio.get_running_loop().time
    began: list[float] = []
    ended: list[float] = []

    async def soon(answer: Answer) -> None:
        began.append(clock())
        await answer.begin()
        if tells:
            await answer.event("MODIFIED", thing("a", 100 + len(began)))
        await asyncio.sleep(0.3)
        ended.append(clock())
        await answer.end()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[soon])
    async with watched(api):
        await eventually(lambda: len(began) >= 13)

    gaps = [start - end for start, end in zip(began[1:], ended, strict=False)]
    assert most / 4 < max(gaps) < most


async def test_an_unreadable_object_can_be_deleted_and_can_become_readable() -> None:
    async def more(answer: Answer) -> None:
        await answer.begin()
        await answer.event("DELETED", thing("one", 101, spec={"nodeName": 7}))
        await answer.event("MODIFIED", thing("two", 102, spec={"nodeName": "n"}))
        await asyncio.Event().wait()

    bad = [thing(name, 90, spec={"nodeName": 7}) for name in ("one", "two")]
    api = FakeApi(lists=[listing(*bad)], watches=[more])
    async with watched(api) as it:
        await eventually(lambda: len(it.cache) == 1)

    assert it.versions() == {"two": "102"}
    assert not it.cache.unreadable


@pytest.mark.both_loops
async def test_an_object_nested_too_deep_for_the_parser_spoils_only_itself() -> None:
    depth = 100_000  # Python 3.11 gives up after a thousand levels, later ones after ten thousand.
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    metadata = b'{"name":"%s","namespace":"ns","uid":"u","resourceVersion":"%d"}'

    def monster(name: bytes, version: int) -> bytes:
        return b'{"metadata":' + metadata % (name, version) + b',"spec":' + deep + b"}"

    async def deep_list(answer: Answer) -> None:
        plain = b'{"metadata":' + metadata % (b"a", 90) + b"}"
        body = b'{"metadata":{"resourceVersion":"100"},"items":[%s,%s]}' % (monster(b"deep", 91), plain)
        await answer.body(body)

    async def deep_watch(answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(b'{"type":"ADDED","object":%s}\n' % monster(b"deeper", 101))
        await answer.event("ADDED", thing("b", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[deep_list], watches=[deep_watch])
    async with watched(api) as it:
        await eventually(lambda: "b" in it.versions())

    assert it.versions() == {"a": "90", "b": "102"}
    assert set(it.cache.unreadable) == {ObjectKey("ns", "deep"), ObjectKey("ns", "deeper")}


@pytest.mark.both_loops
async def test_a_line_that_is_no_event_is_counted_and_passed_over() -> None:
    async def noise(answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(b"<html>proxy says no</html>\n\n")
        await answer.event("SOMETHING_NEW", thing("a", 101))
        await answer.event("ADDED", thing("b", 102))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing()], watches=[noise])
    async with watched(api) as it:
        await eventually(lambda: len(it.cache) == 1)

    assert it.cache.undecodable == 1


async def test_a_watch_that_falls_silent_is_opened_anew() -> None:
    async def after(answer: Answer) -> None:
        await answer.begin()
        await answer.event("MODIFIED", thing("a", 101))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[hang, after])
    with capture_logs() as logged:  # On a busy machine it is silent before anybody looks.
        async with watched(api) as it:
            await eventually(lambda: it.versions() == {"a": "101"})

    assert it.cache.watches == 2
    assert it.cache.lists == 1
    assert {line["log_level"] for line in logged} == {"debug"}  # About Events it is nothing special.


async def test_a_server_that_is_silent_and_then_does_not_answer_is_trouble() -> None:
    async def no_word(answer: Answer) -> None:
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[hang, no_word])
    async with watched(api) as it:
        await eventually(lambda: it.cache.trouble is not None)
        assert isinstance(it.cache.trouble, Timeout)


async def test_two_idle_hours_cost_a_few_reconnects_and_no_list() -> None:
    async def idle(answer: Answer) -> None:
        """What the real server does: a bookmark a minute, and a clean end after the time asked for."""
        await answer.begin()
        left = int(answer.asked.params["timeoutSeconds"])
        version = int(answer.asked.params["resourceVersion"])
        while left > 60:
            await asyncio.sleep(60)
            left, version = left - 60, version + 10
            await answer.event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})
        await asyncio.sleep(left)
        await answer.end()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[idle])
    clock = asyncio.get_running_loop().time
    async with watched(api) as it:
        began = clock()
        await it.cache.synced.wait()
        await asyncio.sleep(2 * 60 * 60)
        passed = clock() - began

    assert passed >= 2 * 60 * 60
    assert it.cache.lists == 1
    assert 12 <= it.cache.watches <= 25  # Every 5 to 10 minutes.
    assert it.told == [("-", "a@90")]
    resumed = [int(asked.params["resourceVersion"]) for asked in api.watches_asked()]
    assert resumed == sorted(resumed)
    assert resumed[-1] > 1000


async def test_while_the_server_refuses_trouble_says_so_and_goes_when_it_answers() -> None:
    refuse = refusal(403, "Forbidden", "pods is forbidden: no luck")
    api = FakeApi(lists=[*[refuse] * 8, listing(thing("a", 90))])
    troubles = []
    async with watched(api) as it:
        await eventually(lambda: it.cache.trouble is not None)
        troubles.append(it.cache.trouble)
        await it.cache.synced.wait()
        troubles.append(it.cache.trouble)

    assert isinstance(troubles[0], Forbidden)
    assert "pods is forbidden: no luck" in str(troubles[0])
    assert troubles[1] is None


async def test_wait_passed_comes_back_with_the_event_and_gives_up_in_time() -> None:
    go = asyncio.Event()

    async def later(answer: Answer) -> None:
        await answer.begin()
        await go.wait()
        await answer.event("MODIFIED", thing("a", 150))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[later])
    key = ObjectKey("ns", "a")
    async with watched(api) as it:
        await it.cache.synced.wait()
        given_up = await it.cache.wait_passed(key, "150", 5)
        waiting = asyncio.create_task(it.cache.wait_passed(key, "150", 1000))
        go.set()
        reached = await waiting
        odd = await it.cache.wait_passed(key, "not-a-number", 0)

    assert (given_up, reached, odd) == (False, True, True)


async def test_our_own_write_is_visible_at_once_and_a_late_event_does_not_undo_it() -> None:
    go = asyncio.Event()

    async def late(answer: Answer) -> None:
        await answer.begin()
        await go.wait()
        await answer.event("MODIFIED", thing("a", 110))
        await answer.event("MODIFIED", thing("a", 120))
        await answer.event("MODIFIED", thing("a", 130))
        await asyncio.Event().wait()

    api = FakeApi(lists=[listing(thing("a", 90))], watches=[late])
    async with watched(api) as it:
        await it.cache.synced.wait()
        it.cache.note_written(thing("a", 120))
        at_once = it.versions()
        go.set()
        await eventually(lambda: it.cache.passed(ObjectKey("ns", "a"), "130"))

    assert at_once == {"a": "120"}
    assert it.told == [("-", "a@90"), ("a@90", "a@120"), ("a@120", "a@130")]


async def test_a_listener_that_fails_stops_neither_the_watch_nor_the_others() -> None:
    def fail(old: Pod | None, new: Pod | None) -> None:
        raise RuntimeError("oh no")

    api = FakeApi(lists=[listing(thing("a", 90))])
    async with api, api.client() as client:
        it = Watched(client)
        it.cache.subscribe(fail)
        after: list[str] = []
        it.cache.subscribe(lambda old, new: after.append(_version(new)))
        running = asyncio.create_task(it.cache.run())
        await it.cache.synced.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    assert it.cache.callback_errors == 1
    assert after == ["a@90"]
