"""Workers and revisions that nobody owns: left when a NodeSet was deleted without them and made again.

So are workers that an API server created when their NodeSet was gone, and that say who it was.

They are workers like any other, with jobs on them: they are taken in, and not made a second time. So are the
revisions that they were made from, whose names are taken.
"""

from collections.abc import Iterator

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.plan.actions import PatchObject
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset.observe import Seen


def adopted(seen: Seen) -> Iterator[Lane]:
    """One write for each worker: from now on it is ours."""
    if seen.nodeset.metadata.is_terminating:
        return
    for worker in seen.workers:
        owners = worker.pod.metadata.owner_references
        if all(owner.uid != seen.nodeset.metadata.uid for owner in owners):
            yield lane(f"adoption of {worker.name}", [_taken_in(worker.pod, kinds.POD, "a worker", seen)])


def adopted_revisions(seen: Seen) -> list[PatchObject]:
    """One write for each revision that nobody owns."""
    orphans = [revision for revision in seen.revisions if not revision.metadata.owner_references]
    return [_taken_in(revision, kinds.CONTROLLER_REVISION, "a revision", seen) for revision in orphans]


def _taken_in(orphan: HasMeta, kind: Kind, what: str, seen: Seen) -> PatchObject:
    nodeset, meta = seen.nodeset, orphan.metadata
    reference = owner_reference(nodeset.KIND, nodeset.metadata)
    return PatchObject(
        kind=kind,
        key=key_of(orphan),
        uid=meta.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]},
        ),
        reason=Reason.ADOPTED,
        message=f"{meta.name} had no owner; it is {what} of NodeSet {nodeset.metadata.name} now",
    )
