"""Makes the fields ours that the Slinky operator wrote, so that an apply can take them away."""

from typing import Final

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Conflict
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.managers import has_theirs, taken_over

# The status of a workload may change between our look and our write, while its pods start.
TRIES: Final = 3


async def take_over(client: Client, kind: Kind, key: ObjectKey) -> bool:
    """Whether it had written any. Nothing but who wrote what is changed. Raises KubeError."""
    for _ in range(TRIES - 1):
        try:
            return await _try_to_take_over(client, kind, key)
        except Conflict:
            continue
    return await _try_to_take_over(client, kind, key)


async def _try_to_take_over(client: Client, kind: Kind, key: ObjectKey) -> bool:
    # By a list, which we have the right to wherever we apply something.
    one = Selection(kind=kind, namespace=key.namespace, field_selector=f"metadata.name={key.name}")
    found = [wire.decode_any(bytes(item)) async for page in client.list_pages(one) for item in page.items]
    for thing in found:
        metadata = thing["metadata"]
        managed = metadata.get("managedFields") or ()
        if has_theirs(managed):
            # The server answers Conflict when it is another object or version by now. A failed test of a JSON
            # patch would have to be looked into by a read, to which we have no right here.
            same = {name: metadata[name] for name in ("uid", "resourceVersion")}
            ours = {"metadata": {**same, "managedFields": taken_over(managed)}}
            await client.merge_patch(kind, key, ours)
            return True
    return False
