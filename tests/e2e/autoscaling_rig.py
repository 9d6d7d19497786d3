"""The guide's Cluster without replicas, and what its tests ask of whoever scales it."""

import json
import uuid
from collections.abc import Iterator

import yaml
from e2e_pods import make_namespace
from job_ledger import Ledger
from operator_rig import LEDGER_MOUNT, Slurm, install, until

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from testing.docs import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "autoscaling.md"
NODESET = "nodesets.slinky.slurm.net/demo-cpu"
MOST = 3  # Workers; the guide's twenty would not fit on this machine.


def manifests(namespace: str) -> dict[tuple[str, str], dict]:
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
        self.guide = manifests(namespace)
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


def installed(cluster: Cluster, paths: Paths) -> Scaled:
    """The operator, and the guide's Cluster with an idle worker."""
    cluster.load_image(image.operator_archive(paths, Quiet()))
    install(cluster, image.OPERATOR_IMAGE)
    made = Scaled(cluster)
    made.wait_idle(1, 300)
    return made


def with_one_worker(scaled: Scaled) -> Iterator[Scaled]:
    """One idle worker and no autoscaler, before a test and after it; and no job of the test was lost."""
    scaled.kubectl("scale", NODESET, "--replicas=1")
    until(lambda: len(scaled.pods()) == 1, 120, lambda: f"one worker: {scaled.states()}")
    scaled.wait_idle(1)
    yield scaled
    lost = [ledger.job for ledger in Ledger.of[scaled.namespace] if ledger.is_lost()]
    for ledger in Ledger.of.pop(scaled.namespace, ()):
        ledger.release()
    scaled.run("scancel", "--partition=cpu")
    scaled.kubectl("delete", "hpa", "--all")
    assert lost == []


def prometheus_configuration(slurm: Scaled) -> str:
    text = slurm.guide["ConfigMap", "prometheus"]["data"]["prometheus.yml"]
    return text.replace("scrape_interval: 15s", "scrape_interval: 2s")
