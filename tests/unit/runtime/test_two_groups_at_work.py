"""Two kinds called NodeSet in one manager: caches, owners, statuses, metrics and recordings keep them apart."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.recording.replay import read_files, recorded, replay
from slurm_operator.kube.auth.access import Access
from slurm_operator.manifests.meta import Manifest
from slurm_operator.operator import sources
from slurm_operator.runtime.manager import Manager, Program
from slurm_operator.runtime.settings import Address, Settings
from slurm_operator.runtime.world.recording_world import Answer as RecordedAnswer
from slurm_operator.runtime.world.recording_world import (
    NotRecorded,
    RecordingWorld,
    ReplayWorld,
    plain_answer,
)
from testing.two_groups import GROUPS, OTHER, OURS, TWO, made, manifest, noting, owner
from testing.world import HandmadeWorld
from unit.kube.eventually import eventually
from unit.kube.fake_api_server import Answer, FakeApi, listing

NOWHERE = Address("127.0.0.1", 0)
GPU = ObjectKey("ns", "gpu")


def config_map(name: str, of: Manifest) -> Manifest:
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "ownerReferences": [of]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


# Of the same name in both groups; and a child each of two that are not there.
THERE: dict[str, list[Manifest]] = {
    OURS.KIND.path("ns"): [manifest(OURS, "gpu")],
    OTHER.KIND.path("ns"): [manifest(OTHER, "gpu")],
    "/api/v1/namespaces/ns/configmaps": [
        config_map("one", owner(OURS, "ours")),
        config_map("two", owner(OTHER, "theirs")),
    ],
}


async def answered(answer: Answer) -> None:
    asked = answer.asked
    if asked.method == "GET":
        await listing(*THERE.get(asked.path, ()))(answer)
        return
    [live] = THERE[asked.path.removesuffix("/gpu/status")]
    meta = {**live["metadata"], "resourceVersion": "2"}
    await answer.json({**live, "metadata": meta, "status": asked.json["status"]})


@dataclass
class Work:
    """A manager at work, and which keys its two reconcilers looked at."""

    manager: Manager
    ours: set[str] = field(default_factory=set)
    theirs: set[str] = field(default_factory=set)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            await eventually(condition, step_seconds=0.02)


@asynccontextmanager
async def working(api: FakeApi, record: Path | None = None) -> AsyncIterator[Work]:
    ours: set[str] = set()
    theirs: set[str] = set()
    program = Program(
        sources=sources(TWO),
        reconcilers=(
            noting("nodeset", OURS, lambda key: ours.add(key.name)),
            noting("testing-nodeset", OTHER, lambda key: theirs.add(key.name)),
        ),
        kinds=TWO,
    )
    settings = Settings(namespaces=("ns",), health=NOWHERE, metrics=NOWHERE, record=record, groups=GROUPS)
    manager = Manager(Access(server=api.url), program, settings)
    running = asyncio.create_task(manager.run())
    work = Work(manager, ours, theirs)
    await work.until(lambda: len(ours) > 1 and len(theirs) > 1)
    try:
        yield work
    finally:
        manager.end()
        assert await running == 0


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi(lists=[answered], others=[answered]) as server:
        yield server


async def test_each_kind_has_a_cache_of_its_own(api: FakeApi):
    async with working(api) as work:
        view = work.manager.known.view()

        assert view.get(OURS, "ns", "gpu").metadata.uid == "gpu-of-slinky.slurm.net"
        assert view.get(OTHER, "ns", "gpu").metadata.uid == "gpu-of-testing.example.com"
        assert view.get(OTHER, "ns", "gpu").spec.size == 1
        assert work.manager.known.live(OTHER.KIND, GPU).metadata.uid == "gpu-of-testing.example.com"


async def test_a_child_wakes_the_owner_of_its_group(api: FakeApi):
    async with working(api) as work:
        await asyncio.sleep(0.2)  # Whoever was woken by mistake has been looked at by then.

        assert work.ours == {"gpu", "ours"}
        assert work.theirs == {"gpu", "theirs"}


async def test_each_status_is_written_to_its_own_kind(api: FakeApi):
    def written_to() -> set[str]:
        return {asked.path for asked in api.asked if asked.method == "PATCH"}

    async with working(api) as work:
        wanted = {type_.KIND.path("ns", "gpu", "status") for type_ in (OURS, OTHER)}
        await work.until(lambda: written_to() >= wanted)

    sent = {asked.path: asked.json["apiVersion"] for asked in api.asked if asked.method == "PATCH"}
    assert sent[OTHER.KIND.path("ns", "gpu", "status")] == "testing.example.com/v1"


async def test_series_of_the_second_group_say_so_and_those_of_the_first_are_as_before(api: FakeApi):
    async with working(api) as work:
        text = work.manager.metrics.text
        for resource in (b"nodesets", b"nodesets.testing.example.com"):
            await work.until(lambda it=resource: b'resource="%s/status"' % it in text())
            await work.until(lambda it=resource: b'cached_objects{resource="%s"} 1.0' % it in text())
        found = text().decode()

    for series in ("cached_objects", "undecodable_objects", "watch_age_seconds"):
        for resource in ("nodesets", "nodesets.testing.example.com", "pods", "controllers"):
            assert f'slurm_operator_{series}{{resource="{resource}"}}' in found
    for resource in ("nodesets", "nodesets.testing.example.com"):
        assert f'kube_requests_total{{code="200",resource="{resource}",verb="list"}} 1.0' in found
        assert f'kube_requests_total{{code="200",resource="{resource}/status",verb="' in found
    assert 'reconciles_total{reconciler="testing-nodeset"' in found
    assert ".slinky.slurm.net" not in found


async def test_a_recording_of_both_replays(api: FakeApi, tmp_path: Path):
    async with working(api, record=tmp_path) as work:
        await work.until(lambda: len(list(recorded(read_files(tmp_path)))) == 2)

    found = {one.flight.reconciler: one for one in recorded(read_files(tmp_path))}
    assert {asked[1] for asked in found["nodeset"].answers} == {"NodeSet"}
    assert {asked[1] for asked in found["testing-nodeset"].answers} == {"NodeSet.testing.example.com"}
    reconcilers = (noting("nodeset", OURS), noting("testing-nodeset", OTHER))
    assert [one for one in found.values() if not replay(one, reconcilers).is_same] == []


def test_answers_about_both_are_kept_side_by_side():
    """One pass may look at both: a front door of the second group at the parts that it made."""
    world = HandmadeWorld([made(OURS, "gpu"), made(OTHER, "gpu"), made(OTHER, "cpu")])
    witness = RecordingWorld(world)
    for type_ in (OURS, OTHER):
        witness.get(type_, "ns", "gpu")
        witness.all(type_, "ns")
        witness.unreadable(type_, "ns")
    again = ReplayWorld(
        world.now, {asked: RecordedAnswer(plain_answer(it)) for asked, it in witness.answers.items()}
    )

    assert again.get(OURS, "ns", "gpu") == made(OURS, "gpu")
    assert again.get(OTHER, "ns", "gpu") == made(OTHER, "gpu")
    assert again.all(OURS, "ns") == [made(OURS, "gpu")]
    assert again.all(OTHER, "ns") == [made(OTHER, "cpu"), made(OTHER, "gpu")]
    with pytest.raises(NotRecorded):
        again.get(OTHER, "ns", "cpu")


def test_a_recording_of_the_version_before_is_read():
    """It calls every type by its bare name."""
    before: dict[tuple[str, ...], Any] = {
        ("get", "NodeSet", "ns", "gpu"): {"type": "NodeSet", "value": manifest(OURS, "gpu")},
        ("all", "NodeSet", "ns"): [{"type": "NodeSet", "value": manifest(OURS, "gpu")}],
        ("unreadable", "NodeSet", "ns"): ["strange"],
    }
    world = ReplayWorld(HandmadeWorld().now, {asked: RecordedAnswer(it) for asked, it in before.items()})

    assert world.get(OURS, "ns", "gpu") == made(OURS, "gpu")
    assert world.all(OURS, "ns") == [made(OURS, "gpu")]
    assert world.unreadable(OURS, "ns") == ["strange"]
    with pytest.raises(NotRecorded):
        world.get(OTHER, "ns", "gpu")
