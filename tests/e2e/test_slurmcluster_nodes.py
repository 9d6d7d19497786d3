"""A SlurmCluster and what its workers run on: power saving, labels and maintenance of Kubernetes nodes, updates."""

import json
import time
from collections.abc import Iterator

import pytest
from job_ledger import Ledger
from operator_rig import until
from slurmcluster_rig import (
    CLUSTER,
    FIRST,
    GROUP,
    NODESET,
    SECOND,
    Jobs,
    SharedRootSlurm,
    running,
)

from slurm_local import shared_root_cluster
from slurm_local.errors import LocalError
from slurm_operator.api.nebius import names
from slurm_operator.api.nebius import node_conditions as conditions
from slurm_operator.api.shared import names as shared_names
from slurm_operator.reconcilers.nebius.kubenode.troubles import REPLACEMENT_REASON

pytestmark = [pytest.mark.minutes, pytest.mark.timeout(900)]

CALL = conditions.MAINTENANCE_SCHEDULED
TIER = f"{names.TIER_PREFIX}/tier-"


@pytest.fixture(scope="module")
def slurm(wanted, paths, tmp_path_factory):
    """The cluster of these tests, which is left with two idle workers by each of them."""
    with running(wanted, paths, tmp_path_factory.mktemp("audit")) as made:
        yield made


@pytest.fixture
def job(slurm) -> Iterator[Ledger]:
    """A job on the worker with the highest number, which was started once and beats."""
    made = Ledger(Jobs(slurm), f"--nodelist={SECOND}")
    yield made
    made.release()


def pods(slurm: SharedRootSlurm) -> dict[str, dict]:
    return {one["metadata"]["name"]: one for one in slurm.get("pods")["items"]}


def phase(slurm: SharedRootSlurm, worker: str) -> str:
    return pods(slurm)[worker]["metadata"]["labels"].get(shared_names.UPDATE_PHASE, "")


def test_a_slurm_aware_update_tells_that_the_busy_worker_stops_until_its_job_has_ended(slurm, job):
    before = {name: one["metadata"]["uid"] for name, one in pods(slurm).items()}
    aware = {"updateStrategy": "slurmAwareRollingUpdate", "workerAnnotations": {"example.org/new": "yes"}}
    slurm.patch("nodesets", NODESET, aware)

    until(
        lambda: pods(slurm).get(FIRST, {}).get("metadata", {}).get("uid") not in (None, before[FIRST]),
        180,
        slurm.told,
    )
    until(lambda: phase(slurm, SECOND) == "stopping", 120, slurm.told)
    labels = pods(slurm)[SECOND]["metadata"]["labels"]
    assert labels[shared_names.UPDATES_FOLLOWED] == "true"
    operation = labels[shared_names.UPDATE_OPERATION]
    assert operation == pods(slurm)[FIRST]["metadata"]["labels"][shared_names.LABEL_REVISION]
    assert job.is_running()

    job.wait_ended_by_itself()
    until(
        lambda: pods(slurm).get(SECOND, {}).get("metadata", {}).get("uid") not in (None, before[SECOND]),
        180,
        slurm.told,
    )
    assert phase(slurm, SECOND) == ""
    slurm.wait_idle(FIRST, SECOND)


class Node:
    """A Kubernetes node, and what is said of it."""

    def __init__(self, slurm: SharedRootSlurm, name: str) -> None:
        self.slurm, self.name = slurm, name

    def get(self) -> dict:
        return self.slurm.get(f"node/{self.name}")

    def says(self, type_: str, status: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = {"type": type_, "status": status, "reason": "Said", "lastTransitionTime": at}
        patch = json.dumps({"status": {"conditions": [told]}})
        self.slurm.kubectl(
            "patch", "node", self.name, "--subresource=status", "--type=strategic", "-p", patch
        )

    def told(self) -> dict[str, str]:
        """Conditions that are True, with their reasons."""
        found = self.get()["status"]["conditions"]
        return {
            one["type"]: one["reason"] for one in found if one["status"] == "True" and one["type"] != "Ready"
        }

    def workers(self) -> set[str]:
        there = pods(self.slurm)
        return {name for name in self.slurm.pods() if there[name]["spec"].get("nodeName") == self.name}


def reason(slurm: SharedRootSlurm, worker: str) -> str:
    shown = slurm.run("scontrol", "show", "node", worker)
    return next((line.strip() for line in shown.splitlines() if "Reason=" in line), "")


def test_maintenance_waits_for_the_job_and_when_it_is_cancelled_everything_is_as_before(slurm, job):
    node = Node(slurm, pods(slurm)[SECOND]["spec"]["nodeName"])
    there = node.workers()
    # Both workers may be on this Kubernetes node, which is more than the brake lets pass.
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    slurm.kubectl("annotate", "--overwrite", "node", node.name, f"{names.BRAKE_RELEASE}={now}")
    node.says(CALL, "True")

    until(
        lambda: all(REPLACEMENT_REASON in reason(slurm, one) for one in there), 120, lambda: str(node.told())
    )
    assert slurm.node_states()[SECOND] == "draining"
    assert conditions.MAINTENANCE not in node.told()
    assert job.is_running()
    job.wait_ended_by_itself()
    until(lambda: node.told().get(conditions.DRAIN) == conditions.NEED_DRAIN, 120, lambda: str(node.told()))
    assert conditions.MAINTENANCE in node.told()

    node.says(CALL, "False")
    slurm.wait_idle(FIRST, SECOND)
    until(lambda: node.told() == {}, 60, lambda: str(node.told()))
    assert "unschedulable" not in node.get()["spec"]
    assert node.workers() == there


def places(slurm: SharedRootSlurm) -> dict[str, str]:
    """Where each Slurm node is, as slurmctld has it."""
    lines = slurm.run("scontrol", "--oneliner", "show", "nodes").splitlines()
    words = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    return {one["NodeName"]: one.get("Topology", "") for one in words if "NodeName" in one}


def test_labels_that_half_the_nodes_lose_leave_the_topology_as_it_was(slurm):
    nodes = [one["metadata"]["name"] for one in slurm.get("nodes")["items"]]
    for number, node in enumerate(nodes):
        slurm.kubectl("label", "node", node, f"{TIER}1=leaf{number}", f"{TIER}2=spine")
    wanted = shared_root_cluster.nodeset(len(nodes), name="placed")
    apart = {
        "labelSelector": {"matchLabels": {names.NODESET: "placed"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    wanted["spec"] |= {
        "gpu": {"enabled": True},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    }
    slurm.cluster.apply([wanted])
    workers = {f"placed-{number}" for number in range(len(nodes))}

    def expected() -> dict[str, str]:
        there = pods(slurm)
        on = {name: there.get(name, {}).get("spec", {}).get("nodeName", "") for name in workers}
        return {name: f"default:root:spine:leaf{nodes.index(node)}" for name, node in on.items() if node}

    def seen() -> dict[str, str]:
        try:
            return {name: place for name, place in places(slurm).items() if name in workers}
        except LocalError:  # slurmctld starts again: it reads GresTypes at a start only.
            return {}

    until(
        lambda: len(seen()) == len(nodes) and seen() == expected(),
        400,
        lambda: f"{seen()} {expected()} {slurm.told()}",
    )
    job = slurm.submit("placed-0", "sleep 900")
    until(lambda: slurm.job_state(job) == "RUNNING", 120, slurm.told)
    before, conf = places(slurm), slurm.run("cat", "/etc/slurm/topology.conf")

    lost = pods(slurm)["placed-0"]["spec"]["nodeName"]
    slurm.kubectl("label", "node", lost, f"{TIER}1-", f"{TIER}2-")
    said = lambda: slurm.conditions("slurmclusters", CLUSTER).get("TopologyKnown", {})  # noqa: E731
    until(lambda: said().get("status") == "False", 120, slurm.told)
    assert f"without labels {TIER}1 and up: {lost}." in said()["message"]
    assert "placed-0" in said()["message"]
    time.sleep(70)  # A new file would be written once a minute.
    assert slurm.run("cat", "/etc/slurm/topology.conf") == conf
    assert places(slurm) == before
    assert slurm.job_state(job) == "RUNNING"

    slurm.kubectl("label", "node", lost, f"{TIER}1=leaf{nodes.index(lost)}", f"{TIER}2=spine")
    until(lambda: said().get("status") == "True", 60, slurm.told)
    slurm.run("scancel", str(job))
    slurm.kubectl("delete", f"nodesets.{GROUP}", "placed", "--timeout=180s")
    for node in nodes:
        slurm.kubectl("label", "node", node, f"{TIER}1-", f"{TIER}2-")
    slurm.wait_idle(FIRST, SECOND)


def shown(slurm: SharedRootSlurm, what: str) -> str:
    """Nothing while slurmctld starts again."""
    try:
        return slurm.beside_slurmctld("scontrol", "show", what)
    except LocalError:
        return ""


def test_a_job_starts_only_its_own_ephemeral_worker_and_idle_time_removes_it(slurm):
    """The pods of other workers stay, and so does the record of the one that is switched off."""
    wanted = shared_root_cluster.nodeset(5, name="burst")
    wanted["spec"] |= {"ephemeralNodes": True, "initialNumberEphemeralNodes": 0}
    slurm.patch("slurmclusters", CLUSTER, {"slurmConfig": {"suspendTime": 20, "resumeTimeout": 300}})
    # A record keeps the SuspendTime that slurmctld had when it was made.
    until(lambda: "SuspendTime             = 20 sec" in shown(slurm, "config"), 180, slurm.told)
    slurm.cluster.apply([wanted])
    every = {f"burst-{number}": "idle~" for number in range(5)}
    off = {FIRST: "idle", SECOND: "idle", **every}
    until(lambda: slurm.node_states() == off, 300, lambda: f"{slurm.node_states()} {slurm.told()}")
    # slurmctld starts again once, with programs to call, and power-manager beside it.
    until(lambda: "power_resume.sh" in shown(slurm, "config"), 300, slurm.told)

    job = slurm.submit("burst-3", "sleep 5")
    until(lambda: "burst-3" in slurm.pods(), 60, slurm.power)
    assert slurm.pods() == {FIRST, SECOND, "burst-3"}
    until(lambda: slurm.job_state(job) == "COMPLETED", 180, slurm.power)

    until(lambda: slurm.pods() == {FIRST, SECOND}, 180, slurm.power)
    until(lambda: slurm.node_states() == off, 180, lambda: str(slurm.node_states()))
    assert slurm.get(f"nodesetpowerstates.{GROUP}/burst")["spec"]["activeNodes"] == []


def test_fewer_replicas_than_active_workers_wait_for_the_job_of_the_one_that_leaves(slurm):
    job = slurm.submit("burst-3", "sleep 900")
    until(lambda: slurm.job_state(job) == "RUNNING", 180, slurm.power)
    slurm.patch("nodesets", "burst", {"replicas": 2})

    kept = {FIRST, SECOND, "burst-0", "burst-1"}
    until(lambda: set(slurm.node_states()) == {*kept, "burst-3"}, 120, slurm.power)
    until(lambda: slurm.node_states()["burst-3"] == "draining", 60, slurm.power)
    assert slurm.job_state(job) == "RUNNING"
    assert "burst-3" in slurm.pods()

    slurm.run("scancel", str(job))
    until(lambda: slurm.pods() == {FIRST, SECOND}, 120, slurm.power)
    until(lambda: set(slurm.node_states()) == kept, 60, slurm.power)
    assert slurm.get(f"nodesetpowerstates.{GROUP}/burst")["spec"]["activeNodes"] == []


def test_a_worker_that_cannot_start_is_explained_to_the_job_that_waits_for_it(slurm):
    image = {"repository": "docker.io/local/none", "tag": "1", "pullPolicy": "Never"}
    slurm.patch("nodesets", "burst", {"slurmd": {"image": image}})
    job = slurm.submit("burst-1", "sleep 5")

    def comment() -> str:
        shown = slurm.run("scontrol", "show", "job", str(job))
        return next((line for line in shown.splitlines() if "AdminComment=" in line), "")

    until(lambda: "burst-1 does not start" in comment(), 180, lambda: f"{comment()} {slurm.power()}")
    ready = slurm.conditions("nodesetpowerstates", "burst")["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "WorkersNotStarting")
    slurm.run("scancel", str(job))
    slurm.kubectl("delete", f"nodesets.{GROUP}", "burst", "--timeout=300s")
    until(lambda: slurm.pods() == {FIRST, SECOND}, 120, slurm.power)
    slurm.wait_idle(FIRST, SECOND)
