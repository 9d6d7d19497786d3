"""Whether somebody renews a Lease, by our own clock; and where it is looked for."""

import pytest
from fake_api_server import Answer, FakeApi

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.lease import LeaseSpec
from slurm_operator.kube.renewals import LeaseFinder, Renewals

NAME = "e21479ae.nebius.ai"
THERE, ELSEWHERE = ObjectKey("soperator", NAME), ObjectKey("other", NAME)


class Stage:
    """Looks at what is there, at a time."""

    def __init__(self, ours: ObjectKey | None = None, spared: str = "") -> None:
        self.now = 1000.0
        self.renewals = Renewals(ours, lambda: self.now, spared=spared)

    def at(self, seconds: float, found: dict[ObjectKey, LeaseSpec]) -> str:
        """What is known then: who it is, with a question mark while no renewal was seen."""
        self.now = 1000.0 + seconds
        holder = self.renewals.note(found)
        return "" if holder is None else holder.identity + ("" if holder.is_renewing else "?")


def held(renewed: int, by: str = "them", lasts: int | None = 15) -> LeaseSpec:
    return LeaseSpec(holder_identity=by, renew_time=str(renewed), lease_duration_seconds=lasts)


def test_nobody_is_there():
    assert Stage().at(0, {}) == ""


def test_one_that_is_renewed_is_somebody_from_the_first_renewal_on():
    stage = Stage()

    assert [stage.at(t, {THERE: held(t // 2)}) for t in (0, 1, 2, 4)] == ["them?", "them?", "them", "them"]


def test_one_that_was_left_behind_is_nobody_when_its_time_has_passed():
    stage = Stage()

    assert [stage.at(t, {THERE: held(7)}) for t in (0, 14, 15, 500)] == ["them?", "them?", "", ""]


def test_one_that_falls_silent_is_nobody_after_its_time_and_somebody_when_it_is_renewed_again():
    stage = Stage()
    for t in (0, 2, 4):
        stage.at(t, {THERE: held(t)})

    assert [stage.at(t, {THERE: held(4)}) for t in (18, 19)] == ["them", ""]
    assert stage.at(60, {THERE: held(60)}) == "them"


def test_a_deleted_one_counts_until_its_time_has_passed_for_who_renewed_it_makes_it_again():
    stage = Stage()
    for t in (0, 2):
        stage.at(t, {THERE: held(t)})

    assert [stage.at(t, {}) for t in (3, 16, 17)] == ["them", "them", ""]


def test_a_deleted_one_that_nobody_renewed_is_gone_at_once():
    stage = Stage()
    stage.at(0, {THERE: held(0)})

    assert stage.at(1, {}) == ""


def test_one_that_was_given_back_is_nobody_at_once():
    stage = Stage()
    for t in (0, 2):
        stage.at(t, {THERE: held(t)})

    assert stage.at(3, {THERE: held(3, by="", lasts=1)}) == ""


@pytest.mark.parametrize(("lasts", "left_at"), [(None, 15), (60, 60), (3, 3)])
def test_it_lasts_as_long_as_it_says(lasts, left_at):
    stage = Stage()
    stage.at(0, {THERE: held(0, lasts=lasts)})

    assert stage.at(left_at - 1, {THERE: held(0, lasts=lasts)}) == "them?"
    assert stage.at(left_at, {THERE: held(0, lasts=lasts)}) == ""


def test_our_own_is_nobody_else_and_one_of_the_name_elsewhere_is():
    stage = Stage(ours=THERE)

    assert stage.at(0, {THERE: held(0, by="us")}) == ""
    assert stage.at(2, {THERE: held(2, by="us")}) == ""
    stage.at(4, {THERE: held(4, by="us"), ELSEWHERE: held(4)})
    assert stage.at(6, {THERE: held(6, by="us"), ELSEWHERE: held(6)}) == "them"


def test_one_that_is_spared_is_nobody_until_somebody_else_has_the_lease():
    stage = Stage(spared="slurm-operator/")

    assert stage.at(0, {THERE: held(0, by="slurm-operator/pod_1")}) == ""
    assert stage.at(2, {THERE: held(2, by="slurm-operator/pod_1")}) == ""
    stage.at(4, {THERE: held(4)})
    assert stage.at(6, {THERE: held(6)}) == "them"


def test_of_two_the_one_that_is_renewed_is_named():
    stage = Stage()
    for t in (0, 2):
        found = stage.at(t, {ELSEWHERE: held(0, by="left"), THERE: held(t)})

    assert found == "them"


async def looked(*allowed: str, after_seconds: float = 2.0) -> tuple[list[str], list[str], list[str]]:
    """Where two looks asked, and what the second one found, by the namespaces that may be read; "" is all."""
    now = [1000.0]
    asked: list[str] = []

    async def answer(answer: Answer) -> None:
        assert answer.asked.params["fieldSelector"] == f"metadata.name={NAME}"
        path = answer.asked.path
        where = path.split("/namespaces/")[1].split("/")[0] if "/namespaces/" in path else ""
        asked.append(where)
        if where not in allowed:
            await answer.refuse(403, "Forbidden", "no")
            return
        meta = {"name": NAME, "namespace": where or "soperator"}
        await answer.json({"metadata": {}, "items": [{"metadata": meta, "spec": {"holderIdentity": "x"}}]})

    async with FakeApi(lists=[answer], others=[answer]) as api, api.client() as client:
        finder = LeaseFinder(client, NAME, ("home", "lab"), lambda: now[0])
        await finder.find()
        first = list(asked)
        now[0] += after_seconds
        found = await finder.find()
    return first, asked[len(first) :], sorted(key.namespace for key in found)


async def test_it_is_looked_for_everywhere_where_that_is_allowed():
    assert await looked("") == ([""], [""], ["soperator"])


async def test_else_wherever_we_may_look_and_what_was_refused_is_not_asked_again():
    assert await looked("home") == (["", "home", "lab"], ["home"], ["home"])
    assert await looked() == (["", "home", "lab"], [], [])


async def test_after_a_minute_it_is_asked_again_for_rights_may_have_come():
    assert await looked("home", after_seconds=60) == (["", "home", "lab"], ["", "home", "lab"], ["home"])
