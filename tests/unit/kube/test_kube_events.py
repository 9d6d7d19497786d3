"""Events reach people, repeats become a count, and nobody ever waits for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from eventually import eventually
from fake_api_server import Answer, FakeApi, refusal

from slurm_operator.api.shared.meta import Meta
from slurm_operator.kube.events import Recorder, Regarding, regarding
from slurm_operator.manifests.kinds import KUBE_NODE, POD
from testing.hostile import HOSTILE, obeyed

VIRTUAL_TIME = True

ABOUT = Regarding(api_version="v1", kind="Pod", name="a", namespace="ns", uid="u1", resource_version="5")


async def accept(answer: Answer) -> None:
    await answer.json(answer.asked.json)


@asynccontextmanager
async def recording(api: FakeApi, **options: int) -> AsyncIterator[Recorder]:
    async with api, api.client() as client:
        recorder = Recorder(client, instance="host-1", **options)
        running = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_an_event_says_what_happened_to_what_and_who_says_so() -> None:
    api = FakeApi(others=[accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, "ScaleIn", "no unfinished job is left on it", action="Delete", type_="Warning")
        await eventually(lambda: recorder.sent == 1)

    (asked,) = api.asked
    event = asked.json
    assert (asked.method, asked.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
        "namespace": "ns",
        "uid": "u1",
        "resourceVersion": "5",
    }
    said = (event["reason"], event["note"], event["action"], event["type"])
    assert said == ("ScaleIn", "no unfinished job is left on it", "Delete", "Warning")
    assert (event["reportingController"], event["reportingInstance"]) == ("slurm-operator", "host-1")
    assert "series" not in event


async def test_repeats_become_one_event_with_a_count() -> None:
    api = FakeApi(others=[accept])
    async with recording(api) as recorder:
        for _ in range(100):
            recorder.record(ABOUT, "Draining", "jobs still running: 2")
            await asyncio.sleep(3)
        await asyncio.sleep(1000)

    create, *counts = api.asked
    assert create.method == "POST"
    assert {asked.method for asked in counts} == {"PATCH"}
    assert len(counts) <= 8  # 100 repeats in 5 minutes.
    assert counts[-1].json["series"]["count"] == 100
    assert counts[-1].path.endswith(f"/events/{create.json['metadata']['name']}")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((ABOUT, "Draining", "jobs still running: 1"), id="another note"),
        pytest.param((ABOUT, "Waiting", "jobs still running: 2"), id="another reason"),
        pytest.param(
            (Regarding(api_version="v1", kind="Pod", name="a", namespace="ns", uid="u2"), "Draining", "jobs"),
            id="another incarnation",
        ),
    ],
)
async def test_what_differs_is_another_event(other: tuple[Regarding, str, str]) -> None:
    api = FakeApi(others=[accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, "Draining", "jobs still running: 2")
        recorder.record(*other)
        await eventually(lambda: recorder.sent == 2)

    assert [asked.method for asked in api.asked] == ["POST", "POST"]


async def test_the_same_after_a_long_pause_is_told_anew() -> None:
    api = FakeApi(others=[accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, "Draining", "jobs still running: 2")
        await asyncio.sleep(400)
        recorder.record(ABOUT, "Draining", "jobs still running: 2")
        await eventually(lambda: recorder.sent == 2)

    assert [asked.method for asked in api.asked] == ["POST", "POST"]


async def test_a_count_whose_event_has_expired_becomes_a_new_event() -> None:
    api = FakeApi(others=[accept, refusal(404, "NotFound", "expired"), accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, "Draining", "jobs")
        await eventually(lambda: recorder.sent == 1)
        recorder.record(ABOUT, "Draining", "jobs")
        await eventually(lambda: recorder.sent == 2)

    assert [asked.method for asked in api.asked] == ["POST", "PATCH", "POST"]
    assert api.asked[2].json["series"]["count"] == 2


async def test_a_server_that_does_not_answer_fills_the_queue_and_nobody_waits() -> None:
    async def silence(answer: Answer) -> None:
        await asyncio.Event().wait()

    clock = asyncio.get_running_loop().time
    api = FakeApi(others=[silence])
    async with recording(api, limit=10) as recorder:
        began = clock()
        for number in range(50):
            recorder.record(ABOUT, "Draining", f"jobs still running: {number}")
        waited = clock() - began

    assert waited == 0
    assert recorder.dropped == 40


async def test_a_refused_event_is_counted_and_the_next_one_goes_out() -> None:
    api = FakeApi(others=[refusal(403, "Forbidden", "namespace is being terminated"), accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, "One", "1")
        recorder.record(ABOUT, "Two", "2")
        await eventually(lambda: recorder.sent == 1)

    assert recorder.failed == 1


async def test_flush_sends_what_is_waiting() -> None:
    api = FakeApi(others=[accept])
    async with api, api.client() as client:
        recorder = Recorder(client)
        recorder.record(ABOUT, "Stopping", "the operator ends")
        await recorder.flush()

    assert recorder.sent == len(api.asked) == 1


async def test_long_notes_fit_and_cluster_wide_objects_have_a_namespace_for_events() -> None:
    api = FakeApi(others=[accept])
    node = regarding(KUBE_NODE, Meta(name="n" * 253, uid="u"))
    async with recording(api) as recorder:
        recorder.record(node, "R" * 500, "ä" * 1000, action="A" * 500)
        await eventually(lambda: recorder.sent == 1)

    event = api.asked[0].json
    assert event["metadata"]["namespace"] == "default"
    assert len(event["metadata"]["name"]) <= 253
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("…")
    assert len(event["reason"]) == len(event["action"]) == 128


def test_regarding_names_one_version_of_one_object() -> None:
    meta = Meta(name="a", namespace="ns", uid="u1", resource_version="5")

    assert regarding(POD, meta) == ABOUT


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_what_an_event_quotes_is_shown_and_never_obeyed(text: str) -> None:
    api = FakeApi(others=[accept])
    async with recording(api) as recorder:
        recorder.record(ABOUT, text, f"Slurm says {text}")
        await eventually(lambda: recorder.sent == 1)

    event = api.asked[0].json
    assert event["note"].startswith("Slurm says ")
    assert obeyed(event["note"] + event["reason"], but="") == ""
    assert len(event["note"].encode()) <= 1024
    assert len(event["reason"]) <= 128
