"""Who is woken by a change of a child: its owner, also where another child stands between the two."""

from types import SimpleNamespace
from typing import Any

import pytest

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import ActiveCheck
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import APP_NAMES
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNode
from slurm_operator.operator import sources
from slurm_operator.plan.belonging import Scope
from slurm_operator.reconcilers.nebius import activecheck, kubenode
from slurm_operator.reconcilers.nebius.kubenode.options import DEFAULTS
from slurm_operator.runtime.loop.subscriptions import subscribe
from slurm_operator.runtime.world.caches import Caches


def child(kind: Kind, name: str, owner: Kind, owner_name: str) -> dict[str, Any]:
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner_name, "uid": owner_name}
    meta = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "resourceVersion": "1",
        "labels": {names.APP_NAME: APP_NAMES[0]},
        "ownerReferences": [{**reference, "controller": True}],
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


class Woken:
    """The caches of an operator, and the keys of checks that their changes wake."""

    def __init__(self, *there: dict[str, Any]) -> None:
        slurms: Any = SimpleNamespace(subscribe=lambda callback: None)
        self.known = Caches(Client(Access(server="http://nowhere")), sources(registry.ALL), ("ns",), slurms)
        self.keys: list[ObjectKey] = []
        queue = SimpleNamespace(add=lambda key, calm=False: self.keys.append(key))
        for body in there:
            self.show(body)
        loop: Any = SimpleNamespace(reconciler=activecheck.RECONCILER, queue=queue)
        subscribe(loop, self.known, slurms)
        self.keys.clear()

    def show(self, body: dict[str, Any]) -> None:
        self.known.children[kinds.kind_of(body)].note_answer(wire.encode(body))


CRON_JOB = child(kinds.CRON_JOB, "cron", ActiveCheck.KIND, "gpus")


@pytest.mark.parametrize(
    ("there", "changed", "woken"),
    [
        pytest.param([], child(kinds.JOB, "run", ActiveCheck.KIND, "gpus"), ["gpus"], id="its own Job"),
        pytest.param(
            [CRON_JOB], child(kinds.JOB, "run", kinds.CRON_JOB, "cron"), ["gpus"], id="a Job of its CronJob"
        ),
        pytest.param(
            [CRON_JOB], child(kinds.JOB, "run", kinds.CRON_JOB, "other"), [], id="a Job of another CronJob"
        ),
        pytest.param(
            [child(kinds.CRON_JOB, "cron", kinds.DEPLOYMENT, "gpus")],
            child(kinds.JOB, "run", kinds.CRON_JOB, "cron"),
            [],
            id="of a CronJob that belongs to somebody else",
        ),
        pytest.param([], child(kinds.JOB, "run", kinds.DEPLOYMENT, "gpus"), [], id="of another kind"),
    ],
)
async def test_who_is_woken_by_a_job(there, changed, woken):
    world = Woken(*there)
    world.show(changed)

    assert world.keys == [ObjectKey("ns", name) for name in woken]


# ---- Kubernetes nodes, which are looked at on behalf of an API of ours


def kube_node(version: int, **status: str) -> dict[str, Any]:
    conditions = [{"type": type_, "status": said} for type_, said in status.items()]
    meta = {"name": "n0", "uid": "n0", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"conditions": conditions}}


def test_a_heartbeat_of_a_kubernetes_node_wakes_nobody():
    slurms: Any = SimpleNamespace(subscribe=lambda callback: None)
    known = Caches(Client(Access(server="http://nowhere")), sources(registry.ALL), ("",), slurms)
    keys: list[ObjectKey] = []
    loop: Any = SimpleNamespace(
        reconciler=kubenode.reconciler(DEFAULTS),
        queue=SimpleNamespace(add=lambda key, calm=False: keys.append(key)),
    )
    subscribe(loop, known, slurms)
    for body, woken in (
        (kube_node(1, Ready="True"), 1),
        (kube_node(2, Ready="True"), 1),
        (kube_node(3, Ready="Unknown"), 2),
    ):
        known.records[KubeNode].note_answer(wire.encode(body))
        assert keys == [ObjectKey("", "n0")] * woken


@pytest.mark.parametrize(
    ("groups", "held", "is_ours"),
    [
        ({registry.GROUPS[1]}, set(), True),
        ({registry.GROUPS[0]}, set(), False),
        (set(registry.GROUPS), {registry.GROUPS[1]}, False),
    ],
)
def test_kubernetes_nodes_are_acted_on_where_their_api_is(groups, held, is_ours):
    slurms: Any = SimpleNamespace(subscribe=lambda callback: None)
    scope = Scope(frozenset(groups), frozenset(held))
    known = Caches(Client(Access(server="http://nowhere")), sources(registry.ALL), ("",), slurms, scope=scope)
    reconciler = kubenode.reconciler(DEFAULTS)
    node = wire.convert(kube_node(1), KubeNode)

    assert known.is_ours(kinds.KUBE_NODE, node, reconciler.on_behalf_of) == is_ours
    assert not known.is_ours(kinds.KUBE_NODE, node), "on behalf of nobody"
