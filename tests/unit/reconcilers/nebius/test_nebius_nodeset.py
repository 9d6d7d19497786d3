"""Which part a NodeSet becomes, what it waits for, and what it says."""

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import ConfigMap, KubeNode, Pod, Unread
from slurm_operator.plan.actions import Apply, Create, DeleteObject
from slurm_operator.reconcilers.nebius.nodeset import is_no_news
from slurm_operator.reconcilers.nebius.nodeset.desired import in_double_quotes
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER
from testing.children import with_config
from testing.golden import assert_golden
from testing.slurmclusters import (
    NOW,
    OURS,
    carried_out,
    decide,
    manifest,
    populated,
    read,
    report,
    saying,
    settled,
    with_our_images,
    world,
)

NAME = "smallest"
CLUSTER = manifest("SlurmCluster", NAME)
OUR_CLUSTER = with_our_images(CLUSTER)
OUR_IMAGE = {
    "spec__slurmd__image": {
        "repository": OURS.format(daemon="slurmd").rpartition(":")[0], "tag": "26.05-ubuntu26.04"
    }
}  # fmt: skip


def nodeset(name: str = "cpu", **changes):
    return manifest("NodeSet", name, spec__clusterName=NAME, **changes)


CASES = {
    "cpu": (CLUSTER, nodeset()),
    "gpu": (CLUSTER, nodeset("gpu")),
    "older": (CLUSTER, nodeset("older-nodes")),
    "typed": (CLUSTER, nodeset("typed-nodes")),
    "ours": (OUR_CLUSTER, nodeset("gpu", **OUR_IMAGE)),
    "ours-with-files": (
        with_our_images(
            manifest(
                "SlurmCluster",
                NAME,
                spec__sConfigController={"container": {"image": "w:1"}, "serviceAccountName": "w"},
            )
        ),
        nodeset("cpu", **OUR_IMAGE),
    ),
}


def there_is(name: str):
    there = world(*CASES[name])
    spec = CASES[name][1]["spec"]
    for field, key in (("configMapRefSupervisord", "supervisord_conf"), ("configMapRefSshd", "sshd_config")):
        if spec.get(field):
            with_config(there, spec[field], **{key: "x\n"})
    return there


def made(name: str) -> list[dict]:
    _, plan = decide(there_is(name), NodeSet, CASES[name][1]["metadata"]["name"])
    return [action.manifest for action in plan.actions() if isinstance(action, Apply | Create)]


@pytest.mark.parametrize("name", CASES)
def test_the_part_and_files_of_a_nodeset(name):
    assert_golden("nebius/nodeset", name, made(name))


@pytest.mark.parametrize("name", CASES)
def test_the_engine_takes_the_part(name):
    [body] = [one for one in made(name) if one["kind"] == "NodeSet"]
    problems = read(body).problems(None, References())

    assert [str(one) for one in problems if one.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("images", "records"), [({}, "static"), (OUR_IMAGE, "created")], ids=["Soperator's", "ours"]
)
def test_who_makes_the_records_of_workers(images, records):
    there = settled(world(OUR_CLUSTER, nodeset(**images)), (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec.records == records


def test_lines_stay_lines_when_the_image_changes():
    there = settled(world(OUR_CLUSTER, nodeset()), (NodeSet, "cpu"), rounds=1)
    old = there.get(NodeSet, "ns", "cpu")
    there.things = [thing for thing in there.things if thing is not old] + world(nodeset(**OUR_IMAGE)).things

    settled(there, (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec.records == "static"


@pytest.mark.parametrize(
    ("bodies", "reason", "words"),
    [
        pytest.param([], "ClusterNotFound", "which has: none", id="before its SlurmCluster"),
        pytest.param(
            [manifest("SlurmCluster", "whole")], "ClusterNotFound", "which has: whole", id="a wrong name"
        ),
        pytest.param([CLUSTER], "WaitingForRoot", "is populated", id="its root is not populated"),
    ],
)
def test_what_a_nodeset_waits_for(bodies, reason, words):
    found = report(world(nodeset(), *bodies), NodeSet, "cpu")

    assert found["Ready"][:2] == ("False", reason)
    assert words in found["Ready"][2]


def test_no_cluster_is_named():
    body = nodeset()
    del body["spec"]["clusterName"]
    found = report(world(body, CLUSTER), NodeSet, "cpu")

    assert found["Ready"][:2] == ("False", "ClusterNotFound")
    assert "there are: smallest" in found["Ready"][2]


def test_a_changed_cluster_leaves_the_workers_alone():
    there = settled(world(CLUSTER, nodeset()), (NodeSet, "cpu"), rounds=1)
    old = there.get(NodeSet, "ns", "cpu")
    there.things = [thing for thing in there.things if thing is not old]
    there.things += world(manifest("NodeSet", "cpu", spec__clusterName="whole")).things
    _, plan = decide(there, NodeSet, "cpu")

    assert [wait.reason for wait in plan.waits] == ["ClusterNameChanged"]
    assert not [action for action in plan.actions() if isinstance(action, Apply | DeleteObject)]
    assert "smallest" in report(there, NodeSet, "cpu")["Degraded"][2]


def test_the_cluster_of_an_older_nodeset_is_in_an_annotation():
    body = nodeset()
    del body["spec"]["clusterName"]
    body["metadata"]["annotations"] = {names.PARENTAL_CLUSTER_REF: NAME}
    there = settled(world(CLUSTER, body), (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec.controller == NAME


def test_a_root_without_a_source_is_no_root():
    """Kubernetes would give each worker an empty directory of its own."""
    found = report(world(CLUSTER, nodeset(spec__slurmd__volumes__jail={})), NodeSet, "cpu")

    assert found["Ready"][:2] == ("False", "SpecRefused")
    assert "spec.slurmd.volumes.jail" in found["Ready"][2]


def test_a_configmap_that_is_not_there():
    there = world(CLUSTER, nodeset(spec__configMapRefSshd="mine"))
    found = report(there, NodeSet, "cpu")

    assert found["Ready"][:2] == ("False", "ConfigMapNotFound")
    assert "spec.configMapRefSshd" in found["Ready"][2]


def started(**changes):
    """Workers that run, with every file of theirs."""
    there = settled(world(CLUSTER, nodeset(**changes)), (SlurmCluster, NAME), (NodeSet, "cpu"))
    return settled(populated(there, NAME), (SlurmCluster, NAME), (NodeSet, "cpu"))


@pytest.mark.parametrize(
    "file",
    [names.supervisord(NAME), names.worker_ssh_configs(NAME), "mine"],
    ids=["supervisord", "sshd", "mine"],
)
@pytest.mark.parametrize("found", [Unread(why="no answer"), None], ids=["unread", "not there"])
def test_a_file_that_is_away_replaces_no_worker(file, found):
    """All workers would be replaced at each start of an operator that has not read it yet."""
    there = world(CLUSTER, nodeset(spec__configMapRefSupervisord="mine") if file == "mine" else nodeset())
    with_config(there, "mine", supervisord_conf="x\n")
    settled(there, (SlurmCluster, NAME), (NodeSet, "cpu"))
    settled(populated(there, NAME), (SlurmCluster, NAME), (NodeSet, "cpu"))
    before = there.get(WorkerPart, "ns", "cpu").spec
    assert before.replicas > 0
    del there.named[ConfigMap, ObjectKey("ns", file)]
    if found is not None:
        there.named[ConfigMap, ObjectKey("ns", file)] = found

    settled(there, (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec == before


def test_workers_are_scaled_while_a_file_is_away():
    there = started()
    there.named[ConfigMap, ObjectKey("ns", names.supervisord(NAME))] = Unread(why="no answer")
    old = there.get(NodeSet, "ns", "cpu")
    there.things = [thing for thing in there.things if thing is not old]
    there.things += world(nodeset(spec__replicas=1)).things
    settled(there, (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec.replicas == 1


def test_no_worker_starts_before_its_files_are_known():
    there = world(CLUSTER, nodeset())
    settled(there, (SlurmCluster, NAME))
    populated(there, NAME)
    there.named[ConfigMap, ObjectKey("ns", names.supervisord(NAME))] = Unread(why="no answer")
    settled(there, (NodeSet, "cpu"), rounds=1)
    found = report(there, NodeSet, "cpu")

    assert there.get(WorkerPart, "ns", "cpu").spec.replicas == 0
    assert found["Ready"][:2] == ("False", "WaitingForFiles")
    assert names.supervisord(NAME) in found["Ready"][2]


def machine(*, user_namespaces: bool) -> KubeNode:
    handler = {"name": "", "features": {"userNamespaces": user_namespaces}}
    return codec.read(KubeNode, {"metadata": {"name": "n"}, "status": {"runtimeHandlers": [handler]}})


@pytest.mark.parametrize(
    ("machines", "wished", "expected"),
    [
        pytest.param([], False, None, id="nobody knows: left out"),
        pytest.param([machine(user_namespaces=False)], False, None, id="it cannot: left out"),
        pytest.param([machine(user_namespaces=True)], False, False, id="it can: a namespace of their own"),
        pytest.param([machine(user_namespaces=True)], True, True, id="as asked"),
    ],
)
def test_user_namespaces(machines, wished, expected):
    there = world(CLUSTER, nodeset(spec__enableHostUserNamespace=wished))
    there.things += machines
    settled(there, (NodeSet, "cpu"), rounds=1)

    assert there.get(WorkerPart, "ns", "cpu").spec.template.spec.get("hostUsers") is expected


def test_workers_on_nfs_have_the_hosts_user_namespace():
    """Linux cannot mount NFS in a namespace of a pod's own: no worker would start."""
    nfs = {"nfs": {"server": "nfs.example", "path": "/"}}
    there = world(CLUSTER, nodeset(spec__slurmd__volumes__jail=nfs))
    there.things.append(machine(user_namespaces=True))
    settled(there, (NodeSet, "cpu"), rounds=1)

    assert "hostUsers" not in there.get(WorkerPart, "ns", "cpu").spec.template.spec
    assert (
        "the file system of the shared root cannot be" in report(there, NodeSet, "cpu")["FieldsSupported"][2]
    )


RUNC = "failed to set MOUNT_ATTR_IDMAP on /x: invalid argument (maybe the filesystem used doesn't support idmap mounts on this kernel?)"
CRUN = "mount_setattr `/mnt/jail` (maybe the file system used doesn't support idmap mounts on this kernel?): Invalid argument"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param({"waiting": {"reason": "CreateContainerError", "message": CRUN}}, None, id="crun refused"),
        pytest.param({"terminated": {"exitCode": 128, "message": RUNC}}, None, id="runc refused"),
        pytest.param({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}, False, id="something else"),
    ],
)  # fmt: skip
def test_workers_that_the_root_keeps_from_starting_are_made_without_a_namespace(state, expected):
    there = populated(settled(world(CLUSTER, nodeset()), (SlurmCluster, NAME)), NAME)
    there.things.append(machine(user_namespaces=True))
    settled(there, (NodeSet, "cpu"), rounds=1)
    part = there.get(WorkerPart, "ns", "cpu")
    assert part.spec.template.spec["hostUsers"] is False
    pod = {
        "metadata": {
            "name": "cpu-0", "namespace": "ns", "uid": "p",
            "ownerReferences": [{"apiVersion": "v1", "kind": "NodeSet", "name": "cpu", "uid": part.metadata.uid, "controller": True}],
        },
        "status": {"containerStatuses": [{"name": "slurmd", "state": state}]},
    }  # fmt: skip
    there.things.append(wire.decode(wire.encode(pod), Pod))
    settled(there, (NodeSet, "cpu"), rounds=2)

    assert there.get(WorkerPart, "ns", "cpu").spec.template.spec.get("hostUsers") is expected


def test_a_new_kubernetes_node_replaces_no_worker():
    there = world(CLUSTER, nodeset())
    settled(there, (NodeSet, "cpu"), rounds=1)
    there.things.append(machine(user_namespaces=True))

    assert not [a for a in decide(there, NodeSet, "cpu")[1].actions() if isinstance(a, Apply)]


def test_workers_that_run():
    there = settled(world(OUR_CLUSTER, nodeset(**OUR_IMAGE)), (SlurmCluster, NAME), (NodeSet, "cpu"))
    settled(populated(there, NAME), (NodeSet, "cpu"), rounds=1)
    part = there.get(WorkerPart, "ns", "cpu")
    wanted = part.spec.replicas
    saying(there, WorkerPart, "cpu", readyReplicas=wanted, replicas=wanted, updatedReplicas=wanted)
    found = report(there, NodeSet, "cpu")

    assert (found["phase"], found["replicas"]) == ("Ready", wanted)
    assert found["PodsReady"][:2] == ("True", "NodeSetReady")
    assert found["StatefulSetTerminated"][:2] == ("False", "WorkersEnabled")
    assert found["StatefulSetUpdated"][0] == found["ConfigUpdated"][0] == "True"
    assert found["labelSelector"] == (
        "app.kubernetes.io/component=nodeset,app.kubernetes.io/instance=smallest,"
        "app.kubernetes.io/name=slurmcluster,slurm.nebius.ai/nodeset=cpu"
    )


@pytest.mark.parametrize(("wanted", "is_ready"), [(2, False), (0, True)])
def test_a_part_that_was_ready_without_workers_makes_no_nodeset_ready_that_wants_some(wanted, is_ready):
    there = settled(world(CLUSTER, nodeset(spec__replicas=wanted)), (SlurmCluster, NAME), (NodeSet, "cpu"))
    settled(populated(there, NAME), (SlurmCluster, NAME), (NodeSet, "cpu"))
    saying(there, WorkerPart, "cpu", readyReplicas=0, replicas=0)

    told = report(there, NodeSet, "cpu")["Ready"]

    assert told[0] == ("True" if is_ready else "False")
    assert is_ready or told[1:] == ("NodeSetNotReady", "0 of 2 workers are ready.")


def test_trouble_of_workers_that_are_ready_is_told_by_degraded_alone():
    there = settled(world(CLUSTER, nodeset(spec__replicas=2)), (SlurmCluster, NAME), (NodeSet, "cpu"))
    settled(populated(there, NAME), (SlurmCluster, NAME), (NodeSet, "cpu"))
    saying(there, WorkerPart, "cpu", message="2 of 2.", trouble="Slurm is silent.", readyReplicas=2)

    told = report(there, NodeSet, "cpu")

    assert told["Ready"] == ("True", "Because", "2 of 2.")
    assert told["Degraded"] == ("True", "Trouble", "Slurm is silent.")


def test_docker_is_accepted_and_said_to_be_off():
    status, _, message = report(world(CLUSTER, nodeset()), NodeSet, "cpu")["FieldsSupported"]

    assert status == "False"
    assert "docker.enabled" in message


@pytest.mark.parametrize(
    ("repository", "resources", "told"),
    [
        pytest.param("ghcr.io/slinkyproject/slurmd", {}, [], id="sssd of the slurmd image"),
        pytest.param("x/sssd", {}, ["sssd.image"], id="another image"),
        pytest.param("ghcr.io/slinkyproject/slurmd", {"cpu": "1"}, ["sssd.resources"], id="resources"),
    ],
)
def test_sssd_of_workers_is_not_said_to_be_ignored_where_it_runs(repository, resources, told):
    ours = {"repository": "ghcr.io/slinkyproject/slurmd", "tag": "26.05"}
    sssd = {"image": {"repository": repository, "tag": "26.05"}, "resources": resources}
    changes = {"spec__slurmd__image": ours, "spec__sssd": sssd}
    there = world(with_our_images(CLUSTER), nodeset(**changes))

    message = report(there, NodeSet, "cpu")["FieldsSupported"][2]
    assert [one.partition(":")[0] for one in message.split("; ") if "sssd" in one] == told


def test_deleted_it_waits_for_its_workers():
    there = settled(world(CLUSTER, nodeset()), (NodeSet, "cpu"))
    old = there.get(NodeSet, "ns", "cpu")
    meta = wire.replace(old.metadata, deletion_timestamp=NOW, finalizers=(FINALIZER,))
    there.things = [wire.replace(old, metadata=meta) if thing is old else thing for thing in there.things]
    _, plan = decide(there, NodeSet, "cpu")
    assert [action.kind.kind for action in plan.actions() if isinstance(action, DeleteObject)] == ["NodeSet"]

    carried_out(there, plan)
    _, plan = decide(there, NodeSet, "cpu")
    assert [action.reason for action in plan.actions()] == ["Released"]


def test_a_nodeset_without_a_spec_says_so():
    found = report(world(manifest("NodeSet", "nodes-without-spec")), NodeSet, "nodes-without-spec")

    assert found["Ready"][:2] == ("False", "SpecRefused")
    assert found["phase"] == "Pending"


def test_only_what_workers_wait_for_wakes_them():
    old = world(CLUSTER).things[0]
    said = codec.read(SlurmCluster, {**codec.plain(old), "status": {"readyLogin": 1}})
    done = [{"type": "RootPopulated", "status": "True", "reason": "Populated", "message": ""}]
    whole = codec.read(SlurmCluster, {**codec.plain(old), "status": {"conditions": done}})

    assert is_no_news(old, said)
    assert not is_no_news(old, whole)


@pytest.mark.parametrize(
    ("text", "word"), [("a b", '"a b"'), ('{"x": "$Y"}', '"{\\"x\\": \\"$Y\\"}"'), ("`id`", '"\\`id\\`"')]
)
def test_extra_is_one_word_in_which_only_variables_are_filled_in(text, word):
    assert in_double_quotes(text) == word


def test_workers_of_our_images_join_their_root_before_supervisord_starts():
    parts = {name: next(one for one in made(name) if one["kind"] == "NodeSet") for name in ("ours", "cpu")}

    assert parts["ours"]["spec"]["slurmd"]["command"] == ["slurm-entry", "worker"]
    assert "command" not in parts["cpu"]["spec"]["slurmd"]


def test_the_lowest_numbers_stay():
    part = next(one for one in made("ours-with-files") if one["kind"] == "NodeSet")

    assert part["spec"]["ordinals"] == list(range(part["spec"]["replicas"]))
