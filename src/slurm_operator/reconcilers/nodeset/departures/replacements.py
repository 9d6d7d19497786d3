"""Workers that somebody wants replaced: an annotation on the pod, where a deletion would end jobs."""

from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving

_ASKED = "somebody asked for another pod in its place"


def asked_for(seen: Seen, at_rest: frozenset[str]) -> dict[str, Cause]:
    """Whoever has the annotation, whatever the update strategy and its revision. It goes when it is free.

    Nobody, if the template gives the annotation to every pod: that would never end.
    """
    if names.POD_REPLACE in seen.nodeset.spec.template.metadata.annotations:
        return {}
    others = (worker.pod.metadata for worker in seen.workers if worker.uid not in at_rest)
    marked = [meta for meta in others if meta.annotations.get(names.POD_REPLACE) == "true"]
    wanted = resources_digest(seen.nodeset) if marked else ""
    same = {meta.uid: meta.annotations.get(RESOURCES_DIGEST) == wanted for meta in marked}
    # With other resources its record in Slurm is made again, as in an update.
    return {
        uid: Cause(Leaving.UPDATE if is_same else Leaving.RESOURCES, _ASKED) for uid, is_same in same.items()
    }
