"""One installation acts on a Slurm cluster: who is named on its Controller, as long as they are there."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.token import Token
from slurm_operator.kube.presence import SILENT_SECONDS, Installation, LeaseWatch, Presence
from slurm_operator.plan.belonging import EVERYTHING
from slurm_operator.runtime.claims import OURS, TAKEN, Claims, claim
from slurm_operator.runtime.slinky_operator import Acting, SlinkyOperator
from unit.kube.fake_api_server import Answer, FakeApi

A = Installation(lease=ObjectKey("a", "slurm-operator"), uid="uid-a")
B = Installation(lease=ObjectKey("b", "slurm-operator"), uid="uid-b")
SLINKY = Acting(deployment=ObjectKey("slinky", "slurm-operator"), seen_by="has a ready pod")
ALIVE, GONE, NOT_ALLOWED, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.NOT_ALLOWED, Presence.UNKNOWN


@pytest.mark.parametrize(
    ("marked", "ours", "presence", "acting", "verdict"),
    [
        pytest.param("", A, UNKNOWN, None, TAKEN, id="nobody's: ours once that is written"),
        pytest.param(str(A), A, UNKNOWN, None, OURS, id="ours"),
        pytest.param(str(B), A, ALIVE, None, "ManagedElsewhere", id="another one is at work"),
        pytest.param(str(B), A, GONE, None, TAKEN, id="another one was: taken over"),
        pytest.param(str(B), A, NOT_ALLOWED, None, "ManagerNotVisible", id="not allowed to look: left alone"),
        pytest.param(str(B), A, UNKNOWN, None, "ManagerNotVisible", id="no answer: left alone"),
        pytest.param("somebody", A, UNKNOWN, None, "ManagerUnreadable", id="names nobody"),
        pytest.param("", None, UNKNOWN, None, OURS, id="without a Lease: nobody's is acted on, and not marked"),
        pytest.param(str(B), None, ALIVE, None, "ManagedElsewhere", id="without a Lease: another's is left alone"),
        pytest.param(str(B), None, GONE, None, OURS, id="without a Lease: a previous one's is acted on"),
        pytest.param(str(A), A, UNKNOWN, SLINKY, "AnotherOperatorActs", id="Slinky's operator acts: not even ours"),
        pytest.param("", A, UNKNOWN, SLINKY, "AnotherOperatorActs", id="Slinky's operator acts: nobody's"),
    ],
)  # fmt: skip
def test_who_may_act(marked, ours, presence, acting, verdict):
    found = claim(marked, ours, presence, acting)
    if isinstance(verdict, str):
        assert (found.reason, bool(found.message)) == (verdict, True)
        assert found.condition.type == "Observing"
    else:
        assert found == verdict


CHECKS = Installation(lease=ObjectKey("a", "checks"), uid="uid-checks")


@pytest.mark.parametrize(
    ("marked", "ours", "presence", "acting", "verdict"),
    [
        pytest.param(str(A), CHECKS, ALIVE, None, OURS, id="the manager's"),
        pytest.param(str(A), CHECKS, GONE, None, OURS, id="the manager's, which is away"),
        pytest.param(str(A), None, UNKNOWN, None, OURS, id="the manager's, without a Lease of our own"),
        pytest.param(str(B), CHECKS, ALIVE, None, "ManagedElsewhere", id="that of a manager elsewhere"),
        pytest.param(str(B), CHECKS, UNKNOWN, None, "ManagerNotVisible", id="a manager elsewhere may be at work"),
        pytest.param("", CHECKS, UNKNOWN, None, OURS, id="nobody's: not marked, for the manager is to have it"),
        pytest.param(str(B), CHECKS, GONE, None, OURS, id="a previous one's: not marked"),
        pytest.param(str(A), CHECKS, ALIVE, SLINKY, "AnotherOperatorActs", id="Slinky's operator acts"),
    ],
)  # fmt: skip
def test_who_may_act_beside_a_manager(marked, ours, presence, acting, verdict):
    found = claim(marked, ours, presence, acting, beside="a")
    assert (found.reason if isinstance(verdict, str) else found) == verdict


def test_what_may_not_be_seen_is_said_with_the_right_that_is_missing():
    message = claim(str(B), A, NOT_ALLOWED, None).message
    assert "grant `get` on leases.coordination.k8s.io in namespace b" in message
    assert "may not read that Lease" in message


class Server:
    """Controllers, Leases and Deployments; `refuses` are the beginnings of paths that it forbids."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}
        self.leases: dict[ObjectKey, dict] = {}
        self.deployments: list[dict] = []
        self.refuses: tuple[str, ...] = ()
        self.breaks = False
        self.patches: list[tuple[str, object]] = []

    def add(self, kind, name: str, spec: dict, *, ns: str = "lab", mark: str = "", uid: str = "") -> None:
        notes = {names.MANAGER: mark} if mark else {}
        meta = {
            "name": name,
            "namespace": ns,
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "annotations": notes,
        }
        self.objects[kind.KIND.path(ns, name)] = {"metadata": meta, "spec": spec, "kind": kind.KIND.kind}

    def lease(self, of: Installation, renewed: int = 0, holder: str = "slurm-operator/x") -> None:
        spec = {"holderIdentity": holder, "renewTime": f"2030-01-01T00:00:{renewed:02}.000000Z"}
        meta = {"name": of.lease.name, "namespace": of.lease.namespace, "uid": of.uid}
        self.leases[of.lease] = {"metadata": meta, "spec": spec}

    async def answer(self, answer: Answer) -> None:
        path = answer.asked.path
        if self.breaks and path.endswith("deployments"):
            await answer.refuse(500, "InternalError", "etcd is away")
        elif any(path.startswith(one) for one in self.refuses):
            await answer.refuse(403, "Forbidden", "no")
        elif path.startswith("/apis/coordination.k8s.io"):
            found = self.leases.get(ObjectKey(path.split("/")[5], path.split("/")[7]))
            await (answer.json(found) if found else answer.refuse(404, "NotFound"))
        elif path.endswith("deployments"):
            place = path.split("/")[5] if "/namespaces/" in path else ""
            items = [one for one in self.deployments if place in ("", one["metadata"]["namespace"])]
            await answer.json({"metadata": {}, "items": items})
        elif answer.asked.method == "PATCH":
            await self._patch(answer, path)
        else:
            await answer.json(self.objects[path])

    async def _patch(self, answer: Answer, path: str) -> None:
        there = self.objects[path.removesuffix("/status")]
        if path.endswith("/status"):
            self.patches.append(
                (path.split("/")[-2], [one["reason"] for one in answer.asked.json["status"]["conditions"]])
            )
            there["status"] = answer.asked.json["status"]
        else:
            asked = {one["path"]: one for one in answer.asked.json}
            if asked["/metadata/resourceVersion"]["value"] != there["metadata"]["resourceVersion"]:
                await answer.refuse(422, "Invalid", "the test failed")
                return
            value = asked["/metadata/annotations/slinky.slurm.net~1manager"]["value"]
            there["metadata"]["annotations"][names.MANAGER] = value
            self.patches.append((path.rsplit("/", maxsplit=1)[-1], value))
        there["metadata"]["resourceVersion"] += "1"
        await answer.json(json.loads(json.dumps(there)))


class Cache(dict):
    def subscribe(self, callback) -> None:
        pass


class Watcher:
    """One installation, and what it has seen of the server."""

    def __init__(self, server: Server, client, ours: Installation | None, namespaces=()) -> None:
        self.server = server
        self.now = 0.0
        self.changes = 0
        self.known = SimpleNamespace(scope=EVERYTHING, records={Controller: Cache()}, note_written=self.note)
        leases = LeaseWatch(client, clock=lambda: self.now)
        home = ours.lease.namespace if ours else "home"
        self.claims = Claims(
            client, self.known, lambda: ours, SlinkyOperator(client, leases, home, namespaces), leases
        )
        self.claims.subscribe(self.changed)
        self.sync()

    def changed(self) -> None:
        self.changes += 1

    def note(self, kind, written: dict) -> None:
        thing = codec.read(Controller, written)
        self.known.records[Controller][key_of(thing)] = thing

    def sync(self) -> None:
        for one in self.server.objects.values():
            if one["kind"] == "Controller":
                self.note(Controller.KIND, json.loads(json.dumps(one)))

    async def look(self) -> "Watcher":
        self.sync()
        await self.claims.look()
        return self

    def acts_on(self, model, name: str, spec: dict | None = None, ns: str = "lab") -> bool:
        body = self.server.objects.get(model.KIND.path(ns, name)) or {
            "metadata": {"name": name, "namespace": ns},
            "spec": spec,
        }
        return self.claims.covers(model.KIND, codec.read(model, body))

    def says(self, name: str = "slurm") -> list[str]:
        status = self.server.objects[Controller.KIND.path("lab", name)].get("status") or {}
        return [one["reason"] for one in status.get("conditions", ())]


@pytest.fixture
async def stage():
    server = Server()
    server.add(Controller, "slurm", {})
    async with FakeApi(lists=[server.answer], others=[server.answer]) as api, api.client() as client:
        yield server, client, api


async def test_of_two_installations_one_acts_and_takes_over_when_the_other_is_silent_for_a_minute(stage):
    server, client, api = stage
    server.lease(A), server.lease(B)
    first, second = Watcher(server, client, A), Watcher(server, client, B)
    assert not first.acts_on(Controller, "slurm"), "not before it was looked at"
    await first.look()
    await second.look()
    assert (first.acts_on(Controller, "slurm"), second.acts_on(Controller, "slurm")) == (True, False)
    assert (
        first.claims.covers_slurm(ObjectKey("lab", "slurm")),
        second.claims.covers_slurm(ObjectKey("lab", "slurm")),
    ) == (True, False)
    assert second.says() == ["ManagedElsewhere"]

    asked, written = len(api.asked), len(server.patches)
    for second_ in range(5):
        server.lease(A, renewed=second_)
        second.now += SILENT_SECONDS - 1
        await second.look()
        await first.look()
    assert not second.acts_on(Controller, "slurm"), "its Lease is renewed"
    assert len(server.patches) == written, "and nobody writes anything any more"
    assert len(api.asked) > asked

    second.now += SILENT_SECONDS
    await second.look()
    await first.look()
    assert (first.acts_on(Controller, "slurm"), second.acts_on(Controller, "slurm")) == (False, True)
    assert server.patches[0] == ("slurm", str(A))
    assert (first.changes, second.changes) == (2, 1)


async def test_an_installation_whose_lease_is_gone_or_another_one_is_not_waited_for(stage):
    server, client, _ = stage
    server.objects.clear()
    server.add(Controller, "slurm", {}, mark=str(A))
    there = await Watcher(server, client, B).look()
    assert there.acts_on(Controller, "slurm")

    server.add(Controller, "slurm", {}, mark=str(A))
    server.lease(Installation(lease=A.lease, uid="another"))
    assert (await Watcher(server, client, B).look()).acts_on(Controller, "slurm")


async def test_two_that_find_it_unmarked_do_not_both_act(stage):
    server, client, _ = stage
    server.lease(A), server.lease(B)
    first, second = Watcher(server, client, A), Watcher(server, client, B)
    await first.claims.look()
    await second.claims.look()  # It has not seen that write yet.
    assert (first.acts_on(Controller, "slurm"), second.acts_on(Controller, "slurm")) == (True, False)


async def test_what_belongs_to_a_slurm_cluster_goes_with_it(stage):
    server, client, _ = stage
    server.add(Controller, "other", {"accountingRef": {"name": "books"}}, mark=str(A))
    server.lease(A)
    there = await Watcher(server, client, B).look()
    storage = {"host": "db", "passwordKeyRef": {"name": "p", "key": "k"}}
    acts = {
        "NodeSet of ours": there.acts_on(NodeSet, "w", {"controllerRef": {"name": "slurm"}}),
        "NodeSet of theirs": there.acts_on(NodeSet, "v", {"controllerRef": {"name": "other"}}),
        "Accounting of theirs": there.acts_on(Accounting, "books", {"storageConfig": storage}),
        "Token, by the first Controller": there.acts_on(Token, "t", {"username": "ada"}),
        "NodeSet where no Controller is": there.acts_on(NodeSet, "u", {"controllerRef": {"name": "x"}}, ns="empty"),
    }  # fmt: skip
    assert acts == {
        "NodeSet of ours": True,
        "NodeSet of theirs": False,
        "Accounting of theirs": False,
        "Token, by the first Controller": False,
        "NodeSet where no Controller is": True,
    }


async def test_where_it_may_not_look_it_leaves_alone_what_is_marked_and_says_so(stage):
    server, client, _ = stage
    server.add(Controller, "other", {}, mark=str(A))
    server.refuses = ("/apis/coordination.k8s.io", "/apis/apps/v1/deployments")
    there = await Watcher(server, client, B, namespaces=("lab",)).look()
    assert (there.acts_on(Controller, "slurm"), there.acts_on(Controller, "other")) == (True, False)
    assert there.says("other") == ["ManagerNotVisible"]


async def test_where_no_mark_may_be_written_an_unmarked_one_is_acted_on(stage):
    server, client, _ = stage
    server.refuses = ("/apis/slinky.slurm.net",)
    assert (await Watcher(server, client, A).look()).acts_on(Controller, "slurm")


def deployment(ns: str = "slinky", *args: str, ready: int = 1, replicas: int = 1) -> dict:
    pod = {"containers": [{"name": "manager", "args": list(args)}]}
    return {
        "metadata": {"name": "slurm-operator", "namespace": ns},
        "spec": {"replicas": replicas, "template": {"spec": pod}},
        "status": {"replicas": replicas, "readyReplicas": ready},
    }


THEIRS = Installation(lease=ObjectKey("slinky", "slurm-operator"), uid="uid-s")


@pytest.mark.parametrize(
    ("deployments", "holder", "acts"),
    [
        pytest.param([deployment()], "pod-1_uuid", True, id="its Lease is held by somebody who is none of us"),
        pytest.param([deployment()], "slurm-operator/pod-1_uuid", False, id="another installation of ours"),
        pytest.param([deployment(ready=0)], "", False, id="given back"),
        pytest.param([deployment()], None, True, id="no Lease, and a ready pod"),
        pytest.param([deployment(ready=0)], None, False, id="no Lease, and no ready pod"),
        pytest.param([deployment(replicas=0, ready=0)], "pod-1_uuid", False, id="scaled to 0"),
        pytest.param([], "pod-1_uuid", False, id="uninstalled, and the Lease left behind"),
        pytest.param([deployment("a")], None, False, id="our own"),
        pytest.param([deployment("slinky", "--namespaces=other,more")], "pod-1_uuid", False, id="confined to others"),
        pytest.param([deployment("slinky", "--namespaces", "lab")], "pod-1_uuid", True, id="confined to this one"),
    ],
)  # fmt: skip
async def test_slinkys_operator_is_found_while_it_acts(stage, deployments, holder, acts):
    server, client, _ = stage
    server.deployments = deployments
    if holder is not None:
        server.lease(THEIRS, holder=holder)
    there = await Watcher(server, client, A).look()
    assert there.acts_on(Controller, "slurm") is not acts
    assert there.acts_on(NodeSet, "w", {"controllerRef": {"name": "none"}}) is not acts
    assert there.says() == (["AnotherOperatorActs"] if acts else [])
    assert [one for one in server.patches if one[1] == str(A)] == ([] if acts else [("slurm", str(A))])


async def test_when_slinkys_operator_has_stopped_everything_is_ours_and_the_condition_is_gone(stage):
    server, client, _ = stage
    server.deployments = [deployment()]
    server.lease(THEIRS, holder="pod-1_uuid")
    there = await Watcher(server, client, A).look()
    assert there.says() == ["AnotherOperatorActs"]
    server.lease(THEIRS, holder="")
    await there.look()
    assert (there.acts_on(Controller, "slurm"), there.says()) == (True, [])


async def test_while_nobody_can_tell_whether_slinkys_operator_acts_nothing_is_done(stage):
    server, client, _ = stage
    server.breaks = True
    there = await Watcher(server, client, A).look()
    assert not there.acts_on(Controller, "slurm")
    assert not there.acts_on(NodeSet, "w", {"controllerRef": {"name": "none"}}, ns="empty")
    server.breaks = False
    await there.look()
    assert there.acts_on(Controller, "slurm")
    server.breaks = True
    await there.look()
    assert there.acts_on(Controller, "slurm"), "what was known stands"


async def test_a_controller_that_changes_is_looked_at_at_once_and_others_all_the_same(stage, monkeypatch):
    monkeypatch.setattr("slurm_operator.runtime.claims.LOOK_SECONDS", 0.05)
    server, client, api = stage
    there = await Watcher(server, client, A).look()
    running = asyncio.create_task(there.claims.run())
    await asyncio.sleep(0)
    server.add(Controller, "new", {})
    there.sync()
    there.claims._changed.set()
    async with asyncio.timeout(10):
        while not there.acts_on(Controller, "new"):  # noqa: ASYNC110  Nobody tells.
            await asyncio.sleep(0.01)
        before = len([one for one in api.asked if one.path.endswith("deployments")])
        while len([one for one in api.asked if one.path.endswith("deployments")]) < before + 2:
            there.claims._changed.set()
            await asyncio.sleep(0.001)
    running.cancel()
