"""The guide's autoscalers beside the operator, the real ones: they scale out and in, and no job notices."""

from collections.abc import Iterator

import pytest
from autoscaling_rig import (
    MOST,
    NODESET,
    Scaled,
    installed,
    manifests,
    prometheus_configuration,
    with_one_worker,
)
from job_ledger import Ledger
from operator_rig import until
from slurmcluster_rig import FIRST, GROUP, NAMESPACE, SECOND, Jobs, SharedRootSlurm, running
from slurmcluster_rig import NODESET as SECOND_API_NODESET

from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_local.start import Wanted
from testing import neighbours

pytestmark = [pytest.mark.timeout(1200), pytest.mark.minutes]

# Uses what it gets of a CPU until somebody tells it to end.
BURN = 'trap "exit 0" TERM; while :; do :; done'


@pytest.fixture(scope="module")
def scaled(fragile_cluster: Cluster, paths: Paths) -> Scaled:
    neighbours.install_metrics_server(fragile_cluster, paths)
    return installed(fragile_cluster, paths)


@pytest.fixture
def slurm(scaled: Scaled) -> Iterator[Scaled]:
    yield from with_one_worker(scaled)


def autoscaler(slurm: Scaled, name: str) -> dict:
    """The guide's, which waits less long before it scales in, and does not fill this machine."""
    made = slurm.guide["HorizontalPodAutoscaler", name]
    made["spec"]["maxReplicas"] = MOST
    made["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    return made


def test_by_load_it_scales_out_and_in_and_workers_with_jobs_stay_until_these_have_ended(slurm: Scaled):
    slurm.apply(autoscaler(slurm, "by-load"))
    until(
        lambda: slurm.condition("hpa/by-load", "ScalingActive")[0] == "True",
        240,
        lambda: f"the autoscaler to know a load: {slurm.told()}",
    )
    busy = slurm.submit(BURN, "--exclusive")

    slurm.scales_to(MOST)
    slurm.wait_idle(MOST - 1)
    first, second = Ledger(slurm, "--exclusive"), Ledger(slurm, "--exclusive")
    workers = slurm.pods()
    slurm.run("scancel", "--batch", "--signal=TERM", str(busy))

    # The worker without a job is removed at once. One of the others is to leave too, and waits.
    slurm.scales_to(1, workers=2)
    assert slurm.pods().items() <= workers.items()
    until(lambda: len(slurm.drained_by_us()) == 1, 60, lambda: f"one drain: {slurm.states()}")
    first.outlives(20)
    second.outlives(5)
    assert len(slurm.pods()) == 2

    (leaving,) = slurm.drained_by_us()
    ends, stays = (first, second) if first.node == leaving else (second, first)
    assert ends.node == leaving
    ends.wait_ended_by_itself()
    slurm.scales_to(1)
    stays.outlives(5)
    stays.wait_ended_by_itself()
    assert slurm.job_state(busy) in ("COMPLETED", "FORGOTTEN")
    assert slurm.reverted() == [], "the Cluster leaves replicas alone"


def test_by_the_queue_each_job_gets_a_worker_and_a_large_one_gets_all_of_its_workers(
    slurm: Scaled, paths: Paths
):
    neighbours.install_prometheus(slurm.cluster, paths, prometheus_configuration(slurm))
    rules = slurm.guide["ConfigMap", "adapter-config"]["data"]["config.yaml"]
    neighbours.install_prometheus_adapter(slurm.cluster, paths, rules)
    slurm.apply(autoscaler(slurm, "by-queue"))

    first = Ledger(slurm, "--exclusive")
    second = Ledger(slurm, "--exclusive")  # Runs, so a worker was made for it.
    slurm.scales_to(2)
    workers = slurm.pods()

    # Without an answer nobody is removed, nor is anybody made.
    slurm.cluster.kubectl("scale", "deployment/prometheus", "--replicas=0", "-n", neighbours.MONITORING)
    until(
        lambda: slurm.condition("hpa/by-queue", "ScalingActive") == ("False", "FailedGetExternalMetric"),
        120,
        lambda: f"the autoscaler to miss its metric: {slurm.told()}",
    )
    first.release()
    first.wait_ended_by_itself()
    second.outlives(20)
    assert slurm.pods() == workers
    slurm.cluster.kubectl("scale", "deployment/prometheus", "--replicas=1", "-n", neighbours.MONITORING)

    slurm.scales_to(1)
    assert slurm.pods().items() <= workers.items()
    second.outlives(5)
    second.wait_ended_by_itself()

    large = Ledger(slurm, "--exclusive", f"--nodes={MOST}")
    assert slurm.replicas == MOST
    large.wait_ended_by_itself()
    slurm.scales_to(1)
    assert slurm.reverted() == []


def test_a_cluster_that_sets_replicas_itself_says_who_is_in_its_way(slurm: Scaled):
    slurm.apply(slurm.manifest(replicas=1))
    try:
        slurm.kubectl("autoscale", NODESET, "--min=2", f"--max={MOST}", "--cpu=50%")
        until(slurm.reverted, 120, lambda: f"an event: {slurm.told()}")
        (message, *_) = slurm.reverted()
        assert "spec.nodeSets of Cluster demo, entry cpu" in message
        assert "autoscaler" in message
    finally:
        slurm.kubectl("delete", "hpa", "--all")
        slurm.apply(slurm.manifest())


def test_a_node_set_of_the_second_api_is_scaled_by_load_while_a_job_runs_on_the_worker_that_leaves(
    wanted: Wanted, paths: Paths, tmp_path_factory: pytest.TempPathFactory
):
    with running(wanted, paths, tmp_path_factory.mktemp("audit")) as slurm:
        neighbours.install_metrics_server(slurm.cluster, paths)
        job = Ledger(Jobs(slurm), f"--nodelist={SECOND}")
        before = _uid(slurm, SECOND)
        made = manifests(NAMESPACE)["HorizontalPodAutoscaler", "by-load"]
        made["spec"] |= {"maxReplicas": 2}
        made["spec"]["scaleTargetRef"] |= {"apiVersion": f"{GROUP}/v1alpha1", "name": SECOND_API_NODESET}
        made["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
        slurm.cluster.apply([made])

        until(lambda: slurm.node_states().get(SECOND) == "draining", 300, lambda: _told(slurm))
        job.outlives(20)
        busy = slurm.submit(FIRST, BURN)
        until(lambda: slurm.node_states().get(SECOND) in ("allocated", "mixed"), 180, lambda: _told(slurm))
        slurm.run("scancel", "--batch", "--signal=TERM", str(busy))
        until(lambda: slurm.node_states().get(SECOND) == "draining", 180, lambda: _told(slurm))
        assert _uid(slurm, SECOND) == before

        job.wait_ended_by_itself()
        until(lambda: slurm.pods() == {FIRST}, 180, lambda: _told(slurm))


def _uid(slurm: SharedRootSlurm, pod: str) -> str:
    return slurm.get(f"pod/{pod}")["metadata"]["uid"]


def _told(slurm: SharedRootSlurm) -> str:
    return f"{slurm.node_states()} {slurm.kubectl('describe', 'hpa')[-3000:]}"
