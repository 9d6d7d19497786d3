"""What would be left behind on the way back to Slinky's operator: found, named, and removed without anything else."""

import copy

import pytest
from click.testing import CliRunner

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.insight.doctor import way_back
from slurm_operator.insight.doctor.finding import Level
from slurm_operator.insight.doctor.way_back import (
    Installed,
    Leftover,
    Part,
    blocked,
    findings,
    leftovers,
    release,
)
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.protection import protection
from unit.kube.fake_api_server import Answer, FakeApi

OTHER = "example.com/held"
RESERVATION = "nodeset.slinky.slurm.net/reservation"
READY = {"type": "Ready", "status": "True", "reason": "Serving"}
CREATED = {"type": "ReservationCreated", "status": "True", "reason": "Created"}


def thing(name: str, *finalizers: str, mark: str = "", conditions=(), **meta) -> dict:
    notes = {names.MANAGER: mark, "other": "x"} if mark else {}
    metadata = {
        "name": name,
        "namespace": "lab",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "annotations": notes,
    }
    return {
        "metadata": {**metadata, "finalizers": list(finalizers), **meta},
        "status": {"conditions": list(conditions)},
    }


def found(*, at_work=(), **more) -> Installed:
    objects = {
        Controller.KIND: [
            thing("slurm", names.IN_USE_FINALIZER, mark="a/slurm-operator/uid", conditions=[READY])
        ],
        NodeSet.KIND: [thing("w", RESERVATION, names.WORKERS_FINALIZER, OTHER, conditions=[READY, CREATED])],
    }
    return Installed(objects=objects | more.pop("objects", {}), at_work=at_work, **more)


def test_everything_of_ours_is_listed_and_nothing_of_others():
    told = {(one.part, one.key.name, one.what) for one in leftovers(found())}
    assert told == {
        (Part.FINALIZERS, "slurm", names.IN_USE_FINALIZER),
        (Part.ANNOTATION, "slurm", names.MANAGER),
        (Part.CONDITIONS, "slurm", "Ready"),
        (Part.FINALIZERS, "w", names.WORKERS_FINALIZER),
        (Part.CONDITIONS, "w", "Ready"),
    }
    assert (
        leftovers(Installed(objects={NodeSet.KIND: [thing("w", RESERVATION, OTHER, conditions=[CREATED])]}))
        == []
    )


def test_where_nothing_is_left_it_says_so_and_each_finding_has_a_remedy():
    [fine] = findings(Installed(objects={}))
    assert fine.level is Level.OK
    told = findings(
        found(objects={Cluster.KIND: [thing("demo")]}, budgets=[thing("pdb")], policies=[thing("p")])
    )
    assert [one.check for one in told] == [
        "Finalizers",
        "Annotation",
        "Conditions",
        "Budgets",
        "Policies",
        "Clusters",
    ]
    assert all(one.remedy for one in told)
    assert "--cascade=orphan" in told[-1].remedy


def test_an_object_that_is_being_deleted_blocks_and_keeps_its_finalizer():
    leaving = found(
        objects={
            NodeSet.KIND: [thing("w", names.WORKERS_FINALIZER, deletionTimestamp="2030-01-01T00:00:00Z")]
        }
    )
    [hindrance] = blocked(leaving)
    assert (hindrance.level, "NodeSet lab/w" in hindrance.message) == (Level.FAIL, True)
    assert [one for one in leftovers(leaving) if one.key.name == "w"] == []


@pytest.mark.parametrize(
    ("step", "blocks"),
    [("every daemon learns the new Slurm key; the old one signs", True), ("", False), (None, False)],
)
def test_a_change_of_the_slurm_key_has_to_be_over_first(step, blocks):
    controller = thing("slurm")
    controller["status"]["slurmKey"] = None if step is None else {"signing": "a", "step": step}

    told = list(blocked(Installed(objects={Controller.KIND: [controller]})))

    assert [one.level for one in told] == ([Level.FAIL] if blocks else [])
    assert all("Controller lab/slurm (every daemon learns" in one.message for one in told)


class Server:
    """An API server with a Controller, a NodeSet, our policies and budgets; `renewals` counts those of a Lease."""

    def __init__(self, *, is_running: bool = False) -> None:
        self.is_running = is_running
        self.renewed = 0
        self.deleted: list[str] = []
        budget = {
            "metadata": {"name": "pdb", "namespace": "lab", "uid": "b"},
            "spec": {"minAvailable": 1_000_000},
        }
        policies = [copy.deepcopy(one) for one in protection("operator")]
        for one in policies:
            one["metadata"]["uid"] = one["kind"]
        ours = found().objects
        self.things = {
            **{kind.path("lab", one["metadata"]["name"]): one for kind, some in ours.items() for one in some},
            kinds.DISRUPTION_BUDGET.path("lab", "pdb"): budget,
            **{kinds.kind_of(one).path("", one["metadata"]["name"]): one for one in policies},
        }

    async def answer(self, to: Answer) -> None:
        path, method = to.asked.path, to.asked.method
        if path.startswith("/apis/coordination"):
            self.renewed += self.is_running
            spec = {
                "holderIdentity": "slurm-operator/x",
                "renewTime": f"2030-01-01T00:00:{self.renewed:02}.0Z",
            }
            await to.json(
                {"metadata": {"name": "slurm-operator", "namespace": "a", "uid": "uid"}, "spec": spec}
            )
        elif method == "DELETE":
            self.deleted.append(path)
            del self.things[path]
            await to.json({"status": "Success"})
        elif method == "PATCH":
            await to.json(self._patched(path.removesuffix("/status"), to.asked.json))
        elif path in self.things:
            await to.json(self.things[path])
        else:
            plural = path.rsplit("/", 1)[-1]
            await to.json(
                {"items": [one for place, one in self.things.items() if place.split("/")[-2] == plural]}
            )

    def _patched(self, path: str, operations: list[dict]) -> dict:
        one = self.things[path]
        for step in operations:
            *parents, last = [word.replace("~1", "/") for word in step["path"].split("/")[1:]]
            place = one
            for word in parents:
                place = place[word]
            if step["op"] == "test":
                assert place[last] == step["value"]
            elif step["op"] == "remove":
                del place[last]
            else:
                place[last] = step["value"]
        return one


async def test_it_is_removed_and_everything_of_others_stays():
    server = Server()
    async with FakeApi(lists=[server.answer], others=[server.answer]) as api, api.client() as client:
        told = await release(client, leftovers(await way_back.look(client)))
        assert [one.level for one in told] == [Level.OK] * 8, told
        assert leftovers(await way_back.look(client)) == []
    nodeset, controller = (
        server.things[NodeSet.KIND.path("lab", "w")],
        server.things[Controller.KIND.path("lab", "slurm")],
    )
    assert nodeset["metadata"]["finalizers"] == [RESERVATION, OTHER]
    assert nodeset["status"]["conditions"] == [CREATED]
    assert controller["metadata"]["annotations"] == {"other": "x"}
    assert [path.rsplit("/", 2)[-2] for path in server.deleted] == [
        "poddisruptionbudgets", "validatingadmissionpolicybindings", "validatingadmissionpolicies",
    ]  # fmt: skip


async def test_what_cannot_be_removed_is_told_and_the_rest_goes_on():
    async def answer(to: Answer) -> None:
        await to.refuse(403, "Forbidden", "not you")

    left = [Leftover(part=part, kind=NodeSet.KIND, key=ObjectKey("lab", "w"), what="x") for part in Part]
    async with FakeApi(lists=[answer], others=[answer]) as api, api.client() as client:
        told = await release(client, left)
    assert [(one.level, "not you" in one.message) for one in told] == [(Level.FAIL, True)] * len(Part)


@pytest.mark.parametrize("is_running", [True, False])
async def test_an_operator_that_is_running_is_seen_by_its_renewals(monkeypatch, is_running):
    monkeypatch.setattr(way_back, "RENEWED_WITHIN_SECONDS", 0.0)
    server = Server(is_running=is_running)
    async with FakeApi(lists=[server.answer], others=[server.answer]) as api, api.client() as client:
        there = await way_back.look(client, is_patient=True)
    assert there.at_work == (("Lease a/slurm-operator",) if is_running else ())
    assert [one.level for one in way_back.running(there)] == ([Level.FAIL] if is_running else [])


def test_release_wants_to_know_where_to():
    result = CliRunner().invoke(kubectl_slurm, ["doctor", "--release"])
    assert (result.exit_code, "--to slinky" in result.output) == (2, True)
