"""The rebooter beside the operator: a Kubernetes node with a running job is emptied, "rebooted", and used again.

Nothing is rebooted here: a program of the test stands in for the reboot command, and says that this is another boot.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from job_ledger import Ledger
from operator_rig import until
from test_slurm_workers import cluster_of, operator
from worker_changes import wait_draining

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

HOSTNAME = "kubernetes.io/hostname"
NOTES = "slurm.nebius.ai/rebooter"


@pytest.fixture
def machines(operator) -> list[str]:
    return operator.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()


@pytest.fixture
def slurm(operator, machines):
    """slurmctld on one machine, the workers on the other."""

    def workers(made):
        body = made.nodeset()
        body["spec"]["template"]["spec"]["nodeSelector"] = {HOSTNAME: machines[1]}
        return body

    with cluster_of(operator, workers=workers) as made:
        yield made


def stand_in(place: Path) -> Path:
    """The /proc of a machine in an earlier boot, and a program that ends it."""
    boot = place / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("the-boot-before\n")
    (place / "stat").write_text("btime 1700000000\n")
    program = place / "reboot"
    program.write_text(f"#!/bin/sh\necho ran >> {place}/ran\ncat /proc/sys/kernel/random/boot_id > {boot}\n")
    program.chmod(0o755)
    return program


class Node:
    def __init__(self, cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    def get(self) -> dict:
        return json.loads(self.cluster.kubectl("get", "node", self.name, "-o", "json"))

    def ask(self, type_: str, status: str, reason: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = {"type": type_, "status": status, "reason": reason, "lastTransitionTime": at}
        patch = json.dumps({"status": {"conditions": [told]}})
        self.cluster.kubectl(
            "patch", "node", self.name, "--subresource=status", "--type=strategic", "-p", patch
        )

    def told(self, type_: str) -> str:
        found = [one for one in self.get()["status"]["conditions"] if one["type"] == type_]
        return f"{found[0]['status']}/{found[0]['reason']}: {found[0].get('message', '')}" if found else ""

    def is_untouched(self) -> bool:
        found = self.get()
        keys = [taint["key"] for taint in found["spec"].get("taints") or ()]
        notes = found["metadata"].get("annotations", {})
        return not found["spec"].get("unschedulable") and keys == [] and NOTES not in notes


def test_a_reboot_waits_for_the_job_of_the_node_and_the_node_is_used_again(slurm, machines, tmp_path):
    controller = slurm.kubectl("get", "pod", "slurm-controller-0", "-o", "jsonpath={.spec.nodeName}")
    node, job = Node(slurm.cluster, machines[1]), Ledger(slurm, "--exclusive")
    if controller == node.name:  # Storage may bind it to either machine.
        slurm.cluster.kubectl(
            "annotate", "node", node.name, f"{NOTES}-may-move-slurmctld=true", "--overwrite"
        )
    program = stand_in(tmp_path)
    command = [
        sys.executable, "-m", "slurm_operator.cli", "rebooter", "--kubeconfig", str(slurm.cluster.kubeconfig),
        "--node-name", node.name, "--lease-namespace", slurm.namespace, "--host-proc", str(tmp_path),
        "--reboot-command", str(program), "--health-probe-bind-address=0", "--metrics-bind-address=0",
    ]  # fmt: skip
    log = tmp_path / "log"
    with log.open("ab") as out:
        rebooter = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        node.ask("SlurmNodeReboot", "True", "NodeNeedReboot")
        wait_draining(slurm, job)
        until(lambda: "is a worker that may have jobs" in node.told("SlurmNodeDrain"), 60, log.read_text)
        job.outlives(10)
        assert job.node in slurm.pods()
        assert not (tmp_path / "ran").exists()

        before = slurm.pods()[job.node]
        job.wait_ended_by_itself()
        until(lambda: (tmp_path / "ran").exists(), 180, lambda: node.told("SlurmNodeDrain"))
        assert before not in slurm.pods().values()
        until(lambda: node.told("SlurmNodeReboot").startswith("True/NodeRebooted"), 60, log.read_text)
        node.ask("SlurmNodeReboot", "False", "NodeRebooted")
        until(node.is_untouched, 60, lambda: json.dumps(node.get()["spec"]))
        slurm.wait_idle(2, 240)
        assert (tmp_path / "ran").read_text() == "ran\n"
        assert rebooter.poll() is None
    finally:
        rebooter.kill()
        rebooter.wait()
        slurm.cluster.kubectl("uncordon", node.name)
        slurm.cluster.kubectl("annotate", "node", node.name, f"{NOTES}-may-move-slurmctld-")
