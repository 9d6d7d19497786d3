"""What a SlurmCluster starts, holds back, takes down, leaves alone and deletes."""

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import JailedConfig, NodeSet, SlurmCluster, names
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.plan.actions import Apply, DeleteObject, GenerateSecret, Tell, Wait
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER
from testing.children import with_config
from testing.clusters import slurm
from testing.slurmclusters import (
    NOW,
    OURS,
    carried_out,
    decide,
    manifest,
    populated,
    report,
    saying,
    settled,
    with_our_images,
    world,
)

NAME = "smallest"
BOTH = ((SlurmCluster, NAME), (NodeSet, "cpu"))
WRITER = {"container": {"image": "registry.example/writer:1"}, "serviceAccountName": "writer",
          "node": {"k8sNodeFilterName": "all", "size": 1}}  # fmt: skip
STRUCTURED = {"configType": "structured", "partitions": [{"name": "a", "nodeSetRefs": ["cpu"]}]}


def cluster(**changes):
    login = {"spec__slurmNodes__login__size": 2}
    return with_our_images(manifest("SlurmCluster", NAME, **{**login, **changes}))


def nodeset(**changes):
    return manifest("NodeSet", "cpu", **{"spec__clusterName": NAME, "spec__replicas": 2, **changes})


def first(**changes):
    """A cluster whose parts were made, with nothing in the root."""
    return settled(world(cluster(**changes), nodeset()), *BOTH)


def written(there):
    """slurmctld runs, and the writer has put its files into the root."""
    with_config(there, f"{NAME}-slurm-configs-good", slurm_conf="ClusterName=smallest\n")
    settled(there, *BOTH)
    found = there.get(JailedConfig, "ns", f"{NAME}-slurm-configs")
    if found is None:
        return there  # Nobody writes files.
    done = [{"type": "FilesWritten", "status": "True", "reason": "Success", "message": ""}]
    there.things = [thing for thing in there.things if thing is not found]
    there.things.append(codec.read(JailedConfig, {**codec.plain(found), "status": {"conditions": done}}))
    return settled(there, *BOTH)


def running(**changes):
    """Everything runs."""
    there = written(populated(first(**changes), NAME))
    for type_, name in ((Controller, NAME), (RestApi, names.operator_rest(NAME))):
        saying(there, type_, name)
    saying(there, LoginSet, names.login(NAME), readyReplicas=2, replicas=2)
    saying(there, WorkerPart, "cpu", readyReplicas=2, replicas=2, updatedReplicas=2)
    there.slurms[("ns", NAME)] = slurm(partitions={"main": "UP", "hidden": "UP"})
    return there


def changed(there, **changes):
    """The same with another spec of the cluster."""
    old = there.get(SlurmCluster, "ns", NAME)
    new = world(cluster(**changes)).things[0]
    there.things = [thing for thing in there.things if thing is not old] + [
        wire.replace(new, metadata=wire.replace(new.metadata, generation=2))
    ]
    return there


def replicas(there) -> tuple[int, int, int]:
    """Of login pods, workers and the writer, as they are wanted."""
    writer = there.child(kinds.DEPLOYMENT, "ns", names.sconfigcontroller(NAME))
    return (
        there.get(LoginSet, "ns", names.login(NAME)).spec.replicas,
        there.get(WorkerPart, "ns", "cpu").spec.replicas,
        writer.body["spec"]["replicas"] if writer is not None else -1,
    )


def test_nothing_that_needs_the_root_starts_before_it_is_whole():
    there = first(spec__sConfigController=WRITER)
    assert replicas(there) == (0, 0, 0), "the root is empty"

    settled(populated(there, NAME), *BOTH)
    assert replicas(there) == (0, 0, 1), "the writer may fill it"

    assert replicas(written(there)) == (2, 2, 1), "Slurm's files are there"


def test_without_a_writer_slurmctld_hands_out_the_files():
    there = settled(populated(first(), NAME), *BOTH)

    assert replicas(there) == (2, 2, -1)
    assert there.get(WorkerPart, "ns", "cpu").spec.config_source == "configless"


def test_what_runs_is_not_taken_down_for_the_root():
    """A Job that somebody deleted, and files that are written again, cost nobody anything."""
    there = running(spec__sConfigController=WRITER)
    there.children_[kinds.JOB] = []
    jailed = there.get(JailedConfig, "ns", f"{NAME}-slurm-configs")
    there.things = [thing for thing in there.things if thing is not jailed]
    settled(there, *BOTH, rounds=1)

    assert replicas(there)[:2] == (2, 2)


def sources(there) -> tuple[str, str]:
    """Where login pods and workers read Slurm's files."""
    login, workers = there.get(LoginSet, "ns", names.login(NAME)), there.get(WorkerPart, "ns", "cpu")
    return str(login.spec.config_source), str(workers.spec.config_source)


def has_writer(there) -> bool:
    return there.child(kinds.DEPLOYMENT, "ns", names.sconfigcontroller(NAME)) is not None


def test_a_writer_that_was_removed_stays_until_nobody_reads_its_files():
    there = settled(changed(running(spec__sConfigController=WRITER)), *BOTH)
    saying(there, LoginSet, names.login(NAME), readyReplicas=2, replicas=2, updatedReplicas=2)
    saying(there, WorkerPart, "cpu", replicas=2, updatedReplicas=1)
    settled(there, *BOTH)
    assert sources(there) == ("configless", "configless")
    assert replicas(there)[:2] == (2, 2)
    assert has_writer(there), "one worker has the files still mounted"
    [waiting] = [one for one in decide(there, SlurmCluster, NAME)[1].waits if one.reason == "StillRead"]
    assert "NodeSet cpu" in waiting.message
    assert "LoginSet" not in waiting.message

    saying(there, WorkerPart, "cpu", replicas=2, updatedReplicas=2)
    settled(there, *BOTH)
    assert not has_writer(there)
    assert there.get(JailedConfig, "ns", f"{NAME}-slurm-configs") is None, "or it would look written later"


def test_a_writer_that_was_added_has_written_before_a_pod_reads_its_files():
    there = settled(changed(running(), spec__sConfigController=WRITER), *BOTH)
    assert has_writer(there)
    assert sources(there) == ("configless", "configless"), "the root has no files yet"
    assert replicas(there)[:2] == (2, 2)

    assert sources(written(there)) == ("files", "files")


@pytest.mark.parametrize(
    "mode", ["downscale", "downscaleAndDeletePopulateJail", "downscaleAndOverwritePopulateJail"]
)
def test_maintenance_takes_pods_down_through_the_engine(mode):
    there = changed(
        running(spec__sConfigController=WRITER), spec__maintenance=mode, spec__sConfigController=WRITER
    )
    settled(there, *BOTH, rounds=1)

    assert replicas(there) == (0, 0, 0)
    assert there.get(Controller, "ns", NAME) is not None, "slurmctld stays, and keeps the queue"


def test_scale_in_says_which_jobs_it_waits_for_while_every_worker_is_ready():
    there = running()
    saying(there, WorkerPart, "cpu", replicas=3, readyReplicas=3, updatedReplicas=3, progress="cpu-2: job 7")
    cluster_says, nodeset_says = report(there, SlurmCluster, NAME), report(there, NodeSet, "cpu")

    assert cluster_says["Progressing"] == nodeset_says["Progressing"]
    assert cluster_says["Progressing"][0] == "True"
    assert "cpu-2: job 7" in cluster_says["Progressing"][2]
    assert nodeset_says["PodsReady"] == (
        "True",
        "NodeSetReady",
        "2 of 2 workers are ready, and 1 more that will be removed.",
    )


def test_maintenance_says_which_jobs_it_waits_for():
    there = changed(running(), spec__maintenance="downscale")
    settled(there, *BOTH, rounds=1)
    drains = [{"slurmNode": "cpu-1", "jobs": ["12", "7"]}]
    saying(there, WorkerPart, "cpu", replicas=2, progress="cpu-1 waits for jobs 7 and 12.", drains=drains)
    cluster_says, nodeset_says = report(there, SlurmCluster, NAME), report(there, NodeSet, "cpu")
    waits = [wait for wait in decide(there, NodeSet, "cpu")[1].waits if wait.reason == "Maintenance"]

    assert "cpu-1 waits for jobs 7 and 12." in cluster_says["Progressing"][2]
    assert "cpu-1 waits for jobs 7 and 12." in nodeset_says["Progressing"][2]
    assert [wait.jobs for wait in waits] == [(7, 12)]
    assert cluster_says["phase"] == "Not available", "unlike Soperator's"
    assert nodeset_says["phase"] == "Terminating"


def test_when_maintenance_is_over_everything_starts_again():
    there = changed(running(), spec__maintenance="downscale")
    settled(there, *BOTH)
    saying(there, WorkerPart, "cpu", replicas=0)
    settled(changed(there), *BOTH)

    assert replicas(there)[:2] == (2, 2)


@pytest.mark.parametrize(
    ("path", "value", "lane", "words"),
    [
        pytest.param("spec__slurmNodes__login__k8sNodeFilterName", "gone", "login", "which has: all", id="filter"),
        pytest.param("spec__slurmNodes__login__volumes__jail__volumeSourceName", "gone", "login", "which has: jail, spool", id="volume"),
        pytest.param("spec__slurmNodes__login__sshdServiceType", "ClusterIP", "login", "LoadBalancer or NodePort", id="Service"),
        pytest.param("spec__populateJail__k8sNodeFilterName", "gone", "populate", "which has: all", id="filter of the Job"),
    ],
)  # fmt: skip
def test_a_broken_part_holds_up_only_itself(path, value, lane, words):
    _, plan = decide(world(cluster(**{path: value})), SlurmCluster, NAME)
    [refused] = [wait for wait in plan.waits if wait.reason == "SpecRefused"]
    lanes = {one.name: one for one in plan.lanes}

    assert words in refused.message
    assert all(isinstance(action, Wait) for action in lanes[lane].actions())
    assert any(isinstance(action, Apply) for action in lanes["controller"].actions())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"spec__slurmNodes__controller__k8sNodeFilterName": "gone"}, "which has: all", id="slurmctld"),
        pytest.param({"spec__volumeSources": [{"name": "spool", "emptyDir": {}}],
                      "spec__slurmNodes__controller__volumes__jail__volumeSourceName": "spool2"}, "spool", id="no root"),
        pytest.param({"metadata__name": "x" * 41}, "40", id="a name that Slurm does not take"),
    ],
)  # fmt: skip
def test_what_every_part_needs_holds_up_all_of_them(change, words):
    body = cluster(**change)
    there = world(body)
    _, plan = decide(there, SlurmCluster, body["metadata"]["name"])

    assert any(words in wait.message for wait in plan.waits)
    assert not [action for action in plan.actions() if isinstance(action, Apply)]


def test_an_object_of_somebody_else_is_left_alone():
    there = world(cluster())
    stranger = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": NAME}}
    there.things += world({**stranger, "spec": {}}).things
    _, plan = decide(there, SlurmCluster, NAME)

    assert [wait.reason for wait in plan.waits if "Controller" in wait.subject] == ["NameTaken"]


def test_a_partition_with_jobs_stays_until_they_are_done():
    raw = ["PartitionName=a Nodes=ALL Default=YES", "PartitionName=b Nodes=ALL"]
    there = running(spec__partitionConfiguration={"configType": "custom", "rawConfig": raw})
    custom = {"configType": "custom", "rawConfig": raw[:1]}
    changed(there, spec__partitionConfiguration=custom)
    there.slurms[("ns", NAME)] = slurm(
        jobs={5: "RUNNING"}, partitions={"a": "UP", "b": "UP"}, in_partition="b"
    )
    settled(there, *BOTH, rounds=1)
    lines = there.get(Controller, "ns", NAME).spec.extra_conf
    assert "PartitionName=b Nodes=ALL State=DRAIN" in lines
    assert [wait.reason for wait in decide(there, SlurmCluster, NAME)[1].waits] == ["PartitionInUse"]

    there.slurms[("ns", NAME)] = slurm(partitions={"a": "UP", "b": "DRAIN"})
    settled(there, *BOTH, rounds=1)
    assert "PartitionName=b" not in there.get(Controller, "ns", NAME).spec.extra_conf


def test_accounting_that_was_turned_off_goes_after_slurmctld_let_go_of_it():
    database = {"enabled": True, "image": "registry.example/mariadb:1", "storage": {"size": "1Gi"}}
    on = {
        "spec__slurmNodes__accounting": {
            "enabled": True, "k8sNodeFilterName": "all", "mariadbOperator": database,
            "slurmdbd": {"image": "registry.example/slurmdbd:1"},
        }
    }  # fmt: skip
    there = running(**on)
    assert there.get(Accounting, "ns", NAME).spec.managed.storage.size == "1Gi"

    changed(there)
    _, plan = decide(there, SlurmCluster, NAME)
    assert not [action for action in plan.actions() if isinstance(action, DeleteObject)]
    _, plan = decide(carried_out(there, plan), SlurmCluster, NAME)
    assert [action.kind.kind for action in plan.actions() if isinstance(action, DeleteObject)] == [
        "Accounting"
    ]


def test_deleted_it_goes_in_order():
    there = running()
    old = there.get(SlurmCluster, "ns", NAME)
    meta = wire.replace(old.metadata, deletion_timestamp=NOW, finalizers=(FINALIZER,))
    there.things = [wire.replace(old, metadata=meta) if thing is old else thing for thing in there.things]

    _, plan = decide(there, SlurmCluster, NAME)
    assert [wait.reason for wait in plan.waits] == ["Leaving"], "workers go first"
    _, of_nodeset = decide(there, NodeSet, "cpu")
    assert [a.kind.kind for a in of_nodeset.actions() if isinstance(a, DeleteObject)] == ["NodeSet"]

    carried_out(there, of_nodeset)
    order = []
    for _ in range(4):
        _, plan = decide(there, SlurmCluster, NAME)
        order += [a.kind.kind for a in plan.actions() if isinstance(a, DeleteObject)]
        carried_out(there, plan)
    assert order == ["LoginSet", "RestApi", "Controller"]


def renamed(body, name):
    body["metadata"]["name"] = name
    return body


def test_a_nodeset_that_names_another_cluster_keeps_its_nodes_in_the_partitions_of_the_first():
    there = running(spec__partitionConfiguration=STRUCTURED)
    other = renamed(cluster(spec__partitionConfiguration=STRUCTURED), "another")
    old = there.get(NodeSet, "ns", "cpu")
    there.things = [thing for thing in there.things if thing is not old]
    there.things += world(nodeset(spec__clusterName="another"), other).things
    settled(there, *BOTH, (SlurmCluster, "another"))

    assert "PartitionName=a Nodes=cpu\n" in there.get(Controller, "ns", NAME).spec.extra_conf
    assert 'PartitionName=a Nodes=""\n' in there.get(Controller, "ns", "another").spec.extra_conf
    told = report(there, NodeSet, "cpu")["Ready"]
    assert told[1] == "ClusterNameChanged"
    assert "there are: another, smallest" in told[2]


def test_workers_whose_cluster_is_gone_stay_as_they_are():
    there = running()
    there.things = [thing for thing in there.things if not isinstance(thing, SlurmCluster)]
    _, plan = decide(there, NodeSet, "cpu")

    assert not [action for action in plan.actions() if isinstance(action, Apply | DeleteObject)]
    assert "Workers stay as they are." in report(there, NodeSet, "cpu")["Ready"][2]


def test_two_clusters_in_one_namespace_share_nothing():
    there = world(cluster(), renamed(cluster(), "smallest-2"), nodeset())
    for _ in range(3):
        settled(there, (SlurmCluster, "smallest-2"), *BOTH, rounds=1)
    owners = {
        f"{type(thing).__name__} {thing.metadata.name}": thing.metadata.owner.name
        for thing in there.things
        if thing.metadata.owner is not None
    }
    first = {name for name, owner in owners.items() if owner == NAME}
    second = {name for name, owner in owners.items() if owner == "smallest-2"}

    assert {name.replace(NAME, "smallest-2") for name in first} == second
    for name in (NAME, "smallest-2"):
        assert not [w for w in decide(there, SlurmCluster, name)[1].waits if w.reason == "NameTaken"]


def test_two_clusters_with_workers_of_older_releases_in_one_namespace():
    """Both NodeSets would be called `worker`."""
    first = manifest("SlurmCluster", "older", spec__maintenance="none")
    there = world(first, renamed(manifest("SlurmCluster", "older", spec__maintenance="none"), "older-2"))
    settled(there, (SlurmCluster, "older"), (SlurmCluster, "older-2"))

    [waiting] = [w for w in decide(there, SlurmCluster, "older-2")[1].waits if w.reason == "NameTaken"]
    assert waiting.subject == "NodeSet worker"
    assert there.get(NodeSet, "ns", "worker").cluster == "older"


def test_references_that_are_ignored_are_told_once():
    partitions = {"configType": "structured", "partitions": [{"name": "a", "nodeSetRefs": ["cpu", "gone"]}]}
    there = first(spec__partitionConfiguration=partitions)
    _, plan = decide(there, SlurmCluster, NAME)
    [event] = [action for action in plan.actions() if isinstance(action, Tell)]
    text = 'partition "a": NodeSet "gone" is ignored (the NodeSet does not exist)'
    assert (event.reason, event.message, event.warning) == ("IgnoredNodeSetRefs", text, True)

    old = there.get(SlurmCluster, "ns", NAME)
    told = {
        "conditions": [{"type": "NodeSetRefsResolved", "status": "False", "reason": "x", "message": text}]
    }
    there.things = [thing for thing in there.things if thing is not old]
    there.things.append(codec.read(SlurmCluster, {**codec.plain(old), "status": told}))
    assert not [a for a in decide(there, SlurmCluster, NAME)[1].actions() if isinstance(a, Tell)]


def test_a_cluster_in_which_everything_works():
    found = report(running(), SlurmCluster, NAME)

    assert found["Ready"][0] == "True"
    assert found["phase"] == "Available"
    assert (found["readyLogin"], found["readyWorkers"]) == (2, 2)
    assert found["ControllersAvailable"] == ("True", "Available", "Slurm controllers are available")
    assert found["LoginAvailable"] == ("True", "Available", "Slurm login is available")
    assert found["WorkersAvailable"] == ("True", "Available", "Slurm workers are available")
    assert found["CommonAvailable"] == ("True", "Available", "Slurm common components are available")
    assert found["AccountingAvailable"] == ("False", "NotAvailable", "Slurm accounting is disabled")
    assert found["PopulateJailMode"] == ("True", "none", "Populate Jail maintenanceMode is none")
    assert found["NodeSetRefsResolved"][:2] == ("True", "AllNodeSetRefsResolved")


def test_before_anything_was_made():
    found = report(world(cluster()), SlurmCluster, NAME)

    for part in ("Common", "Controllers", "Login"):
        assert found[f"{part}Available"][:2] == ("Unknown", "SetUpCondition")
    assert found["phase"] == "Not available"


def test_a_cluster_without_a_spec_says_so():
    found = report(
        world(manifest("SlurmCluster", "cluster-without-spec")), SlurmCluster, "cluster-without-spec"
    )

    assert found["phase"] == "Pending"
    assert found["Ready"][:2] == ("False", "SpecRefused")


@pytest.mark.parametrize(
    ("mode", "condition"),
    [
        ("none", ("True", "none")),
        ("skipPopulateJail", ("True", "skipPopulateJail")),
        ("downscale", ("Unknown", "Unknown")),
        ("downscaleAndDeletePopulateJail", ("True", "downscaleAndDeletePopulateJail")),
        ("downscaleAndOverwritePopulateJail", ("True", "downscaleAndOverwritePopulateJail")),
    ],
)
def test_the_mode_in_soperators_words(mode, condition):
    there = changed(running(), spec__maintenance=mode)
    found = report(there, SlurmCluster, NAME)

    assert found["PopulateJailMode"][:2] == condition
    is_down = mode.startswith("downscale")
    expected = ("False", "Maintenance") if is_down else ("True", "Available")
    assert found["ControllersAvailable"][:2] == expected
    assert (found["phase"] == "Available") is not is_down


def test_a_broken_part_is_the_cause_in_its_own_words():
    there = saying(running(), Controller, NAME, "False", "slurmctld keeps ending: no such plugin.")
    found = report(there, SlurmCluster, NAME)

    message = "Slurm controllers are not available yet: slurmctld keeps ending: no such plugin."
    assert found["ControllersAvailable"] == ("False", "NotAvailable", message)
    assert found["LoginAvailable"][0] == "True", "what works is said to work"
    assert "no such plugin" in found["Ready"][2]


def test_what_is_not_supported_is_said():
    there = world(
        cluster(
            spec__slurmNodes__exporter={
                "enabled": True,
                "k8sNodeFilterName": "all",
                "jobSource": "accounting",
            },
            spec__topology={"blockSize": 4},
        )
    )
    status, reason, message = report(there, SlurmCluster, NAME)["FieldsSupported"]

    assert (status, reason) == ("False", "SomeIgnored")
    assert "slurmNodes.exporter.jobSource" in message
    assert "topology.blockSize: it is for topology/block" in message


LOGIN = "spec__slurmNodes__login__"


@pytest.mark.parametrize(
    ("sssd", "told"),
    [
        pytest.param({"image": OURS.format(daemon="login")}, [], id="sssd of the login image"),
        pytest.param({"image": "x/sssd:1"}, ["slurmNodes.login.sssd.image"], id="another image"),
        pytest.param(
            {"image": OURS.format(daemon="login"), "resources": {"cpu": "1"}},
            ["slurmNodes.login.sssd.resources"],
            id="resources of its own",
        ),
    ],
)
def test_sssd_of_login_pods_is_not_said_to_be_ignored_where_it_runs(sssd, told):
    there = world(cluster(**{f"{LOGIN}sssd": sssd, f"{LOGIN}sssdConfSecretRefName": "directory"}))
    settled(there, (SlurmCluster, NAME))

    message = report(there, SlurmCluster, NAME)["FieldsSupported"][2]
    assert [one.partition(":")[0] for one in message.split("; ") if "sssd" in one] == told
    part = there.get(LoginSet, "ns", f"{NAME}-login")
    assert part.spec.sssd_conf_ref.name == "directory"


def test_slurmctld_starts_without_sssd():
    """As an init container an sssd that cannot start would keep slurmctld from starting."""
    there = world(cluster(spec__slurmNodes__controller__sssd={"image": "x/sssd:1"}))
    settled(there, (SlurmCluster, NAME))

    pod = there.get(Controller, "ns", NAME).spec.template.spec
    assert "sssd" in [one["name"] for one in pod["containers"]]
    assert "sssd" not in [one["name"] for one in pod["initContainers"]]
    assert all("restartPolicy" not in one for one in pod["containers"])


def with_image(there, image, **changes):
    """The same cluster with another image of slurmctld."""
    changed(there, **changes)
    old = there.get(SlurmCluster, "ns", NAME)
    nodes = old.spec.slurm_nodes
    slurmctld = wire.replace(nodes.controller.slurmctld, image=image)
    spec = wire.replace(
        old.spec,
        slurm_nodes=wire.replace(nodes, controller=wire.replace(nodes.controller, slurmctld=slurmctld)),
    )
    there.things = [wire.replace(old, spec=spec) if thing is old else thing for thing in there.things]
    return there


def plugins(there) -> str:
    files = there.child(kinds.CONFIG_MAP, "ns", names.more_configs(NAME)).body["data"]
    return files["plugstack.conf"]


def test_the_family_of_images_is_kept_for_the_life_of_the_root():
    there = running()
    assert "shared_root.so" in plugins(there)

    settled(with_image(there, "registry.example/slurmctld:1"), *BOTH)
    assert "shared_root.so" in plugins(there), "what runs on the root is made for ours"
    status, _, message = report(there, SlurmCluster, NAME)["FieldsSupported"]
    assert status == "False"
    assert "overwrite it" in message


def test_another_family_is_chosen_when_the_root_is_overwritten():
    there = running()
    with_image(there, "registry.example/slurmctld:1", spec__maintenance="downscaleAndOverwritePopulateJail")
    settled(there, *BOTH)
    assert "shared_root.so" in plugins(there), "workers are still there"

    saying(there, LoginSet, names.login(NAME), replicas=0)
    saying(there, WorkerPart, "cpu", replicas=0)
    settled(there, *BOTH)
    assert "chroot.so" in plugins(there)


def test_a_cluster_that_was_made_again_keeps_its_keys_and_its_family():
    there = running()
    keys = {key: found for key, found in there.named.items() if key[0] is Secret}
    there.things = [*with_image(world(cluster(), nodeset()), "registry.example/slurmctld:1").things]
    there.children_, there.named = {}, keys
    _, plan = decide(there, SlurmCluster, NAME)
    settled(there, *BOTH)

    assert not [action for action in plan.actions() if isinstance(action, GenerateSecret)]
    assert "shared_root.so" in plugins(there)
    job = there.child(kinds.JOB, "ns", names.populate_jail(NAME)).body["spec"]["template"]["spec"]
    env = {one["name"]: one.get("value") for one in job["containers"][0]["env"]}
    assert env["OVERWRITE"] == "0", "the root stays as it is"


def test_nothing_is_changed_while_nobody_knows_whose_images_the_root_is_used_with():
    there = with_image(running(), "registry.example/slurmctld:1")
    there.named[Secret, ObjectKey("ns", names.munge_secret(NAME))] = Unread(why="no answer")
    _, plan = decide(there, SlurmCluster, NAME)

    assert not [action for action in plan.actions() if isinstance(action, Apply)]
    assert [wait.reason for wait in plan.waits] == ["SecretUnread"]


def test_a_deleted_nodeset_is_named_until_its_last_worker_is_gone():
    """The engine keeps a NodeSet for as long as a line names it, and refuses a line that names none."""
    there = running(spec__partitionConfiguration=STRUCTURED)
    part = there.get(WorkerPart, "ns", "cpu")
    gone = wire.replace(part, metadata=wire.replace(part.metadata, deletion_timestamp=NOW))
    there.things = [gone if thing is part else thing for thing in there.things]
    settled(there, (SlurmCluster, NAME), rounds=1)
    assert "PartitionName=a Nodes=cpu\n" in there.get(Controller, "ns", NAME).spec.extra_conf

    empty = wire.replace(gone, status=wire.replace(gone.status, replicas=0))
    there.things = [empty if thing is gone else thing for thing in there.things]
    settled(there, (SlurmCluster, NAME), rounds=1)
    assert 'PartitionName=a Nodes=""\n' in there.get(Controller, "ns", NAME).spec.extra_conf


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["ReadWriteMany"], ("True", "ReadWriteMany")),
        (["ReadWriteOnce"], ("False", "NotReadWriteMany")),
        ([], ("False", "NotReadWriteMany")),
    ],
)
def test_a_root_that_not_all_nodes_can_mount(modes, expected):
    there = world(cluster())
    there.served.add(kinds.PERSISTENT_VOLUME_CLAIM)
    claim = {"metadata": {"name": "jail", "namespace": "ns"}, "spec": {"accessModes": modes}}
    there.things.append(codec.read(VolumeClaim, claim))

    assert report(there, SlurmCluster, NAME)["RootShared"][:2] == expected


@pytest.mark.parametrize(
    ("workers", "array", "nodes"), [(1, 1024, 1024), (204, 1024, 1024), (300, 2048, 1024), (600, 4096, 2048)]
)
def test_the_size_of_a_cluster_changes_few_lines(workers, array, nodes):
    there = settled(world(cluster(), nodeset(spec__replicas=workers)), (SlurmCluster, NAME), rounds=1)
    lines = there.get(Controller, "ns", NAME).spec.extra_conf.splitlines()

    assert f"MaxArraySize={array}" in lines
    assert f"MaxNodeCount={nodes}" in lines
