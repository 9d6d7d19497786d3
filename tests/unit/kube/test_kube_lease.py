"""One leader at a time, by a clock that goes on while we do not."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from eventually import eventually
from fake_api_server import Answer, FakeApi

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.lease import Elector
from slurm_operator.manifests.meta import Manifest

VIRTUAL_TIME = True

KEY = ObjectKey("ns", "slurm-operator")


@dataclass
class LeaseServer:
    """The one object there is, with optimistic locking; can be told to stop answering."""

    lease: Manifest | None = None
    version: int = 0
    is_silent: bool = False
    works_after: float = 0.0
    answers_after: float = 0.0
    writes: list[str] = field(default_factory=list)

    async def answer(self, answer: Answer) -> None:
        asked = answer.asked
        if self.is_silent:
            await asyncio.Event().wait()
        await asyncio.sleep(self.works_after)
        if asked.method == "GET":
            if self.lease is None:
                await answer.refuse(404, "NotFound", "no lease")
            else:
                await answer.json(self.lease)
            return
        if asked.method == "POST" and self.lease is not None:
            await answer.refuse(409, "AlreadyExists", "there is one")
            return
        if asked.method == "PUT" and asked.json["metadata"]["resourceVersion"] != str(self.version):
            await answer.refuse(409, "Conflict", "the object has been modified")
            return
        self.put(json.loads(asked.body))
        await asyncio.sleep(self.answers_after)
        await answer.json(self.lease or {})

    def put(self, lease: Manifest) -> None:
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease
        self.writes.append(lease["spec"].get("holderIdentity", ""))

    def api(self) -> FakeApi:
        return FakeApi(lists=[self.answer], others=[self.answer])


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_the_first_one_takes_it_and_keeps_renewing() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        before = elector.is_leader
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        await asyncio.sleep(60)
        after_a_minute = (elector.is_leader, holding.done())
        holding.cancel()

    assert not before
    assert after_a_minute == (True, False)
    assert len(server.writes) >= 25
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 0
    assert server.lease["spec"]["leaseDurationSeconds"] == 15


async def test_what_a_new_leader_does_first_takes_nothing_from_its_lease() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        await asyncio.sleep(9)  # Seconds are spent on a first look at Slurm, and on a slow answer before.
        holding = asyncio.create_task(elector.hold())
        await asyncio.sleep(10)
        is_held = (elector.is_leader, holding.done())
        holding.cancel()

    assert is_held == (True, False)


async def test_the_second_waits_until_the_first_has_not_renewed_for_the_whole_lease() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        first = Elector(client, KEY, "one", clock=now)
        await first.acquire()
        second = Elector(client, KEY, "two", clock=now)
        began = now()
        await second.acquire()
        waited = now() - began

    assert 15 <= waited < 20
    assert second.holder == "two"
    assert not first.is_leader
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


async def test_while_the_first_renews_the_second_never_gets_it() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        first, second = (Elector(client, KEY, name, clock=now) for name in ("one", "two"))
        await first.acquire()
        tasks = [asyncio.create_task(first.hold()), asyncio.create_task(second.acquire())]
        await asyncio.sleep(120)
        done = [task.done() for task in tasks]
        for task in tasks:
            task.cancel()

    assert done == [False, False]
    assert set(server.writes) == {"one"}


async def test_a_released_lease_is_taken_at_once_and_the_old_holder_stops_first() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        first, second = (Elector(client, KEY, name, clock=now) for name in ("one", "two"))
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(5)
        releasing = asyncio.create_task(first.release())
        await asyncio.sleep(0)
        leads_while_releasing = first.is_leader
        began = now()
        await asyncio.gather(releasing, waiting)
        waited = now() - began

    assert not leads_while_releasing
    assert waited < 4
    assert second.is_leader


@pytest.mark.parametrize(
    "cut_off_after",
    [
        pytest.param(0.5, id="the renewal is carried out after we were told to stop"),
        pytest.param(1.5, id="the renewal was carried out, and its answer was under way"),
    ],
)
async def test_a_renewal_that_was_cut_off_does_not_keep_the_lease(cut_off_after: float) -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        server.works_after, server.answers_after = 1.0, 1.0
        holding = asyncio.create_task(elector.hold())
        await eventually(lambda: api.asked[-1].method == "PUT", step_seconds=0.01)
        await asyncio.sleep(cut_off_after)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await elector.release()

    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.writes == ["one", "one", ""]
    assert not elector.is_leader


async def test_a_lease_that_was_last_not_answered_about_is_given_back_too() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        server.is_silent = True
        await asyncio.sleep(8)  # A renewal was given up, so what the lease looks like is not known.
        server.is_silent = False
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await elector.release()

    assert server.writes == ["one", ""]


async def test_what_somebody_else_has_taken_is_not_given_back() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        assert server.lease is not None
        server.put(server.lease | {"spec": server.lease["spec"] | {"holderIdentity": "an admin"}})
        await elector.release()

    assert server.lease["spec"]["holderIdentity"] == "an admin"


async def test_a_process_that_was_stopped_knows_at_once_that_it_may_have_lost() -> None:
    """SIGSTOP: our code does not run, the clock does."""
    stopped_for = 0.0
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=lambda: now() + stopped_for)
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        await asyncio.sleep(5)
        writes_before = len(server.writes)
        stopped_for = 10.0
        leads = elector.is_leader
        await holding
        writes_after = len(server.writes)

    assert not leads
    assert writes_after == writes_before  # What has run out is not renewed.


async def test_a_silent_server_costs_the_lease_before_it_can_have_run_out() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        taken_at = now()
        holding = asyncio.create_task(elector.hold())
        server.is_silent = True
        await eventually(lambda: not elector.is_leader, step_seconds=0.1)
        lost_after = now() - taken_at
        await holding

    assert 9 < lost_after < 15


async def test_the_lease_counts_from_when_we_asked_not_from_when_we_were_answered() -> None:
    server = LeaseServer(works_after=4.0)
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        at_first = elector.is_leader
        await asyncio.sleep(7)
        seven_later = elector.is_leader

    assert (at_first, seven_later) == (True, False)


async def test_a_short_silence_costs_nothing() -> None:
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        server.is_silent = True
        await asyncio.sleep(4)
        server.is_silent = False
        await asyncio.sleep(30)
        still = (elector.is_leader, holding.done())
        holding.cancel()

    assert still == (True, False)


async def test_somebody_else_in_the_lease_ends_it_at_once() -> None:
    """Whoever edits it by hand means it."""
    server = LeaseServer()
    async with server.api() as api, api.client() as client:
        elector = Elector(client, KEY, "one", clock=now)
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        assert server.lease is not None
        server.put(server.lease | {"spec": server.lease["spec"] | {"holderIdentity": "an admin"}})
        began = now()
        await holding
        waited = now() - began

    assert waited < 8
    assert not elector.is_leader
    assert elector.holder == "an admin"


async def test_what_others_keep_in_the_lease_stays() -> None:
    others = {"namespace": "ns", "name": "slurm-operator", "labels": {"team": "hpc"}}
    server = LeaseServer()
    server.put({"metadata": others, "spec": {"strategy": "OldestEmulationVersion"}})
    async with server.api() as api, api.client() as client:
        await Elector(client, KEY, "one", clock=now).acquire()

    assert server.lease is not None
    assert server.lease["metadata"]["labels"] == {"team": "hpc"}
    assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"


def test_times_that_cannot_be_safe_are_refused() -> None:
    client = Client(Access(server="http://nowhere"))

    with pytest.raises(ValueError, match="retry < renew deadline < duration"):
        Elector(client, KEY, "x", duration_seconds=10, renew_deadline_seconds=10.0)
