"""Makes the fields ours that the operator before us wrote, so that an apply can take them away."""

from slurm_operator import wire
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.managers import has_theirs, taken_over


async def take_over(client: Client, kind: Kind, key: ObjectKey) -> bool:
    """Whether it had written any. Nothing but who wrote what is changed. Raises KubeError."""
    # By a list, which we have the right to wherever we apply something.
    one = Selection(kind=kind, namespace=key.namespace, field_selector=f"metadata.name={key.name}")
    found = [wire.decode_any(bytes(item)) async for page in client.list_pages(one) for item in page.items]
    for thing in found:
        metadata = thing["metadata"]
        managed = metadata.get("managedFields") or ()
        if has_theirs(managed):
            unchanged = {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": metadata["resourceVersion"],
            }
            ours = {"op": "replace", "path": "/metadata/managedFields", "value": taken_over(managed)}
            await client.json_patch(kind, key, (unchanged, ours), uid=metadata["uid"])
            return True
    return False
