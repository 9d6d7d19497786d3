"""Watch caches against a real API server, on its good days and on bad ones."""

import asyncio
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.clock import SystemClock
from slurm_operator.kube import envelope, errors
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.kube.watch.named_objects import secrets, value_digest
from slurm_operator.manifests.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET
from slurm_operator.manifests.meta import Child, Manifest, decode_child
from testing.audit import asked_by
from testing.control_plane import ControlPlane, Plane

ANYTHING = Kind(group="example.com", version="v1", kind="Anything", plural="anythings")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One to be cruel to."""
    with ControlPlane(tmp_path_factory.mktemp("own-server"), audit="Metadata").running() as plane:
        yield plane


def config_map(namespace: str, name: str, **data: str) -> Manifest:
    return {"metadata": {"namespace": namespace, "name": name, "labels": {"ours": "yes"}}, "data": data}


@asynccontextmanager
async def running(*parts: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def eventually(condition: Callable[[], bool]) -> None:
    """Comes back when it holds; the test's own time limit is the deadline."""
    while True:
        if condition():
            return
        await asyncio.sleep(0.02)


def ours(client: Client, *namespaces: str) -> Cache[Child]:
    return Cache(client, CONFIG_MAP, decode_child, namespaces=namespaces, label_selector="ours=yes")


def held(cache: Cache[Child]) -> dict[str, str]:
    return {child.metadata.name: child.body.get("data", {}).get("v", "") for child in cache.values()}


async def test_a_cache_follows_every_change_of_what_it_selected(api_server: Plane, namespace: str) -> None:
    told: list[tuple[bool, bool]] = []
    async with Client(find(api_server.kubeconfig)) as client:
        await client.create(CONFIG_MAP, config_map(namespace, "a", v="1"))
        stranger = config_map(namespace, "stranger")
        del stranger["metadata"]["labels"]
        await client.create(CONFIG_MAP, stranger)
        cache = ours(client, namespace)
        cache.subscribe(lambda old, new: told.append((old is not None, new is not None)))
        async with running(cache):
            await cache.synced.wait()
            at_first = held(cache)
            await client.apply(CONFIG_MAP, config_map(namespace, "b", v="1"))
            await client.apply(CONFIG_MAP, config_map(namespace, "b", v="2"))
            await eventually(lambda: held(cache) == {"a": "1", "b": "2"})
            await client.delete(CONFIG_MAP, ObjectKey(namespace, "a"))
            await eventually(lambda: held(cache) == {"b": "2"})
            leave = {"metadata": {"labels": {"ours": None}}}
            await client.merge_patch(CONFIG_MAP, ObjectKey(namespace, "b"), leave)
            await eventually(lambda: not held(cache))

    assert at_first == {"a": "1"}
    assert told == [(False, True), (False, True), (True, True), (True, False), (True, False)]
    assert (cache.lists, cache.watches, cache.undecodable) == (1, 1, 0)


async def test_our_own_writes_are_there_before_the_watch_and_the_watch_catches_up(
    api_server: Plane, namespace: str
) -> None:
    async with Client(find(api_server.kubeconfig)) as client:
        cache = ours(client, namespace)
        async with running(cache):
            await cache.synced.wait()
            key = ObjectKey(namespace, "a")
            for number in range(20):
                written = await client.apply(CONFIG_MAP, config_map(namespace, "a", v=str(number)))
                cache.note_written(written)
                assert held(cache) == {"a": str(number)}
            version = written["metadata"]["resourceVersion"]
            reached = await cache.wait_passed(key, version, 10)
            uid = written["metadata"]["uid"]
            gone = await client.delete(CONFIG_MAP, key, uid=uid)
            cache.note_deleted(key, uid)
            after = held(cache)
            again = await client.apply(CONFIG_MAP, config_map(namespace, "a", v="again"))
            await eventually(lambda: held(cache) == {"a": "again"})

    assert reached
    assert gone is None
    assert after == {}
    assert again["metadata"]["uid"] != uid


async def test_strange_line_ends_and_large_objects_arrive_unharmed(api_server: Plane, namespace: str) -> None:
    odd = "next line \u0085, line separator \u2028, paragraph separator \u2029"
    large = "x" * 1_000_000
    async with Client(find(api_server.kubeconfig)) as client:
        cache = ours(client, namespace)
        async with running(cache):
            await cache.synced.wait()
            manifest = config_map(namespace, "odd", v=odd)
            manifest["metadata"]["annotations"] = {"note": odd}
            await client.create(CONFIG_MAP, manifest)
            big = config_map(namespace, "big", v=large)
            big["metadata"]["annotations"] = {"note": "y" * 200_000}
            await client.create(CONFIG_MAP, big)
            await eventually(lambda: len(cache) == 2)
            await client.apply(CONFIG_MAP, config_map(namespace, "after", v="1"))
            await eventually(lambda: len(cache) == 3)

    assert held(cache) == {"odd": odd, "big": large, "after": "1"}


async def test_an_object_nested_beyond_reading_stops_nobody(api_server: Plane, namespace: str) -> None:
    """Whoever may write a field that keeps unknown content can do this to every operator in Python."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "metadata": {"name": "anythings.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Anything", "plural": "anythings"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
    metadata = {"apiVersion": "example.com/v1", "kind": "Anything", "metadata": {"name": "deep"}}
    depth = 3000
    deep = json.dumps(metadata)[:-1].encode() + b',"spec":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    path = f"/apis/example.com/v1/namespaces/{namespace}/anythings"
    async with Client(find(api_server.kubeconfig)) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        cache = Cache(client, ANYTHING, decode_child, namespaces=(namespace,))
        async with running(cache):
            await cache.synced.wait()
            _post(api_server, path, deep)
            plain = {"metadata": {"namespace": namespace, "name": "plain"}}
            await client.create(ANYTHING, plain)
            await eventually(lambda: cache.get(ObjectKey(namespace, "plain")) is not None)
        again = Cache(client, ANYTHING, decode_child, namespaces=(namespace,))
        async with running(again):
            await again.synced.wait()

    for each in (cache, again):
        read = {child.metadata.name for child in each.values()}
        unreadable = {key.name for key in each.unreadable}
        assert "plain" in read
        assert read | unreadable == {"plain", "deep"}, "newer Pythons can read it, older ones cannot"


def _post(server: Plane, path: str, body: bytes) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    admin = server.certificates.admin
    context.load_cert_chain(admin.certificate, admin.key)
    request = urllib.request.Request(
        server.url + path, data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, context=context) as answer:
        answer.read()


async def test_nothing_is_lost_when_the_server_restarts(own_server: Plane) -> None:
    async with Client(find(own_server.kubeconfig)) as client:
        cache = ours(client, "default")
        async with running(cache):
            await client.apply(CONFIG_MAP, config_map("default", "before", v="1"))
            await eventually(lambda: held(cache) == {"before": "1"} and cache.watches == 1)
            own_server.restart_apiserver()
            await eventually(lambda: cache.watches >= 2)
            await client.apply(CONFIG_MAP, config_map("default", "after", v="1"))
            await client.delete(CONFIG_MAP, ObjectKey("default", "before"))
            await eventually(lambda: held(cache) == {"after": "1"})

    assert cache.trouble is None


async def test_a_frozen_server_is_trouble_and_then_no_more(own_server: Plane) -> None:
    async with Client(find(own_server.kubeconfig), deadline_seconds=1) as client:
        cache = ours(client, "default")
        own_server.apiserver.pause()
        try:
            async with running(cache):
                await eventually(lambda: cache.trouble is not None)
                trouble = cache.trouble
                own_server.apiserver.resume()
                await cache.synced.wait()
        finally:
            own_server.apiserver.resume()

    assert isinstance(trouble, errors.Timeout)


async def test_after_compaction_an_old_version_is_gone_and_the_cache_lists_again(own_server: Plane) -> None:
    async with Client(find(own_server.kubeconfig)) as client:
        for number in range(6):
            await client.apply(CONFIG_MAP, config_map("default", f"c{number}", v="1"))
        cache = ours(client, "default")
        async with running(cache):
            await cache.synced.wait()
        selection = Selection(kind=CONFIG_MAP, namespace="default", label_selector="ours=yes")
        pages = client.list_pages(selection, limit=2)
        first = await anext(pages)
        for number in range(6):
            await client.delete(CONFIG_MAP, ObjectKey("default", f"c{number}"))
        newest = await client.apply(CONFIG_MAP, config_map("default", "new", v="2"))
        compact(own_server, int(newest["metadata"]["resourceVersion"]))
        own_server.restart_apiserver()

        with pytest.raises(errors.Gone):
            await anext(pages)
        old = first.resource_version
        with pytest.raises(errors.Gone):
            await follow(client, selection, old)
        async with running(cache):  # It still has the version from before, as after a long silence.
            await eventually(lambda: "new" in held(cache))

    assert not {f"c{number}" for number in range(6)} & held(cache).keys()
    assert cache.lists == 2


async def follow(client: Client, selection: Selection, version: str) -> None:
    """What a reflector does with one watch, up to its first error."""
    async with client.watch(
        selection, resource_version=version, timeout_seconds=10, idle_seconds=10
    ) as batches:
        async for lines in batches:
            for line in lines:
                event = envelope.event(line)
                if event.type == "ERROR":
                    raise errors.from_status(wire.decoder(errors.Status)(event.object))


def compact(server: Plane, revision: int) -> None:
    """Makes etcd forget everything before a revision, as it does every five minutes."""
    (clients,) = [arg for arg in server.etcd.argv if arg.startswith("--listen-client-urls=")]
    pair = server.certificates.etcd
    context = ssl.create_default_context(cafile=server.certificates.etcd_authority.pair.certificate)
    context.load_cert_chain(pair.certificate, pair.key)
    request = urllib.request.Request(
        clients.partition("=")[2] + "/v3/kv/compaction",
        data=json.dumps({"revision": str(revision), "physical": True}).encode(),
    )
    with urllib.request.urlopen(request, context=context) as answer:
        answer.read()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_four_hundred_namespaces_with_secrets_do_not_exhaust_connections(api_server: Plane) -> None:
    wanted = [ObjectKey(f"many-{number}", name) for number in range(400) for name in ("slurm", "jwt")]
    before = open_files()
    async with Client(find(api_server.kubeconfig)) as client:
        await asyncio.gather(
            *(client.create(NAMESPACE, {"metadata": {"name": f"many-{number}"}}) for number in range(400))
        )
        await asyncio.gather(
            *(
                client.create(
                    SECRET,
                    {
                        "metadata": {"namespace": key.namespace, "name": key.name},
                        "stringData": {"key": str(key)},
                    },
                )
                for key in wanted
            )
        )
        referenced = secrets(client, SystemClock().steady)

        def digest(key: ObjectKey) -> str:
            found = referenced.get(key)
            return found.digests["key"] if found else ""

        async with running(referenced):
            for key in wanted:
                referenced.want(key.namespace, [each for each in wanted if each.namespace == key.namespace])
            await eventually(lambda: all(referenced.knows(key) for key in wanted))
            changed = wanted[123]
            patch = {"stringData": {"key": "changed"}}
            await client.merge_patch(SECRET, changed, patch)
            await eventually(lambda: digest(changed) == value_digest(b"changed"))
            open_now = open_files()
            connections = referenced.connections
            right = all(digest(key) == value_digest(str(key).encode()) for key in wanted if key != changed)

    assert connections == 1
    assert open_now - before < 50
    assert right


async def test_the_audit_log_shows_a_list_a_watch_and_nothing_else(api_server: Plane, namespace: str) -> None:
    who = f"watcher-{namespace}"
    async with Client(find(api_server.kubeconfig_for(who, "system:masters"))) as client:
        cache = ours(client, namespace)
        async with running(cache):
            await cache.synced.wait()
            await eventually(lambda: cache.watches == 1)
        await client.apply(CONFIG_MAP, config_map(namespace, "a", v="1"))
        await client.delete(CONFIG_MAP, ObjectKey(namespace, "a"))

    def seen() -> list[str]:
        mine = asked_by(api_server.audit_log, who)
        return [each["verb"] for each in mine if each["stage"] == "ResponseComplete"]

    await eventually(lambda: "delete" in seen() and "watch" in seen())
    assert sorted(seen()) == ["delete", "list", "patch", "watch"]
