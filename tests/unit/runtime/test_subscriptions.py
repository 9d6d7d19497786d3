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
from slurm_operator.operator import sources
from slurm_operator.reconcilers.nebius import activecheck
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
