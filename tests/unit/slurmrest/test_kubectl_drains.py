"""What `kubectl slurm drain` and `undrain` send to slurmrestd, and when they send nothing."""

from datetime import UTC, datetime
from functools import partial

import pytest
from fake_slurmrestd import DROP, KEY, http
from slurmrest_replies import UPDATE, jobs, nodes, serve

from slurm_operator.insight.drain.decide import draining, human_reason, undraining
from slurm_operator.insight.drain.send import carry_out
from slurm_operator.slurm.writes import Verdict
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmFailure

REASON = human_reason("ada", "new cables")


@pytest.fixture
def rest(slurmrestd) -> SlurmRest:
    return SlurmRest([slurmrestd.url], lambda: KEY, now=lambda: datetime.now(UTC), deadline_s=5)


def drain(*names: str, force: bool = False):
    return lambda records: draining(names, records, REASON, force=force)


async def test_one_request_drains_all_that_may_be_drained_with_the_humans_name(slurmrestd, rest):
    before = nodes(a="IDLE", b="MIXED", c=("IDLE+DRAIN", "bob: disk"))
    after = nodes(a=("IDLE+DRAIN", REASON), b=("MIXED+DRAIN", REASON), c=("IDLE+DRAIN", "bob: disk"))
    serve(slurmrestd, node_lists=[before, after], job_lists=[jobs(j7="b")])

    found = await carry_out(rest, ["a", "b", "c", "d"], drain("a", "b", "c", "d"))

    [sent] = slurmrestd.calls(UPDATE)
    assert sent.body == {"name": ["a", "b"], "state": ["DRAIN"], "reason": "ada: new cables"}
    assert [(one.node, one.verdict, one.jobs) for one in found] == [
        ("a", Verdict.DONE, ()),
        ("b", Verdict.DONE, (7,)),
        ("c", Verdict.FOREIGN, ()),
        ("d", Verdict.UNKNOWN, ()),
    ]


async def test_lifting_names_only_my_own_and_leaves_the_reason_of_others(slurmrestd, rest):
    serve(slurmrestd, node_lists=[nodes(a=("IDLE+DRAIN", REASON), b=("IDLE+DRAIN", "bob: disk"))])

    found = await carry_out(rest, ["a", "b"], partial(undraining, ["a", "b"], user="ada"))

    [sent] = slurmrestd.calls(UPDATE)
    assert sent.body == {"name": ["a"], "state": ["UNDRAIN"]}
    assert [one.verdict for one in found] == [Verdict.DONE, Verdict.FOREIGN]


async def test_nothing_is_sent_when_nothing_may_be(slurmrestd, rest):
    serve(slurmrestd, node_lists=[nodes(a=("IDLE+DRAIN", "slurm-operator: ScaleIn: x"))])

    await carry_out(rest, ["a"], partial(undraining, ["a"], user="ada"))
    await carry_out(rest, ["a"], drain("a"))

    assert slurmrestd.calls(UPDATE) == []


async def test_an_answer_that_never_came_is_told_as_such(slurmrestd, rest):
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(UPDATE, DROP)

    [found] = await carry_out(rest, ["a"], drain("a"))

    assert found.verdict is Verdict.UNSURE
    assert "drain a" in found.message


async def test_a_refusal_is_in_slurms_own_words(slurmrestd, rest):
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    trouble = {"description": "Access denied", "error_number": 2010, "error": "denied", "source": "x"}
    slurmrestd.on(UPDATE, http(500, {"errors": [trouble], "warnings": []}))

    [found] = await carry_out(rest, ["a"], drain("a"))

    assert (found.verdict, found.is_good) == (Verdict.REFUSED, False)
    assert "Access denied" in found.message


async def test_a_slurm_that_cannot_be_asked_is_not_written_to(slurmrestd, rest):
    await slurmrestd.stop()

    with pytest.raises(SlurmFailure, match="cannot reach Slurm to read the nodes"):
        await carry_out(rest, ["a"], drain("a"))
