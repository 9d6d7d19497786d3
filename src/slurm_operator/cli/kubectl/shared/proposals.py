"""Names that a shell can propose: of clusters, Slurm nodes and Kubernetes nodes, as they are right now."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import click

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.registry import name_of
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.cli.kubectl.shared.session import Session
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.drain.decide import slurm_name
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.operator import OUR_CHILDREN, program
from slurm_operator.printable import printable
from slurm_operator.runtime.settings import Settings
from slurm_operator.slurm.snapshot import Snapshot

# Somebody waits at a keyboard; without an answer by then nothing is proposed.
_PATIENCE_SECONDS = 2.0

Propose = Callable[[click.Context, click.Parameter, str], list[str]]
Ask = Callable[[Client, str], Awaitable[set[str]]]


class _Named(wire.CamelRecord):
    metadata: Meta


def proposing(ask: Ask) -> Propose:
    """What completes a word from the answers of the API server; nothing when it cannot be asked."""

    def propose(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            found = asyncio.run(asyncio.wait_for(_asked(ask, _session(ctx.params)), _PATIENCE_SECONDS))
        except (KubeError, OSError, TimeoutError, click.ClickException, wire.DecodeError):
            return []
        return sorted(name for name in found if name.startswith(incomplete) and printable(name) == name)

    return propose


def _session(params: dict[str, Any]) -> Session:
    """As the options say that stand before the word; those behind it are not known yet."""
    return Session(
        params.get("kubeconfig"),
        params.get("context") or "",
        params.get("namespace") or "",
        bool(params.get("everywhere")),
    )


async def _asked(ask: Ask, session: Session) -> set[str]:
    async with session.looker(greets=False) as looker:
        return await ask(looker.client, session.namespace)


async def _clusters(client: Client, namespace: str) -> set[str]:
    found: set[str] = set()
    for kind in (Cluster.KIND, Controller.KIND, SlurmCluster.KIND):
        with contextlib.suppress(Forbidden, NotFound):
            found |= {one.metadata.name for one in await _list(client, kind, namespace, "", _Named)}
    return found


async def _workers(client: Client, namespace: str) -> list[Pod]:
    pods = await _list(client, kinds.POD, namespace, f"{names.APP_NAME} in (slurmd,slurmcluster)", Pod)
    return [pod for pod in pods if belonging.daemon_of(pod.metadata.labels) == "slurmd"]


async def _slurm_nodes(client: Client, namespace: str) -> set[str]:
    return {slurm_name(pod) for pod in await _workers(client, namespace)}


async def _kube_nodes(client: Client, namespace: str) -> set[str]:
    return {pod.spec.node_name for pod in await _workers(client, namespace)} - {""}


async def _list(client: Client, kind: Kind, namespace: str, labels: str, type_: type[Any]) -> list[Any]:
    selection = Selection(kind=kind, namespace=namespace, label_selector=labels)
    decode = wire.decoder(type_)
    return [decode(item) async for page in client.list_pages(selection) for item in page.items]


async def _targets(client: Client, namespace: str) -> set[str]:
    """Everything that `explain` knows how to explain: objects of ours, pods of daemons, Slurm nodes."""
    found: set[str] = set()
    for kind in (one.kind for one in registry.ALL if one.reconciler):
        with contextlib.suppress(Forbidden, NotFound):
            names_ = {one.metadata.name for one in await _list(client, kind, namespace, "", _Named)}
            found |= {f"{name_of(kind).lower()}/{name}" for name in names_}
    with contextlib.suppress(Forbidden):
        pods = await _list(client, kinds.POD, namespace, OUR_CHILDREN, Pod)
        found |= {f"pod/{pod.metadata.name}" for pod in pods}
        workers = (pod for pod in pods if belonging.daemon_of(pod.metadata.labels) == "slurmd")
        found |= {f"node/{slurm_name(pod)}" for pod in workers}
    return found


async def _jobs(client: Client, namespace: str) -> set[str]:
    """Jobs that are not over, where the reader may ask Slurm."""
    sight = await Looker(client, program(Settings()), namespace).look()
    slurms = [found for found in sight.picture.slurms.values() if isinstance(found, Snapshot)]
    return {job.address for slurm in slurms for job in slurm.jobs.values() if not job.state.is_finished}


cluster_names = proposing(_clusters)
explainable = proposing(_targets)
job_names = proposing(_jobs)
slurm_nodes = proposing(_slurm_nodes)
kube_nodes = proposing(_kube_nodes)
