"""Workers that end by a person's order, and Secrets that are put back: what is sent, and what is not."""

import base64
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.shared.names import FORCE_DELETION, POD_LEAVING
from slurm_operator.kube.errors import AlreadyExists, NotFound, NotLeader, Status, conflict
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Apply, EndWorker, RestoreSecret
from slurm_operator.plan.order import Order
from slurm_operator.runtime.act.perform import ANSWERED_WITHIN_SECONDS, Performer
from slurm_operator.runtime.act.stages import ActionFailed, OutOfTime
from slurm_operator.runtime.loop.retries import NEXT_PASS
from testing.workers import worker

KEY = ObjectKey("ns", "gpu-0")
UNMARKED = worker(0)
POD = worker(0, annotations={POD_LEAVING: UNMARKED.metadata.uid})
FORCED = Meta(
    name="gpu", uid="set-uid", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC), annotations={FORCE_DELETION: "true"}
)  # fmt: skip
END = EndWorker(
    key=KEY,
    slurm_node="gpu-0",
    order=Order(owner_uid="set-uid", pod_uid=POD.metadata.uid),
    reason="Forced",
    message="",
)
SENT = {
    "uid": POD.metadata.uid,
    "resource_version": POD.metadata.resource_version,
    "deadline_seconds": ANSWERED_WITHIN_SECONDS,
}


class Client:
    """`queue` is what happens before there is a connection, `on_answer` what happens before there is an answer."""

    def __init__(self, **secrets: bytes) -> None:
        self.sent: list[dict] = []
        self.made: list[dict] = []
        self.queue = lambda: None
        self.on_answer = lambda: None
        self.conflicts = 0
        self.looked = 0
        self.secrets = secrets

    async def delete_undecoded(self, kind, key, *, still, **how):
        self.queue()
        if not still():
            raise NotLeader("not sent")
        self.sent.append(how)
        if self.conflicts:
            self.conflicts -= 1
            raise conflict("it has changed")
        self.on_answer()

    async def get(self, kind, key):
        self.looked += 1
        raise NotFound(Status(code=404))

    async def create(self, kind, manifest):
        self.made.append(manifest)
        if manifest["metadata"]["name"] == "taken":
            raise AlreadyExists(Status(code=409))
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}}

    async def apply(self, kind, manifest):
        return await self.create(kind, manifest)

    async def read(self, kind, key, decode):
        if key.name not in self.secrets:
            raise NotFound(Status(code=404))
        data = {"key-j1": base64.b64encode(self.secrets[key.name]).decode()}
        return decode(memoryview(wire.encode({"metadata": {"name": key.name}, "data": data})))


def performer(client, *, about=FORCED, pod=POD, remembered=None):
    known = SimpleNamespace(
        records={Pod: {KEY: pod} if pod is not None else {}},
        note_deleted=lambda *_: None,
        note_answer=lambda *_: [],
        slurms=SimpleNamespace(remembered=lambda digest: remembered),
    )
    live = SimpleNamespace(now=about)
    made = Performer(client, known, lambda: None, NEXT_PASS, lambda: True, lambda: live.now)
    return made, live


async def test_it_has_its_grace_period_and_the_request_names_that_very_version_of_the_pod():
    client = Client()
    await performer(client)[0].perform(END)

    assert client.sent == [SENT]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(UNMARKED, id="never marked"),
        pytest.param(worker(0, annotations={POD_LEAVING: "earlier"}), id="marked for an earlier pod"),
    ],
)
async def test_a_pod_that_is_not_marked_is_left_to_the_next_pass(pod):
    """A delete of it that nobody answers could not be made void."""
    client = Client()
    with pytest.raises(OutOfTime):
        await performer(client, pod=pod)[0].perform(END)

    assert client.sent == []


async def test_a_kubelet_that_writes_in_that_moment_does_not_stop_it():
    client = Client()
    client.conflicts = 1
    await performer(client)[0].perform(END)

    assert client.sent == [SENT, SENT]
    assert client.looked == 1


async def test_an_order_that_is_taken_back_when_the_deletion_has_been_answered_has_been_carried_out():
    client = Client()
    made, live = performer(client)

    def takes_it_back() -> None:
        live.now = wire.replace(FORCED, annotations={})

    client.on_answer = takes_it_back
    await made.perform(END)

    assert client.sent == [SENT]


@pytest.mark.parametrize(
    "about",
    [
        pytest.param(wire.replace(FORCED, annotations={}), id="the order was taken back"),
        pytest.param(wire.replace(FORCED, deletion_timestamp=None), id="nobody deletes the NodeSet"),
        pytest.param(None, id="the NodeSet is not known"),
    ],
)
async def test_nothing_is_deleted_without_an_order_that_stands(about):
    client = Client()
    with pytest.raises(ActionFailed, match="gpu-0 is not deleted after all"):
        await performer(client, about=about)[0].perform(END)

    assert client.sent == []


async def test_an_order_that_is_taken_back_while_the_deletion_waits_for_its_turn_is_not_carried_out():
    client = Client()
    made, live = performer(client)

    def takes_it_back() -> None:
        live.now = wire.replace(FORCED, annotations={})

    client.queue = takes_it_back
    with pytest.raises(ActionFailed, match="nobody forces"):
        await made.perform(END)

    assert client.sent == []


@pytest.mark.parametrize(
    "pod", [None, worker(0, name="gpu-0").__class__(metadata=Meta(name="gpu-0", uid="new"))]
)
async def test_a_pod_that_has_gone_is_left_alone(pod):
    client = Client()
    await performer(client, pod=pod)[0].perform(END)

    assert client.sent == []


COPY = SecretHandle(namespace="ns", name="copies", key="key-j1", form="base64url")


def restore(name: str) -> RestoreSecret:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}}
    return RestoreSecret(manifest=manifest, entries={"jwt.key": COPY}, reason="KeyRestored", message="")


@pytest.mark.parametrize("name", ["jwt", "taken"])
async def test_a_secret_is_put_back_byte_by_byte_unless_somebody_was_faster(name):
    client = Client(copies=b"_wD-")
    await performer(client)[0].perform(restore(name))

    assert [one["data"] for one in client.made] == [{"jwt.key": "/wD+"}]


async def test_a_key_whose_secret_is_gone_is_taken_from_memory_only_by_its_digest():
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copies", "namespace": "ns"}}

    def writing(digest: str) -> Apply:
        handle = SecretHandle(namespace="ns", name="jwt", key="jwt.key", digest=digest, form="base64url")
        return Apply(manifest={**manifest, "stringData": {"key-j1": handle.mark}}, reason="", message="")

    with pytest.raises(ActionFailed, match="does not exist"):
        await performer(Client(), remembered=b"key")[0].perform(writing(""))
    with pytest.raises(ActionFailed, match="changed while"):
        await performer(Client(), remembered=b"key")[0].perform(writing("a1"))
    client = Client()
    await performer(client, remembered=b"key")[0].perform(writing(value_digest(b"key")))
    assert client.made[0]["data"] == {"key-j1": base64.b64encode(b"a2V5").decode()}
