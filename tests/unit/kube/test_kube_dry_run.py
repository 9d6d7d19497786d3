"""Trying a file on the API server without keeping it, and looking without the right to see."""

import json
from datetime import UTC, datetime

import pytest
from fake_api_server import Answer, FakeApi, listing, refusal, thing

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.forecast.proposal import LAST_APPLIED, Refused, ServerSide, tried
from slurm_operator.manifests.objects import Pod
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings

KIND = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet"}
NODESET = {**KIND, "metadata": {"name": "cpu", "namespace": "ns"}, "spec": {"replicas": 3}}


def gives(body: dict, code: int = 200):
    async def answer_so(answer: Answer) -> None:
        await answer.json(body, code)

    return answer_so


def live(spec: dict, last: dict | None = None) -> dict:
    notes = {LAST_APPLIED: json.dumps(last)} if last is not None else {}
    return {
        **KIND,
        "metadata": {"name": "cpu", "namespace": "ns", "uid": "u1", "annotations": notes},
        "spec": spec,
    }


async def test_what_is_not_there_yet_is_created_for_a_try_and_has_no_uid_of_its_own() -> None:
    absent, made = refusal(404, "NotFound"), gives(live({"replicas": 3}))
    async with FakeApi(others=[absent, made]) as api, api.client(may_write=lambda: False) as client:
        found = await tried(client, NODESET)

    assert [asked.method for asked in api.asked] == ["GET", "POST"]
    assert api.asked[1].params["dryRun"] == "All"
    assert api.asked[1].params["fieldValidation"] == "Strict"
    assert found["metadata"]["uid"].startswith("new-")


async def test_what_is_there_is_patched_as_kubectl_apply_would() -> None:
    before = live(
        {"replicas": 2, "extraConf": "A=1", "theirs": 1}, last={"spec": {"replicas": 2, "extraConf": "A=1"}}
    )
    async with FakeApi(others=[gives(before), gives(live({"replicas": 3}))]) as api, api.client() as client:
        found = await tried(client, NODESET)

    assert api.asked[1].method == "PATCH"
    assert api.asked[1].headers["content-type"] == "application/merge-patch+json"
    assert api.asked[1].json["spec"] == {"replicas": 3, "extraConf": None}
    assert found["metadata"]["uid"] == "u1"


async def test_a_server_side_apply_is_tried_as_whoever_makes_it() -> None:
    async with FakeApi(others=[gives(live({})), gives(live({}))]) as api, api.client() as client:
        await tried(client, NODESET, ServerSide("ci", force=True))

    asked = api.asked[1]
    assert (asked.params["fieldManager"], asked.params["force"], asked.params["dryRun"]) == (
        "ci",
        "true",
        "All",
    )
    assert asked.json == NODESET


async def test_a_refusal_keeps_the_servers_words() -> None:
    no = refusal(422, "Invalid", "spec.replicas: must be at least 0")
    async with FakeApi(others=[gives(live({})), no]) as api, api.client() as client:
        with pytest.raises(Refused, match=r"NodeSet ns/cpu: spec\.replicas: must be at least 0"):
            await tried(client, NODESET)


async def test_who_may_see_nothing_is_told_every_right_that_is_missing() -> None:
    async with FakeApi(lists=[refusal(403, "Forbidden", "not you")]) as api, api.client() as client:
        sight = await Looker(client, program(Settings()), "ns").look()

    rights = {unseen.right for unseen in sight.unseen}
    assert {
        "list pods",
        "list nodes",
        "list nodesets (slinky.slurm.net)",
        "list statefulsets (apps)",
    } <= rights
    assert sight.picture.records == {}


async def test_a_look_reads_every_kind_once_and_writes_nothing() -> None:
    async with FakeApi(lists=[listing()]) as api, api.client(may_write=lambda: False) as client:
        sight = await Looker(client, program(Settings()), "ns").look()

    assert sight.unseen == []
    assert {asked.method for asked in api.asked} == {"GET"}
    asked = [
        (one.path, one.params.get("labelSelector"), one.params.get("fieldSelector")) for one in api.asked
    ]
    assert len(asked) == len(set(asked))
    assert "/api/v1/namespaces/ns/pods" in {path for path, _, _ in asked}
    assert sight.picture.get(Pod, *ObjectKey("ns", "a")) is None
    assert sight.picture.now <= datetime.now(UTC)


async def test_a_look_tells_what_is_there_and_cannot_be_read() -> None:
    async def strange(answer: Answer) -> None:
        things = [thing("strange", 90, spec=[])] if answer.asked.path.endswith("/nodesets") else []
        await listing(*things)(answer)

    async with FakeApi(lists=[strange]) as api, api.client(may_write=lambda: False) as client:
        sight = await Looker(client, program(Settings()), "ns").look()

    assert sight.picture.unreadable(NodeSet, "ns") == ["strange"]
    assert sight.picture.all(NodeSet, "ns") == []
    assert "one of the nodesets" in {unseen.what for unseen in sight.unseen}
