"""A Kubernetes node is deleted if nothing has changed since that was decided, and no job is there now."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import NotLeader, conflict
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteKubeNode, WorkerOnNode
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.stages import ActionFailed, OutOfTime
from slurm_operator.runtime.loop.retries import NEXT_PASS
from testing.workers import CONTROLLER, NOW, job, slurm, slurm_node, worker

POD = worker(0)
THERE = WorkerOnNode(
    key=ObjectKey("ns", "gpu-0"), uid=POD.metadata.uid, slurm_node="gpu-0", controller=CONTROLLER
)


def action(*workers: WorkerOnNode) -> DeleteKubeNode:
    return DeleteKubeNode(
        name="n0", uid="1", resource_version="5", workers=workers, reason="DeletedNotReady", message="m"
    )


class Client:
    def __init__(self, *, is_newer: bool = False) -> None:
        self.asked: list[tuple] = []
        self.is_newer = is_newer

    async def delete_undecoded(self, kind, key, *, uid, still, resource_version, **_):
        if not still():
            raise NotLeader("not sent")
        if self.is_newer:
            raise conflict("it has changed")
        self.asked.append((kind, key, uid, resource_version))


class Pods:
    """The cache of pods: those on the Kubernetes node, whatever else there is."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = pods

    def by_index(self, index, name):
        assert (index, name) == ("kube node name", "n0")
        return self.pods


def facts(*words, jobs=(), seconds=0):
    found = slurm(slurm_node(POD, *words), jobs=jobs)
    at = NOW + timedelta(seconds=seconds)
    return wire.replace(found, nodes_asked_at=at, jobs_asked_at=at)


async def deleted(facts, *pods, fresh=None, workers=(THERE,), client=None) -> list[tuple]:
    client = client or Client()
    slurms = SimpleNamespace(known=facts, latest=lambda _: slurms.known)

    async def refresh(_):
        slurms.known = fresh or slurms.known

    slurms.refresh = refresh
    known = SimpleNamespace(records={Pod: Pods(*pods)}, slurms=slurms, note_deleted=lambda *_: None)
    performer = Performer(client, known, lambda: NOW, NEXT_PASS, lambda: True)
    await performer.perform(action(*workers))
    return client.asked


async def test_it_names_the_version_that_was_decided_about():
    gone = [(kinds.KUBE_NODE, ObjectKey("", "n0"), "1", "5")]

    assert await deleted(facts("DOWN"), POD) == gone
    assert await deleted(facts("IDLE"), workers=()) == gone, "nobody is there"
    assert await deleted(facts("DOWN", seconds=-60), POD, fresh=facts("DOWN")) == gone, "Slurm is read again"


@pytest.mark.parametrize(
    ("known", "pods", "fresh", "why"),
    [
        pytest.param(facts("IDLE"), [POD], None, "neither drained", id="it takes jobs again"),
        pytest.param(facts("DOWN", jobs=[job(7, "gpu-0")]), [POD], None, "job 7", id="a job is there"),
        pytest.param(facts("DOWN", seconds=-60), [POD], None, "refreshing", id="Slurm cannot be read"),
        pytest.param(facts("DOWN", seconds=-60), [POD], facts("IDLE"), "neither", id="another answer by now"),
        pytest.param(facts("DOWN"), [POD, worker(1)], None, "gpu-1 is there by now", id="another worker"),
    ],
)
async def test_it_stays_when_anything_speaks_against_it(known, pods, fresh, why):
    with pytest.raises(ActionFailed, match=why):
        await deleted(known, *pods, fresh=fresh)


async def test_a_version_that_is_newer_is_left_to_the_next_pass():
    with pytest.raises(OutOfTime):
        await deleted(facts("DOWN"), POD, client=Client(is_newer=True))
