"""Objects that others name: watched with few connections, known exactly, forgotten when nobody cares."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from eventually import eventually
from fake_api_server import Answer, FakeApi

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import Unreachable
from slurm_operator.kube.watch.named_objects import NamedObjects, read_secret, secrets, value_digest
from slurm_operator.kube.watch.read_queue import ReadQueue
from slurm_operator.kube.watch.watched_scopes import (
    CLUSTER,
    HANDFUL,
    MOST_CONNECTIONS,
    Scope,
    scope_of,
    watched_scopes,
)
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret

VIRTUAL_TIME = True


def key(name: str, namespace: str = "ns") -> ObjectKey:
    return ObjectKey(namespace, name)


@pytest.mark.parametrize(
    ("wanted", "now", "refused", "chosen"),
    [
        pytest.param([], {CLUSTER}, set(), set(), id="nothing wanted: nothing watched"),
        pytest.param([key("a"), key("b")], set(), set(), {key("a"), key("b")}, id="a few: one by one"),
        pytest.param(
            [key(str(n)) for n in range(HANDFUL + 1)],
            set(),
            set(),
            {Scope("ns", "")},
            id="more than a handful: the namespace",
        ),
        pytest.param(
            [key(str(n)) for n in range(HANDFUL + 1)] + [key("x", "other")],
            set(),
            set(),
            {Scope("ns", ""), key("x", "other")},
            id="the neighbour is not drawn in",
        ),
        pytest.param([key("a")], {Scope("ns", "")}, set(), {Scope("ns", "")}, id="wide stays wide"),
        pytest.param(
            [key("a")], {Scope("ns", "")}, {Scope("ns", "")}, {key("a")}, id="refused: back to single names"
        ),
        pytest.param(
            [key("a", f"ns{n}") for n in range(MOST_CONNECTIONS + 1)],
            set(),
            set(),
            {CLUSTER},
            id="many namespaces: the cluster",
        ),
        pytest.param([key("a")], {CLUSTER}, set(), {CLUSTER}, id="cluster-wide stays"),
        pytest.param(
            [key(name, f"ns{n}") for n in range(MOST_CONNECTIONS) for name in "ab"],
            set(),
            {CLUSTER},
            {Scope(f"ns{n}", "") for n in range(MOST_CONNECTIONS)},
            id="no right to the cluster: whole namespaces",
        ),
    ],
)
def test_connections_are_saved_only_when_there_would_be_many(
    wanted: list[ObjectKey], now: set[Scope], refused: set[Scope], chosen: set[Scope]
) -> None:
    assert watched_scopes(wanted, now, refused) == chosen
    assert all(scope_of(each, chosen) is not None for each in wanted)


@dataclass
class SecretServer:
    """Secrets with lists, watches by name or of metadata, and reads by name."""

    version: int = 100
    store: dict[ObjectKey, Manifest] = field(default_factory=dict)
    watchers: list[Answer] = field(default_factory=list)
    is_wide_forbidden: bool = False

    def make(self, where: ObjectKey, value: bytes) -> Manifest:
        self.version += 1
        secret = {
            "kind": "Secret",
            "apiVersion": "v1",
            "metadata": {
                "namespace": where.namespace,
                "name": where.name,
                "uid": f"uid-{where.name}",
                "resourceVersion": str(self.version),
            },
            "data": {"key": base64.b64encode(value).decode()},
        }
        self.store[where] = secret
        return secret

    async def put(self, where: ObjectKey, value: bytes) -> None:
        type_ = "MODIFIED" if where in self.store else "ADDED"
        await self._tell(type_, self.make(where, value))

    async def delete(self, where: ObjectKey) -> None:
        gone = self.store.pop(where)
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        await self._tell("DELETED", gone)

    async def _tell(self, type_: str, secret: Manifest) -> None:
        for watcher in self.watchers:
            if _matches(watcher, secret):
                await watcher.event(type_, _shown(watcher, secret))

    async def answer(self, answer: Answer) -> None:
        asked = answer.asked
        is_wide = "fieldSelector" not in asked.params and asked.path.endswith("/secrets")
        if is_wide and self.is_wide_forbidden:
            await answer.refuse(403, "Forbidden", "secrets is forbidden")
        elif asked.is_watch:
            await answer.begin()
            self.watchers.append(answer)
            await asyncio.Event().wait()
        elif asked.path.endswith("/secrets"):
            items = [_shown(answer, each) for each in self.store.values() if _matches(answer, each)]
            await answer.json({"metadata": {"resourceVersion": str(self.version)}, "items": items})
        else:
            *_, namespace, _, name = asked.path.split("/")
            secret = self.store.get(ObjectKey(namespace, name))
            await (answer.json(secret) if secret else answer.refuse(404, "NotFound", "no such secret"))


def _matches(answer: Answer, secret: Manifest) -> bool:
    name = answer.asked.params.get("fieldSelector", "").removeprefix("metadata.name=")
    parts = answer.asked.path.split("/")
    namespace = parts[4] if "namespaces" in parts else ""
    metadata = secret["metadata"]
    return name in ("", metadata["name"]) and namespace in ("", metadata["namespace"])


def _shown(answer: Answer, secret: Manifest) -> Manifest:
    is_partial = "PartialObjectMetadata" in answer.asked.headers["accept"]
    copy: Manifest = json.loads(json.dumps(secret))
    return {"metadata": copy["metadata"]} if is_partial else copy


def steady() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())


@asynccontextmanager
async def referring(server: SecretServer) -> AsyncIterator[tuple[NamedObjects[Secret], FakeApi]]:
    api = FakeApi(lists=[server.answer], watches=[server.answer], others=[server.answer])
    async with api, api.client() as client:
        it = secrets(client, steady)
        running = asyncio.create_task(it.run())
        try:
            yield it, api
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def digest(it: NamedObjects[Secret], where: ObjectKey) -> str | None:
    secret = it.get(where)
    return secret.digests["key"] if secret else None


async def test_a_name_that_cannot_be_read_for_a_day_is_tried_every_minute() -> None:
    clock, tries = asyncio.get_running_loop().time, []

    async def fail(where: ObjectKey) -> None:
        tries.append(clock())
        raise Unreachable("nobody answers")

    reads = ReadQueue(fail)
    running = asyncio.create_task(reads.run())
    reads.soon(key("a"))
    await asyncio.sleep(24 * 3600)
    is_running = not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

    assert is_running
    assert tries[-1] - tries[-2] == 60


async def test_since_when_a_version_is_known_outlives_its_watch() -> None:
    server, a = SecretServer(), key("a")
    await server.put(a, b"one")
    async with referring(server) as (it, _):
        before = it.known_since(a)
        it.want("me", [a])
        await eventually(lambda: it.knows(a))
        first = it.known_since(a)
        await asyncio.sleep(60)
        it.note_written(server.store[a])
        again = it.known_since(a)
        await server.put(a, b"two")
        await eventually(lambda: digest(it, a) == value_digest(b"two"))
        second = it.known_since(a)

    assert before is None
    assert first == again
    assert second - first >= timedelta(seconds=60)


MANY = [key(f"s{number}") for number in range(HANDFUL + 3)]


@pytest.mark.parametrize("others", [[], MANY], ids=["one by one", "by metadata and name"])
async def test_a_secret_is_followed_through_its_life(others: list[ObjectKey]) -> None:
    server = SecretServer()
    a = key("a")
    told: list[str] = []
    async with referring(server) as (it, api):
        it.subscribe(lambda where, new: told.append("there" if new else "gone") if where == a else None)
        it.want("me", [a, *others])
        before = (it.knows(a), it.get(a))
        await eventually(lambda: it.knows(a))
        absent = it.get(a)
        await eventually(lambda: len(server.watchers) == 1)
        await server.put(a, b"one")
        await eventually(lambda: digest(it, a) == value_digest(b"one"))
        await server.put(a, b"two")
        await eventually(lambda: digest(it, a) == value_digest(b"two"))
        await server.delete(a)
        await eventually(lambda: it.get(a) is None)
        connections = it.connections

    assert before == (False, None)
    assert absent is None
    assert told == ["gone", "there", "there", "gone"]
    assert connections == 1
    whole_lists = [
        asked
        for asked in api.asked
        if asked.path.endswith("/secrets")
        and "fieldSelector" not in asked.params
        and "PartialObjectMetadata" not in asked.headers["accept"]
    ]
    assert whole_lists == [], "nobody ever reads all Secrets"


async def test_the_bytes_of_a_secret_are_kept_nowhere_and_read_when_needed() -> None:
    server = SecretServer()
    server.make(key("a"), b"hunter2")
    api = FakeApi(others=[server.answer])
    async with referring(server) as (it, _):
        it.want("me", [key("a")])
        await eventually(lambda: it.knows(key("a")))
        kept = repr(it.get(key("a")))
    async with api, api.client() as client:
        values = await read_secret(client, key("a"))

    assert "hunter2" not in kept
    assert base64.b64encode(b"hunter2").decode() not in kept
    assert values == {"key": b"hunter2"}


async def test_interest_is_counted_and_the_last_one_to_leave_ends_the_watch() -> None:
    server = SecretServer()
    server.make(key("a"), b"x")
    async with referring(server) as (it, _):
        it.want("one", [key("a")])
        it.want("two", [key("a"), key("b")])
        it.want("two", [key("a"), key("b")])
        await eventually(lambda: it.knows(key("a")) and it.knows(key("b")))
        it.want("one", [])
        await asyncio.sleep(1)
        still = (it.knows(key("a")), it.connections)
        it.want("two", [key("b")])
        await asyncio.sleep(1)
        left = (it.knows(key("a")), it.knows(key("b")), it.connections)
        it.want("two", [])
        await asyncio.sleep(1)
        end = (it.knows(key("b")), it.connections)

    assert still == (True, 2)
    assert left == (False, True, 1)
    assert end == (False, 0)


async def test_four_hundred_namespaces_take_one_connection() -> None:
    server = SecretServer()
    wanted = [key(name, f"ns{number}") for number in range(400) for name in ("slurm-key", "jwt-key")]
    for each in wanted:
        server.make(each, each.namespace.encode())
    async with referring(server) as (it, _):
        it.want("me", wanted)
        await eventually(lambda: all(it.knows(each) for each in wanted))
        connections = it.connections
        await server.put(wanted[7], b"changed")
        await eventually(lambda: digest(it, wanted[7]) == value_digest(b"changed"))
        right = all(digest(it, each) == value_digest(each.namespace.encode()) for each in wanted[8:])

    assert connections == 1
    assert right


async def test_without_the_right_to_watch_widely_names_are_watched_one_by_one() -> None:
    server = SecretServer(is_wide_forbidden=True)
    for each in MANY:
        server.make(each, b"x")
    async with referring(server) as (it, _):
        it.want("me", MANY)
        await eventually(lambda: all(it.knows(each) for each in MANY))
        connections = it.connections

    assert connections == len(MANY)


async def test_a_name_wanted_later_is_read_though_the_wide_watch_tells_only_changes() -> None:
    server = SecretServer()
    server.make(key("late"), b"x")
    async with referring(server) as (it, _):
        it.want("me", MANY)
        await eventually(lambda: all(it.knows(each) for each in MANY))
        it.want("you", [key("late")])
        await eventually(lambda: it.knows(key("late")))
        found = digest(it, key("late"))

    assert found == value_digest(b"x")


async def test_what_we_wrote_ourselves_is_known_at_once() -> None:
    server = SecretServer()
    async with referring(server) as (it, _):
        it.want("me", [key("a")])
        await eventually(lambda: it.knows(key("a")))
        it.note_written(server.make(key("a"), b"mine"))
        at_once = digest(it, key("a"))
        it.note_written(server.make(key("b"), b"nobody asked"))
        unwanted = it.knows(key("b"))

    assert at_once == value_digest(b"mine")
    assert not unwanted


async def test_a_late_event_does_not_undo_what_we_wrote() -> None:
    server = SecretServer()
    a = key("a")
    async with referring(server) as (it, _):
        it.want("me", [a])
        await eventually(lambda: it.knows(a) and len(server.watchers) == 1)
        theirs = server.make(a, b"theirs")
        it.note_written(server.make(a, b"mine"))
        await server.watchers[0].event("ADDED", theirs)
        await asyncio.sleep(1)
        after = digest(it, a)

    assert after == value_digest(b"mine")


async def test_since_when_values_are_known_outlives_a_change_of_metadata() -> None:
    """A rotation waits for kubelets that bring files to pods; a new annotation brings them nothing."""
    server, a = SecretServer(), key("a")
    await server.put(a, b"one")
    async with referring(server) as (it, _):
        it.want("me", [a])
        await eventually(lambda: it.knows(a))
        first, version = it.known_since(a), it.get(a).metadata.resource_version
        await asyncio.sleep(60)
        await server.put(a, b"one")
        await eventually(lambda: it.get(a).metadata.resource_version != version)
        same = it.known_since(a)
        await server.put(a, b"two")
        await eventually(lambda: it.known_since(a) != same)

        assert same == first
        assert it.known_since(a) > first
