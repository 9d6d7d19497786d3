"""From apply to the first job: a SlurmCluster beside a Cluster of the first API, in one run on one machine."""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from subprocess import TimeoutExpired
from typing import NamedTuple

import pytest
from e2e_pods import make_namespace
from operator_requests import asked_by_operator, by_kind, made_by_operator
from operator_rig import node_states, until, volume
from slurmcluster_rig import CLUSTER, GROUP, NODESET, Jobs, SharedRootSlurm, running

from chaos.operators import Operator
from chaos.processes import OPERATOR, Processes
from slurm_local import shared_root_cluster, slurm_cluster
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_operator.api.nebius import names

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

ROUNDS = 3
PATIENCE_SECONDS = 240

MOST_CPU = 1.3
# Of requests for each object that is made. A SlurmCluster has more of them, by names that this API gives.
MOST_REQUESTS = 1.3
# Pods of a Cluster start side by side. Workers and login pods of a SlurmCluster start when Slurm's files are in
# the root, which slurmctld has started with before.
MOST_TIME = 3.0


class Cost(NamedTuple):
    """What the operator and whoever waits spent until a job had run on two workers."""

    seconds: float
    cpu_seconds: float
    requests: float
    objects: float

    @property
    def requests_for_each(self) -> float:
        return self.requests / self.objects


class Shop:
    """Makes Slurm clusters, each in a fresh namespace, and takes what they cost."""

    def __init__(self, cluster: Cluster, root: Path, log: Path) -> None:
        self.cluster, self.root, self.log = cluster, root, log
        self._operator = Processes(cluster.name, Operator().process)
        self._ports = iter(range(30100, 30200))

    def cluster_of_the_first_api(self, namespace: str) -> list[dict]:
        made = slurm_cluster.manifest(2, self.cluster.state.nodes)
        made["metadata"]["namespace"] = namespace
        return [made]

    def slurmcluster(self, namespace: str) -> list[dict]:
        """On a root that was populated before, and that no cluster has had Slurm's files written into yet."""
        for file in (self.root / "etc/slurm").iterdir():
            file.unlink()
        port, root = (
            next(self._ports),
            volume(f"root-{namespace}", self.root, namespace, size="4Gi", mode="ReadWriteMany"),
        )
        made = shared_root_cluster.manifests(2, namespace, login_port=port, maintenance="skipPopulateJail")
        source = {"persistentVolumeClaim": {"claimName": f"root-{namespace}"}}
        made[1]["spec"]["volumeSources"] = [{"name": names.JAIL, **source}]
        made[2]["spec"]["slurmd"]["volumes"]["jail"] = source
        return [*root, *made[1:]]

    def cost(self, objects: Callable[[str], Sequence[dict]]) -> Cost:
        namespace = f"shop-{uuid.uuid4().hex[:6]}"
        make_namespace(self.cluster, namespace)
        cpu, began = self._cpu_seconds(), time.monotonic()
        self.cluster.apply(objects(namespace))
        while not self._has_run(namespace):
            assert time.monotonic() < began + PATIENCE_SECONDS, self._told(namespace)
            time.sleep(0.2)
        seconds, used = time.monotonic() - began, self._cpu_seconds() - cpu
        asked, made = asked_by_operator([self.log], namespace), made_by_operator([self.log], namespace)
        print(f"\n{objects.__name__}: {seconds:.1f} s, {used:.2f} CPU s, {len(made)} objects")
        print(f"{len(asked)} requests: {by_kind(asked)}")
        self._remove(namespace)
        return Cost(seconds, used, len(asked), len(made))

    def _has_run(self, namespace: str) -> bool:
        """Whether a job on two workers has run. It is submitted when they have registered.

        Workers of a SlurmCluster have records before: a job that gets them then waits for slurmctld's timer.
        """
        where = ("-n", namespace, f"{CLUSTER}-controller-0", "-c", "slurmctld", "--", "timeout", "30")
        job = ("srun", "-N2", "--immediate=2", "--chdir=/", "hostname")

        def run(*command: str) -> str:
            return self.cluster.kubectl("exec", *where, *command)

        try:
            is_idle = [*node_states(run).values()].count("idle") == 2
            return is_idle and len(set(run(*job).split())) == 2
        except (LocalError, TimeoutExpired):
            return False

    def _cpu_seconds(self) -> float:
        """Of the operator's processes since they started."""
        stats = (Path(f"/proc/{pid}/stat").read_text() for pid in self._operator.of(OPERATOR))
        ticks = (line.rpartition(")")[2].split()[11:13] for line in stats)
        return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK")

    def _told(self, namespace: str) -> str:
        return self.cluster.kubectl("get", "pods,events", "-n", namespace, "-o", "wide")

    def _remove(self, namespace: str) -> None:
        """Until nothing of it ends beside the next one."""
        for kind in (f"nodesets.{GROUP}", f"slurmclusters.{GROUP}", "clusters.slinky.slurm.net"):
            self.cluster.kubectl("delete", kind, "--all", "-n", namespace, "--timeout=120s")
        self.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        until(
            lambda: namespace not in self.cluster.kubectl("get", "namespaces", "-o", "name"), PATIENCE_SECONDS
        )


@pytest.fixture(scope="module")
def shop(wanted, paths, tmp_path_factory):
    """One whose first SlurmCluster has populated the root, and is gone."""
    place = tmp_path_factory.mktemp("audit")
    with running(wanted, paths, place) as slurm:
        root = Jobs(slurm).ledgers.parent
        remove(slurm)
        yield Shop(slurm.cluster, root, place / "audit.log")


def remove(slurm: SharedRootSlurm) -> None:
    slurm.kubectl("delete", f"nodesets.{GROUP}", NODESET, "--timeout=120s")
    slurm.kubectl("delete", f"slurmclusters.{GROUP}", CLUSTER, "--timeout=120s")


def test_a_slurmcluster_costs_little_more_than_a_cluster_until_its_first_job(shop):
    """Taken in turns, so that both have the same share of the machine. The populate step is not counted."""
    pairs = [(shop.cost(shop.cluster_of_the_first_api), shop.cost(shop.slurmcluster)) for _ in range(ROUNDS)]

    first, second = (Cost(*map(median, zip(*costs, strict=True))) for costs in zip(*pairs, strict=True))
    ratio = Cost(*(theirs / ours for ours, theirs in zip(first, second, strict=True)))
    print(f"ratios of the medians: {ratio}, {ratio.requests_for_each:.2f} requests for each object")
    assert ratio.requests_for_each <= MOST_REQUESTS
    assert ratio.cpu_seconds <= MOST_CPU
    assert ratio.seconds <= MOST_TIME
