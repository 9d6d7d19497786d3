"""Operators and API servers with one guard taken out: a case that such a one survives proves nothing.

The operator is that of the cluster with another first program, which lets verdicts of the gate pass. The program is in
a ConfigMap of the test; the product has no such switch.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from slurm_local.cluster import Cluster
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from slurm_operator.manifests.builders.protection import NAME as POLICY

# Behind the gate there is a fence for workers that leave for good: slurmctld does not give up the record of a busy
# node. It goes too, so that the gate stands alone. And pods end soon, so that nobody waits long for the loss.
_PROGRAM = """\
import os

from slurm_operator.safety import gate as whole

ask, ignored = whole.gate, set(os.environ["GATE_WITHOUT"].split(","))


def gate(worker, now):
    verdict = ask(worker, now)
    if isinstance(verdict, whole.Shut) and verdict.reason in ignored:
        return whole.Drained(pod_uid=worker.pod.metadata.uid, slurm_node=worker.slurm_node, asked_at=now)
    return verdict


whole.gate = gate

from slurm_operator.reconcilers.nodeset.worker import removal

removal.FOR_GOOD.clear()
removal.GRACE_SECONDS = 5

from slurm_operator.cli.root import main

main()
"""

_WHERE = ("deployment/slurm-operator", "-n", OPERATOR_NAMESPACE)


@contextmanager
def gate_without(cluster: Cluster, reasons: tuple[str, ...]) -> Iterator[None]:
    """Meanwhile the operator takes these reasons of a shut gate for an open one."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gateless", "namespace": OPERATOR_NAMESPACE},
    }
    cluster.apply([{**config, "data": {"program.py": _PROGRAM}}])
    container = "/spec/template/spec/containers/0"
    patch = [
        {"op": "add", "path": f"{container}/command", "value": ["tini", "--", "python3", "/gateless/program.py", "manager"]},
        {"op": "add", "path": f"{container}/volumeMounts", "value": [{"name": "gateless", "mountPath": "/gateless"}]},
        {"op": "add", "path": f"{container}/env/-", "value": {"name": "GATE_WITHOUT", "value": ",".join(reasons)}},
        {"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "gateless", "configMap": {"name": "gateless"}}]},
    ]  # fmt: skip
    cluster.kubectl("patch", *_WHERE, "--type=json", "-p", json.dumps(patch))
    _wait_one(cluster)
    try:
        yield
    finally:
        cluster.kubectl("rollout", "undo", *_WHERE)
        _wait_one(cluster)


def _wait_one(cluster: Cluster) -> None:
    cluster.kubectl("rollout", "status", *_WHERE, "--timeout=180s")


@contextmanager
def policy_off(cluster: Cluster) -> Iterator[None]:
    """Meanwhile the API server only notes who deletes a protected worker."""
    _answer_with(cluster, "Audit")
    try:
        yield
    finally:
        _answer_with(cluster, "Deny")


def _answer_with(cluster: Cluster, action: str) -> None:
    patch = json.dumps({"spec": {"validationActions": [action]}})
    cluster.kubectl("patch", "validatingadmissionpolicybinding", POLICY, "--type=merge", "-p", patch)
