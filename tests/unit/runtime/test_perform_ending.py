"""A job that is ended for a worker: asked once more when that is sent, and left alone if anything has changed."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.plan.belonging import EVERYTHING, Scope
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.recheck import ENDS_WITHIN
from slurm_operator.runtime.act.stages import OutOfTime
from slurm_operator.runtime.loop.reconcile import Loop
from slurm_operator.runtime.loop.retries import NEXT_PASS
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.safety.job_end_check import Ending
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.writes import Answer, CancelJob, Verdict, WriteResult
from testing.workers import CONTROLLER, NOW, job, nodeset, ours, slurm, slurm_node, worker

WORKER = worker(0)
KEY = key_of(WORKER)
REASON = ours(WORKER, "ScaleIn")
ON_IT = job(7, "gpu-0")
DELETED = worker(0, terminating=True)
ANOTHER = wire.replace(WORKER, metadata=wire.replace(WORKER.metadata, uid="other"))


def busy(*jobs, words=("MIXED", "DRAIN"), reason=REASON, seconds=0, **fields):
    """Slurm as it was, or will be, so many seconds from now."""
    read_at = NOW + timedelta(seconds=seconds)
    found = slurm(slurm_node(WORKER, *words, reason=reason), jobs=jobs)
    return wire.replace(found, nodes_asked_at=read_at, jobs_asked_at=read_at, **fields)


class Slurms:
    """Sends what its guard has no objection to."""

    def __init__(self, known) -> None:
        self.known, self.sent = known, []

    async def write(self, _, write, guard):
        why = guard(self.known)
        if why is None:
            self.sent.append(write.job_id)
        return WriteResult(
            answers={"7": Answer(verdict=Verdict.LATE if why else Verdict.DONE, message=why or "")}
        )


async def sent(known, *, pod=WORKER, drained_for=REASON, wanted=True, after=timedelta(0)):
    """The jobs that are ended after all, so long after that was decided."""
    slurms, time = Slurms(known), SimpleNamespace(now=NOW)
    cache = SimpleNamespace(records={Pod: {KEY: pod} if pod is not None else {}}, slurms=slurms)
    performer = Performer(None, cache, lambda: time.now, NEXT_PASS, lambda: wanted)
    time.now += after
    ending = Ending(pod=KEY, pod_uid=WORKER.metadata.uid, slurm_node="gpu-0", drained_for=drained_for)
    try:
        await performer.perform(
            WriteSlurm(CONTROLLER, CancelJob(job_id=7, address="7"), "DrainDeadline", "", ending=ending)
        )
    except OutOfTime:
        assert slurms.sent == []
    return slurms.sent


async def test_a_job_is_ended_while_all_is_as_it_was_decided():
    assert await sent(busy(ON_IT)) == [7]
    assert await sent(busy(ON_IT, reason="ask Ada"), pod=DELETED, drained_for="") == [7], (
        "with its pod it ends anyway"
    )


@pytest.mark.parametrize(
    ("known", "how"),
    [
        pytest.param(busy(ON_IT), {"wanted": False}, id="the NodeSet asks for something else"),
        pytest.param(busy(ON_IT), {"pod": None}, id="its pod has gone"),
        pytest.param(busy(ON_IT), {"pod": ANOTHER}, id="another pod has its name"),
        pytest.param(busy(ON_IT, seconds=11), {"after": ENDS_WITHIN + timedelta(seconds=1)}, id="it was decided long ago"),
        pytest.param(busy(ON_IT, seconds=-6), {}, id="what is known of Slurm is old"),
        pytest.param(busy(ON_IT, behind=frozenset({"gpu-0"})), {}, id="and so it is after our own write"),
        pytest.param(busy(ON_IT, settles_at=NOW + timedelta(seconds=1)), {}, id="the operator before may have asked for it"),
        pytest.param(Unreachable(since=NOW, why="gone"), {}, id="Slurm is away"),
        pytest.param(busy(), {}, id="the job has ended"),
        pytest.param(busy(job(7, "gpu-1")), {}, id="it runs elsewhere by now"),
        pytest.param(busy(job(7, "gpu-0", words=["PENDING", "COMPLETING"])), {}, id="it was requeued"),
        pytest.param(busy(ON_IT, words=("MIXED",)), {}, id="the drain was lifted"),
        pytest.param(busy(ON_IT, reason=ours(WORKER, "NodeCordon")), {}, id="the worker stays, and drains for a cordon"),
        pytest.param(busy(ON_IT, reason="ask Ada"), {}, id="a human drained it over"),
        pytest.param(busy(ON_IT), {"drained_for": ""}, id="the pod was said to be deleted, and is not"),
    ],
)  # fmt: skip
async def test_a_job_is_left_alone_when_anything_has_changed(known, how):
    assert await sent(known, **how) == []


@pytest.mark.parametrize(
    ("live", "is_wanted"),
    [
        pytest.param({}, True, id="as it was"),
        pytest.param({"resource_version": "2"}, True, id="only its status was written"),
        pytest.param({"generation": 8}, False, id="its spec was changed"),
        pytest.param({"generation": 8, "deletion_timestamp": NOW}, True, id="it is being deleted"),
        pytest.param({"uid": "other"}, False, id="another one has its name"),
        pytest.param(None, False, id="it has gone"),
    ],
)
def test_a_plan_is_wanted_as_long_as_the_spec_is_the_one_it_was_made_for(live, is_wanted):
    found = nodeset(replicas=1)
    about = wire.replace(found, metadata=wire.replace(found.metadata, generation=7))
    cache = (
        {key_of(about): wire.replace(about, metadata=wire.replace(about.metadata, **live))}
        if live is not None
        else {}
    )
    assert is_plan_wanted(about, cache, EVERYTHING) is is_wanted


def test_a_plan_is_not_wanted_any_more_when_another_operator_acts():
    found = nodeset(replicas=1)
    cache = {key_of(found): found}

    assert is_plan_wanted(found, cache, EVERYTHING)
    assert not is_plan_wanted(found, cache, replace(EVERYTHING, held=frozenset({NodeSet.KIND.group})))
    assert is_plan_wanted(found, cache, EVERYTHING, SimpleNamespace(covers=lambda kind, thing: True))
    assert not is_plan_wanted(found, cache, EVERYTHING, SimpleNamespace(covers=lambda kind, thing: False))


def is_plan_wanted(about: NodeSet, cache: dict, scope: Scope, claims=None) -> bool:
    known = SimpleNamespace(records={NodeSet: cache}, scope=scope, claims=claims)
    known.is_ours = partial(Caches.is_ours, known)
    shell = SimpleNamespace(known=known)
    return Loop(SimpleNamespace(about=NodeSet, kind=NodeSet.KIND, on_behalf_of=""), None, shell)._is_wanted(
        about
    )
