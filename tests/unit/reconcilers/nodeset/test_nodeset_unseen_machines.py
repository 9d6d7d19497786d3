"""Without the right to look at machines: to see none is not the same as that there are none."""

import pytest

from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.identity import daemon_pod_name
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    machine,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)


def blind(spec, *pods):
    """A world in which no Kubernetes node is visible, and the workers are idle in Slurm."""
    made = world(
        spec,
        controller(),
        *pods,
        revisions_=[revision_of(spec)],
        slurm_=slurm(*(slurm_node(pod, "IDLE") for pod in pods)),
    )
    made.served.clear()
    return made


def hash_of(spec) -> str:
    return revision_of(spec).metadata.labels["controller-revision-hash"]


def daemon(spec):
    return worker(
        None,
        on="m1",
        mode="DaemonSet",
        name=daemon_pod_name("m1", spec),
        hostname="m1",
        revision=hash_of(spec),
    )


def test_workers_in_daemon_mode_stay_and_the_nodeset_says_why():
    spec = nodeset(scalingMode="DaemonSet", pruneSlurmNodeRecords="NodeNotFound")
    made = blind(spec, daemon(spec))
    found = RECONCILER.observe(KEY, made)
    ready = RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome()).conditions[0]

    assert [line for line in told(made) if line.startswith(("drain", "delete", "forget", "create Pod"))] == []
    assert (ready.type, ready.status, ready.reason) == ("Ready", "False", "MachinesNotSeen")
    assert "list and watch on nodes" in ready.message


def test_numbered_workers_come_as_ever_and_keep_their_machines():
    spec = nodeset(replicas=2, pinToNode=True)
    spec = type(spec)(
        metadata=spec.metadata, spec=spec.spec, status=type(spec.status)(ordinal_to_node={"1": "m2"})
    )
    made = blind(spec, worker(0, on="m1", revision=hash_of(spec)))
    found = RECONCILER.observe(KEY, made)
    report = RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome())

    assert [line for line in told(made) if line.startswith("create Pod")] == ["create Pod gpu-1"]
    assert report.fields["ordinalToNode"] == {"0": "m1", "1": "m2"}


def test_a_deleted_nodeset_goes_all_the_same():
    spec = nodeset(scalingMode="DaemonSet", deleted=True)

    assert [line for line in told(blind(spec, daemon(spec))) if line.startswith("drain")] == [
        "drain m1 for Deletion"
    ]


EARLIER = worker(0, name="earlier")


@pytest.mark.parametrize(
    ("drained", "story"),
    [
        pytest.param("NodeCordon", [], id="its machine may still be cordoned"),
        pytest.param("NodeTaint", [], id="or about to go"),
        pytest.param("PodCordon", ["resume gpu-0"], id="a pod can be seen"),
    ],
)
def test_a_drain_for_a_machine_that_cannot_be_seen_stands(drained, story):
    spec = nodeset(replicas=1)
    pod = worker(0, revision=hash_of(spec))
    made = blind(spec, pod)
    made.slurms[CONTROLLER] = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, drained)))

    assert told(made) == story
    made.slurms[CONTROLLER] = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(EARLIER, drained)))
    assert told(made) == ["resume gpu-0"], "the worker before it was on that machine"


@pytest.mark.parametrize("drained", ["NodeCordon", "NodeTaint"])
@pytest.mark.parametrize(
    ("machines", "story"),
    [
        pytest.param([], [], id="it is gone, and Kubernetes takes the pod away next"),
        pytest.param([machine("n1")], ["resume gpu-0"], id="it is there, and nothing is the matter"),
    ],
)
def test_a_drain_for_a_machine_that_was_deleted_stands(drained, machines, story):
    """As after `kubectl drain` and `kubectl delete node`: a job that started there now would be lost."""
    spec = nodeset(replicas=1)
    pod = worker(0, revision=hash_of(spec))
    known = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, drained)))

    assert (
        told(world(spec, controller(), pod, *machines, revisions_=[revision_of(spec)], slurm_=known)) == story
    )
