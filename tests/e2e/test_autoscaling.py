"""The guide's autoscalers beside the operator, the real ones: they scale out and in, and no job notices."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from e2e_pods import make_namespace
from job_ledger import Ledger
from operator_rig import LEDGER_MOUNT, Slurm, install, until

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from testing import neighbours
from testing.docs import ROOT, blocks

pytestmark = [pytest.mark.timeout(1200), pytest.mark.minutes]

GUIDE = ROOT / "docs" / "guides" / "autoscaling.md"
NODESET = "nodesets.slinky.slurm.net/demo-cpu"
MOST = 3  # Workers; the guide's twenty would not fit on this machine.

# Uses what it gets of a CPU until somebody tells it to end.
BURN = 'trap "exit 0" TERM; while :; do :; done'


def shown(namespace: str) -> dict[tuple[str, str], dict]:
    """The guide's manifests, for another namespace, by kind and name."""
    made = {}
    for block in blocks("yaml", (GUIDE,)):
        text = block.text.replace("namespace: slurm\n", f"namespace: {namespace}\n")
        one = yaml.safe_load(text.replace("demo-controller.slurm:", f"demo-controller.{namespace}:"))
        made[one["kind"], one["metadata"]["name"]] = one
    return made


class Scaled(Slurm):
    """The guide's Cluster, with a directory for ledgers in its workers, and with no need of privileges."""

    def __init__(self, cluster: Cluster) -> None:
        namespace = f"scaled-{uuid.uuid4().hex[:6]}"
        make_namespace(cluster, namespace)
        super().__init__(cluster, namespace)
        self.guide = shown(namespace)
        self.apply(self.manifest())

    def manifest(self, **node_set: object) -> dict:
        made = json.loads(json.dumps(self.guide["Cluster", "demo"]))
        made["spec"]["isolation"] = "process"
        (cpu,) = made["spec"]["nodeSets"]
        cpu["slurmd"]["volumeMounts"] = [LEDGER_MOUNT]
        cpu |= {
            "oversubscribeNode": True,
            "template": {"spec": {"volumes": [self.ledger_volume]}},
            **node_set,
        }
        return made

    def run(self, *command: str, timeout_s: float = 60) -> str:
        where = ("exec", "-n", self.namespace, "demo-controller-0", "-c", "slurmctld", "--", "timeout", "30")
        return self.cluster.kubectl(*where, *command, timeout_s=timeout_s)

    def get(self, what: str) -> dict:
        return json.loads(self.kubectl("get", what, "-o", "json"))

    @property
    def replicas(self) -> int:
        return self.get(NODESET)["spec"]["replicas"]

    def scales_to(self, replicas: int, workers: int | None = None, seconds: float = 240) -> None:
        """Until the autoscaler wants so many, and so many pods are there."""
        expected = replicas if workers is None else workers
        until(
            lambda: self.replicas == replicas and len(self.pods()) == expected,
            seconds,
            lambda: f"{replicas} replicas, {expected} workers: {self.replicas} {self.states()} {self.told()}",
        )

    def told(self) -> str:
        return self.kubectl("describe", "hpa")[-4000:]

    def condition(self, what: str, type_: str) -> tuple[str, str]:
        for one in self.get(what).get("status", {}).get("conditions", ()):
            if one["type"] == type_:
                return one["status"], one.get("reason", "")
        return "", ""

    def reverted(self) -> list[str]:
        """What the Cluster says about those who scaled its node set."""
        events = self.get("events")["items"]
        return [one["message"] for one in events if "reverted the scaling" in one["message"]]


@pytest.fixture(scope="module")
def scaled(fragile_cluster: Cluster, paths: Paths) -> Scaled:
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    install(fragile_cluster, image.OPERATOR_IMAGE)
    neighbours.install_metrics_server(fragile_cluster, paths)
    made = Scaled(fragile_cluster)
    made.wait_idle(1, 300)
    return made


@pytest.fixture
def slurm(scaled: Scaled) -> Iterator[Scaled]:
    """One idle worker, and no autoscaler."""
    scaled.kubectl("scale", NODESET, "--replicas=1")
    until(lambda: len(scaled.pods()) == 1, 120, lambda: f"one worker: {scaled.states()}")
    scaled.wait_idle(1)
    yield scaled
    for ledger in Ledger.of[scaled.namespace]:
        ledger.release()
    scaled.run("scancel", "--user=root")
    scaled.kubectl("delete", "hpa", "--all")
    assert not [ledger.job for ledger in Ledger.of.pop(scaled.namespace, ()) if ledger.is_lost()]


def autoscaler(slurm: Scaled, name: str) -> dict:
    """The guide's, which waits less long before it scales in, and does not fill this machine."""
    made = slurm.guide["HorizontalPodAutoscaler", name]
    made["spec"]["maxReplicas"] = MOST
    made["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    return made


def prometheus_configuration(slurm: Scaled) -> str:
    text = slurm.guide["ConfigMap", "prometheus"]["data"]["prometheus.yml"]
    return text.replace("scrape_interval: 15s", "scrape_interval: 2s")


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
    slurm: Scaled, paths: Path
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
