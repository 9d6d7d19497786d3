"""A release that brings its own keys: uninstalled in several orders, installed again at once, with real daemons."""

import time

import pytest
from helm_rig import CHARTS, HOME, Helm
from operator_rig import until
from release_rig import COPIES, NAMESPACE, Release

from slurm_local import image
from slurm_local.progress import Quiet

pytestmark = [pytest.mark.full, pytest.mark.timeout(1500)]

JOB_SECONDS = 40


@pytest.fixture(scope="module")
def release(fragile_cluster, paths, tmp_path_factory) -> Release:
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    helm = Helm(fragile_cluster)
    helm("install", "slurm-operator-crds", str(CHARTS / "slurm-operator-crds"))
    fragile_cluster.kubectl("create", "namespace", HOME)
    helm.install_operator()
    return Release(helm, tmp_path_factory.mktemp("release") / "chart")


def with_a_job(release: Release) -> tuple[int, float]:
    release.install()
    release.wait_idle()
    release.wait_ready()
    assert release.secrets() >= COPIES
    job = release.helm.job(seconds=JOB_SECONDS)
    until(lambda: release.last_state(job) == "RUNNING", 60, release.told)
    return job, time.monotonic()


def wait_for_the_job_and_the_end(release: Release, job: int, began: float) -> None:
    """The job is seen to run for as long as it wants to; then everything goes, the copies of keys included."""
    seen = "RUNNING"
    while time.monotonic() - began < JOB_SECONDS - 3:
        seen = release.last_state(job) or seen
        assert seen == "RUNNING", release.told()
        time.sleep(2)
    release.wait_gone()
    assert release.secrets().isdisjoint(COPIES)


def test_the_order_of_helm_with_the_operator_restarted_in_the_middle(release):
    job, began = with_a_job(release)

    release.uninstall()
    until(lambda: "jwt-key" not in release.secrets(), 30, release.told)
    release.restart_operator()

    wait_for_the_job_and_the_end(release, job, began)


def test_installed_again_at_once_with_other_keys_it_works(release):
    """Right after the last pod is gone, with Secrets of the same names, which kubelets may still have."""
    before = {one["metadata"]["uid"] for one in release.left()}
    release.install()
    release.wait_ready()
    release.wait_idle()

    assert before.isdisjoint(one["metadata"]["uid"] for one in release.left())
    assert len(set(release.helm.slurm("srun", "--nodes=2", "hostname").split())) == 2


def test_a_slurmctld_with_the_key_of_the_release_before_is_told_and_replaced(release):
    release.stand_by()
    release.uninstall()
    release.wait_gone()

    release.install()
    until(lambda: release.ready() == ("False", "TokensRefused"), 300, release.told)
    release.send_bystanders_away()
    release.wait_ready(400)
    release.wait_idle()


def test_all_secrets_first_the_copies_of_the_operator_included(release):
    job = release.helm.job(seconds=JOB_SECONDS)
    until(lambda: release.last_state(job) == "RUNNING", 60, release.told)

    release.delete("secrets")
    until(lambda: "slurm-signing-keys" in release.secrets(), 30, release.told)
    release.delete("controllers", "restapis", "nodesets", "configmaps")
    until(lambda: release.last_state(job) != "RUNNING", JOB_SECONDS + 120, release.told)

    release.wait_gone()
    assert release.secrets().isdisjoint(COPIES)
    release.uninstall()


def test_secrets_of_the_release_first_and_slurmctld_has_to_start_again(release):
    job, _ = with_a_job(release)
    release.kubectl("delete", "secret", "slurm-key", "jwt-key", "-n", NAMESPACE)
    release.delete("nodesets", "controllers", "restapis", flags=("--cascade=foreground",))
    gone = ("--wait=false", "--ignore-not-found")  # The foreground may have taken it already.
    release.kubectl("delete", "pod", "slurm-controller-0", "-n", NAMESPACE, *gone)

    until(lambda: "jwt-key" in release.secrets(), 120, release.told)
    until(lambda: release.last_state(job) != "", 120, release.told)
    release.wait_gone(JOB_SECONDS + 240)
    until(lambda: release.secrets().isdisjoint({*COPIES, "slurm-key", "jwt-key"}), 60, release.told)
    release.uninstall()


def test_the_controller_first_and_nobody_protects_workers(release):
    job, began = with_a_job(release)
    policies = "validatingadmissionpolicybindings,validatingadmissionpolicies"
    release.kubectl("delete", policies, "-l", "app.kubernetes.io/instance=slurm-operator")
    release.delete("controllers", "configmaps", "secrets", "restapis", "nodesets")

    wait_for_the_job_and_the_end(release, job, began)
    release.uninstall()
    release.helm.install_operator()


def test_who_cannot_wait_is_told_the_cost_and_forces_it(release):
    with_a_job(release)
    release.delete("nodesets")

    def told() -> str:
        return " ".join(
            c.get("message", "") for one in release.left("nodesets") for c in one["status"]["conditions"]
        )

    until(lambda: "force-deletion=true: its pods are then deleted" in told(), 60, release.told)
    where = ("annotate", "nodesets.slinky.slurm.net", "--all", "-n", NAMESPACE)
    release.kubectl(*where, "slinky.slurm.net/force-deletion=true")
    until(lambda: release.left("nodesets") == [], 30, release.told)
    workers = release.helm.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=slurmd")["items"]
    assert [one["metadata"].get("deletionGracePeriodSeconds") for one in workers] == [3600, 3600]

    for one in workers:  # Without a slurmctld they would wait for their jobs until that is over.
        flags = ("--grace-period=0", "--force", "--ignore-not-found")
        release.kubectl("delete", "pod", one["metadata"]["name"], "-n", NAMESPACE, *flags)
    release.uninstall()
    release.wait_gone()
