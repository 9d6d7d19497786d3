"""Workers that another operator made: adopted with their jobs, kept while the NodeSet says so, and gated."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod
from slurm_operator.safety.gate import is_record_of
from testing.workers import (
    controller,
    job,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

DIGEST = "d"
SERVICE = "smallest-nodeset-svc"
NAMED = f"gpu-0.{SERVICE}.ns.svc"


def taken_over(number: int = 0, *, owned: bool = False, digest: str = DIGEST) -> Pod:
    """Marked, with the labels, the address and the revision that it was made with."""
    made = worker(number, revision="gpu-5d8f", protected=False)
    labels = {names.LABEL_PART: "slurmd", names.LABEL_PART_NAME: "gpu", names.LABEL_CLUSTER: "slurm"}
    theirs = {
        names.APP_NAME: "slurmcluster",
        names.APP_INSTANCE: "smallest",
        names.LABEL_REVISION: "gpu-5d8f",
    }
    meta = wire.replace(
        made.metadata,
        labels={**theirs, **labels},
        annotations={names.POD_TAKEN_OVER: digest},
        owner_references=made.metadata.owner_references if owned else (),
    )
    spec = wire.replace(made.spec, hostname=made.metadata.name, subdomain=SERVICE)
    return wire.replace(made, metadata=meta, spec=spec)


def record(pod: Pod, *words: str, address: str = NAMED, **fields):
    there = worker(0)
    return wire.replace(slurm_node(there, *(words or ("IDLE",)), **fields), address=address)


def seen(pod: Pod, *, kept: str = DIGEST, replicas: int = 1, state=None, has_controller: bool = True):
    made = nodeset(replicas=replicas, records="static")
    made = wire.replace(
        made, metadata=wire.replace(made.metadata, annotations={names.KEEPS_TAKEN_OVER: kept} if kept else {})
    )
    there = (controller(),) if has_controller else ()
    return world(made, *there, pod, revisions_=[revision_of(made)], slurm_=state)


BUSY = [job(7, "gpu-0")]
PROTECTED = "Protected gpu-0"


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(seen(taken_over(), has_controller=False), ["Adopted gpu-0", PROTECTED], id="nobody can ask Slurm: adopted, and left alone"),
        pytest.param(seen(taken_over(owned=True), state=slurm(record(taken_over(), "ALLOCATED"), jobs=BUSY)), [PROTECTED], id="as good as ours: it stays"),
        pytest.param(seen(taken_over(owned=True), kept="e", state=slurm(record(taken_over(), "ALLOCATED"), jobs=BUSY)), ["drain gpu-0 for Resources", PROTECTED], id="the NodeSet changed: drained, its job goes on"),
        pytest.param(seen(taken_over(owned=True), replicas=0, state=slurm(record(taken_over(), "ALLOCATED"), jobs=BUSY)), ["drain gpu-0 for ScaleIn", PROTECTED], id="fewer are wanted: drained, its job goes on"),
        pytest.param(seen(taken_over(owned=True), replicas=0), ["wait gpu-0: SlurmUnreachable"], id="fewer are wanted, and nobody can ask Slurm"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_worker_that_was_taken_over(made, story):
    assert told(made) == story


def test_it_leaves_when_its_jobs_are_done():
    pod = taken_over(owned=True)
    drained = record(pod, "IDLE", "DRAIN", reason=ours(pod, "ScaleIn"))
    assert "delete gpu-0 (Drained)" in told(seen(pod, replicas=0, state=slurm(drained)))

    working = record(pod, "ALLOCATED", "DRAIN", reason=ours(pod, "ScaleIn"))
    story = told(seen(pod, replicas=0, state=slurm(working, jobs=BUSY)))
    assert not [step for step in story if step.startswith("delete")]


@pytest.mark.parametrize(
    ("address", "is_its_own"),
    [
        pytest.param(NAMED, True, id="the name behind its Service"),
        pytest.param(f"{NAMED}.cluster.local", True, id="with the domain"),
        pytest.param(f"{NAMED}.cluster.local.", True, id="with a dot behind it"),
        pytest.param("10.0.0.9", False, id="another address"),
        pytest.param(f"gpu-1.{SERVICE}.ns.svc", False, id="another pod's name"),
        pytest.param(f"gpu-0.{SERVICE}.other.svc", False, id="in another namespace"),
        pytest.param("gpu-0.other.ns.svc", False, id="behind another Service"),
        pytest.param("gpu-0", False, id="a bare name says nothing of the namespace"),
    ],
)
def test_a_record_may_have_the_dns_name_of_a_pod_for_its_address(address, is_its_own):
    pod = taken_over()
    assert is_record_of(record(pod, address=address), pod) is is_its_own


def test_a_name_that_another_pod_may_have_is_no_address():
    """A host name of a user's choice need not be unique, and without a Service a pod has no name in DNS."""
    pod = taken_over()
    renamed = wire.replace(pod, spec=wire.replace(pod.spec, hostname="gpu-7"))
    unnamed = wire.replace(pod, spec=wire.replace(pod.spec, subdomain=""))
    assert not is_record_of(record(pod, address=f"gpu-7.{SERVICE}.ns.svc"), renamed)
    assert not is_record_of(record(pod, address=NAMED), renamed)
    assert not is_record_of(record(pod, address="gpu-0..ns.svc"), unnamed)
