"""What the labels of Kubernetes nodes say about where they are, read by one list of metadata."""

from typing import Final

from slurm_operator import wire
from slurm_operator.exporter.facts import Place
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds

NVLINK_GROUP: Final = "topology.nebius.com/nvl-instance-group-id"
NODESET: Final = "slurm.nebius.ai/nodeset-name"


class _Meta(wire.Record):
    name: str
    labels: dict[str, str] | None = None


class _Named(wire.Record):
    metadata: _Meta


_decode = wire.decoder(_Named)


async def places(client: Client) -> dict[str, Place]:
    """By name of the Kubernetes node; those without either label are left out."""
    found: dict[str, Place] = {}
    async for page in client.list_pages(Selection(kind=kinds.KUBE_NODE, metadata_only=True)):
        for raw in page.items:
            meta = _decode(raw).metadata
            labels = meta.labels or {}
            if NVLINK_GROUP in labels or NODESET in labels:
                found[meta.name] = Place(labels.get(NVLINK_GROUP, ""), labels.get(NODESET, ""))
    return found
