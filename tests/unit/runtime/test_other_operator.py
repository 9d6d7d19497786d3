"""While another operator acts on a group it is held; its objects say so, in just one condition."""

from types import SimpleNamespace

import pytest

from slurm_operator.api import nebius
from slurm_operator.api.nebius import names
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.renewals import Holder
from slurm_operator.operator import RIVALS
from slurm_operator.plan.belonging import Scope
from slurm_operator.runtime.other_operator import OtherOperator, condition, says
from testing import nebius as manifests
from unit.kube.fake_api_server import Answer, FakeApi

[SOPERATOR] = RIVALS
LEASE = ObjectKey("soperator-system", names.SOPERATOR_LEASE)
ACTING = Holder(lease=LEASE, identity="manager-0", is_renewing=True)
PERHAPS = Holder(lease=LEASE, identity="manager-0", is_renewing=False)


def cluster(*conditions: dict) -> nebius.SlurmCluster:
    plain = manifests.accepted()["SlurmCluster/smallest"]
    meta = {**plain["metadata"], "namespace": "lab", "uid": "u", "generation": 3}
    return codec.read(
        nebius.SlurmCluster, {**plain, "metadata": meta, "status": {"conditions": list(conditions)}}
    )


def told(holder: Holder) -> dict:
    found = condition(SOPERATOR, holder)
    return {"type": found.type, "status": found.status, "reason": found.reason, "message": found.message}


READY = {"type": "Ready", "status": "True", "reason": "Fine", "message": ""}


@pytest.mark.parametrize(
    ("thing", "holder", "is_right"),
    [
        pytest.param(cluster(), None, True, id="nobody acts, nothing said"),
        pytest.param(cluster(), PERHAPS, True, id="somebody may act: nothing is said before that is known"),
        pytest.param(cluster(READY), ACTING, False, id="somebody acts, and it is not said"),
        pytest.param(cluster(READY, told(ACTING)), ACTING, True, id="said"),
        pytest.param(cluster(told(ACTING)), Holder(LEASE, "manager-1", True), False, id="said of another one"),
        pytest.param(cluster(told(ACTING)), None, False, id="said of one that has stopped"),
        pytest.param(cluster(told(ACTING)), PERHAPS, False, id="said by a process before us, and not known yet"),
    ],
)  # fmt: skip
def test_an_object_says_that_another_operator_acts_just_while_it_does(thing, holder, is_right):
    assert says(thing, condition(SOPERATOR, holder)) is is_right


class Stage:
    """A server with one Lease, or none, and one SlurmCluster; `writes` are what it was told of that."""

    def __init__(self, lease: dict | None) -> None:
        self.lease = lease
        self.refuses = False
        self.writes: list[dict] = []
        self.woken: list[str] = []
        self.things = {key_of(cluster()): cluster()}
        self.known = SimpleNamespace(
            scope=Scope(frozenset({names.GROUP})),
            records={nebius.SlurmCluster: SimpleNamespace(values=self.things.values)},
            note_written=self.note,
        )

    def note(self, kind, written: dict) -> None:
        self.things[ObjectKey("lab", "smallest")] = codec.read(nebius.SlurmCluster, written)

    async def answer(self, answer: Answer) -> None:
        asked = answer.asked
        if asked.method == "PATCH" and self.refuses:
            await answer.refuse(403, "Forbidden", "no")
        elif asked.method == "PATCH":
            self.writes.append({"by": asked.params["fieldManager"], **asked.json["status"]})
            plain = codec.plain(next(iter(self.things.values())))
            await answer.json({**plain, "status": asked.json["status"]})
        else:
            items = [{"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": self.lease}]
            await answer.json({"metadata": {}, "items": items if self.lease is not None else []})

    def operator(self, client) -> OtherOperator:
        return OtherOperator(client, self.known, SOPERATOR, wake=self.woken.append)

    @property
    def is_held(self) -> bool:
        return names.GROUP in self.known.scope.held


def lease(renewed: int, holder: str = "manager-0") -> dict:
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": f"2030-01-01T00:00:{renewed:02}.000000Z",
    }


async def test_the_group_is_held_until_the_first_look_has_shown_nobody():
    stage = Stage(None)
    async with FakeApi(lists=[stage.answer], others=[stage.answer]) as api, api.client() as client:
        other = stage.operator(client)
        assert stage.is_held
        await other.look()

    assert (stage.is_held, stage.writes) == (False, [])
    assert stage.woken == [names.GROUP, names.GROUP]


async def test_what_is_renewed_is_told_once_and_taken_back_when_it_was_given_back():
    stage = Stage(lease(1))
    async with FakeApi(lists=[stage.answer], others=[stage.answer]) as api, api.client() as client:
        other = stage.operator(client)
        await other.look()
        assert (stage.is_held, stage.writes) == (True, []), "it may have been left behind"
        for second in (3, 5, 7):
            stage.lease = lease(second)
            await other.look()
        assert stage.is_held
        stage.lease = lease(8, holder="")
        await other.look()

    assert not stage.is_held
    said, taken_back = stage.writes
    assert {said["by"], taken_back["by"]} == {"slurm-operator-observing"}
    assert [(one["type"], one["reason"], one["observedGeneration"]) for one in said["conditions"]] == [
        ("Observing", "AnotherOperatorActs", 3)
    ]
    assert taken_back["conditions"] == []


async def test_where_the_status_cannot_be_written_the_group_is_held_all_the_same_and_it_is_not_tried_every_time():
    stage = Stage(lease(1))
    stage.refuses = True
    async with FakeApi(lists=[stage.answer], others=[stage.answer]) as api, api.client() as client:
        other = stage.operator(client)
        for second in (1, 3, 5):
            stage.lease = lease(second)
            await other.look()
        tried = [asked for asked in api.asked if asked.method == "PATCH"]

    assert stage.is_held
    assert len(tried) == 1


async def test_while_nobody_can_tell_what_was_known_stands():
    stage = Stage(None)
    is_broken = True

    async def answer(answer: Answer) -> None:
        if is_broken:
            await answer.refuse(500, "InternalError", "etcd is away")
        else:
            await stage.answer(answer)

    async with FakeApi(lists=[answer], others=[answer]) as api, api.client() as client:
        other = stage.operator(client)
        await other.look()
        assert stage.is_held, "nobody has looked yet"
        is_broken = False
        await other.look()
        assert not stage.is_held
        is_broken = True
        await other.look()
        assert not stage.is_held
