"""Sub mounts that are added after the root was populated: who makes their directories, and who waits for them."""

import pytest

from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import DeleteObject
from testing.slurmclusters import (
    OURS,
    decide,
    manifest,
    populated,
    read,
    report,
    settled,
    with_our_images,
    world,
)

NAME = "smallest"
WRITER = {"container": {"image": OURS.format(daemon="operator")}}
OUR_SLURMD = {"repository": OURS.format(daemon="slurmd").rpartition(":")[0], "tag": "26.05-ubuntu26.04"}
THEIRS = {"repository": "registry.example/slurmd", "tag": "1"}
EVERY = ((SlurmCluster, NAME), (NodeSet, "cpu"))
OLD, NEW = "/mnt/old", "/mnt/new/deep"
VOLUME = {"persistentVolumeClaim": {"claimName": "data"}}


def cluster(**changes):
    return with_our_images(manifest("SlurmCluster", NAME, **{"spec__sConfigController": WRITER, **changes}))


def nodeset(*paths: str, name: str = "cpu", image=OUR_SLURMD):
    mounts = [
        {"name": f"sub-{number}", "mountPath": path, "volumeSource": VOLUME}
        for number, path in enumerate(paths)
    ]
    changes = {"spec__slurmd__image": image, "spec__slurmd__volumes__jailSubMounts": mounts}
    found = manifest("NodeSet", "cpu", spec__clusterName=NAME, **changes)
    return found | {"metadata": {**found["metadata"], "name": name}}


def there_is(*paths: str, of=None, image=OUR_SLURMD):
    """A cluster whose root was populated for these sub mounts, and has Slurm's files."""
    there = settled(world(of or cluster(), nodeset(*paths, image=image)), *EVERY, rounds=2)
    populated(there, NAME)
    there.things.append(jailed(names.slurm_configs(NAME), "/etc/slurm/slurm.conf"))
    return settled(there, *EVERY)


def jailed(
    name: str,
    *paths: str,
    truth: str = "True",
    reason: str = "Success",
    message: str = "",
    generation: int = 1,
):
    """As the sconfigcontroller has dealt with its first generation."""
    body = {
        "apiVersion": JailedConfig.KIND.api_version, "kind": "JailedConfig", "metadata": {"name": name},
        "spec": {"configMap": {"name": name}, "items": [{"key": "text", "path": path} for path in paths]},
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": "FilesWritten", "status": truth, "reason": reason, "message": message}],
        },
    }  # fmt: skip
    owner = {"apiVersion": "slurm.nebius.ai/v1", "kind": "SlurmCluster", "name": NAME, "uid": f"uid-{NAME}"}
    return read(body, generation=generation, ownerReferences=[{**owner, "controller": True}])


def replaced(there, body):
    """The same object with another spec."""
    kind = {"NodeSet": NodeSet, "SlurmCluster": SlurmCluster}[body["kind"]]
    before = there.get(kind, "ns", body["metadata"]["name"])
    there.things = [thing for thing in there.things if thing is not before] + world(body).things
    return there


def written(there, **status):
    """What the sconfigcontroller says of the directories that it was asked for."""
    asked = there.get(JailedConfig, "ns", names.mount_points(NAME))
    there.things.remove(asked)
    there.things.append(jailed(asked.metadata.name, *(one.path for one in asked.spec.items), **status))
    return settled(there, *EVERY)


def paths_of(there, name: str = "cpu") -> list[str]:
    part = there.get(WorkerPart, "ns", name)
    return [one["mountPath"] for one in part.spec.slurmd["volumeMounts"] if one["name"].startswith("sub-")]


def asked_for(there) -> list[str]:
    found = there.get(JailedConfig, "ns", names.mount_points(NAME))
    return [one.path for one in found.spec.items] if found is not None else []


def test_the_job_makes_what_is_known_when_it_runs():
    there = there_is(OLD)

    assert paths_of(there) == [f"/mnt/jail{OLD}"]
    assert asked_for(there) == []


def test_a_sub_mount_that_is_added_appears_when_its_directory_is_there():
    there = settled(replaced(there_is(OLD), nodeset(OLD, NEW)), *EVERY)

    assert asked_for(there) == [f"{NEW}/.slurm-operator-mount-point"]
    assert there.child(kinds.CONFIG_MAP, "ns", names.mount_points(NAME)).body["data"]["text"]
    assert paths_of(there) == [f"/mnt/jail{OLD}"], "the workers that run follow the spec in all else"
    status, reason, message = report(there, NodeSet, "cpu")["Ready"]
    assert (status, reason) == ("False", "WaitingForMountPoints")
    assert f"the directory {NEW} in the shared root" in message

    assert paths_of(written(there)) == [f"/mnt/jail{OLD}", f"/mnt/jail{NEW}"]


def test_a_nodeset_that_is_added_has_no_worker_before():
    there = there_is(OLD)
    there.things += world(nodeset(NEW, name="more")).things
    settled(there, *EVERY, (NodeSet, "more"))

    assert there.get(WorkerPart, "ns", "more") is None

    written(there)
    settled(there, (NodeSet, "more"))
    assert paths_of(there, "more") == [f"/mnt/jail{NEW}"]


def test_why_a_directory_cannot_be_made_is_said_and_workers_keep_what_they_have():
    there = settled(replaced(there_is(OLD), nodeset(OLD, NEW)), *EVERY)
    written(there, truth="False", reason="PathRefused", message="/mnt/new is a symbolic link.")

    assert paths_of(there) == [f"/mnt/jail{OLD}"]
    assert report(there, NodeSet, "cpu")["Ready"][2].endswith("It says: /mnt/new is a symbolic link.")


def test_workers_keep_their_sub_mounts_while_another_directory_is_made():
    there = written(settled(replaced(there_is(OLD), nodeset(OLD, NEW)), *EVERY))
    settled(replaced(there, nodeset(OLD, NEW, "/mnt/third")), (SlurmCluster, NAME), rounds=1)
    unread = there.get(JailedConfig, "ns", names.mount_points(NAME))
    there.things.remove(unread)
    there.things.append(jailed(unread.metadata.name, *(one.path for one in unread.spec.items), generation=2))
    settled(there, (NodeSet, "cpu"))

    assert len(asked_for(there)) == 2
    assert paths_of(there) == [f"/mnt/jail{OLD}", f"/mnt/jail{NEW}"]


def test_what_nobody_mounts_any_more_is_not_asked_for():
    there = written(settled(replaced(there_is(OLD), nodeset(OLD, NEW)), *EVERY))
    replaced(there, nodeset(OLD))

    _, plan = decide(there, SlurmCluster, NAME)
    gone = [one for one in plan.actions() if isinstance(one, DeleteObject)]
    assert [one.key.name for one in gone] == [names.mount_points(NAME)]


def test_login_pods_get_a_sub_mount_when_its_directory_is_there():
    there = there_is(OLD)
    mounts = [{"name": "data", "mountPath": NEW, "volumeSourceName": "jail"}]
    replaced(there, cluster(spec__slurmNodes__login__volumes__jailSubMounts=mounts))

    def is_mounted() -> bool:
        login = there.get(LoginSet, "ns", names.login(NAME))
        return f"/mnt/jail{NEW}" in [one["mountPath"] for one in login.spec.login["volumeMounts"]]

    settled(there, *EVERY)
    assert not is_mounted()
    written(there)
    assert is_mounted()


@pytest.mark.parametrize(
    ("of", "image"),
    [
        pytest.param(with_our_images(manifest("SlurmCluster", NAME)), OUR_SLURMD, id="no writer"),
        pytest.param(
            cluster(spec__sConfigController={**WRITER, "runAsUid": 1001}), OUR_SLURMD, id="it is not root"
        ),
        pytest.param(manifest("SlurmCluster", NAME, spec__sConfigController=WRITER), THEIRS, id="theirs"),
    ],
)
def test_elsewhere_whoever_mounts_first_makes_it(of, image):
    there = settled(replaced(there_is(OLD, of=of, image=image), nodeset(OLD, NEW, image=image)), *EVERY)

    assert asked_for(there) == []
    assert [path.rpartition("/mnt")[2] for path in paths_of(there)] == ["/old", "/new/deep"]
