"""What the client sends, what it makes of the answers, and when it holds back."""

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from fake_api_server import Answer, FakeApi, refusal, thing

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import Identity, TokenFile, bearer
from slurm_operator.kube.client import Call, Client
from slurm_operator.kube.request import Selection, on_object
from slurm_operator.kube.transport import Pool
from slurm_operator.manifests.kinds import DEPLOYMENT, LEASE, POD

VIRTUAL_TIME = True

KEY = ObjectKey("ns", "a")


async def ok(answer: Answer) -> None:
    await answer.json(thing("a", 7))


def known_by_token(api: FakeApi, token: Path) -> Client:
    return Client(Access(server=api.url, credentials=TokenFile(token)))


async def silence(answer: Answer) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorised),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (418, "Teapot", errors.ApiError),
        (422, "Invalid", errors.Invalid),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (504, "Timeout", errors.ServerError),
    ],
)
async def test_a_refusal_is_an_error_of_its_own_with_the_servers_words(
    code: int, reason: str, error: type[errors.ApiError]
) -> None:
    async with FakeApi(others=[refusal(code, reason, "because I say so")]) as api, api.client() as client:
        with pytest.raises(errors.ApiError) as caught:
            await client.get(POD, KEY)

    assert type(caught.value) is error
    assert str(caught.value) == "get Pod ns/a: because I say so"
    assert caught.value.message == "because I say so"
    assert (caught.value.code, caught.value.reason) == (code, reason)


async def test_causes_of_an_invalid_object_are_kept() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "must be positive", "field": "spec.replicas"}]
    refuse = refusal(422, "Invalid", "no", details={"name": "a", "causes": causes})
    async with FakeApi(others=[refuse]) as api, api.client() as client:
        with pytest.raises(errors.Invalid) as caught:
            await client.apply(DEPLOYMENT, {"metadata": {"namespace": "ns", "name": "a"}})

    assert [(cause.field, cause.message) for cause in caught.value.causes] == [
        ("spec.replicas", "must be positive")
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"<html>bad gateway</html>", "<html>bad gateway</html>", id="a proxy's page is quoted"),
        pytest.param(b"", "Bad Gateway", id="nothing: what HTTP calls it"),
        pytest.param(b"[1]", "[1]", id="JSON of another shape"),
        pytest.param(b'{"message":"\xff"}', "message", id="bytes that are no text"),
        pytest.param(b"[" * 100_000, "[[[", id="nested deeper than anybody reads"),
    ],
)
async def test_an_answer_that_is_no_status_is_still_an_error_worth_reading(body: bytes, said: str) -> None:
    async def page(answer: Answer) -> None:
        await answer.body(body, 502)

    async with FakeApi(others=[page]) as api, api.client() as client:
        with pytest.raises(errors.ServerError, match=re.escape(said)):
            await client.get(POD, KEY)


async def test_429_is_waited_out_as_long_as_the_server_asks() -> None:
    busy = refusal(429, "TooManyRequests", "slow down", headers={"Retry-After": "7"})
    clock = asyncio.get_running_loop().time
    async with FakeApi(others=[busy, busy, ok]) as api, api.client() as client:
        began = clock()
        await client.get(POD, KEY)
        waited = clock() - began

    assert len(api.asked) == 3
    assert 14 <= waited < 20


async def test_429_without_end_ends_with_the_deadline() -> None:
    busy = refusal(429, "TooManyRequests", "slow down", details={"retryAfterSeconds": 2})
    clock = asyncio.get_running_loop().time
    async with FakeApi(others=[busy]) as api, api.client(deadline_seconds=9) as client:
        began = clock()
        with pytest.raises(errors.TooManyRequests, match="slow down"):
            await client.get(POD, KEY)
        waited = clock() - began

    assert waited <= 9
    assert 2 <= len(api.asked) <= 5


async def test_a_server_that_asks_to_wait_longer_than_the_deadline_is_not_waited_for() -> None:
    busy = refusal(503, "ServiceUnavailable", "starting", headers={"Retry-After": "600"})
    async with FakeApi(others=[busy]) as api, api.client() as client:
        with pytest.raises(errors.ServerError) as caught:
            await client.get(POD, KEY)

    assert caught.value.retry_after == 600
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("code", "reason", "times"),
    [
        pytest.param(503, "ServiceUnavailable", 2, id="it took nothing in"),
        pytest.param(500, "ServerTimeout", 1, id="etcd may have it"),
        pytest.param(504, "Timeout", 1, id="a webhook may have been slow"),
    ],
)
async def test_a_write_that_may_have_happened_is_not_sent_again_though_the_server_asks(code, reason, times):
    busy = refusal(code, reason, "later", headers={"Retry-After": "1"})
    async with FakeApi(others=[busy, ok]) as api, api.client() as client:
        with contextlib.suppress(errors.ServerError):
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})

    assert len(api.asked) == times


async def test_a_namespace_that_is_being_deleted_is_told_from_a_missing_right() -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"}]
    ending = refusal(403, "Forbidden", "unable to create new content", details={"causes": causes})
    async with FakeApi(others=[ending, refusal(403, "Forbidden", "no")]) as api, api.client() as client:
        with pytest.raises(errors.NamespaceEnding, match="unable to create new content"):
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})
        with pytest.raises(errors.Forbidden) as caught:
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})

    assert not isinstance(caught.value, errors.NamespaceEnding)


async def test_a_refused_eviction_is_told_at_once_and_not_repeated() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget x needs 3 healthy pods"}]
    refuse = refusal(
        429, "TooManyRequests", "Cannot evict pod", details={"causes": causes, "retryAfterSeconds": 10}
    )
    async with FakeApi(others=[refuse]) as api, api.client() as client:
        with pytest.raises(errors.BudgetRefused, match="Cannot evict pod"):
            await client.evict(KEY, uid="u1", grace_seconds=5)

    assert len(api.asked) == 1
    assert api.asked[0].path == "/api/v1/namespaces/ns/pods/a/eviction"
    assert api.asked[0].json["deleteOptions"] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 5,
    }


async def test_every_call_ends_with_its_deadline() -> None:
    async with FakeApi(others=[silence]) as api, api.client(deadline_seconds=3) as client:
        with pytest.raises(errors.Timeout) as reading:
            await client.get(POD, KEY)
        with pytest.raises(errors.Timeout) as writing:
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})

    assert not reading.value.may_have_happened
    assert writing.value.may_have_happened


async def test_a_server_that_is_not_there_is_unreachable_and_nothing_can_have_happened() -> None:
    async with FakeApi() as api:
        pass
    async with api.client() as client:
        with pytest.raises(errors.Unreachable, match="cannot connect") as caught:
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})

    assert not caught.value.may_have_happened


async def test_a_connection_that_breaks_in_the_middle_of_a_write_may_have_done_it() -> None:
    async def cut(answer: Answer) -> None:
        answer.reset()

    async with FakeApi(others=[cut]) as api, api.client() as client:
        with pytest.raises(errors.Unreachable) as caught:
            await client.create(POD, {"metadata": {"namespace": "ns", "name": "a"}})

    assert caught.value.may_have_happened


async def test_an_expired_token_is_read_again_and_the_call_repeated_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def expired(answer: Answer) -> None:
        token.write_text("new-and-longer")
        await answer.refuse(401, "Unauthorized", "token has expired")

    async with FakeApi(others=[expired, ok]) as api, known_by_token(api, token) as client:
        await client.get(POD, KEY)

    assert [asked.headers["authorization"] for asked in api.asked] == ["Bearer old", "Bearer new-and-longer"]


async def test_a_token_that_is_refused_and_not_renewed_is_not_tried_for_ever(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("stolen")
    who = refusal(401, "Unauthorized", "who are you")
    async with FakeApi(others=[who]) as api, known_by_token(api, token) as client:
        with pytest.raises(errors.Unauthorised, match="who are you"):
            await client.get(POD, KEY)

    assert len(api.asked) == 1


async def test_a_token_of_two_lines_is_a_problem_to_be_mended_and_sends_nothing(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\ntwo\n")
    async with FakeApi(others=[ok]) as api, known_by_token(api, token) as client:
        with pytest.raises(errors.ConfigProblem, match="see the token") as caught:
            await client.get(POD, KEY)

    assert "two" not in str(caught.value)
    assert not api.asked


class Login:
    """A person who logs in, and is not quick at it."""

    def __init__(self) -> None:
        self.logins = 0
        self._is_known = False

    async def identity(self) -> Identity:
        if not self._is_known:
            await asyncio.sleep(30)
            self.logins += 1
            self._is_known = True
        return Identity((bearer(str(self.logins)),))

    def invalidate(self) -> None:
        self._is_known = False


async def test_logging_in_takes_nothing_from_the_time_for_the_answer() -> None:
    async def slowly(answer: Answer) -> None:
        await asyncio.sleep(1)
        await (ok(answer) if person.logins == 2 else answer.refuse(401, "Unauthorized"))

    person = Login()
    async with (
        FakeApi(others=[slowly]) as api,
        Client(Access(server=api.url, credentials=person), deadline_seconds=5) as client,
    ):
        await client.get(POD, KEY)

    assert person.logins == 2
    assert [asked.headers["authorization"] for asked in api.asked] == ["Bearer 1", "Bearer 2"]


async def test_without_the_lease_nothing_is_written_but_reads_reviews_and_the_lease_itself() -> None:
    async with FakeApi(lists=[ok], others=[ok]) as api, api.client(may_write=lambda: False) as client:
        for write in (
            client.create(POD, thing("a", 1)),
            client.apply(POD, thing("a", 1)),
            client.apply_status(POD, thing("a", 1)),
            client.replace(POD, thing("a", 1)),
            client.delete(POD, KEY),
            client.evict(KEY),
            client.json_patch(POD, KEY, []),
            client.merge_patch(POD, KEY, {}),
            client.request("POST", "/api/v1/namespaces/ns/pods"),
        ):
            with pytest.raises(errors.NotLeader):
                await write
        sent_before = list(api.asked)
        await client.get(POD, KEY)
        await client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body={})
        await client.send(on_object("update", "PUT", LEASE, KEY, body={}), pool=Pool.LEASE)

    assert sent_before == []
    assert [asked.method for asked in api.asked] == ["GET", "POST", "PUT"]


async def test_a_write_that_waited_for_a_connection_asks_again_before_it_is_sent() -> None:
    """The process may have been stopped in between, or the queue for a connection was long."""
    leads = True
    release = asyncio.Event()

    async def slow(answer: Answer) -> None:
        await release.wait()
        await ok(answer)

    def may_write() -> bool:
        return leads

    async with FakeApi(others=[slow, ok]) as api, api.client(may_write=may_write, connections=1) as client:
        reading = asyncio.create_task(client.get(POD, KEY))
        await asyncio.sleep(1)
        writing = asyncio.create_task(client.create(POD, thing("b", 1)))
        await asyncio.sleep(1)
        leads = False
        release.set()
        await reading
        with pytest.raises(errors.NotLeader):
            await writing

    assert [asked.method for asked in api.asked] == ["GET"]


async def test_a_write_asks_again_when_its_bytes_are_about_to_leave() -> None:
    """Between that and the look before, other tasks had their turn, and the process may have slept."""
    leads = iter([True, False])

    async with FakeApi(others=[ok]) as api, api.client(may_write=lambda: next(leads)) as client:
        with pytest.raises(errors.NotLeader):
            await client.create(POD, thing("a", 1))

    assert api.asked == []


async def test_calls_are_counted_by_verb_resource_and_code() -> None:
    calls: list[Call] = []
    script = [ok, refusal(404, "NotFound", "no"), ok]
    async with FakeApi(others=script) as api, api.client(on_call=calls.append) as client:
        await client.create(POD, thing("a", 1))
        with pytest.raises(errors.NotFound):
            await client.delete(POD, KEY)
        await client.apply_status(POD, thing("a", 1))
    async with api.client(on_call=calls.append) as client:
        with pytest.raises(errors.Unreachable):
            await client.get(POD, KEY)

    assert [(call.verb, call.resource, call.code) for call in calls] == [
        ("create", "pods", 200),
        ("delete", "pods", 404),
        ("apply", "pods/status", 200),
        ("get", "pods", 0),
    ]


async def test_apply_is_server_side_with_our_field_manager_and_names_the_kind() -> None:
    async with FakeApi(others=[ok]) as api, api.client() as client:
        applied = await client.apply(
            DEPLOYMENT, {"metadata": {"namespace": "ns", "name": "a"}, "spec": {"replicas": 0}}
        )
        await client.apply_status(DEPLOYMENT, {"metadata": {"namespace": "ns", "name": "a"}}, force=False)

    apply, apply_status = api.asked
    assert (apply.method, apply.path) == ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/a")
    assert apply.headers["content-type"] == "application/apply-patch+yaml"
    assert apply.params == {"fieldManager": "slurm-operator", "force": "true"}
    assert apply.json == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "ns", "name": "a"},
        "spec": {"replicas": 0},
    }
    assert apply_status.path.endswith("/deployments/a/status")
    assert apply_status.params["force"] == "false"
    assert applied["metadata"]["resourceVersion"] == "7"
    assert apply.headers["user-agent"].startswith("slurm-operator/")


async def test_patches_have_their_types_and_a_uid_becomes_a_test() -> None:
    async with FakeApi(others=[ok]) as api, api.client() as client:
        operations = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}]
        await client.json_patch(POD, KEY, operations, uid="u1")
        await client.merge_patch(POD, KEY, {"metadata": {"labels": {"x": None}}}, subresource="status")

    first, second = api.asked
    assert first.headers["content-type"] == "application/json-patch+json"
    assert first.json == [{"op": "test", "path": "/metadata/uid", "value": "u1"}, *operations]
    assert second.headers["content-type"] == "application/merge-patch+json"
    assert second.path.endswith("/pods/a/status")


@pytest.mark.parametrize(
    ("uid", "version", "error", "words"),
    [
        ("uid-b", "7", errors.Conflict, "Pod ns/a is no longer the one with uid uid-b"),
        ("uid-a", "6", errors.Conflict, "Pod ns/a has changed since it was read"),
        ("uid-a", "7", errors.Invalid, "patch Pod ns/a: something is wrong with it"),
    ],
)
async def test_a_patch_that_was_overtaken_says_so(
    uid: str, version: str, error: type[errors.ApiError], words: str
) -> None:
    operations = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    refused = refusal(422, "Invalid", "something is wrong with it")
    async with FakeApi(others=[refused, ok]) as api, api.client() as client:
        with pytest.raises(error) as caught:
            await client.json_patch(POD, KEY, operations, uid=uid)

    assert type(caught.value) is error
    assert words in str(caught.value)


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("answer", "is_left"),
    [
        pytest.param({"kind": "Status", "status": "Success"}, False, id="a Status: gone"),
        pytest.param(
            thing("a", 9, metadata=GOING | {"deletionGracePeriodSeconds": 30}), True, id="a pod with grace"
        ),
        pytest.param(
            thing("a", 9, metadata=GOING | {"deletionGracePeriodSeconds": 0}), False, id="a pod without: gone"
        ),
        pytest.param(thing("a", 9, metadata=GOING | {"finalizers": ["x/y"]}), True, id="held by a finalizer"),
        pytest.param(thing("a", 9), False, id="its last state: gone"),
    ],
)
async def test_a_delete_says_whether_something_is_left(answer: dict[str, Any], is_left: bool) -> None:
    async def reply(to: Answer) -> None:
        await to.json(answer)

    async with FakeApi(others=[reply]) as api, api.client() as client:
        left = await client.delete(
            POD, KEY, uid="u1", resource_version="8", grace_seconds=30, propagation="Foreground"
        )

    assert (left is not None) == is_left
    assert api.asked[0].json == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1", "resourceVersion": "8"},
        "gracePeriodSeconds": 30,
        "propagationPolicy": "Foreground",
    }


async def test_a_hundred_watches_do_not_keep_a_call_waiting() -> None:
    async with FakeApi(others=[ok]) as api, api.client(connections=1) as client:

        async def watch(number: int) -> None:
            chosen = Selection(kind=POD, namespace=f"ns{number}")
            async with client.watch(
                chosen, resource_version="1", timeout_seconds=600, idle_seconds=600
            ) as lines:
                async for _ in lines:
                    pass

        watching = [asyncio.create_task(watch(number)) for number in range(100)]
        await asyncio.sleep(1)
        await client.get(POD, KEY)
        open_watches = len(api.watches_asked())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    assert open_watches == 100


@pytest.mark.parametrize("body", [b"hello", b'{"a":"\xff"}'])
async def test_an_answer_that_is_no_json_is_unreadable_not_a_crash(body: bytes) -> None:
    async def nonsense(answer: Answer) -> None:
        await answer.body(body)

    async with FakeApi(lists=[nonsense], others=[nonsense]) as api, api.client() as client:
        with pytest.raises(errors.Unreadable):
            await client.get(POD, KEY)


async def test_read_decodes_into_the_record_asked_for() -> None:
    class Named(wire.CamelRecord):
        kind: str

    async with FakeApi(others=[ok]) as api, api.client() as client:
        assert await client.read(POD, KEY, wire.decoder(Named)) == Named(kind="Pod")


async def test_waiting_for_other_calls_is_not_taken_for_the_servers_silence() -> None:
    async with (
        FakeApi(others=[silence, silence, ok]) as api,
        api.client(connections=1, deadline_seconds=5.0) as client,
    ):
        found = await asyncio.gather(*(client.get(POD, KEY) for _ in range(3)), return_exceptions=True)

    assert [type(answer) for answer in found] == [errors.Timeout, errors.Timeout, dict]


async def test_a_deletion_that_may_not_wait_for_long_goes_before_what_came_first() -> None:
    async with FakeApi(others=[ok] * 4) as api, api.client(connections=1) as client:
        notes = [client.json_patch(POD, KEY, ()) for _ in range(3)]
        deletion = client.delete(POD, KEY, still=lambda: True)
        await asyncio.gather(*notes, deletion)

    assert [asked.method for asked in api.asked] == ["PATCH", "DELETE", "PATCH", "PATCH"]
