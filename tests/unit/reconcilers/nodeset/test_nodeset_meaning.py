"""Equal in meaning is equal: what a typed client adds or leaves out replaces no worker, whatever field it is."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema.model import fields_of
from slurm_operator.api.shared.worker_parts import WorkerSsh
from slurm_operator.manifests.compare.meaning import (
    EMPTY_COUNTS,
    ZERO_COUNTS,
    ZERO_COUNTS_UNDER,
    meant,
    shortest,
)
from slurm_operator.manifests.meta import Child
from slurm_operator.reconcilers.nodeset.creation import revisions
from testing.go_types import Field, fields, typed
from testing.workers import nodeset, revision_of

SCALARS = {"bool", "number", "string", "intorstring", "quantity"}
POD, CONTAINER = fields("PodSpec"), fields("Container")
EVERY = [
    *((lambda spec: {"template": {"spec": spec}}, field) for field in POD),
    *((lambda spec: {"slurmd": spec}, field) for field in CONTAINER),
    *((lambda spec: {"logfile": spec}, field) for field in CONTAINER if not field.above),
]

# Pointers, whose name is that of a plain field elsewhere. Their zero is what they are when left out.
AS_LEFT_OUT = {
    "fsType",
    "kind",
    "name",
    "namespace",
    "readOnly",
    "restartPolicy",
    "signerName",
    "type",
    "value",
}


def is_meaningful(field: Field) -> bool:
    """Empty has a meaning there, which is not that of absent."""
    if (field.parent, field.name) in ZERO_COUNTS_UNDER:
        return True
    if field.kind not in SCALARS:
        return field.name in EMPTY_COUNTS
    return field.is_pointer and field.name not in {*AS_LEFT_OUT, "lun"}


def is_same(one: dict, other: dict) -> bool:
    """Whether neither replaces a worker of the other, whether or not somebody remembers its revision."""
    first, second = nodeset(**one), nodeset(**other)
    found = {
        not revisions.current(second, [revision_of(first)]).is_new,
        not revisions.current(first, [revision_of(second)]).is_new,
        revisions.current(first, []).hash == revisions.current(second, []).hash,
    }
    assert len(found) == 1, "it depends on who was first"
    return found.pop()


@pytest.mark.parametrize(
    ("at", "field"),
    [pytest.param(at, field, id=f"{next(iter(at({})))} {field}") for at, field in EVERY],
)
def test_absent_and_zero_are_the_same_unless_empty_has_a_meaning(at, field):
    absent, zero = at(field.within()), at(field.within(**{field.name: field.zero}))

    assert is_same(absent, zero) is not is_meaningful(field)
    if not field.is_pointer:
        assert is_same(absent, at(field.within(**{field.name: None})))


def test_the_fields_whose_zero_counts_are_the_pointers_of_go():
    pointers = {field.name for field in (*POD, *CONTAINER) if field.is_pointer and field.kind in SCALARS}

    assert pointers - AS_LEFT_OUT - {"lun"} == ZERO_COUNTS


def volume(**source) -> dict:
    return {"template": {"spec": {"volumes": [{"name": "data", **source}]}}}


def spread(**constraint) -> dict:
    return {"template": {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", **constraint}]}}}


def near(**term) -> dict:
    wanted = [{"topologyKey": "zone", **term}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    return {"template": {"spec": {"affinity": affinity}}}


def claim(**spec) -> dict:
    return volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], **spec}}})


def pod(**spec) -> dict:
    return {"template": {"spec": spec}}


def variable(**more) -> dict:
    return {"slurmd": {"env": [{"name": "A", **more}]}}


@pytest.mark.parametrize(
    ("absent", "empty"),
    [
        pytest.param(claim(), claim(storageClassName=""), id="no class: a volume that nobody provisions"),
        pytest.param(claim(), claim(selector={}), id="every volume may be bound"),
        pytest.param(volume(), volume(emptyDir={}), id="a volume of its own"),
        pytest.param(variable(), variable(value=""), id="a variable of ours that is set to nothing"),
        pytest.param(spread(), spread(labelSelector={}), id="among all pods"),
        pytest.param(near(), near(namespaceSelector={}), id="in all namespaces"),
        pytest.param(pod(), pod(hostUsers=False), id="in a user namespace"),
        pytest.param(pod(), pod(automountServiceAccountToken=False), id="without a token"),
        pytest.param(pod(), pod(enableServiceLinks=False), id="without variables of Services"),
        pytest.param(pod(), pod(terminationGracePeriodSeconds=0), id="without a grace period"),
        pytest.param(pod(), pod(securityContext={"runAsUser": 0}), id="as root"),
        pytest.param(pod(), pod(tolerations=[{"key": "a", "tolerationSeconds": 0}]), id="one toleration more"),
        pytest.param(pod(nodeSelector={"a": "b"}), pod(nodeSelector={"a": "b", "role/gpu": ""}), id="a label without a value"),
        pytest.param({}, {"template": {"metadata": {"labels": {"role/gpu": ""}}}}, id="a label of its own without a value"),
    ],
)  # fmt: skip
def test_where_empty_has_a_meaning_it_is_another_revision(absent, empty):
    assert not is_same(absent, empty)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, pod(priorityClassName="", containers=None), id="as a typed client writes a pod"),
        pytest.param({}, {"slurmd": {"name": "", "resources": {}}}, id="as it writes a container"),
        pytest.param(pod(hostNetwork=False), {}, id="and what it leaves out"),
        pytest.param(pod(securityContext={}), {}, id="a security context that asks for nothing"),
        pytest.param({}, {"extraConf": "", "ordinalPadding": 0, "oversubscribeNode": False}, id="fields of ours"),
        pytest.param({}, {"ssh": {"enabled": False, "extraSshdConfig": "", "sssdConfRef": {"name": "", "key": ""}}}, id="no ssh"),
        pytest.param({}, {"template": {"metadata": {"labels": {}, "annotations": None}, "spec": {}}}, id="an empty template"),
    ],
)  # fmt: skip
def test_what_is_so_anyway_is_no_other_revision(one, other):
    assert is_same(one, other)


def limited(**limits) -> dict:
    return {"slurmd": {"resources": {"limits": limits}}}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (limited(cpu="1000m"), limited(cpu=1), True),
        (limited(cpu=2.5), limited(cpu="2500m"), True),
        (limited(memory="1024Mi"), limited(memory="1Gi"), True),
        (limited(memory="1024Mi"), limited(memory="1G"), False),
        (limited(cpu="1"), limited(cpu="2"), False),
        (volume(emptyDir={"sizeLimit": "2048Ki"}), volume(emptyDir={"sizeLimit": "2Mi"}), True),
        (volume(emptyDir={"sizeLimit": "0"}), volume(emptyDir={}), False),
    ],
)
def test_an_amount_is_the_same_however_it_is_written(one, other, same):
    assert revisions.current(nodeset(**other), [revision_of(nodeset(**one))]).is_new is not same


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("1000m", "1"), ("1500m", "1500m"), ("0.5", "500m"), (1, "1"), (1000, "1k"), ("100", "100"), ("0", "0"),
        ("1024Mi", "1Gi"), ("1536Mi", "1536Mi"), ("512", "512"), ("1Ki", "1Ki"), ("0.5Ki", "512"), ("1e3", "1e3"), ("2E", "2E"),
        ("-5", "-5"), ("nonsense", "nonsense"), ("", ""),
    ],
)  # fmt: skip
def test_amounts_are_shortened_as_go_does_it(text, short):
    assert shortest(text) == short


WHOLE = {
    "hostname": "gpu-", "priorityClassName": "batch", "nodeSelector": {"node-role/gpu": ""}, "hostNetwork": False,
    "tolerations": [{"key": "gpu", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
    "volumes": [
        {"name": "scratch", "emptyDir": {}},
        {"name": "home", "nfs": {"server": "nas", "path": "/home", "readOnly": False}},
        {"name": "fast", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "10Gi"}}}}}},
    ],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}}]}},
    "securityContext": {"runAsUser": 0, "fsGroupChangePolicy": "OnRootMismatch"},
    "terminationGracePeriodSeconds": 0, "shareProcessNamespace": False,
    "initContainers": [{"name": "prepare", "image": "busybox", "tty": False, "env": [
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}],
}  # fmt: skip
SLURMD = {
    "image": "slurmd:1", "env": [{"name": "A", "value": "b"}], "resources": {"limits": {"nvidia.com/gpu": "2"}},
    "volumeMounts": [{"name": "home", "mountPath": "/home", "readOnly": False, "subPath": ""}],
    "readinessProbe": {"tcpSocket": {"port": 6818}, "initialDelaySeconds": 0},
    "securityContext": {"privileged": False, "capabilities": {"add": ["SYS_ADMIN"], "drop": []}},
}  # fmt: skip


def test_a_typed_client_that_reads_and_writes_back_replaces_no_worker():
    theirs = {"template": {"spec": typed(WHOLE, "PodSpec")}, "slurmd": typed(SLURMD, "Container")}
    ours = {"template": {"spec": WHOLE}, "slurmd": SLURMD}

    assert theirs["slurmd"]["name"] == ""
    assert theirs["template"]["spec"]["containers"] is None
    assert theirs != ours
    assert is_same(ours, theirs)


# ---- Revisions of the versions before


def of_before(spec: dict, stored: dict, hash_: str) -> Child:
    """A revision as this operator wrote it when it dropped every empty map, and nothing else."""
    made = revision_of(nodeset(**spec))
    labels = {**made.metadata.labels, "controller-revision-hash": hash_}
    notes = {revisions.INTENT_NOTE: "1"}
    meta = wire.replace(made.metadata, labels=labels, annotations=notes, name=f"gpu-{hash_}")
    ssh = {"enabled": False, "extraSshdConfig": ""}
    return wire.replace(made, metadata=meta, body={**made.body, "data": {"spec": {"ssh": ssh, **stored}}})


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        pytest.param(volume(emptyDir={}), {"template": {"spec": {"volumes": [{"name": "data"}]}}}, id="an empty map"),
        pytest.param(pod(priorityClassName=""), {"template": {"spec": {"priorityClassName": ""}}}, id="an empty string"),
        pytest.param({"slurmd": {"name": "", "tty": False}}, {"slurmd": {"name": "", "tty": False}}, id="zeros"),
        pytest.param(limited(cpu="1000m"), limited(cpu="1000m"), id="an amount"),
        pytest.param(claim(storageClassName=""), claim(storageClassName=""), id="a zero that counts"),
        pytest.param({}, {}, id="nothing"),
    ],
)  # fmt: skip
def test_a_revision_of_the_version_before_keeps_its_hash(spec, stored):
    found = revisions.current(nodeset(**spec), [of_before(spec, stored, "0123456789")])

    assert (found.hash, found.is_new) == ("0123456789", False)


@pytest.mark.parametrize(
    ("spec", "hash_"),
    [
        pytest.param({}, "b7bea60b1e", id="nothing"),
        pytest.param({"extraConf": "Weight=1", "slurmd": {"image": "slurmd:1"}}, "ace37df24f", id="an image"),
        pytest.param({**pod(nodeSelector={"a": ""}, hostUsers=False), **limited(cpu="4", memory="1024Mi")}, "30bba16b0c", id="a pod"),
    ],
)  # fmt: skip
def test_what_has_no_zeros_has_the_hash_that_it_always_had(spec, hash_):
    assert revisions.current(nodeset(**spec), []).hash == hash_


def test_a_revision_of_the_operator_before_us_with_other_words_for_an_amount_is_the_same():
    made = revision_of(nodeset(**limited(cpu="1")))
    theirs = wire.replace(made, metadata=wire.replace(made.metadata, annotations={}))

    assert not revisions.current(nodeset(**limited(cpu="1000m")), [theirs]).is_new


def test_what_is_no_spec_of_ours_in_a_revision_is_another_one():
    made = revision_of(nodeset())
    strange = wire.replace(
        made, body={**made.body, "data": {"spec": {"template": "none", "ssh": [], "slurmd": 5}}}
    )

    assert revisions.current(nodeset(), [strange]).is_new


def test_ssh_has_no_field_that_is_not_left_out_when_empty():
    """Whoever adds one says here what its zero means."""
    assert {field.name for field in fields_of(WorkerSsh)} == {
        "enabled",
        "extraSshdConfig",
        "sssdConfRef",
    }


def test_meaning_changes_nothing_that_says_something():
    wishes = {"args": ["", "-v"], "env": [{"name": "A", "value": ""}], "ports": [{"containerPort": 80}]}

    assert meant(wishes) == wishes
