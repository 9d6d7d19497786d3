"""The guide's KEDA beside the operator: from no worker to many and back, and no job notices."""

import time
from collections.abc import Iterator

import pytest
from autoscaling_rig import MOST, Scaled, installed, prometheus_configuration, with_one_worker
from job_ledger import Ledger
from operator_rig import until

from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from testing import neighbours

pytestmark = [pytest.mark.timeout(1200), pytest.mark.minutes]

SCALED_OBJECT = "scaledobject/cpu"


@pytest.fixture(scope="module")
def scaled(fragile_cluster: Cluster, paths: Paths) -> Scaled:
    neighbours.install_keda(fragile_cluster, paths)
    made = installed(fragile_cluster, paths)
    neighbours.install_prometheus(fragile_cluster, paths, prometheus_configuration(made))
    return made


@pytest.fixture
def slurm(scaled: Scaled) -> Iterator[Scaled]:
    """The guide's ScaledObject, which waits less long before it scales in; it has removed the only worker."""
    for one in with_one_worker(scaled):
        made = one.guide["ScaledObject", "cpu"]
        made["spec"] |= {"maxReplicaCount": MOST, "pollingInterval": 5, "cooldownPeriod": 10}
        behavior = made["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        behavior["scaleDown"]["stabilizationWindowSeconds"] = 0
        one.apply(made)
        one.scales_to(0)
        yield one
        one.kubectl("delete", "scaledobject", "--all", "--timeout=60s")


def test_from_no_worker_to_one_for_each_job_and_back_to_none(slurm: Scaled):
    began = time.monotonic()
    first = Ledger(slurm, "--exclusive")
    print(f"a job started {time.monotonic() - began:.0f} s after it was submitted, without a worker before")
    second, third = Ledger(slurm, "--exclusive"), Ledger(slurm, "--exclusive")
    slurm.scales_to(MOST)
    workers = slurm.pods()

    for one in (first, second):
        one.wait_ended_by_itself()
    slurm.scales_to(1)
    assert slurm.pods().items() <= workers.items()
    third.outlives(20)
    third.wait_ended_by_itself()
    slurm.scales_to(0)
    assert slurm.reverted() == []


def test_a_job_for_all_workers_gets_them(slurm: Scaled):
    began = time.monotonic()
    large = Ledger(slurm, "--exclusive", f"--nodes={MOST}")
    print(f"a job for {MOST} workers started after {time.monotonic() - began:.0f} s")
    slurm.scales_to(MOST)
    large.wait_ended_by_itself()
    slurm.scales_to(0)


def test_while_prometheus_is_away_workers_stay_as_they_are(slurm: Scaled):
    job = Ledger(slurm, "--exclusive")
    slurm.scales_to(1)
    workers = slurm.pods()

    slurm.cluster.kubectl("scale", "deployment/prometheus", "--replicas=0", "-n", neighbours.MONITORING)
    until(
        lambda: (
            slurm.condition(SCALED_OBJECT, "Ready")[0] != "True"
            or slurm.condition("hpa/keda-hpa-cpu", "ScalingActive")[0] == "False"
        ),
        180,
        lambda: f"somebody to miss Prometheus: {slurm.told()}",
    )
    job.outlives(30)
    assert slurm.pods() == workers
    slurm.cluster.kubectl("scale", "deployment/prometheus", "--replicas=1", "-n", neighbours.MONITORING)

    job.wait_ended_by_itself()
    slurm.scales_to(0)
