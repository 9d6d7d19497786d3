"""Workers that nobody owns: a NodeSet that was deleted without its pods and made again takes them in."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.meta import OwnerReference
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset import owner_of
from testing.workers import (
    KEY,
    controller,
    job,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

SPEC = nodeset(replicas=2)
REVISION = revision_of(SPEC)
HASH = REVISION.metadata.labels["controller-revision-hash"]
STRANGER = OwnerReference(api_version="v1", kind="Other", name="x", uid="other-uid", controller=True)


def pod(ordinal=1, *, owners=(), instance="gpu", namespace="ns", cluster="slurm", **more):
    made = worker(ordinal, revision=HASH, **more)
    labels = {**made.metadata.labels, names.APP_INSTANCE: instance, names.LABEL_CLUSTER: cluster}
    meta = wire.replace(made.metadata, labels=labels, owner_references=list(owners), namespace=namespace)
    return wire.replace(made, metadata=meta)


def seen(orphan, spec=SPEC, jobs=()):
    own = worker(0, revision=HASH)
    state = slurm(slurm_node(own, "IDLE"), slurm_node(orphan, "IDLE"), jobs=jobs)
    return world(spec, controller(), own, orphan, revisions_=[REVISION], slurm_=state)


def adoptions(made) -> list[str]:
    patches = [a for a in planned(made).actions() if isinstance(a, PatchObject) and a.reason == "Adopted"]
    return [patch.key.name for patch in patches]


@pytest.mark.parametrize(
    ("orphan", "is_taken_in"),
    [
        pytest.param(pod(), True, id="a numbered worker"),
        pytest.param(pod(None, name="gpu-x7f2q", mode="DaemonSet"), True, id="a daemon"),
        pytest.param(pod(owners=[STRANGER]), False, id="somebody owns it"),
        pytest.param(pod(instance="cpu"), False, id="of another NodeSet"),
        pytest.param(pod(cluster="former"), False, id="of another Slurm cluster: its jobs are there"),
        pytest.param(pod(namespace="elsewhere"), False, id="of another namespace"),
        pytest.param(pod(None, name="gpu-debug"), False, id="not called like a worker"),
        pytest.param(pod(terminating=True), False, id="on its way out"),
    ],
)
def test_a_worker_that_nobody_owns_is_taken_in_when_it_is_ours_by_name(orphan, is_taken_in):
    assert adoptions(seen(orphan)) == ([orphan.metadata.name] if is_taken_in else [])


def test_an_orphan_is_not_made_a_second_time_beside_itself():
    assert "create Pod gpu-1" not in told(seen(pod(1)))


def test_an_orphan_with_a_job_leaves_only_through_the_gate():
    orphan = pod(1)
    made = seen(orphan, nodeset(replicas=0), jobs=[job(1, "gpu-1")])

    assert "drain gpu-1 for ScaleIn" in told(made)
    assert not [step for step in told(made) if step.startswith("delete gpu-1")]


def test_an_orphan_wakes_the_nodeset_it_is_called_after():
    made = seen(pod())

    assert list(owner_of(pod(), made)) == [KEY]
    assert list(owner_of(pod(owners=[STRANGER]), made)) == []


def revision(*, owners=(), namespace="ns", labels=None, name="", **more):
    """What the workers were made from, when the NodeSet was there before."""
    meta = REVISION.metadata
    given = {**meta.labels, **(labels or {})}
    return wire.replace(
        REVISION,
        metadata=wire.replace(
            meta,
            owner_references=list(owners),
            namespace=namespace,
            labels=given,
            name=name or meta.name,
            **more,
        ),
    )


def made_again(*revisions):
    own = worker(0, revision=HASH)
    return world(
        nodeset(replicas=1), controller(), own, revisions_=revisions, slurm_=slurm(slurm_node(own, "IDLE"))
    )


@pytest.mark.parametrize(
    ("there", "story"),
    [
        pytest.param(revision(), [f"Adopted gpu-{HASH}"], id="nobody owns it: it is taken in, and not made a second time"),
        pytest.param(revision(owners=REVISION.metadata.owner_references), [], id="it is ours"),
        pytest.param(revision(namespace="elsewhere"), [f"create ControllerRevision gpu-{HASH}"], id="of another namespace"),
        pytest.param(revision(labels={names.APP_INSTANCE: "cpu"}), [f"create ControllerRevision gpu-{HASH}"], id="of another NodeSet"),
        pytest.param(revision(labels={names.APP_NAME: "web"}), [f"create ControllerRevision gpu-{HASH}"], id="of something else"),
    ],
)  # fmt: skip
def test_a_revision_that_nobody_owns_is_taken_in(there, story):
    assert told(made_again(there)) == story


def test_revisions_are_forgotten_only_when_they_are_ours():
    older = revision(labels={names.LABEL_REVISION: "older"}, name="gpu-older")

    assert told(made_again(REVISION, older)) == ["Adopted gpu-older"]
