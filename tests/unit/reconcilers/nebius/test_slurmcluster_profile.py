"""The AppArmor profile of login pods and workers, where the kinds of the Security Profiles Operator are."""

import pytest

from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import DeleteObject
from slurm_operator.reconcilers.nebius.shared.profile import policy
from testing.slurmclusters import decide, manifest, report, saying, settled, world

NAME = "smallest"
PROFILE = names.profile(NAME, "ns")
EVERY = ((SlurmCluster, NAME), (NodeSet, "cpu"))


def there_is(*, served=True, wanted=True):
    cluster = manifest("SlurmCluster", NAME, spec__useDefaultAppArmorProfile=wanted)
    there = world(cluster, manifest("NodeSet", "cpu", spec__clusterName=NAME))
    there.served |= {kinds.APP_ARMOR_PROFILE} if served else set()
    return there


def loaded(there, status="Installed"):
    """What the Security Profiles Operator says, once there is a profile."""
    settled(there, *EVERY, rounds=1)
    profile(there).body["status"] = {"status": status}
    return settled(there, *EVERY, rounds=2)


def profiles(there) -> list[str]:
    """Of the login container and of slurmd."""
    login = there.get(LoginSet, "ns", names.login(NAME)).spec.login
    slurmd = there.get(WorkerPart, "ns", "cpu").spec.slurmd
    armors = [one["securityContext"]["appArmorProfile"] for one in (login, slurmd)]
    return [one.get("localhostProfile", one["type"]) for one in armors]


def profile(there):
    return there.child(kinds.APP_ARMOR_PROFILE, "ns", PROFILE)


def deleted(there):
    _, plan = decide(there, SlurmCluster, NAME)
    return [one for one in plan.actions() if isinstance(one, DeleteObject)]


def switched_off(there):
    cluster = there.get(SlurmCluster, "ns", NAME)
    without = manifest("SlurmCluster", NAME, spec__useDefaultAppArmorProfile=False)
    there.things = [thing for thing in there.things if thing is not cluster] + world(without).things
    return there


def test_login_pods_and_workers_have_the_profile_where_its_kind_is():
    there = loaded(there_is())

    assert profile(there).body["spec"] == {"policy": policy(PROFILE)}
    assert profiles(there) == [PROFILE, PROFILE]
    assert "useDefaultAppArmorProfile" not in report(there, SlurmCluster, NAME)["FieldsSupported"][2]


@pytest.mark.parametrize(
    ("served", "wanted", "told"),
    [
        pytest.param(False, True, True, id="no kind"),
        pytest.param(True, False, False, id="not wanted"),
        pytest.param(False, False, False, id="neither"),
    ],
)
def test_elsewhere_they_run_without_and_the_cluster_says_why(served, wanted, told):
    there = settled(there_is(served=served, wanted=wanted), *EVERY)

    assert profile(there) is None
    assert profiles(there) == ["Unconfined", "Unconfined"]
    said = report(there, SlurmCluster, NAME)["FieldsSupported"][2]
    assert ("useDefaultAppArmorProfile: no profile is made, because" in said) is told


@pytest.mark.parametrize("status", ["", "InProgress", "Error"])
def test_no_pod_waits_for_a_profile_that_a_kubernetes_node_lacks(status):
    there = loaded(there_is(), status)

    assert profiles(there) == ["Unconfined", "Unconfined"]
    assert (
        f"when AppArmorProfile {PROFILE} is Installed"
        in report(there, SlurmCluster, NAME)["FieldsSupported"][2]
    )
    assert decide(there, NodeSet, "cpu")[1].look_again is not None


def test_a_profile_that_is_loaded_on_another_node_replaces_no_pod():
    there = loaded(there_is())
    profile(there).body["status"] = {"status": "InProgress"}

    assert profiles(settled(there, *EVERY)) == [PROFILE, PROFILE]


def test_pods_keep_the_profile_while_its_kind_cannot_be_seen():
    there = loaded(there_is())
    there.served -= {kinds.APP_ARMOR_PROFILE}
    there.children_.pop(kinds.APP_ARMOR_PROFILE)

    settled(there, *EVERY)

    assert profiles(there) == [PROFILE, PROFILE]


def test_the_profile_is_deleted_after_the_last_pod_that_was_made_with_it():
    there = loaded(there_is())
    switched_off(there)

    settled(there, *EVERY, rounds=1)
    assert profiles(there)[0] == "Unconfined"
    assert profile(there) is not None, "nobody knows yet what pods are made with"

    saying(there, LoginSet, names.login(NAME))
    saying(there, WorkerPart, "cpu", replicas=2, updatedReplicas=1)
    assert not deleted(there), "one worker was made with it and has a job"

    saying(there, WorkerPart, "cpu", replicas=2, updatedReplicas=2)
    [gone] = deleted(there)
    assert gone.key.name == PROFILE
    assert gone.message.endswith("spec.useDefaultAppArmorProfile is off")


def test_driver_files_cannot_be_written_and_all_else_can():
    lines = policy(PROFILE).splitlines()

    assert lines[0].startswith(f"profile {PROFILE} flags=(attach_disconnected")
    assert "  file," in lines
    denied = [line for line in lines if line.startswith("  deny ")]
    assert denied
    assert all(line.endswith(" wl,") for line in denied)
    assert any("libcuda.so*" in line for line in denied)
    assert any("libnvidia-*.so*" in line for line in denied)
