"""Pods and machines in memory: a scheduler, a kubelet and an API server, as far as workers notice them."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.manifests.objects import KubeNode, Pod
from testing.workers import machine


class Rejected(Exception):  # noqa: N818 - what the API server answers
    """The API server said no."""


@dataclass
class Machine:
    name: str
    is_cordoned: bool = False
    annotations: dict[str, str] = field(default_factory=dict)

    def kube_node(self) -> KubeNode:
        return machine(self.name, cordoned=self.is_cordoned, annotations=self.annotations)


@dataclass
class FakePods:
    now: datetime
    machines: list[Machine]
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    waiting: set[str] = field(
        default_factory=set
    )  # Uids of pods whose own grace period waits for their jobs.
    bad_images: set[str] = field(default_factory=set)
    unplaceable: set[str] = field(default_factory=set)  # Images of pods that ask for more than a machine has.
    dead: set[str] = field(default_factory=set)  # Pods whose machine does not answer any more.
    made: int = 0

    # ---- What the API server takes

    def create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if name in self.pods:
            raise Rejected(f"pods {name!r} already exists")
        self.made += 1
        pod = copy.deepcopy(wire.plain(manifest))
        pod["metadata"] |= {"uid": f"aaaa-{self.made:04x}", "creationTimestamp": _text(self.now)}
        pod["status"] = {"phase": "Pending", "conditions": [_ready(False, self.now)], "containerStatuses": []}
        self.pods[name] = pod
        self._touch(pod)

    def patch(self, name: str, uid: str, operations: Sequence[Mapping[str, Any]]) -> None:
        """A JSON patch: all of it or nothing."""
        pod = self.pods.get(name)
        if pod is None or pod["metadata"]["uid"] != uid:
            raise Rejected(f"{name} is not the one it was decided about")
        self.pods[name] = patched(pod, operations)
        self._touch(self.pods[name])

    def delete(
        self, name: str, uid: str, *, grace: int | None, resource_version: str = "", waits: bool = False
    ) -> None:
        """Without a number the pod has its own grace period, and waits for its jobs."""
        pod = self.pods.get(name)
        if pod is None:
            return
        meta = pod["metadata"]
        if meta["uid"] != uid or resource_version not in ("", meta["resourceVersion"]):
            raise Rejected(f"{name} has changed")
        if grace is None:
            grace, waits = pod["spec"]["terminationGracePeriodSeconds"], True
        ends = self.now + timedelta(seconds=grace)
        meta |= {"deletionTimestamp": _text(ends), "deletionGracePeriodSeconds": grace}
        if waits:
            self.waiting.add(uid)
        else:
            self.waiting.discard(uid)
        self._touch(pod)

    def typed(self) -> list[Pod]:
        return [wire.convert(pod, Pod) for pod in copy.deepcopy(list(self.pods.values()))]

    # ---- What machines do

    def place(self) -> None:
        """Where a pod has to be, else one worker to a machine; none on a cordoned one."""
        taken = {pod["spec"].get("nodeName") for pod in self.pods.values()}
        fit = [it.name for it in self.machines if not it.is_cordoned]
        free = [name for name in fit if name not in taken]
        for pod in self.pods.values():
            bound, image = _bound_to(pod["spec"]), pod["spec"]["containers"][0].get("image", "")
            if pod["spec"].get("nodeName") or not (bound in fit or (not bound and free)):
                continue
            if image in self.unplaceable:
                continue
            pod["spec"]["nodeName"] = bound or free.pop(0)
            self._touch(pod)

    def start(self, name: str) -> None:
        """slurmd runs, unless its image cannot be pulled."""
        pod = self.pods[name]
        status = pod["status"]
        image = pod["spec"]["containers"][0].get("image", "")
        if status["containerStatuses"] or not pod["spec"].get("nodeName") or image in self.bad_images:
            return
        number = int(pod["metadata"]["uid"].rpartition("-")[2], 16)
        running = {"running": {"startedAt": _text(self.now)}}
        status |= {"phase": "Running", "podIP": f"10.0.{number // 250}.{number % 250}"}
        status["containerStatuses"] = [{"name": "slurmd", "ready": True, "state": running}]
        status["conditions"] = [_ready(True, self.now), *status["conditions"][1:]]
        self._touch(pod)

    def running(self) -> dict[str, dict[str, Any]]:
        """Pods whose slurmd runs, by name."""
        there = {name: pod for name, pod in self.pods.items() if name not in self.dead}
        return {name: pod for name, pod in there.items() if pod["status"]["containerStatuses"]}

    def turn(self, is_ready: bool) -> None:
        """What the probe says of every worker that runs."""
        for pod in self.running().values():
            pod["status"]["conditions"][0] = _ready(is_ready, self.now)
            self._touch(pod)

    def hang(self, name: str, *, hangs: bool = True) -> None:
        """slurmd stops answering its kubelet, or answers again. Its jobs do not notice."""
        status = self.pods[name]["status"]
        status["containerStatuses"][0]["ready"] = not hangs
        status["conditions"][0] = _ready(not hangs, self.now)
        self._touch(self.pods[name])

    def lose(self, name: str) -> None:
        """Its machine is gone, and it was asked to end since; nobody is there to end it."""
        self.dead.add(name)
        self.pods[name]["status"]["conditions"][0] = _ready(False, self.now)
        self.delete(name, self.pods[name]["metadata"]["uid"], grace=30)

    def _touch(self, pod: dict[str, Any]) -> None:
        self.made += 1
        pod["metadata"]["resourceVersion"] = str(self.made)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _ready(is_ready: bool, now: datetime) -> dict[str, Any]:
    return {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": _text(now)}


def patched(thing: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a JSON patch makes of it. Raises Rejected."""
    changed = copy.deepcopy(dict(thing))
    for operation in operations:
        _carry_out(changed, operation)
    return changed


def _carry_out(pod: dict[str, Any], operation: Mapping[str, Any]) -> None:
    *path, last = [p.replace("~1", "/").replace("~0", "~") for p in operation["path"].split("/")[1:]]
    where: Any = pod
    for part in path:
        where = where[int(part)] if isinstance(where, list) else where[part]
    key = last if isinstance(where, dict) else len(where) if last == "-" else int(last)
    match operation["op"]:
        case "test":
            if where[key] != operation["value"]:
                raise Rejected(f"the test of {operation['path']} failed")
        case "remove":
            if isinstance(where, dict) and key not in where:
                raise Rejected(f"there is no {operation['path']}")
            del where[key]
        case "add" if isinstance(where, list):
            where.insert(key, operation["value"])
        case "add" | "replace":
            where[key] = operation["value"]
        case other:
            raise AssertionError(f"nobody taught these pods about {other}")


def _bound_to(spec: dict[str, Any]) -> str:
    """The one machine that a pod may be on; empty when it may be anywhere."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms", []
    )
    rules = [rule for term in terms for rule in term.get("matchFields", [])]
    return str(rules[0]["values"][0]) if rules else ""
