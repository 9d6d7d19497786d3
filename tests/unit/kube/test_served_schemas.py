"""Statuses carry only what the served CRDs have: read from the server, and again when it has others."""

import asyncio

import pytest
import structlog.testing
from fake_api_server import Answer, FakeApi

from slurm_operator.api.schema.crd import root_schema
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.kube.errors import Status, from_status
from slurm_operator.kube.served_schemas import (
    UNREAD_SECONDS,
    ServedSchemas,
    completed,
    fitting,
    is_schema_trouble,
    lacking,
)
from testing import slinky_crds

THEIRS = slinky_crds.status_schema("NodeSet")
OURS = root_schema(NodeSet)["properties"]["status"]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        pytest.param({"replicas": 1, "mismatches": ["w-0"]}, {"replicas": 1}, id="a field that it lacks"),
        pytest.param({"ordinalToNode": {"0": "m"}}, {"ordinalToNode": {"0": "m"}}, id="a map keeps its keys"),
        pytest.param(
            {"conditions": [{"type": "Ready", "since": "now"}]}, {"conditions": [{"type": "Ready"}]}, id="inside a list"
        ),
    ],
)  # fmt: skip
def test_what_the_schema_lacks_is_left_out(value, left):
    assert fitting(value, THEIRS) == left


def test_without_a_schema_and_where_it_is_open_everything_stays():
    value = {"a": [{"b": 1}], "c": {"d": None}}
    open_ = {"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True}
    assert fitting(value, {}) == value
    assert fitting(value, open_) == value
    assert list(lacking(OURS, open_)) == []


def test_what_the_schema_requires_is_there_though_it_is_not_known_yet():
    assert completed({"replicas": 1}, THEIRS) == {"nodeSetHash": "", "selector": "", "replicas": 1}
    assert completed({"selector": "a=b"}, THEIRS)["selector"] == "a=b"
    assert completed({"replicas": 1}, {}) == {"replicas": 1}
    [condition] = completed({"conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}]}, THEIRS)[
        "conditions"
    ]
    assert condition["message"] == "", "the server refuses a status whose conditions lack one"


def test_every_field_of_ours_that_is_missing_is_named():
    missing = set(lacking(OURS, THEIRS))
    assert {"mismatches", "failures", "registeredReplicas"} <= missing
    assert not {"replicas", "selector", "conditions", "conditions[].type"} & missing
    assert list(lacking(OURS, OURS)) == []


class Server:
    """Serves one group; `statuses` is by kind what its CRDs say, and every change gives another address."""

    def __init__(self, **statuses) -> None:
        self.statuses = statuses
        self.edition = 1
        self.refuses = False

    def install(self, **statuses) -> None:
        self.statuses, self.edition = statuses, self.edition + 1

    async def answer(self, to: Answer) -> None:
        if self.refuses:
            await to.refuse(403, "Forbidden", "no")
        elif to.asked.path == "/openapi/v3":
            place = f"/openapi/v3/apis/slinky.slurm.net/v1beta1?hash={self.edition}"
            await to.json({"paths": {"apis/slinky.slurm.net/v1beta1": {"serverRelativeURL": place}}})
        else:
            assert to.asked.params == {"hash": str(self.edition)}
            await to.json({"components": {"schemas": {f"x.{kind}": _definition(kind, status) for kind, status in
                                                      self.statuses.items()}}})  # fmt: skip


def _definition(kind: str, status: dict) -> dict:
    gvk = {"group": "slinky.slurm.net", "version": "v1beta1", "kind": kind}
    return {"x-kubernetes-group-version-kind": [gvk], "properties": {"spec": {}, "status": status}}


async def test_it_is_read_once_for_all_kinds_of_a_version_and_said_once():
    server = Server(NodeSet=THEIRS, Controller=slinky_crds.status_schema("Controller"))
    async with FakeApi(lists=[server.answer]) as api, api.client() as client:
        served = ServedSchemas(client)
        with structlog.testing.capture_logs() as logs:
            found = await asyncio.gather(*(served.status_of(NodeSet.KIND, OURS) for _ in range(3)))
            await served.status_of(Controller.KIND, root_schema(Controller)["properties"]["status"])

        assert found == [THEIRS] * 3
        assert len(api.asked) == 2
        said = [(line["kind"], line["log_level"]) for line in logs]
        assert said == [("NodeSet.slinky.slurm.net", "warning"), ("Controller.slinky.slurm.net", "warning")]
        assert "mismatches" in logs[0]["fields"]


async def test_exchanged_crds_are_noticed_and_everything_of_the_group_is_looked_at_again(monkeypatch):
    monkeypatch.setattr("slurm_operator.kube.served_schemas.LOOK_SECONDS", 0.01)
    server, woken, heard = Server(NodeSet=THEIRS), [], asyncio.Event()

    def wake(group: str) -> None:
        woken.append(group)
        heard.set()

    async with FakeApi(lists=[server.answer]) as api, api.client() as client:
        served = ServedSchemas(client, wake=wake)
        await served.status_of(NodeSet.KIND, OURS)
        looking = asyncio.create_task(served.run())
        server.install(NodeSet=OURS)
        async with asyncio.timeout(10):
            await heard.wait()
        assert await served.status_of(NodeSet.KIND, OURS) == OURS

        asked = len(api.asked)
        await asyncio.sleep(0.1)
        looking.cancel()
        assert len(api.asked) == asked, "nothing is missing, so nobody asks any more"
        assert woken == ["slinky.slurm.net"]

        server.install(NodeSet=THEIRS)
        assert await served.has_changed(NodeSet.KIND)
        assert not await served.has_changed(NodeSet.KIND)


async def test_where_it_cannot_be_read_nothing_is_left_out_and_it_is_tried_again_later():
    server, now = Server(NodeSet=THEIRS), [0.0]
    server.refuses = True
    async with FakeApi(lists=[server.answer]) as api, api.client() as client:
        served = ServedSchemas(client, clock=lambda: now[0])
        assert await served.status_of(NodeSet.KIND, OURS) is None
        assert await served.status_of(NodeSet.KIND, OURS) is None
        assert len(api.asked) == 1
        server.refuses, now[0] = False, UNREAD_SECONDS
        assert await served.status_of(NodeSet.KIND, OURS) == THEIRS


def test_a_refusal_for_an_unknown_field_is_told_from_others():
    undeclared = Status(
        code=500, message="failed to create typed patch object: .status.x: field not declared in schema"
    )
    assert is_schema_trouble(from_status(undeclared))
    assert not is_schema_trouble(from_status(Status(code=500, message="etcd is away")))
