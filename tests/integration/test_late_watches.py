"""Every watch is late, by a random time: nothing is created twice, and nothing is deleted that is still counted.

The reconciler here keeps as many ConfigMaps as another one asks for. Their names are made by the server, so only
what is seen tells how many there are: the worst case for a loop that acts on what a late watch shows.
"""

import asyncio
import json
import random
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth import config
from slurm_operator.kube.client import Client
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Create, DeleteObject
from slurm_operator.plan.plan import lane, plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.runtime import manager as managers
from slurm_operator.runtime.manager import Manager, Program
from slurm_operator.runtime.settings import Address, Settings
from slurm_operator.runtime.world.sources import Source, Sources
from testing.audit import entries

AWAY_AT_MOST = 2


class LateClient(Client):
    """Hears of everything up to half a second late; its own calls are answered at once."""

    @asynccontextmanager
    async def watch(self, *args, **kwargs):
        async with super().watch(*args, **kwargs) as lines:
            yield late(lines)


async def late(batches):
    async for batch in batches:
        await asyncio.sleep(random.random() / 2)
        yield batch


def observe(key: ObjectKey, world):
    wanted = world.get(ConfigMap, key.namespace, key.name)
    if wanted is None:
        return None
    return wanted, world.children(kinds.CONFIG_MAP, wanted.metadata.uid)


def decide(seen, now):
    wanted, children = seen
    count, generation = int(wanted.data["count"]), wanted.data["generation"]
    missing = count - len(children)
    old = [child for child in children if child.body["data"]["generation"] != generation]
    surplus = children[count:] if missing < 0 else old[: max(0, AWAY_AT_MOST - missing)]
    return plan(
        lane("create", [create(wanted, generation) for _ in range(missing)]),
        lane("delete", [delete(child) for child in surplus]),
        look_again=timedelta(seconds=1),
    )


def create(wanted: ConfigMap, generation: str) -> Create:
    manifest = {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": wanted.metadata.namespace, "generateName": "part-", "labels": {"late": "child"},
            "ownerReferences": [owner_reference(kinds.CONFIG_MAP, wanted.metadata)],
        },
        "data": {"generation": generation},
    }  # fmt: skip
    return Create(manifest=manifest, reason="ScalingUp", message="one more")


def delete(child: Child) -> DeleteObject:
    key = ObjectKey(child.metadata.namespace, child.metadata.name)
    return DeleteObject(
        kind=kinds.CONFIG_MAP, key=key, uid=child.metadata.uid, reason="ScalingDown", message="one less"
    )


PROGRAM = Program(
    sources=Sources(
        records=(Source(ConfigMap, kinds.CONFIG_MAP, wire.decoder(ConfigMap), label_selector="late=wish"),),
        children=(kinds.CONFIG_MAP,),
        child_selector="late=child",
    ),
    reconcilers=(
        Reconciler(
            name="late", kind=kinds.CONFIG_MAP, about=ConfigMap, observe=observe, decide=decide,
            status=lambda seen, plan, outcome: StatusReport(conditions=()), children=(kinds.CONFIG_MAP,),
        ),
    ),
)  # fmt: skip


def wish(plane, ns: str, count: int, generation: str) -> None:
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wish", "namespace": ns, "labels": {"late": "wish"}},
        "data": {"count": str(count), "generation": generation},
    }  # fmt: skip
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def parts(plane, ns: str) -> list[dict]:
    return json.loads(plane.kubectl("get", "configmap", "-l", "late=child", "-n", ns, "-o", "json"))["items"]


def asked(plane, ns: str, verb: str) -> int:
    """How often a ConfigMap of this namespace was created or deleted, as the API server's log has it."""
    asked = [e for e in entries(plane.audit_log, ns) if "slurm-operator" in e.get("userAgent", "")]
    return [about(entry) for entry in asked].count(("configmaps", ns, verb))


def about(entry: dict) -> tuple[str, str, str]:
    where = entry.get("objectRef", {})
    return where.get("resource", ""), where.get("namespace", ""), entry["verb"]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_late_watches_lead_to_no_duplicate_and_no_miscount(api_server, namespace, monkeypatch, seed):
    random.seed(seed)
    monkeypatch.setattr(managers, "Client", LateClient)
    settings = Settings(namespaces=(namespace,), health=Address("", 0), metrics=Address("", 0))
    running = Manager(config.find(api_server.kubeconfig), PROGRAM, settings)
    task = asyncio.create_task(running.run())
    fewest: list[int] = []

    async def settled(count: int, generation: str) -> None:
        while True:
            now = await asyncio.to_thread(parts, api_server, namespace)
            fewest.append(len(now))
            if len(now) == count and all(part["data"]["generation"] == generation for part in now):
                return
            assert not task.done()
            await asyncio.sleep(0.05)

    await asyncio.to_thread(wish, api_server, namespace, 7, "a")
    await settled(7, "a")
    assert asked(api_server, namespace, "create") == 7

    fewest.clear()
    await asyncio.to_thread(wish, api_server, namespace, 7, "b")
    await settled(7, "b")
    assert min(fewest) >= 7 - AWAY_AT_MOST
    assert asked(api_server, namespace, "create") == 14
    assert asked(api_server, namespace, "delete") == 7

    await asyncio.to_thread(wish, api_server, namespace, 3, "b")
    await settled(3, "b")
    assert asked(api_server, namespace, "delete") == 11
    running.end()
    assert await task == 0
