"""A stand-in for Slinky's operator at work on a live cluster: as much of it as happens while workers are replaced.

It is not that operator. It follows its description: who is a victim, how a pod is condemned, which drains it takes for
its own, and what it writes into the template of slurmctld. What it makes is what `inherited.py` makes.
"""

import json
import re
import time
from collections.abc import Callable
from typing import Any

from inherited import HASH, Inherited
from operator_rig import Slurm

from slurm_local.errors import LocalError
from slurm_operator.api.shared.names import POD_CORDON
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash
from testing.slinky_rules import Node, drain_reason, is_marked, turn

ACTIVE = "controller.slinky.slurm.net/active"
BUSY = {"ALLOCATED", "MIXED", "COMPLETING"}


class SlinkyAtWork:
    """Passes over the NodeSet and the slurmctld of one cluster, one whenever it is asked."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm, self.makes = slurm, Inherited(slurm)

    def until(self, condition: Callable[[], object], seconds: float, what: Callable[[], object]) -> None:
        """Works until that is so."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds:.0f} s for {what()}"
            self.work()
            time.sleep(1)

    def work(self) -> None:
        """One pass over everything. Without an answer of Slurm, a pass over workers is left out."""
        self.slurmctld()
        try:
            self.workers(self.nodes())
        except LocalError as error:
            if "scontrol" not in str(error) and "exec" not in str(error):
                raise

    # -- slurmctld

    def slurmctld(self) -> None:
        """File, Service and template are those that Slinky writes; Kubernetes replaces a pod of another template."""
        made = {one["kind"]: one for one in reversed(self.makes.controller())}
        file, service, workload = made["ConfigMap"], made["Service"], made["StatefulSet"]
        if self._get("configmap", file["metadata"]["name"]).get("data") != file["data"]:
            change = [{"op": "replace", "path": "/data", "value": file["data"]}]
            self._kubectl_patch("configmap", file["metadata"]["name"], "json", change)
        selector = service["spec"]["selector"]
        if self._get("service", service["metadata"]["name"])["spec"]["selector"] != selector:
            self._kubectl_patch(
                "service", service["metadata"]["name"], "merge", {"spec": {"selector": selector}}
            )
        self._stateful_set(workload["metadata"]["name"], workload["spec"]["template"])
        for pod in self._items("pods"):
            labels = pod["metadata"]["labels"]
            if labels.get("app.kubernetes.io/name") == "slurmctld" and labels.get(ACTIVE) != "true":
                self._kubectl_patch(
                    "pod", pod["metadata"]["name"], "merge", {"metadata": {"labels": {ACTIVE: "true"}}}
                )

    def _stateful_set(self, name: str, template: Any) -> None:
        there = self._get("statefulset", name)["spec"]
        notes, wanted = (
            there["template"]["metadata"].get("annotations", {}),
            template["metadata"]["annotations"],
        )
        is_same = wanted.items() <= notes.items() and _names(there["template"]) == _names(template)
        if is_same and there["updateStrategy"]["type"] == "RollingUpdate":
            return
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        operations = [
            {"op": "replace", "path": "/spec/template", "value": template},
            {"op": "replace", "path": "/spec/updateStrategy", "value": strategy},
        ]
        self._kubectl_patch("statefulset", name, "json", operations)

    # -- workers

    def workers(self, nodes: dict[str, Node]) -> None:
        newest = self.newest_revision()
        pods = [pod for pod in self._items("pods") if _is_worker(pod)]
        steps = turn(pods, nodes, newest, self.makes.nodeset().spec.replicas)
        marked = {pod["metadata"]["name"] for pod in pods if is_marked(pod)}
        if steps.make:
            self.create(pods, steps.make, newest)
        for name in steps.delete:
            self.slurm.kubectl("delete", "pod", name, "--wait=false")
        for name in steps.drain:
            self._kubectl_patch("pod", name, "merge", {"metadata": {"annotations": {POD_CORDON: "true"}}})
            reason = f"reason={drain_reason(self.slurm.namespace, name)}"
            self.slurm.run("scontrol", "update", f"nodename={name}", "state=DRAIN", reason)
        for name in steps.keep:
            if name in marked:
                self._kubectl_patch("pod", name, "merge", {"metadata": {"annotations": {POD_CORDON: None}}})
            if nodes[name].is_drain:
                self.slurm.run("scontrol", "update", f"nodename={name}", "state=UNDRAIN", "reason=")

    def create(self, pods: list[Any], count: int, newest: str) -> None:
        taken = {pod["metadata"]["name"] for pod in pods}
        free = [number for number in range(100) if f"cpu-{number}" not in taken]
        owner, wanted = self.makes.owner("nodeset", "cpu"), self.makes.nodeset().spec.template.metadata.labels
        made = [self.makes.worker(number, owner, newest) for number in free[:count]]
        for pod in made:
            pod["metadata"]["labels"] |= wanted
        self.makes.create(*made)

    def newest_revision(self) -> str:
        nodeset = self.makes.nodeset()
        newest = their_hash(nodeset)
        name = f"cpu-{newest}"
        if name not in {one["metadata"]["name"] for one in self._items("controllerrevisions")}:
            revision = {
                "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": patch(nodeset.spec),
                "metadata": {
                    "name": name, "namespace": self.slurm.namespace, "labels": {HASH: newest},
                    "ownerReferences": self.makes.owner("nodeset", "cpu"),
                },
            }  # fmt: skip
            self.makes.create(revision)
        return newest

    def nodes(self) -> dict[str, Node]:
        shown = self.slurm.run("scontrol", "show", "nodes", "--oneliner")
        found = {}
        for line in shown.splitlines():
            name, state = re.search(r"NodeName=(\S+)", line), re.search(r"\bState=(\S+)", line)
            reason = re.search(r"\bReason=(.*?)(?: \[\S+@\S+\])?\s*$", line)
            if name and state:
                words = set(state[1].replace("*", "+").split("+"))
                said = reason[1].strip() if reason else ""
                found[name[1]] = Node("DRAIN" in words, bool(words & BUSY), said)
        return found

    def _get(self, kind: str, name: str) -> Any:
        return json.loads(self.slurm.kubectl("get", kind, name, "-o", "json"))

    def _items(self, kind: str) -> list[Any]:
        found: list[Any] = json.loads(self.slurm.kubectl("get", kind, "-o", "json"))["items"]
        return found

    def _kubectl_patch(self, kind: str, name: str, how: str, change: object) -> None:
        manager = "--field-manager=manager"
        self.slurm.kubectl("patch", kind, name, f"--type={how}", "-p", json.dumps(change), manager)


def _names(template: Any) -> list[str]:
    """Volumes and containers: enough to tell our templates from Slinky's."""
    spec = template["spec"]
    return sorted(
        one["name"] for part in ("volumes", "initContainers", "containers") for one in spec.get(part, ())
    )


def _is_worker(pod: Any) -> bool:
    return any(owner["kind"] == "NodeSet" for owner in pod["metadata"].get("ownerReferences", ()))
