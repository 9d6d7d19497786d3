"""Workers that nobody owns: what is left when a NodeSet was deleted without its pods and made again.

They are workers like any other, with jobs on them: they are taken in, and not made a second time.
"""

from collections.abc import Iterator

from slurm_operator.api.meta import key_of
from slurm_operator.manifests import kinds
from slurm_operator.manifests.owners import owner_reference
from slurm_operator.plan.actions import PatchObject
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset.observe import Seen


def adopted(seen: Seen) -> Iterator[Lane]:
    """One write for each: from now on it is ours."""
    nodeset = seen.nodeset
    for member in seen.members:
        if member.pod.metadata.owner_references or nodeset.metadata.is_terminating:
            continue
        reference = owner_reference(nodeset.KIND, nodeset.metadata)
        write = PatchObject(
            kind=kinds.POD,
            key=key_of(member.pod),
            uid=member.uid,
            operations=(
                {
                    "op": "test",
                    "path": "/metadata/resourceVersion",
                    "value": member.pod.metadata.resource_version,
                },
                {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]},
            ),
            reason="Adopted",
            message=f"{member.name} had no owner; it is a worker of NodeSet {nodeset.metadata.name} now",
        )
        yield lane(f"adoption of {member.name}", [write])
