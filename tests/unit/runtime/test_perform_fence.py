"""A worker whose record goes before its pod: the proof is made again when it is needed, or nothing goes."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.names import POD_LEAVING
from slurm_operator.kube.errors import NotLeader, conflict
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteWorker, Fence, WriteSlurm
from slurm_operator.runtime.act.perform import DELETE_TRIES, Performer
from slurm_operator.runtime.act.stages import ActionFailed, OutOfTime
from slurm_operator.runtime.loop.retries import NEXT_PASS
from slurm_operator.safety.gate import Drained, NeverStarted
from slurm_operator.slurm.writes import Answer, DeleteNodes, Verdict, WriteResult
from testing.workers import CONTROLLER, NOW, job, ours, slurm, slurm_node, worker

KEY = ObjectKey("ns", "gpu-0")
UID = worker(0).metadata.uid
WORKER = worker(0, annotations={POD_LEAVING: UID})
LAPSED = Drained(pod_uid=UID, slurm_node="gpu-0", asked_at=NOW - timedelta(seconds=20))
FORGET = WriteSlurm(
    controller=CONTROLLER,
    write=DeleteNodes(nodes=("gpu-0",)),
    reason="Retired",
    message="",
    fence=Fence(pod=KEY, proof=LAPSED),
)
DELETE = DeleteWorker(
    controller=CONTROLLER,
    key=KEY,
    slurm_node="gpu-0",
    proof=LAPSED,
    grace_seconds=30,
    reason="ScaleIn",
    message="",
    is_fenced=True,
)


class Client:
    """Remembers what it was asked to delete. `queue` is what happens before there is a connection."""

    def __init__(self) -> None:
        self.deleted: list[ObjectKey] = []
        self.versions: list[str] = []
        self.live: Pod | None = None  # The pod as it is by now, if that is not as it was seen.
        self.queue = lambda: None

    async def delete_undecoded(self, kind, key, *, still, resource_version, **_):
        self.queue()
        if not still():
            raise NotLeader("not sent")
        self.versions.append(resource_version)
        if self.live is not None and resource_version != self.live.metadata.resource_version:
            raise conflict("the pod has changed")
        self.deleted.append(key)

    async def get(self, kind, key):
        return {"metadata": {"name": key.name, "namespace": key.namespace, "resourceVersion": "9"}}


class Slurms:
    """Removes a record unless its guard objects; `verdict` is what comes of it then."""

    def __init__(self, known, verdict=Verdict.DONE, fresh=None) -> None:
        self.known, self.verdict, self.fresh = known, verdict, fresh

    def latest(self, _):
        return self.known

    async def refresh(self, _):
        self.known = self.fresh or self.known

    async def write(self, _, write, guard):
        why = guard(self.known) if self.verdict is not Verdict.ALREADY else None
        if why is None and self.verdict is Verdict.DONE:
            self.known = wire.replace(self.known, behind=frozenset(write.nodes))
        answer = Answer(verdict=Verdict.LATE, message=why) if why else Answer(verdict=self.verdict)
        return WriteResult(answers=dict.fromkeys(write.nodes, answer))


def at_work(slurms, pod):
    """A performer, its client, and how the clock is put forward."""
    client, time = Client(), SimpleNamespace(now=NOW)
    pods = {KEY: pod}

    def note_answer(*_):
        pods[KEY] = client.live
        return []

    known = SimpleNamespace(
        records={Pod: pods}, slurms=slurms, note_deleted=lambda *_: None, note_answer=note_answer
    )
    return Performer(client, known, lambda: time.now, NEXT_PASS, lambda: True), client, time


def drained(jobs=(), seconds=0):
    """As it was, or will be, so many seconds from now."""
    found = slurm(slurm_node(WORKER, "IDLE", "DRAIN", reason=ours(WORKER, "ScaleIn")), jobs=jobs)
    read_at = NOW + timedelta(seconds=seconds)
    return wire.replace(found, nodes_asked_at=read_at, jobs_asked_at=read_at)


async def test_a_proof_that_ran_out_is_made_again_before_the_record_goes_and_the_pod_follows():
    performer, client, _ = at_work(Slurms(drained()), WORKER)

    await performer.perform(FORGET)
    await performer.perform(DELETE)

    assert client.deleted == [KEY]


REPLACED = wire.replace(DELETE, is_fenced=False)


@pytest.mark.parametrize(
    ("fresh", "deleted"),
    [
        pytest.param(drained(), [KEY], id="free, as it was"),
        pytest.param(drained([job(7, "gpu-0")]), [], id="a job has come"),
        pytest.param(None, [], id="Slurm cannot be read"),
    ],
)
async def test_a_proof_that_ran_out_is_renewed_or_nothing_is_deleted(fresh, deleted):
    performer, client, _ = at_work(Slurms(drained(seconds=-20), fresh=fresh), WORKER)

    if deleted:
        await performer.perform(REPLACED)
    else:
        with pytest.raises(ActionFailed):
            await performer.perform(REPLACED)

    assert client.deleted == deleted


async def test_a_proof_that_runs_out_in_line_is_renewed_and_the_deletion_put_in_line_again():
    slurms = Slurms(drained(), fresh=drained(seconds=6))
    performer, client, time = at_work(slurms, WORKER)
    client.queue = lambda: setattr(time, "now", NOW + timedelta(seconds=6))

    await performer.perform(REPLACED)

    assert client.deleted == [KEY]


CHANGED = wire.replace(WORKER, metadata=wire.replace(WORKER.metadata, resource_version="9"))
UNMARKED = wire.replace(CHANGED, metadata=wire.replace(CHANGED.metadata, annotations={}))
NOT_STARTED = wire.replace(
    DELETE, proof=NeverStarted(pod_uid=UID, resource_version="5"), is_fenced=False, grace_seconds=None
)


@pytest.mark.parametrize(
    ("delete", "live", "versions", "is_deleted"),
    [
        pytest.param(REPLACED, None, ["5"], True, id="as it was seen"),
        pytest.param(REPLACED, CHANGED, ["5", "9"], True, id="its kubelet has written to it: looked at, and sent again"),
        pytest.param(REPLACED, UNMARKED, ["5"], False, id="the mark is gone: it stays"),
        pytest.param(NOT_STARTED, None, ["5"], True, id="the version in which slurmd had not started"),
        pytest.param(NOT_STARTED, CHANGED, ["5"], False, id="it may have started since"),
    ],
)  # fmt: skip
async def test_every_delete_names_the_version_of_the_pod_that_it_was_decided_about(
    delete, live, versions, is_deleted
):
    performer, client, _ = at_work(Slurms(drained()), WORKER)
    client.live = live

    if is_deleted:
        await performer.perform(delete)
    else:
        with pytest.raises(OutOfTime):  # No fault of anybody, and looked at again.
            await performer.perform(delete)

    assert client.versions == versions
    assert client.deleted == ([KEY] if is_deleted else [])


async def test_a_pod_that_changes_all_the_time_is_left_to_the_next_pass():
    performer, client, _ = at_work(Slurms(drained()), WORKER)
    client.live = CHANGED
    client.queue = lambda: setattr(
        client,
        "live",
        wire.replace(
            CHANGED, metadata=wire.replace(CHANGED.metadata, resource_version=f"1{len(client.versions)}")
        ),
    )

    with pytest.raises(OutOfTime):
        await performer.perform(REPLACED)

    assert len(client.versions) == DELETE_TRIES


async def test_a_worker_that_is_not_marked_is_not_deleted():
    performer, client, _ = at_work(Slurms(drained()), worker(0))

    with pytest.raises(OutOfTime):
        await performer.perform(REPLACED)

    assert client.versions == []


async def test_a_fence_runs_out_like_a_proof():
    performer, client, time = at_work(Slurms(drained()), WORKER)
    await performer.perform(FORGET)
    time.now += timedelta(seconds=6)

    with pytest.raises(ActionFailed, match="6 s old"):
        await performer.perform(DELETE)

    assert client.deleted == []


async def test_a_proof_that_runs_out_while_a_deletion_waits_for_its_turn_is_worth_nothing():
    performer, client, time = at_work(Slurms(drained()), WORKER)
    await performer.perform(FORGET)
    client.queue = lambda: setattr(time, "now", NOW + timedelta(seconds=6))

    with pytest.raises(ActionFailed, match="6 s old"):
        await performer.perform(DELETE)

    assert client.deleted == []


@pytest.mark.parametrize(
    "slurms",
    [
        pytest.param(Slurms(drained([job(7, "gpu-0", words=("SUSPENDED",))])), id="a suspended job"),
        pytest.param(Slurms(drained([job(7, required=("gpu-0",), words=("PENDING",))])), id="a job insists on it"),
    ],
)  # fmt: skip
async def test_a_record_stays_when_what_is_known_by_then_speaks_against_it(slurms):
    performer, client, _ = at_work(slurms, WORKER)

    with pytest.raises(OutOfTime):
        await performer.perform(FORGET)

    assert client.deleted == []


@pytest.mark.parametrize(
    ("seconds", "is_terminating", "goes"),
    [
        pytest.param(1, False, True, id="its pod is about to go"),
        pytest.param(3, False, False, id="its pod should have gone by now"),
        pytest.param(3, True, True, id="its pod is on its way out"),
    ],
)
async def test_no_more_records_go_than_pods_follow(seconds, is_terminating, goes):
    before = worker(0, terminating=is_terminating)
    other, key = worker(1), ObjectKey("ns", "gpu-1")
    proof = Drained(pod_uid=other.metadata.uid, slurm_node="gpu-1", asked_at=NOW)
    slurms = Slurms(
        slurm(*(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "ScaleIn")) for pod in (before, other)))
    )
    performer, _, time = at_work(slurms, before)
    performer._known.records[Pod][key] = other
    await performer.perform(FORGET)
    time.now += timedelta(seconds=seconds)

    forget = wire.replace(FORGET, write=DeleteNodes(nodes=("gpu-1",)), fence=Fence(pod=key, proof=proof))
    if goes:
        await performer.perform(forget)
    else:
        with pytest.raises(OutOfTime):
            await performer.perform(forget)


async def test_a_record_that_was_gone_before_is_no_fence():
    """Nobody asked slurmctld whether a job is there, and the proof has run out."""
    performer, client, _ = at_work(Slurms(slurm(), Verdict.ALREADY), WORKER)
    await performer.perform(FORGET)

    with pytest.raises(ActionFailed, match="20 s old"):
        await performer.perform(DELETE)

    assert client.deleted == []


async def test_the_record_of_a_worker_that_was_replaced_meanwhile_stays():
    other = Pod(metadata=Meta(name="gpu-0", namespace="ns", uid="another"))
    performer, _, _ = at_work(Slurms(drained()), other)

    with pytest.raises(OutOfTime):
        await performer.perform(FORGET)
