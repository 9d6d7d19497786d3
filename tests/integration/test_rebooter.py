"""Rebooters as processes of their own, against a real API server: budgets, races, and a reboot cycle.

No Kubernetes node is ever rebooted here. The reboot command is a program of the test that notes that it ran and
writes the boot id of a next boot; no kubelet runs, so the test says what one would of nodes and pods.
"""

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_operator.install import rights
from slurm_operator.reconcilers.nebius.nodeconfigurator.desired import RULES
from testing.audit import entries
from testing.control_plane import Plane
from testing.managers import free_port, until

DRAIN, REBOOT = "SlurmNodeDrain", "SlurmNodeReboot"
PROTECT = "nodeset.slinky.slurm.net/pod-protect"
TAINT = "node.kubernetes.io/NoExecute"
BOOTS = "sys/kernel/random/boot_id"
RBAC = "rbac.authorization.k8s.io"


class Machine:
    """A Kubernetes node without a kubelet, and the directory from which its rebooter reads which boot it is."""

    def __init__(self, plane: Plane, ns: str, name: str, place: Path) -> None:
        self.plane, self.ns, self.place = plane, ns, place / name
        self.name = f"{ns}-{name}"
        (self.place / BOOTS).parent.mkdir(parents=True)
        (self.place / BOOTS).write_text(f"{self.name}-boot-1\n")
        (self.place / "stat").write_text("btime 1700000000\n")
        self.place.joinpath("reboot").write_text(
            f"#!/bin/sh\necho ran >> {self.place}/ran\necho {self.name}-boot-2 > {self.place / BOOTS}\n"
        )
        self.place.joinpath("reboot").chmod(0o755)
        plane.caller.call("POST", "/api/v1/nodes", {"metadata": {"name": self.name}})
        self.kubelet_says_ready()

    def kubelet_says_ready(self) -> None:
        info = {"bootID": (self.place / BOOTS).read_text().strip()}
        self._status({"nodeInfo": info, "conditions": [{"type": "Ready", "status": "True"}]})

    def ask(self, type_: str, status: str, reason: str) -> None:
        """As the controllers do that watch Slurm and the cloud."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = {"type": type_, "status": status, "reason": reason, "lastTransitionTime": at}
        self._status({"conditions": [told]})

    def _status(self, status: dict) -> None:
        patch = json.dumps({"status": status})
        self.plane.kubectl(
            "patch", "node", self.name, "--subresource=status", "--type=strategic", "-p", patch
        )

    def get(self) -> dict:
        return json.loads(self.plane.kubectl("get", "node", self.name, "-o", "json"))

    def told(self, type_: str) -> tuple[str, str]:
        found = [one for one in self.get()["status"].get("conditions", ()) if one["type"] == type_]
        return (
            (f"{found[0]['status']}/{found[0]['reason']}", found[0].get("message", "")) if found else ("", "")
        )

    @property
    def is_cordoned(self) -> bool:
        return bool(self.get()["spec"].get("unschedulable"))

    @property
    def taints(self) -> list[str]:
        return [one["key"] for one in self.get()["spec"].get("taints") or ()]

    @property
    def times_rebooted(self) -> int:
        ran = self.place / "ran"
        return len(ran.read_text().splitlines()) if ran.exists() else 0

    def pod(self, name: str, **labels: str) -> None:
        """Running and ready, as a kubelet would say."""
        spec = {"nodeName": self.name, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "example.com/none"}]}  # fmt: skip
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        self.plane.caller.call("POST", f"/api/v1/namespaces/{self.ns}/pods", body)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.plane.kubectl("patch", "pod", name, "-n", self.ns, "--subresource=status", "--type=merge", "-p", json.dumps({"status": ready}))  # fmt: skip

    def pods(self) -> list[str]:
        found = json.loads(self.plane.kubectl("get", "pods", "-n", self.ns, "-o", "json", f"--field-selector=spec.nodeName={self.name}"))  # fmt: skip
        return sorted(one["metadata"]["name"] for one in found["items"])

    @contextmanager
    def rebooter(self, kubeconfig: Path, *flags: str):
        ports = [f"--{what}-bind-address=127.0.0.1:{free_port()}" for what in ("health-probe", "metrics")]
        command = [
            sys.executable, "-m", "slurm_operator.cli", "rebooter", "--kubeconfig", str(kubeconfig),
            "--node-name", self.name, "--lease-namespace", self.ns, "--host-proc", str(self.place),
            "--reboot-command", str(self.place / "reboot"), "--reconcile-timeout=2s", *ports, *flags,
        ]  # fmt: skip
        with (self.place / "log").open("ab") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield process
            assert process.poll() is None, (self.place / "log").read_text()[-3000:]
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def account(api_server: Plane, namespace: str) -> Path:
    """Somebody with the rights of a rebooter, and no others."""
    user, call = f"rebooter-{namespace}", api_server.caller.call
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    everywhere, at_home = f"/apis/{RBAC}/v1", f"/apis/{RBAC}/v1/namespaces/{namespace}"
    for place, kind, rules in (
        (everywhere, "ClusterRole", rights.rules(rights.REBOOTER)),
        (at_home, "Role", RULES),
    ):
        reference = {"apiGroup": RBAC, "kind": kind, "name": user}
        call("POST", f"{place}/{kind.lower()}s", {"metadata": {"name": user}, "rules": rules})
        binding = {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]}
        call("POST", f"{place}/{kind.lower()}bindings", binding)
    return api_server.kubeconfig_for(user)


def refused(plane: Plane, namespace: str) -> list[str]:
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in entries(plane.audit_log, f"rebooter-{namespace}")
        if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]


def budget(plane: Plane, namespace: str, allowed: int) -> None:
    """No controller of budgets runs here, so we say how many evictions it allows."""
    metadata = {"name": "web", "namespace": namespace}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    plane.caller.call("POST", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", {"metadata": metadata, "spec": spec})  # fmt: skip
    allow(plane, namespace, allowed)


def allow(plane: Plane, namespace: str, allowed: int) -> None:
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1 - allowed, "expectedPods": 1}  # fmt: skip
    plane.kubectl("patch", "pdb", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))  # fmt: skip


def test_a_reboot_cycle_with_a_worker_and_a_budget(api_server, namespace, account, tmp_path):
    machine = Machine(api_server, namespace, "a", tmp_path)
    machine.pod("web", app="web")
    machine.pod("gpu-0", **{PROTECT: "true", "app.kubernetes.io/name": "slurmd"})
    budget(api_server, namespace, 0)

    with machine.rebooter(account):
        machine.ask(REBOOT, "True", "NodeNeedReboot")
        until(lambda: "disruption budget" in machine.told(DRAIN)[1], what="the refusal in the condition")
        truth, message = machine.told(DRAIN)
        assert truth == "True/NodeDraining"
        assert message.startswith(f"Waiting for 2 pods to leave: {namespace}/gpu-0 is a worker that may have jobs; {namespace}/web (Cannot evict pod as it would violate the pod's disruption budget")  # fmt: skip
        assert machine.is_cordoned
        assert TAINT not in machine.taints
        assert machine.pods() == ["gpu-0", "web"]

        allow(api_server, namespace, 1)
        until(lambda: machine.pods() == ["gpu-0"], what="the eviction that the budget allows")
        time.sleep(3)
        assert machine.pods() == ["gpu-0"], "a protected worker is not even asked to leave"
        assert machine.times_rebooted == 0

        api_server.kubectl("label", "pod", "gpu-0", "-n", namespace, f"{PROTECT}-")  # Its jobs have ended.
        until(lambda: machine.times_rebooted == 1, what="the stand-in for a reboot")
        assert machine.pods() == []
        assert TAINT in machine.taints

    with machine.rebooter(account):  # The one of the next boot.
        until(lambda: machine.told(REBOOT)[0] == "True/NodeRebooted", what="the answer")
        time.sleep(2)
        assert machine.is_cordoned, "the kubelet of the new boot is not ready yet"
        machine.kubelet_says_ready()
        until(lambda: machine.told(DRAIN)[0] == "False/NodeUndrained", what="the end of the drain")
        assert not machine.is_cordoned
        assert TAINT not in machine.taints

        machine.ask(REBOOT, "False", "NodeRebooted")
        until(lambda: "slurm.nebius.ai/rebooter" not in machine.get()["metadata"].get("annotations", {}), what="no note is left")  # fmt: skip
    assert machine.times_rebooted == 1
    assert refused(api_server, namespace) == []


def notes(machine) -> list[str]:
    """What the rebooter has written down on the node for later."""
    return [
        key
        for key in machine.get()["metadata"].get("annotations", {})
        if "rebooter" in key or "cordon" in key
    ]


def test_a_maintenance_that_is_cancelled_restores_everything(api_server, namespace, account, tmp_path):
    machine = Machine(api_server, namespace, "a", tmp_path)
    before = machine.get()["spec"]
    with machine.rebooter(account) as process:
        machine.ask(DRAIN, "True", "NodeNeedDrain")
        until(lambda: machine.told(DRAIN)[0] == "True/NodeDrained", what="the drain")
        assert (machine.is_cordoned, machine.taints.count(TAINT)) == (True, 1)

        machine.ask(DRAIN, "False", "NodeRebooted")
        until(lambda: machine.told(DRAIN)[0] == "False/NodeUndrained", what="the end of the drain")
        until(lambda: holders(api_server, namespace) == [], what="its slot to be free")
        until(lambda: notes(machine) == [], what="no note to be left")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.poll = lambda: None  # It ended as it was told to.
    found = machine.get()
    assert {**found["spec"], "taints": None} == {**before, "taints": None}
    assert TAINT not in machine.taints
    assert notes(machine) == []
    assert machine.times_rebooted == 0
    assert refused(api_server, namespace) == []


def holders(plane: Plane, namespace: str) -> list[str]:
    out = plane.kubectl("get", "lease", "slurm-operator-rebooter", "-n", namespace, "-o", "json", "--ignore-not-found")  # fmt: skip
    notes = json.loads(out)["metadata"].get("annotations", {}) if out.strip() else {}
    return sorted(json.loads(notes.get("slurm.nebius.ai/rebooter-nodes", "{}")))


@pytest.mark.full
def test_of_several_rebooters_only_so_many_act_at_once(api_server, namespace, account, tmp_path):
    """Four that are asked in the same moment, and a budget of two."""
    machines = [Machine(api_server, namespace, name, tmp_path) for name in "abcd"]
    left = list(machines)
    with machines[0].rebooter(account, "--max-nodes=2"), machines[1].rebooter(account, "--max-nodes=2"), machines[2].rebooter(account, "--max-nodes=2"), machines[3].rebooter(account, "--max-nodes=2"):  # fmt: skip
        for machine in machines:
            machine.ask(DRAIN, "True", "NodeNeedDrain")
        until(lambda: len(holders(api_server, namespace)) == 2, what="two to begin")
        while left:
            until(lambda: any(one.told(DRAIN)[0] == "True/NodeDrained" for one in left), what="one to be drained")  # fmt: skip
            assert sum(one.is_cordoned for one in machines) <= 2
            assert len(holders(api_server, namespace)) <= 2
            done = next(one for one in left if one.told(DRAIN)[0] == "True/NodeDrained")
            if waiting := [one for one in left if not one.is_cordoned]:
                until(lambda: "at most 2 Kubernetes nodes may be out of service" in waiting[0].told(DRAIN)[1] or waiting[0].is_cordoned, what="the others to say why they wait")  # fmt: skip
            left.remove(done)
            done.ask(DRAIN, "False", "NodeRebooted")
        until(lambda: not any(one.is_cordoned for one in machines), what="all to be in service again")
        until(lambda: holders(api_server, namespace) == [], what="no slot to be held")
    assert refused(api_server, namespace) == []


def test_a_rebooter_without_rights_changes_nothing_and_says_why(api_server, namespace, tmp_path):
    machine = Machine(api_server, namespace, "a", tmp_path)
    with machine.rebooter(api_server.kubeconfig_for(f"nobody-{namespace}")):
        machine.ask(DRAIN, "True", "NodeNeedDrain")
        until(lambda: "forbidden" in (machine.place / "log").read_text(), what="a line about rights")
    assert not machine.is_cordoned
