"""Conditions of a Node on a real API server, and drains in a stub of slurmrestd: each leads to the other."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from kinds_rig import apply, get, merge, ns, operator, owner_of, secret, serving_kinds, writes_by

from bench.operated import STUB, stub_servers
from bench.rig import until
from bench.stub_slurm import StubSlurm
from slurm_operator.api import registry
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.api.nebius.names import GROUP
from slurm_operator.kube.auth import config
from slurm_operator.operator import program
from slurm_operator.reconcilers.nebius import kubenode
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.kubenode.troubles import (
    REBOOT_REASON,
    REPLACEMENT_REASON,
    STORAGE_REASON,
)
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.manager import Manager
from slurm_operator.runtime.settings import Address, Settings
from testing.control_plane import Plane
from testing.kubelet_stats import kubelet
from testing.slurmclusters import manifest

__all__ = ["ns"]

CALL = names.MAINTENANCE_SCHEDULED
WORKERS = "nodesets.slinky.slurm.net"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with serving_kinds(tmp_path_factory.mktemp("nodes"), kinds=registry.ALL) as plane:
        yield plane


@dataclass
class Node:
    """A Node with one worker, and what Slurm says of that."""

    plane: Plane
    name: str
    stub: StubSlurm

    def mark(self, type_: str) -> tuple[str, str]:
        there = get(self.plane, "", "node", self.name)["status"].get("conditions") or ()
        found = {one["type"]: one for one in there}.get(type_, {})
        return found.get("status", ""), found.get("reason", "")

    def says(self, type_: str, status: str, reason: str = "Said") -> None:
        """The provider or the rebooter does, beside whatever else is there."""
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        told = {"type": type_, "status": status, "reason": reason, "lastTransitionTime": at}
        patch = json.dumps({"status": {"conditions": [told]}})
        self.plane.kubectl(
            "patch", "node", self.name, "--subresource=status", "--type=strategic", "-p", patch
        )

    @property
    def record(self) -> dict[str, Any]:
        return self.stub._nodes["cpu-0"]

    @property
    def is_drained(self) -> bool:
        return "DRAIN" in self.record["state"]

    async def becomes(self, type_: str, status: str, reason: str) -> None:
        await until(
            lambda: self.mark(type_) == (status, reason), f"{type_} {status} ({reason})", 60, pause=0.2
        )


def kept(plane: Plane, ns: str, stub: StubSlurm) -> None:
    """A SlurmCluster's parts as their reconcilers would make them, with one worker that runs."""
    body = manifest("NodeSet", "cpu", spec__clusterName="smallest")
    apply(
        plane,
        body | {"metadata": {**body["metadata"], "namespace": ns}},
        secret(ns, "keys", **{"slurm.key": "x", "jwt.key": "y" * 32}),
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "Controller",
            "metadata": {"name": "smallest", "namespace": ns, "annotations": {STUB: stub.url}},
            "spec": {
                "external": True,
                "externalConfig": {"host": "c", "port": 6817},
                "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
                "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            },
        },
    )
    front = get(plane, ns, f"nodesets.{GROUP}", "cpu")
    apply(plane, owned(ns, "NodeSet", "cpu", front, {"controllerRef": {"name": "smallest"}, "replicas": 1}))
    part = get(plane, ns, WORKERS, "cpu")
    limits = {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}
    spec = {"nodeName": ns, "containers": [{"name": "slurmd", "image": "x", **limits}]}
    pod = owned(ns, "Pod", "cpu-0", part, spec)
    pod["metadata"]["labels"] = {"app.kubernetes.io/name": "slurmd"}
    apply(plane, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": ns}}, pod)
    assert owner_of(pod) == ("NodeSet", "cpu")
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    running = {"name": "slurmd", "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
    status = {
        "phase": "Running",
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": "10.0.0.7",
        "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        "containerStatuses": [running | {"state": {"running": {"startedAt": at}}}],
    }
    merge(plane, ns, "pod", "cpu-0", {"status": status}, "--subresource=status")
    stub.register("cpu-0", "10.0.0.7", "cpu", datetime.fromisoformat(at))


def owned(ns: str, kind: str, name: str, owner: dict, spec: dict) -> dict:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    owners = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    return {
        "apiVersion": "v1" if kind == "Pod" else "slinky.slurm.net/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": ns, "ownerReferences": owners},
        "spec": spec,
    }


@asynccontextmanager
async def working(plane: Plane, ns: str, kubelets: KubeletSettings | None = None) -> AsyncIterator[Node]:
    """The node controllers at work, with the operator's rights."""
    async with AsyncExitStack() as stack:
        stub = StubSlurm()
        server = await stub.listen()
        stack.callback(server.close)
        await asyncio.to_thread(kept, plane, ns, stub)
        settings = Settings(
            health=Address("", 0),
            metrics=Address("", 0),
            groups=registry.GROUPS,
            nodes=NodeOptions(),
            kubelets=kubelets,
        )
        only = replace(
            program(settings), reconcilers=(kubenode.reconciler(NodeOptions()),), slurm_servers=stub_servers
        )
        manager = Manager(config.find(operator(plane, f"op-{ns}"), ""), only, settings)
        running = asyncio.create_task(manager.run())
        try:
            yield Node(plane, ns, stub)
        finally:
            manager.end()
            assert await running == 0


@pytest.mark.timeout(180)
async def test_maintenance_sets_conditions_and_drains_and_its_end_takes_both_back(plane, ns):
    async with working(plane, ns) as node:
        node.stub.start_job(7, "cpu-0")
        node.says(CALL, "True")
        await until(lambda: node.is_drained, "the worker to be drained", 60, pause=0.2)
        assert node.record["reason"] == REPLACEMENT_REASON
        assert node.mark(names.MAINTENANCE) == ("", ""), "a job runs there"

        node.stub.end_job(7)
        await node.becomes(names.MAINTENANCE, "True", names.DRAINING)
        await node.becomes(names.DRAIN, "True", names.NEED_DRAIN)
        assert node.mark(CALL) == ("True", "Said"), "what others said stays"

        node.says(CALL, "False")
        await node.becomes(names.MAINTENANCE, "False", names.UNDRAINED)
        await node.becomes(names.DRAIN, "False", names.UNDRAINED)
        await until(lambda: not node.is_drained, "the worker to take jobs again", 60, pause=0.2)
        news = json.loads(plane.kubectl("get", "events", "-n", "default", "-o", "json"))["items"]
        assert "DrainedForMaintenance" in {one["reason"] for one in news}


@pytest.mark.timeout(180)
async def test_a_node_is_marked_for_a_reboot_and_cleared_when_it_is_back(plane, ns):
    async with working(plane, ns) as node:
        kill = {"name": ["cpu-0"], "state": ["DRAIN"], "reason": "Kill task failed"}
        node.stub._update(kill)
        await node.becomes(names.REBOOT, "True", names.NEED_REBOOT)
        assert (node.mark(names.DEGRADED), node.record["reason"]) == (
            ("True", names.NEED_REBOOT),
            REBOOT_REASON,
        )

        await asyncio.sleep(1.1)  # Dates of Slurm and of conditions have no fractions.
        node.says(names.REBOOT, "True", names.REBOOTED)
        await node.becomes(names.DEGRADED, "False", names.REBOOTED)
        await node.becomes(names.REBOOT, "False", names.REBOOTED)
        await until(lambda: not node.is_drained, "the worker to take jobs again", 60, pause=0.2)

        async with asyncio.timeout(60):
            while not await _is_quiet(plane, f"op-{ns}"):
                continue  # Counts of the status may follow.
        assert await _is_quiet(plane, f"op-{ns}"), "then nothing is written any more"


async def _is_quiet(plane: Plane, user: str) -> bool:
    before = len(writes_by(plane, user))
    await asyncio.sleep(3)
    return len(writes_by(plane, user)) == before


@pytest.mark.timeout(180)
async def test_a_worker_whose_local_storage_is_nearly_full_is_drained_until_there_is_room(plane, ns):
    async with kubelet(token="") as there:
        asked = KubeletSettings(port=there.port, every_seconds=0.5, insecure=True)
        async with working(plane, ns, asked) as node:
            uid = get(plane, ns, "pod", "cpu-0")["metadata"]["uid"]
            there.used[uid] = 1 << 30
            await until(lambda: node.is_drained, "the worker to be drained", 60, pause=0.2)
            assert node.record["reason"].startswith(STORAGE_REASON)

            there.used[uid] = 1 << 20
            await until(lambda: not node.is_drained, "the worker to take jobs again", 60, pause=0.2)
