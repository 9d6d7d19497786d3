"""Kubernetes nodes, pods and Leases in memory, for rebooters that run in no cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from slurm_operator import wire
from slurm_operator.agents.rebooter.decide import Limits
from slurm_operator.agents.rebooter.host import Host
from slurm_operator.agents.rebooter.metrics import Metrics
from slurm_operator.agents.rebooter.program import Rebooter, Settings
from slurm_operator.kube import envelope, errors
from slurm_operator.kube.errors import Status, Unreachable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRAIN, REBOOT = "SlurmNodeDrain", "SlurmNodeReboot"


def condition(type_: str, status: str, reason: str, at: datetime = NOON, message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}  # fmt: skip


def pod(name: str, node: str = "a", **more: Any) -> dict[str, Any]:
    labels, spec = more.pop("labels", {}), more.pop("spec", {})
    metadata = {"namespace": "slurm", "name": name, "uid": f"uid-{name}", "labels": labels, **more.pop("metadata", {})}  # fmt: skip
    return {"metadata": metadata, "spec": {"nodeName": node, **spec}, "status": {"phase": "Running"}, **more}


def worker(name: str, node: str = "a", **more: Any) -> dict[str, Any]:
    """Protected, as it is while it may have jobs."""
    labels = {"app.kubernetes.io/name": "slurmd", "slinky.slurm.net/cluster": "demo", "nodeset.slinky.slurm.net/pod-protect": "true"}  # fmt: skip
    return pod(name, node, labels=labels, **more)


def slurmctld(node: str = "a", name: str = "demo-controller-0", *, is_ready: bool = True) -> dict[str, Any]:
    made = pod(name, node, labels={"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "demo"})  # fmt: skip
    made["status"]["conditions"] = [{"type": "Ready", "status": str(is_ready)}]
    return made


class Server:
    """As much of an API server as rebooters ask for. `is_away`: nobody gets an answer."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: list[dict[str, Any]] = []
        self.leases: dict[str, dict[str, Any]] = {}
        self.budgets: dict[str, str] = {}  # Why a pod may not be evicted, by its name.
        self.evicted: list[str] = []
        self.is_away = False
        self.answers_left: int | None = None  # After so many answers there is one failure.
        self.version = 0
        self.listeners: list[Callable[[dict[str, Any]], None]] = []

    def store(self, node: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        node["metadata"]["resourceVersion"] = str(self.version)
        self.nodes[node["metadata"]["name"]] = json.loads(json.dumps(node))
        for listener in self.listeners:
            listener(node)
        return node

    def make(self, name: str = "a", uid: str = "", **spec: Any) -> None:
        metadata = {"name": name, "uid": uid or f"uid-{name}", "annotations": {}}
        status = {"conditions": [condition("Ready", "True", "KubeletReady")], "nodeInfo": {"bootID": "boot-1"}}  # fmt: skip
        self.store({"metadata": metadata, "spec": spec, "status": status})

    def edit(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        node = json.loads(json.dumps(self.nodes[name]))
        change(node)
        self.store(node)

    def ask(self, type_: str, status: str, reason: str, at: datetime = NOON, name: str = "a") -> None:
        """As the controllers do that watch Slurm and the cloud."""

        def change(node: dict[str, Any]) -> None:
            others = [one for one in node["status"]["conditions"] if one["type"] != type_]
            node["status"]["conditions"] = [*others, condition(type_, status, reason, at)]

        self.edit(name, change)

    def forget(self, type_: str, name: str = "a") -> None:
        def change(node: dict[str, Any]) -> None:
            node["status"]["conditions"] = [
                one for one in node["status"]["conditions"] if one["type"] != type_
            ]

        self.edit(name, change)

    def told(self, type_: str, name: str = "a") -> str:
        found = [one for one in self.nodes[name]["status"]["conditions"] if one["type"] == type_]
        return f"{found[0]['status']}/{found[0]['reason']}" if found else ""

    def message(self, type_: str, name: str = "a") -> str:
        return next(
            one["message"] for one in self.nodes[name]["status"]["conditions"] if one["type"] == type_
        )

    def is_cordoned(self, name: str = "a") -> bool:
        return bool(self.nodes[name]["spec"].get("unschedulable"))

    def taints(self, name: str = "a") -> list[str]:
        return [taint["key"] for taint in self.nodes[name]["spec"].get("taints") or ()]

    def release(self, name: str) -> None:
        """As the operator does when the jobs of a worker have ended."""
        for one in self.pods:
            if one["metadata"]["name"] == name:
                del one["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-protect"]

    def out_of_service(self) -> list[str]:
        found = [lease["metadata"]["annotations"] for lease in self.leases.values()]
        return sorted(json.loads(found[0]["slurm.nebius.ai/rebooter-nodes"])) if found else []

    # ---- What a client asks

    async def get(self, kind: Any, key: Any) -> dict[str, Any]:
        self._answer()
        there = self.nodes if kind.kind == "Node" else self.leases
        if key.name not in there:
            raise errors.NotFound(Status(code=404, message=f"no {key}"))
        return json.loads(json.dumps(there[key.name]))

    async def read(self, kind: Any, key: Any, decode: Any) -> Any:
        return decode(wire.encode(await self.get(kind, key)))

    async def list_pages(self, selection: Any) -> AsyncIterator[envelope.Page]:
        self._answer()
        node = selection.field_selector.removeprefix("spec.nodeName=")
        items = [
            memoryview(wire.encode(one)) for one in self.pods if not node or one["spec"]["nodeName"] == node
        ]
        yield envelope.Page(items=items, resource_version="1")

    async def merge_patch(
        self, kind: Any, key: Any, patch: dict[str, Any], *, subresource: str = ""
    ) -> dict[str, Any]:
        self._answer()
        node = await self.get(kind, key)
        expected = patch["metadata"]["resourceVersion"]
        if node["metadata"]["resourceVersion"] != expected:
            raise errors.conflict(f"{key} has been modified")
        assert ("status" in patch) == (subresource == "status")
        return self.store(_merged(node, patch))

    async def create(self, kind: Any, manifest: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        if manifest["metadata"]["name"] in self.leases:
            raise errors.AlreadyExists(Status(code=409, message="there is one"))
        return self._keep_lease(manifest)

    async def replace(self, kind: Any, manifest: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        there = self.leases[manifest["metadata"]["name"]]
        if there["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise errors.conflict("the Lease has been modified")
        return self._keep_lease(manifest)

    def _keep_lease(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        manifest["metadata"]["resourceVersion"] = str(self.version)
        self.leases[manifest["metadata"]["name"]] = json.loads(json.dumps(manifest))
        return manifest

    async def evict(self, key: Any, *, uid: str = "") -> None:
        self._answer()
        if key.name in self.budgets:
            raise errors.BudgetRefused(Status(code=429, message=self.budgets[key.name]))
        self.evicted.append(key.name)
        self.pods = [one for one in self.pods if one["metadata"]["name"] != key.name]

    def _answer(self) -> None:
        if self.answers_left is not None:
            self.answers_left -= 1
            if self.answers_left < 0:
                self.answers_left = None
                raise Unreachable("the connection broke")
        if self.is_away:
            raise Unreachable("no answer")


def _merged(there: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(there) if isinstance(there, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


class Machine(Host):
    """A machine that reboots when it is told to, in the same moment, unless `works` is false."""

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(Path("/nowhere"), ("true",))
        object.__setattr__(self, "facts", {"boot": 1, "at": NOON - timedelta(days=1), "works": True, "says": "", "runs": 0})  # fmt: skip
        object.__setattr__(self, "server", server)
        object.__setattr__(self, "name", name)

    def boot_id(self) -> str:
        return f"boot-{self.facts['boot']}"

    def booted_at(self) -> datetime:
        return self.facts["at"]

    def boot(self, at: datetime = NOON) -> None:
        self.facts.update(boot=self.facts["boot"] + 1, at=at)

        def change(node: dict[str, Any]) -> None:
            node["status"]["nodeInfo"]["bootID"] = self.boot_id()

        self.server.edit(self.name, change)

    async def reboot(self) -> str:
        self.facts["runs"] += 1
        if self.facts["works"]:
            self.boot()
        return self.facts["says"]


class Play:
    """One rebooter on one machine. `again` is a process that starts there without any memory."""

    def __init__(self, server: Server, name: str = "a", **settings: Any) -> None:
        self.server, self.name, self.now = server, name, NOON + timedelta(minutes=1)
        self.machine = Machine(server, name)
        limits = settings.pop("limits", Limits())
        self.settings = Settings(node_name=name, namespace="slurm", limits=limits, **settings)
        self.log: list[str] = []
        server.listeners.append(self._hear)
        self.again()

    def again(self) -> None:
        self.rebooter = Rebooter(self.server, self.settings, self.machine, Metrics(), lambda: self.now)
        if self.name in self.server.nodes:
            self._hear(self.server.nodes[self.name])

    def _hear(self, node: dict[str, Any]) -> None:
        if node["metadata"]["name"] == self.name:
            self.rebooter.cache.note_written(node)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            asyncio.run(self.rebooter.one_look())
            self.now += timedelta(seconds=1)

    def settle(self) -> None:
        """Until nothing changes; more than so many looks are a circle."""
        for _ in range(40):
            before = (self.server.version, len(self.server.evicted), self.machine.facts["runs"])
            self.look()
            if before == (self.server.version, len(self.server.evicted), self.machine.facts["runs"]):
                return
        raise AssertionError("it never comes to rest")

    @property
    def memo(self) -> str:
        return self.server.nodes[self.name]["metadata"]["annotations"].get("slurm.nebius.ai/rebooter", "")

    def is_restored(self) -> bool:
        server, name = self.server, self.name
        is_free = not server.is_cordoned(name) and server.taints(name) == [] and not self.memo
        return is_free and name not in server.out_of_service()
