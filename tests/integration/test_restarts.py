"""The operator restarted a hundred times, and replaced by another version: nothing is written, no pod restarts."""

import asyncio
import json
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from kinds_rig import operator, plane, writes_by

from bench.kubelet import Kubelet
from bench.operated import stub_servers
from bench.rig import GROUP, NAMESPACE, nodeset, ours, until, watching
from slurm_operator.api.shared.images import PATTERN_VARIABLE
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth import config
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.merge import merged_pod
from slurm_operator.operator import program
from slurm_operator.reconcilers.controller.annotations import REHEARSAL_APP
from slurm_operator.reconcilers.nodeset.creation import pod as worker_pods
from slurm_operator.runtime.manager import Manager
from slurm_operator.runtime.settings import Address, Settings
from slurm_operator.slurmsync import startup_grace

__all__ = ["plane"]

STORAGE = {"host": "db.example.com", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}
HEAD = {"controllerRef": {"name": "slurm"}}
THINGS = [
    ours("Accounting", "db", {"storageConfig": STORAGE}),
    ours("Controller", "inner", {"slurmctld": {"image": "slurmctld:1"}, "accountingRef": {"name": "db"}}),
    ours("Controller", "alone", {"extraConf": "KillWait=31\n"}),
    ours("RestApi", "slurm", HEAD),
    ours("LoginSet", "login", HEAD),
    ours("Token", "robot", {**HEAD, "username": "robot"}),
    ours("Cluster", "demo", {"nodeSets": [{"name": "cpu", "replicas": 0}]}),
    nodeset(3),
]
SLURM = ObjectKey(NAMESPACE, "slurm")
WORKLOADS = ("statefulsets.apps", "deployments.apps")

# A rehearsal that went well, as a kubelet tells it.
GOOD = {"name": "slurmctld", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "message": "good", "startedAt": None, "finishedAt": None}}}  # fmt: skip


@asynccontextmanager
async def managing(plane, user: str):
    """An operator in this process, on a lease like any other."""
    settings = Settings(
        namespaces=(NAMESPACE,), health=Address("", 0), metrics=Address("", 0),
        leader_elect=True, leader_elect_namespace="default", leader_elect_id="restarts", retry_seconds=1,
    )  # fmt: skip
    there = replace(program(settings), slurm_servers=stub_servers)
    manager = Manager(config.find(operator(plane, user), ""), there, settings)
    running = asyncio.create_task(manager.run())
    try:
        yield manager
    finally:
        manager.end()
        assert await running == 0


def left(manager: Manager) -> dict[str, float]:
    """How many passes each reconciler still owes until it has decided about each of its objects."""
    found = {name: len(manager.known.records[loop.reconciler.about]) for name, loop in manager.loops.items()}
    owed = {name: float(count) for name, count in found.items()}
    counted = re.findall(
        r'reconciles_total\{reconciler="(.*)",result="(.*)"\} (\S+)', manager.metrics.text().decode()
    )
    for name, result, count in counted:
        owed[name] -= float(count) if result != "waiting" else 0
    return {name: passes for name, passes in owed.items() if passes > 0 or not found[name]}


async def looked_at_everything(manager: Manager) -> None:
    """Until every object has been decided about."""
    try:
        await until(lambda: not left(manager), "a look at everything", 200, pause=0.05)
    except TimeoutError:
        pytest.fail(f"passes that never came: {left(manager)}")


async def rehearsing(there) -> None:
    """Ends every rehearsal well, as the kubelet would."""
    while True:
        selector = f"app.kubernetes.io/name={REHEARSAL_APP}"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found = await there.client.request("GET", path, params={"labelSelector": selector})
        for pod in found["items"]:
            if not pod["status"].get("containerStatuses"):
                key = ObjectKey(NAMESPACE, pod["metadata"]["name"])
                status = {"phase": "Succeeded", "containerStatuses": [GOOD]}
                await there.client.merge_patch(kinds.POD, key, {"status": status}, subresource="status")
        await asyncio.sleep(0.3)


def workloads(plane) -> dict[str, object]:
    """The pod template of every workload, and which pods there are."""
    found: dict[str, object] = {}
    for kind in WORKLOADS:
        for item in json.loads(plane.kubectl("get", kind, "-n", NAMESPACE, "-o", "json"))["items"]:
            found[f"{item['kind']} {item['metadata']['name']}"] = item["spec"]["template"]
    pods = json.loads(plane.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
    return {**found, **{pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}}


async def quiet(plane, user: str) -> None:
    """Until this user has written nothing for three seconds."""
    counted = [-1]

    def is_quiet() -> bool:
        counted.append(len(writes_by(plane, user)))
        return counted[-1] == counted[-2]

    await until(is_quiet, f"{user} to write no more", pause=3)


@asynccontextmanager
async def settled(plane):
    """A namespace with everything in it, made by one operator that has gone since."""
    async with AsyncExitStack() as stack:
        there = await watching(plane, stack, machines=0)
        for work in (Kubelet(there.client, there.pods).run(), rehearsing(there)):
            stack.callback(asyncio.create_task(work).cancel)
        await there.create(
            f"/api/v1/namespaces/{NAMESPACE}/secrets",
            {"metadata": {"name": "db"}, "data": {"password": "eA=="}},
        )
        for thing in THINGS:
            await there.create(f"{GROUP}/namespaces/{NAMESPACE}/{thing['kind'].lower()}s", thing)
        async with managing(plane, "first") as manager:
            await looked_at_everything(manager)
            wanted = {"StatefulSet alone-controller", "StatefulSet demo-controller", "StatefulSet db-accounting",
                      "Deployment login", "Deployment slurm-restapi", "gpu-2"}  # fmt: skip
            await until(lambda: wanted <= workloads(plane).keys(), "every workload", pause=1)
            await quiet(plane, "first")
        yield there


@pytest.mark.timeout(2400)
@pytest.mark.minutes
async def test_a_hundred_restarts_write_nothing_but_the_lease_and_another_version_restarts_no_pod(
    plane, monkeypatch
):
    async with settled(plane) as there:
        before = workloads(plane)

        for _ in range(100):
            async with managing(plane, "again") as manager:
                await looked_at_everything(manager)
        assert writes_by(plane, "again") == []

        def built_otherwise(base, patch, required=()):
            return {**merged_pod(base, patch, required), "schedulerName": "another", "hostname": "other"}

        monkeypatch.setattr(parts, "merged_pod", built_otherwise)
        monkeypatch.setattr(worker_pods, "merged_pod", built_otherwise)
        monkeypatch.setenv(PATTERN_VARIABLE, "registry.example.org/{daemon}:next")
        async with managing(plane, "newer") as manager:
            await looked_at_everything(manager)
            await quiet(plane, "newer")
        assert workloads(plane) == before
        monkeypatch.undo()

        await silent_slurm(plane, there, monkeypatch)


async def silent_slurm(plane, there, monkeypatch) -> None:
    """A Slurm that answers late changes nothing; one that does not answer is told of in the end."""
    there.stub.hangs = True
    async with managing(plane, "early") as manager:
        await looked_at_everything(manager)
        assert manager.slurms.awaited_seconds(SLURM) > 0
        there.stub.hangs = False
        await until(lambda: manager.slurms.awaited_seconds(SLURM) == 0, "Slurm to be read", pause=0.1)
        await looked_at_everything(manager)
        await quiet(plane, "early")
    assert writes_by(plane, "early") == []

    there.stub.hangs = True
    monkeypatch.setattr(startup_grace, "FIRST_WORD_SECONDS", 5.0)
    async with managing(plane, "resigned"):
        await until(lambda: told_unreachable(plane), "word that Slurm does not answer", 200, pause=1)


def told_unreachable(plane) -> bool:
    found = json.loads(plane.kubectl("get", "nodeset", "gpu", "-n", NAMESPACE, "-o", "json"))
    return "SlurmUnreachable" in {one["reason"] for one in found["status"]["conditions"]}
