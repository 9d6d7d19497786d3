"""Volumes of workers: there before the pod, and gone only when the policy and a real scale-in say so."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta, OwnerReference
from slurm_operator.manifests.objects import PodCondition
from slurm_operator.plan.actions import Create, PatchObject
from slurm_operator.reconcilers.nodeset.identity import daemon_pod_name
from testing.workers import (
    NOW,
    controller,
    line,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    uid_of,
    worker,
    world,
)

SCRATCH = {
    "metadata": {"name": "scratch", "labels": {"tier": "fast"}},
    "spec": {"accessModes": ["ReadWriteOnce"]},
}
NODESET = OwnerReference(api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid="set-uid")
POD = OwnerReference(api_version="v1", kind="Pod", name="gpu-0", uid=uid_of("gpu-0"))
FORMER = OwnerReference(api_version="v1", kind="Pod", name="gpu-0", uid="former")
FOREIGN = OwnerReference(api_version="v1", kind="Vault", name="v", uid="vault", controller=True)


def claim(*owners, name="scratch-gpu-0", terminating=False) -> Child:
    meta = Meta(
        name=name, namespace="ns", uid=f"uid-{name}", resource_version="3", owner_references=list(owners),
        deletion_timestamp=NOW if terminating else None,
    )  # fmt: skip
    return Child(metadata=meta, body={})


def seen(*things, claims=(), slurm_=None, deleted="Retain", scaled="Retain", **spec):
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    made = nodeset(
        **{
            "replicas": 1,
            "volumeClaimTemplates": [SCRATCH],
            "persistentVolumeClaimRetentionPolicy": policy,
            **spec,
        }
    )
    found = world(made, controller(), *things, revisions_=[revision_of(made)], slurm_=slurm_)
    found.children_[kinds.PERSISTENT_VOLUME_CLAIM] = list(claims)
    return found


def test_a_worker_gets_its_volume_first():
    made = seen(
        template={
            "spec": {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "other", "emptyDir": {}}]}
        }
    )
    volume, pod = [action.manifest for action in planned(made).actions() if isinstance(action, Create)]

    assert told(made) == ["create PersistentVolumeClaim scratch-gpu-0", "create Pod gpu-0"]
    assert volume["metadata"]["labels"] == {
        "tier": "fast",
        names.APP_NAME: "slurmd",
        names.APP_INSTANCE: "gpu",
    }
    assert volume["spec"] == SCRATCH["spec"]
    mounted = {v["name"]: v for v in pod["spec"]["volumes"]}
    assert mounted["scratch"] == {"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch-gpu-0"}}
    assert "other" in mounted


def sized(storage, **meta):
    return {"metadata": meta, "spec": {"resources": {"requests": {"storage": storage}}}}


@pytest.mark.parametrize(
    ("templates", "sizes"),
    [
        pytest.param([sized("1Gi"), sized("500Gi", name="scratch")], {"scratch-gpu-0": "500Gi"}, id="one has no name"),
        pytest.param([sized("1Gi", name=None), sized("2Gi", name="a")], {"a-gpu-0": "2Gi"}, id="or a null"),
        pytest.param(
            [sized("1Gi", name="a"), sized("2Gi", name="a"), sized("3Gi", name="b")],
            {"a-gpu-0": "2Gi", "b-gpu-0": "3Gi"},
            id="two have the same: the last counts",
        ),
    ],
)  # fmt: skip
def test_every_volume_is_made_from_its_own_template(templates, sizes):
    made = seen(volumeClaimTemplates=templates)
    claims = [a.manifest for a in planned(made).actions() if isinstance(a, Create)][: len(sizes)]

    assert {
        one["metadata"]["name"]: one["spec"]["resources"]["requests"]["storage"] for one in claims
    } == sizes


@pytest.mark.parametrize(
    ("there", "story"),
    [
        pytest.param([claim()], ["create Pod gpu-0"], id="it is there: kept, whoever made it"),
        pytest.param([claim(terminating=True)], ["wait scratch-gpu-0: VolumeTerminating"], id="it is going: the pod waits"),
        pytest.param([claim(FORMER)], ["wait scratch-gpu-0: VolumeTerminating"], id="it goes with a previous pod, soon: the pod waits"),
        pytest.param([claim(FORMER, FOREIGN)], ["create Pod gpu-0"], id="it follows somebody else, too: kept"),
    ],
)  # fmt: skip
def test_an_existing_volume_is_used_again(there, story):
    assert told(seen(claims=there)) == story


def test_a_worker_comes_when_its_volume_is_gone_though_nobody_tells_of_that():
    assert planned(seen(claims=[claim(terminating=True)])).look_again == timedelta(seconds=2)
    assert planned(seen(claims=[claim()])).look_again is None


def test_one_volume_that_is_going_holds_up_only_its_own_worker():
    made = seen(claims=[claim(terminating=True), claim(name="scratch-gpu-1")], replicas=2)

    assert told(made) == ["create Pod gpu-1", "wait scratch-gpu-0: VolumeTerminating"]


def unscheduled(said, **kwargs):
    """gpu-0, for which there is no machine, as the scheduler says."""
    revision = revision_of(nodeset()).metadata.labels[names.LABEL_REVISION]
    pod = worker(0, on="", ready=False, started=False, phase="Pending", revision=revision)
    labels = {**pod.metadata.labels, names.LABEL_POD_INDEX: "0"}
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=said)
    pod = wire.replace(
        pod,
        metadata=wire.replace(pod.metadata, labels=labels),
        status=wire.replace(pod.status, conditions=[condition]),
    )
    return seen(pod, slurm_=slurm(), **kwargs)


NOT_FOUND = '0/3 nodes are available: persistentvolumeclaim "scratch-gpu-0" not found.'


@pytest.mark.parametrize(
    ("case", "story"),
    [
        pytest.param(unscheduled(NOT_FOUND), ["create PersistentVolumeClaim scratch-gpu-0"], id="somebody deleted it"),
        pytest.param(unscheduled(NOT_FOUND, claims=[claim()]), [], id="it is back"),
        pytest.param(unscheduled("0/3 nodes are available: 3 Insufficient cpu."), [], id="not seen, and not missed: somebody made one"),
    ],
)  # fmt: skip
def test_a_volume_that_is_deleted_before_its_worker_has_a_machine_is_made_anew(case, story):
    assert told(case) == story


@pytest.mark.parametrize(
    ("padding", "name"), [(0, "scratch-gpu-0"), (3, "scratch-gpu-000")]
)  # fmt: skip
def test_volumes_are_numbered_as_their_workers(padding, name):
    assert f"create PersistentVolumeClaim {name}" in told(seen(ordinalPadding=padding))


def test_volumes_of_daemons_are_named_after_their_hosts():
    made = seen(machine("rack1.example.com"), scalingMode="DaemonSet")

    assert told(made) == [
        "create PersistentVolumeClaim scratch-gpu-rack1",
        f"create Pod {daemon_pod_name('rack1.example.com', made.things[0])}",
    ]


def owners_after(made) -> list[str] | None:
    """Whom the claim follows after the plan; None when it is left as it is."""
    patches = [
        a
        for a in planned(made).actions()
        if isinstance(a, PatchObject) and a.kind == kinds.PERSISTENT_VOLUME_CLAIM
    ]
    return [ref["kind"] for ref in patches[0].operations[-1]["value"]] if patches else None


def staying(pod_marks=None, **kwargs):
    revision = revision_of(nodeset()).metadata.labels[names.LABEL_REVISION]
    pod = worker(0, annotations=pod_marks, revision=revision)
    return seen(_indexed(pod), slurm_=slurm(slurm_node(pod, "IDLE")), **kwargs)


def going(**kwargs):
    pod = worker(0)
    drained = slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "ScaleIn"))
    return seen(_indexed(pod), slurm_=slurm(drained), replicas=0, **kwargs)


def _indexed(pod, index="0"):
    labels = {**pod.metadata.labels, names.LABEL_POD_INDEX: index}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, labels=labels))


@pytest.mark.parametrize(
    ("deleted", "scaled", "stays", "goes"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["NodeSet"], ["NodeSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["NodeSet"], ["Pod"]),
    ],
)
def test_volumes_follow_whom_the_policy_says(deleted, scaled, stays, goes):
    policy = {"deleted": deleted, "scaled": scaled}
    wrong = claim(NODESET, POD)  # so that there is something to fix in every case

    assert owners_after(staying(claims=[wrong], **policy)) == stays
    assert owners_after(going(claims=[wrong], **policy)) == goes


def stays_of(made) -> dict[str, list[str]]:
    """Claims that the plan changes, and whom they follow then."""
    patches = [
        a
        for a in planned(made).actions()
        if isinstance(a, PatchObject) and a.kind == kinds.PERSISTENT_VOLUME_CLAIM
    ]
    return {a.key.name: [ref["kind"] for ref in a.operations[-1]["value"]] for a in patches}


def test_volumes_of_workers_that_are_gone_stay_too_when_the_policy_says_so_by_now():
    scaled_in = [
        claim(NODESET, name="scratch-gpu-7"),
        claim(NODESET, FOREIGN, name="scratch-gpu-8"),
        claim(NODESET, name="scratch-gpu-9", terminating=True),
    ]
    made = staying(claims=[claim(NODESET), *scaled_in])

    assert stays_of(made) == {"scratch-gpu-0": [], "scratch-gpu-7": [], "scratch-gpu-8": ["Vault"]}
    assert stays_of(staying(claims=[claim(NODESET), *scaled_in], deleted="Delete")) == {}


@pytest.mark.parametrize(
    ("policy", "story"),
    [
        pytest.param("Retain", ["VolumeRetention scratch-gpu-7", "Released gpu"], id="they stay before it goes"),
        pytest.param("Delete", ["Released gpu"], id="they go with it"),
    ],
)  # fmt: skip
def test_a_nodeset_is_gone_only_after_the_volumes_stay_that_should(policy, story):
    made = seen(claims=[claim(NODESET, name="scratch-gpu-7")], deleted=policy, slurm_=slurm())
    made.things[0] = nodeset_on_its_way_out(made.things[0])
    [own] = [lane for lane in planned(made).lanes if lane.name == "nodeset"]

    assert [line(action) for action in own.actions()] == story
    assert [len(stage) for stage in own.stages] == [1] * len(story), "the second only if the first worked"


def nodeset_on_its_way_out(made):
    return wire.replace(made, metadata=wire.replace(made.metadata, deletion_timestamp=NOW))


def test_a_cordon_or_an_update_is_no_scale_in():
    kept = {"deleted": "Retain", "scaled": "Delete", "claims": [claim()]}
    cordoned = staying({names.POD_CORDON: "true"}, **kept)
    pod = _indexed(worker(0))
    drained = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "Update")))
    updated = seen(pod, slurm_=drained, slurmd={"image": "slurmd:next"}, **kept)

    assert owners_after(cordoned) is None
    assert any("delete gpu-0" in line for line in told(updated))
    assert owners_after(updated) is None


def test_the_owner_is_set_before_anything_is_taken_down():
    made = going(scaled="Delete", claims=[claim()])

    assert told(made) == [
        "VolumeRetention scratch-gpu-0",
        "Retired gpu-0",
        "forget gpu-0",
        "delete gpu-0 (Drained)",
    ]


@pytest.mark.parametrize(
    ("there", "after"),
    [
        pytest.param(claim(NODESET), None, id="in order: nothing is written"),
        pytest.param(claim(FORMER), None, id="on its way out with a previous pod: left alone"),
        pytest.param(claim(FOREIGN), None, id="somebody else manages it: left alone"),
        pytest.param(claim(FOREIGN, NODESET), ["Vault"], id="and ours is taken away"),
        pytest.param(claim(NODESET, POD), ["NodeSet"], id="wanted after all: it no longer goes with the pod"),
    ],
)
def test_owners_of_others_are_kept(there, after):
    assert owners_after(staying(claims=[there], deleted="Delete", scaled="Delete")) == after


@pytest.mark.parametrize(
    "terminating",
    [
        pytest.param(False, id="retired, when the operator was interrupted"),
        pytest.param(True, id="its pod is ending"),
    ],
)
def test_a_volume_that_goes_with_a_scaled_in_worker_still_does_while_its_pod_ends(terminating):
    marks = {names.POD_RETIRED: uid_of("gpu-0")}
    pod = _indexed(worker(0, annotations=marks, terminating=terminating, grace=30))
    made = seen(pod, slurm_=slurm(), replicas=0, scaled="Delete", claims=[claim(POD)])

    assert owners_after(made) is None


def leaving(number, *, reason="ScaleIn", index="", replicas=1, **kwargs):
    """A worker that is free of jobs and goes, and its claim."""
    pod = _indexed(worker(number, **kwargs), index or str(number))
    drained = slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, reason))
    there = claim(name=f"scratch-gpu-{index or number}")
    return {"things": [pod], "claims": [there], "slurm_": slurm(drained), "replicas": replicas}


FAILED = {"phase": "Failed", "ready": False}


@pytest.mark.parametrize(
    ("case", "after"),
    [
        pytest.param(leaving(9, replicas=0), ["Pod"], id="far beyond replicas: it was busy when the others went"),
        pytest.param(leaving(9, index="009", replicas=0), ["Pod"], id="made with another ordinalPadding"),
        pytest.param(leaving(3, **FAILED), ["Pod"], id="ended on its own, beyond replicas: none takes its place"),
        pytest.param(leaving(0, **FAILED), None, id="ended on its own, and is made again"),
        pytest.param(leaving(3, reason="PodTerminating", terminating=True), ["Pod"], id="deleted by hand, beyond replicas"),
        pytest.param(leaving(0, reason="PodTerminating", terminating=True), None, id="deleted by hand, and comes back"),
        pytest.param(leaving(3, reason="ScaleIn", terminating=True, grace=30), None, id="sent away by us: that is settled"),
    ],
)  # fmt: skip
def test_volumes_go_with_every_number_that_nobody_comes_back_to(case, after):
    things = case.pop("things")
    others = [_indexed(worker(n, on=f"m{n}"), str(n)) for n in range(case["replicas"]) if n != 0]

    assert owners_after(seen(*things, *others, scaled="Delete", **case)) == after


def test_a_volume_stays_when_the_number_of_a_deleted_worker_is_wanted_again():
    pod = _indexed(worker(0, terminating=True))
    made = seen(pod, slurm_=slurm(slurm_node(pod, "MIXED", "DRAIN")), scaled="Delete", claims=[claim(POD)])

    assert owners_after(made) == []


def test_a_volume_goes_with_the_worker_of_a_machine_that_is_no_more():
    pod = worker(None, mode="DaemonSet", name="gpu-abc", hostname="lost", on="lost")
    state = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "NodeUnfit")))
    there = [claim(name="scratch-gpu-lost")]

    assert owners_after(seen(pod, slurm_=state, scalingMode="DaemonSet", scaled="Delete", claims=there)) == [
        "Pod"
    ]
