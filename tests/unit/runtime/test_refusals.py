"""A write that was refused is not sent again before its time, unless something changed; and all of them are shown."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import get_args

import pytest

from slurm_operator import wire
from slurm_operator.api.schema.codec import read
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.kube.errors import Cause, Details, Status, Timeout, Unreachable, from_status
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import stamped
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import (
    Action,
    Apply,
    Create,
    DeleteDaemonPod,
    DeleteKubeNode,
    DeleteObject,
    DeleteWorker,
    EndWorker,
    GenerateSecret,
    PatchObject,
    RestoreSecret,
    SignToken,
    Tell,
    Wait,
    WriteSlurm,
    does_nothing,
)
from slurm_operator.plan.conditions import DEGRADED, false, true
from slurm_operator.plan.failing import degraded, errors
from slurm_operator.plan.order import Order
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.runtime.act.held_actions import Hold
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.refused_writes import LONGEST_SECONDS, Refusals, is_refusal
from slurm_operator.runtime.act.stages import ActionFailed
from slurm_operator.runtime.loop.retries import NEXT_PASS
from slurm_operator.safety.gate import Ended
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import Answer, DeleteNodes, DrainNodes, Verdict, WriteResult

VIRTUAL_TIME = True

OWNER = ("controller", ObjectKey("ns", "slurm"))
KEY = ObjectKey("ns", "budget")
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"namespace": "ns", "name": "budget"},
}


def about(generation: int = 1, **meta) -> Controller:
    metadata = {"name": "slurm", "namespace": "ns", "uid": "u", "generation": generation, **meta}
    return read(Controller, {"metadata": metadata, "spec": {}})


def apply(**spec) -> Apply:
    manifest = stamped({**BUDGET, "spec": {"maxUnavailable": 0, **spec}})
    return Apply(manifest=manifest, reason="Created", message="created the budget")


BUDGET_SPENT = Details(causes=[Cause(reason="DisruptionBudget")])


def status(code: int, reason: str = "", message: str = "no") -> Status:
    return Status(code=code, reason=reason, message=message)


class Server:
    """Refuses everything for good, and counts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error: Exception | None = error or from_status(status(422, "Invalid"))
        self.asked: list[float] = []
        self.live: Child | None = None
        self.verdict = Verdict.REFUSED
        self.state = "IDLE"
        self.slurms = SimpleNamespace(latest=self._facts, write=self._slurm)

    async def _answer(self, *_, **__):
        self.asked.append(asyncio.get_running_loop().time())
        if self.error is not None:
            raise self.error
        return {"metadata": {"name": "budget", "namespace": "ns", "resourceVersion": "1"}}

    async def list_pages(self, *_):
        """Nobody else has fields in what is refused."""
        for page in ():
            yield page

    apply = create_undecoded = json_patch_undecoded = delete_undecoded = _answer

    def _facts(self, key):
        node = SlurmNode(name="gpu-0", state=NodeState.of(self.state))
        now = Refused.now
        return Snapshot(nodes={"gpu-0": node}, jobs={}, nodes_asked_at=now, jobs_asked_at=now)

    async def _slurm(self, controller, write, guard):
        await self._answer()
        return WriteResult(answers={"gpu-0": Answer(verdict=self.verdict, message="not now")})

    def live_(self, kind, key):
        return self.live


class Refused:
    """Passes over one object, as often as somebody wakes it."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __init__(self, server: Server) -> None:
        self.server = server
        self.refusals = Refusals(jitter=lambda: 1.0)
        self.about = about()

    async def try_(self, action) -> ActionFailed | None:
        known = SimpleNamespace(
            live=self.server.live_,
            note_answer=lambda *_: (),
            slurms=self.server.slurms,
            note_deleted=lambda *_: None,
        )
        hold = Hold(OWNER, self.about, self.refusals, known)
        performer = Performer(self.server, known, lambda: self.now, NEXT_PASS, lambda: True, hold=hold)
        try:
            await performer.perform(action)
        except ActionFailed as error:
            return error
        return None

    async def for_seconds(self, seconds: float, action=None, every: float = 0.7) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await self.try_(action or apply())
            await asyncio.sleep(every)


async def test_a_refused_write_is_repeated_ever_more_seldom_however_often_a_pass_plans_it():
    made = Refused(Server())

    await made.for_seconds(300, every=1.5)
    assert len(made.server.asked) <= 9, "430 in five minutes were seen"
    pauses = [
        later - earlier for earlier, later in zip(made.server.asked, made.server.asked[1:], strict=False)
    ]
    assert all(pause >= 2**number for number, pause in enumerate(pauses))

    made.server.asked.clear()
    await made.for_seconds(3600, every=20)
    assert 11 <= len(made.server.asked) <= 13, "every five minutes"


async def test_what_is_not_sent_fails_all_the_same_in_the_same_words():
    made = Refused(Server())
    first, second = await made.try_(apply()), await made.try_(apply())

    assert (first.is_refused, first.is_held) == (True, False)
    assert (second.is_refused, second.is_held) == (True, True)
    assert str(first) == str(second)
    assert 0 < second.retry_after <= first.retry_after <= LONGEST_SECONDS


def other_live(made: Refused) -> None:
    made.server.live = Child(metadata=Meta(name="budget", namespace="ns", uid="1"), body={"spec": {"a": 1}})


def other_spec(made: Refused) -> None:
    made.about = about(generation=2)


def deleted(made: Refused) -> None:
    made.about = about(deletionTimestamp="2026-01-01T11:00:00Z")


def restarted(made: Refused) -> None:
    made.refusals = Refusals()


def other_status(made: Refused) -> None:
    made.server.live = Child(
        metadata=Meta(name="budget", namespace="ns", uid="1", resource_version="9"), body={"status": {"a": 2}}
    )


@pytest.mark.parametrize(
    ("changes", "action", "is_sent"),
    [
        pytest.param(lambda made: None, apply(), False, id="nothing"),
        pytest.param(lambda made: None, apply(minAvailable=1), True, id="what it says"),
        pytest.param(other_live, apply(), True, id="the object"),
        pytest.param(other_status, apply(), False, id="only its status"),
        pytest.param(other_spec, apply(), True, id="the spec"),
        pytest.param(deleted, apply(), True, id="it is to be deleted"),
        pytest.param(restarted, apply(), True, id="the operator was restarted"),
        pytest.param(lambda made: None, Create(manifest=BUDGET, reason="A", message="b"), True, id="another verb"),
    ],
)  # fmt: skip
async def test_it_is_sent_at_once_when_something_changes(changes, action, is_sent):
    made = Refused(Server())
    made.server.live = Child(
        metadata=Meta(name="budget", namespace="ns", uid="1", resource_version="8"), body={}
    )
    await made.for_seconds(20, every=2)
    made.server.asked.clear()
    changes(made)

    await made.try_(action)
    assert bool(made.server.asked) is is_sent


async def test_a_write_that_was_taken_is_no_longer_held():
    made = Refused(Server())
    await made.for_seconds(20, every=2)
    made.server.error = None
    await made.for_seconds(20, every=2)
    made.server.asked.clear()

    await made.try_(apply())
    await made.try_(apply())
    assert len(made.server.asked) == 2


def noted(moment: str) -> PatchObject:
    operation = {"op": "add", "path": "/metadata/annotations/a", "value": f"digest {moment}"}
    return PatchObject(kind=kinds.POD, key=KEY, uid="u", operations=(operation,), reason="A", message="b")


async def test_the_moment_of_the_pass_in_a_write_makes_no_other_one():
    made = Refused(Server())
    for second in range(10):
        await made.try_(noted(f"2026-01-01T12:00:0{second}+00:00"))
        manifest = {
            **BUDGET,
            "metadata": {**BUDGET["metadata"], "annotations": {"at": f"2026-01-01T12:00:0{second}Z"}},
        }
        await made.try_(Apply(manifest=stamped(manifest), reason="A", message="b"))

    assert len(made.server.asked) == 2


async def test_one_refused_write_holds_up_no_other():
    made = Refused(Server())
    await made.for_seconds(20, every=2)
    made.server.asked.clear()
    gone = DeleteObject(kind=kinds.SERVICE, key=KEY, uid="1", reason="A", message="b")

    await made.try_(noted("x"))
    await made.try_(gone)
    assert len(made.server.asked) == 2


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        (from_status(status(422, "Invalid")), True),
        (from_status(status(403, "Forbidden")), True),
        (from_status(status(400, "BadRequest")), True),
        (from_status(status(404, "NotFound")), True),
        (from_status(status(409, "AlreadyExists")), True),
        (from_status(status(413, "RequestEntityTooLarge")), True),
        (from_status(status(409, "Conflict")), False),
        (from_status(status(401, "Unauthorized")), False),
        (from_status(status(408, "Timeout")), False),
        (from_status(status(410, "Expired")), False),
        (from_status(status(429, "TooManyRequests")), True),
        (from_status(Status(code=429, reason="TooManyRequests", details=BUDGET_SPENT)), False),
        (from_status(status(500, "InternalError", "etcdserver: mvcc: database space exceeded")), True),
        (from_status(status(500, "InternalError")), False),
        (Unreachable("nobody answers"), False),
        (Timeout("no answer", may_have_happened=True), False),
    ],
)
async def test_weather_and_crossing_writes_are_no_refusal(error, refuses):
    assert is_refusal(error) is refuses
    made = Refused(Server(error))

    await made.try_(apply())
    await made.try_(apply())
    assert len(made.server.asked) == (1 if refuses else 2)


NO_ROOM = {
    "a quota": status(403, "Forbidden", "pods is forbidden: exceeded quota: small"),
    "a busy server": status(429, "TooManyRequests", "the server has received too many requests"),
    "a Service of a full etcd": status(
        422, "Invalid", "failed to allocate IP: etcdserver: mvcc: database space exceeded"
    ),
    "a full etcd": status(500, "InternalError", "etcdserver: mvcc: database space exceeded"),
}


@pytest.mark.parametrize("refusal", NO_ROOM.values(), ids=NO_ROOM)
async def test_room_is_asked_for_more_often_and_never_with_every_pass(refusal):
    made = Refused(Server(from_status(refusal)))
    await made.for_seconds(600, every=5)
    made.server.asked.clear()

    await made.for_seconds(300, every=2)
    assert 9 <= len(made.server.asked) <= 11


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "key"}}
HANDLE = SecretHandle(namespace="ns", name="copies", key="a")
WHY = {"reason": "A", "message": "b"}
OF_EVERY_TYPE = [
    apply(),
    Create(manifest=BUDGET, **WHY),
    noted("x"),
    DeleteObject(kind=kinds.SERVICE, key=KEY, uid="1", **WHY),
    DeleteDaemonPod(key=KEY, uid="1", app="slurmctld", **WHY),
    DeleteKubeNode(name="n1", uid="1", resource_version="1", workers=(), **WHY),
    DeleteWorker(controller=OWNER[1], key=KEY, slurm_node="gpu-0", proof=Ended(pod_uid="1"), grace_seconds=30, **WHY),
    EndWorker(key=KEY, slurm_node="gpu-0", order=Order(owner_uid="2", pod_uid="1"), **WHY),
    GenerateSecret(manifest=SECRET, recipe="random", entry="a", size=8, **WHY),
    RestoreSecret(manifest=SECRET, entries={"a": HANDLE}, **WHY),
    SignToken(manifest=SECRET, entry="a", key=HANDLE, username="ada", issued_at=Refused.now, lifetime=timedelta(1), **WHY),
    WriteSlurm(controller=OWNER[1], write=DrainNodes(nodes=("gpu-0",), reason="r"), **WHY),
    Wait(subject="gpu-0", **WHY),
    Tell(subject="gpu-0", **WHY),
]  # fmt: skip


@pytest.mark.parametrize("action", OF_EVERY_TYPE, ids=lambda action: type(action).__name__)
async def test_every_action_that_writes_is_held_when_it_was_refused(action):
    server = Server()
    hold = Hold(OWNER, about(), Refusals(), SimpleNamespace(live=server.live_, slurms=server.slurms))
    hold.check(action)
    hold.refused(action, "no", passing=False)

    if does_nothing(action):
        hold.check(action)
    else:
        with pytest.raises(ActionFailed, match="no"):
            hold.check(action)


def test_no_type_of_action_is_missing_here():
    assert {type(action) for action in OF_EVERY_TYPE} == set(get_args(Action))


# ---- Slurm


def slurm(write) -> WriteSlurm:
    return WriteSlurm(controller=OWNER[1], write=write, reason="A", message="b")


DRAIN = slurm(DrainNodes(nodes=("gpu-0",), reason="slurm-operator: ScaleIn"))


async def test_a_drain_that_slurm_refuses_is_not_repeated_each_second():
    made = Refused(Server())
    made.server.error = None
    await made.for_seconds(40, DRAIN, every=1.0)
    assert len(made.server.asked) <= 8

    made.server.asked.clear()
    made.server.state = "ALLOCATED"
    await made.try_(DRAIN)
    assert len(made.server.asked) == 1, "its node is in another state"


@pytest.mark.parametrize(
    ("write", "verdict"),
    [
        pytest.param(DRAIN, Verdict.UNSURE, id="no answer"),
        pytest.param(DRAIN, Verdict.NOT_SENT, id="held back"),
        pytest.param(DRAIN, Verdict.UNKNOWN, id="a node that Slurm does not know yet"),
        pytest.param(slurm(DeleteNodes(nodes=("gpu-0",))), Verdict.REFUSED, id="a record that is in use"),
    ],
)
async def test_other_answers_of_slurm_have_rules_of_their_own(write, verdict):
    made = Refused(Server())
    made.server.error, made.server.verdict = None, verdict
    await made.try_(write)
    await made.try_(write)

    assert len(made.server.asked) == 2


# ---- What is told


def failure(name: str, error: str = "no.") -> Failure:
    manifest = {**BUDGET, "metadata": {"namespace": "ns", "name": name}}
    return Failure(action=Apply(manifest=manifest, reason="A", message=f"made {name}"), error=error)


def test_every_refused_write_is_told_in_an_order_that_stays():
    one, two = Outcome(failed=(failure("a"), failure("b"))), Outcome(failed=(failure("b"), failure("a")))
    fine = false(DEGRADED, "AsExpected")

    assert degraded(one, fine).message == "made a: no.; made b: no."
    assert degraded(one, fine) == degraded(two, fine)
    many = Outcome(failed=tuple(failure(name) for name in "abcdef"))
    assert degraded(many, fine).message.endswith("made c: no.; and 3 more")
    assert errors(many) == "no."


def test_a_refused_write_does_not_hide_what_else_is_wrong():
    found = degraded(Outcome(failed=(failure("a"),)), true(DEGRADED, "ConfigRefused", "line 3 is nonsense."))

    assert (found.reason, found.message) == ("WriteFailed", "made a: no. Besides: line 3 is nonsense.")


def test_what_was_only_held_changes_nothing():
    held = wire.replace(failure("a"), is_refused=True, is_held=True)

    assert not Outcome(failed=(held,)).changed_anything
    assert Outcome(failed=(failure("a"),)).changed_anything
