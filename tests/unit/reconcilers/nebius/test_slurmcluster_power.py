"""What a SlurmCluster brings where Slurm powers workers up and down."""

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.plan.actions import Apply, Create
from testing.slurmclusters import decide, manifest, report, settled, with_our_images, world

THEIRS = manifest("SlurmCluster", "smallest")
OURS = with_our_images(THEIRS)
ON = {"spec__ephemeralNodes": True}


def nodeset(name: str, **changes):
    return manifest("NodeSet", name, spec__clusterName="smallest", **changes)


def made(*bodies) -> dict[tuple[str, str], dict]:
    _, plan = decide(world(*bodies), SlurmCluster, "smallest")
    found = [one.manifest for one in plan.actions() if isinstance(one, Apply | Create)]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def conf(*bodies) -> dict[str, str]:
    text = made(*bodies)["Controller", "smallest"]["spec"]["extraConf"]
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_slurm_powers_only_ephemeral_workers():
    lines = conf(OURS, nodeset("gpu", **ON, spec__replicas=8), nodeset("cpu", spec__replicas=3))

    assert lines["ResumeProgram"] == "/opt/soperator/bin/power_resume.sh"
    assert lines["ResumeFailProgram"] == "/opt/soperator/bin/power_resume_fail.sh"
    assert lines["SuspendProgram"] == "/opt/soperator/bin/power_suspend.sh"
    assert lines["SuspendExcNodes"] == "cpu-[0-3]", "wider than it need be, so that scaling changes nothing"
    assert "idle_on_node_suspend" not in lines["SlurmctldParameters"], "it would lift drains"
    assert lines["SuspendTime"] != "INFINITE", (
        "power saving would be off, and jobs sent to nodes that are off"
    )


def test_without_ephemeral_workers_nothing_is_powered():
    off = {"spec__ephemeralNodes": False}
    found = made(OURS, nodeset("gpu", **off))
    lines = found["Controller", "smallest"]["spec"]["extraConf"]

    assert "Program=/opt/soperator" not in lines
    assert "SuspendExcNodes" not in lines
    assert ("Role", "smallest-slurm-controller") not in found
    assert "power-manager" not in str(found["Controller", "smallest"])


def test_power_manager_runs_beside_slurmctld_and_only_it_has_a_token():
    found = made(OURS, nodeset("gpu", **ON))
    spec = found["Controller", "smallest"]["spec"]
    pod = spec["template"]["spec"]
    [manager] = [one for one in pod["initContainers"] if one["name"] == "power-manager"]
    tokens = [one["name"] for one in pod["volumes"] if "projected" in one]

    assert manager["restartPolicy"] == "Always"
    assert manager["securityContext"]["runAsNonRoot"]
    assert tokens == ["power-manager-token"]
    assert "power-manager-token" not in {one["name"] for one in spec["slurmctld"]["volumeMounts"]}
    assert "power-calls" in {one["name"] for one in spec["slurmctld"]["volumeMounts"]}
    account = found["ServiceAccount", "smallest-slurm-controller"]
    assert pod["serviceAccountName"] == "smallest-slurm-controller"
    assert account["automountServiceAccountToken"] is False
    rules = found["Role", "smallest-slurm-controller"]["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["nodesets"], ["get"]), (["nodesetpowerstates"], ["get", "patch"])
    ]  # fmt: skip


def test_an_account_of_the_users_is_used_as_it_is():
    account = {"spec__slurmNodes__controller__serviceAccountName": "mine"}
    cluster = with_our_images(manifest("SlurmCluster", "smallest", **account))
    found = made(cluster, nodeset("gpu", **ON))

    assert found["Controller", "smallest"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert ("Role", "smallest-slurm-controller") not in found


@pytest.mark.parametrize("cluster", [THEIRS])
def test_soperators_images_bring_their_own_power_manager(cluster):
    found = made(cluster, nodeset("gpu", **ON))

    assert "power-manager" not in str(found["Controller", "smallest"]["spec"]["template"])
    assert "cloud_dns" in conf(cluster, nodeset("gpu", **ON))["SlurmctldParameters"]
    assert "power_resume.sh" in conf(cluster, nodeset("gpu", **ON))["ResumeProgram"]


@pytest.mark.parametrize(
    ("active", "ready", "is_available"), [([], 0, True), ([0, 3], 1, False), ([0, 3], 2, True)]
)
def test_workers_that_are_switched_off_are_not_missed(active, ready, is_available):
    there = settled(world(OURS, nodeset("cpu", **ON, spec__replicas=5)), (NodeSet, "cpu"), rounds=1)
    part = there.get(WorkerPart, "ns", "cpu")
    there.things = [one for one in there.things if one is not part]
    there.things.append(
        wire.replace(
            part,
            spec=wire.replace(part.spec, replicas=5, ordinals=active),
            status=wire.replace(part.status, ready_replicas=ready),
        )
    )

    told = report(there, SlurmCluster, "smallest")["WorkersAvailable"]
    assert told[0] == str(is_available), told
