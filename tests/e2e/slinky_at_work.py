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
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash

PREFIX = "slurm-operator: "
ACTIVE = "controller.slinky.slurm.net/active"
CORDON = "nodeset.slinky.slurm.net/pod-cordon"
BUSY = ("ALLOCATED", "MIXED", "COMPLETING")


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
            self.workers(self.records())
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

    def workers(self, records: dict[str, tuple[set[str], str]]) -> None:
        nodeset = self.makes.nodeset()
        newest = self.newest_revision()
        pods = [pod for pod in self._items("pods") if _is_worker(pod)]
        difference = len(pods) - nodeset.spec.replicas
        order = sorted(pods, key=lambda pod: self._rank(pod, records))
        victims = order[:difference] if difference > 0 else self._outdated(order, newest)
        if difference < 0:
            self.create(pods, -difference, newest)
        for pod in pods:
            if _is_leaving(pod):
                continue
            if pod in victims:
                self.condemn(pod, records)
            else:
                self.keep(pod, records)

    def _outdated(self, order: list[Any], newest: str) -> list[Any]:
        """Those that the update replaces now: at most a quarter away, rounded up."""
        there = [pod for pod in order if not _is_leaving(pod)]
        old = [pod for pod in there if pod["metadata"]["labels"].get(HASH) != newest]
        away = len(order) - len(there) + sum(1 for pod in there if pod not in old and not _is_ready(pod))
        healthy = [pod for pod in old if _is_ready(pod)]
        return [pod for pod in old if not _is_ready(pod)] + healthy[: max(0, 1 - away)]

    def create(self, pods: list[Any], count: int, newest: str) -> None:
        taken = {pod["metadata"]["name"] for pod in pods}
        free = [number for number in range(100) if f"cpu-{number}" not in taken]
        owner, wanted = self.makes.owner("nodeset", "cpu"), self.makes.nodeset().spec.template.metadata.labels
        made = [self.makes.worker(number, owner, newest) for number in free[:count]]
        for pod in made:
            pod["metadata"]["labels"] |= wanted
        self.makes.create(*made)

    def condemn(self, pod: Any, records: dict[str, tuple[set[str], str]]) -> None:
        """A drain of its own words, over whatever was there, and when Slurm calls it drained the end of the pod."""
        name = pod["metadata"]["name"]
        states, _ = records.get(name, (set(), ""))
        if name not in records or ("DRAIN" in states and not states & set(BUSY)):
            self.slurm.kubectl("delete", "pod", name, "--wait=false")
            return
        self._kubectl_patch("pod", name, "merge", {"metadata": {"annotations": {CORDON: "true"}}})
        reason = f"{PREFIX}Pod ({self.slurm.namespace}/{name}) is pending termination for scale-in"
        self.slurm.run("scontrol", "update", f"nodename={name}", "state=DRAIN", f"reason={reason}")

    def keep(self, pod: Any, records: dict[str, tuple[set[str], str]]) -> None:
        """Its own drains are lifted; those of others stay."""
        name = pod["metadata"]["name"]
        states, reason = records.get(name, (set(), ""))
        if reason and not reason.startswith(PREFIX):
            return
        if CORDON in pod["metadata"].get("annotations", {}):
            self._kubectl_patch("pod", name, "merge", {"metadata": {"annotations": {CORDON: None}}})
        if "DRAIN" in states:
            self.slurm.run("scontrol", "update", f"nodename={name}", "state=UNDRAIN", "reason=")

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

    def records(self) -> dict[str, tuple[set[str], str]]:
        """Nodes of Slurm: their states and why they are drained."""
        shown = self.slurm.run("scontrol", "show", "nodes", "--oneliner")
        found = {}
        for line in shown.splitlines():
            name, state = re.search(r"NodeName=(\S+)", line), re.search(r"\bState=(\S+)", line)
            reason = re.search(r"\bReason=(.*?)(?: \[\S+@\S+\])?\s*$", line)
            if name and state:
                states = set(state[1].replace("*", "+NOT_RESPONDING").split("+"))
                found[name[1]] = (states, reason[1].strip() if reason else "")
        return found

    def _rank(self, pod: Any, records: dict[str, tuple[set[str], str]]) -> tuple[object, ...]:
        """Who is condemned first."""
        name, notes = pod["metadata"]["name"], pod["metadata"].get("annotations", {})
        states, _ = records.get(name, (set(), ""))
        is_busy, is_cordoned = bool(states & set(BUSY)), notes.get(CORDON) == "true"
        return (not _is_leaving(pod), _is_ready(pod), is_busy, not is_cordoned, -int(name.rpartition("-")[2]))

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


def _is_leaving(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
