"""A worker learns its machine's place in the network before it starts, not only after it registered.

The API server copies the annotations of a Binding to its pod, so the topology of the machine is put there:
the pod is not written, and a dry run needs no care. Whatever goes wrong, the pod is bound; the reconciler of
the NodeSet says the topology later.
"""

from typing import Any

from slurm_operator.api.schema.problems import warning
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import KubeError
from slurm_operator.manifests.kinds import KUBE_NODE, POD
from slurm_operator.webhook.guarded import noted
from slurm_operator.webhook.lookup import Lookup, is_name
from slurm_operator.webhook.review import Request, Verdict


class TopologyHelper:
    """Adds the machine's topology to the Bindings of workers."""

    def __init__(self, look: Lookup) -> None:
        self._look = look

    async def __call__(self, request: Request) -> Verdict:
        binding = request.object or {}
        machine, pod = _target(binding), request.name or noted_name(binding)
        if request.operation != "CREATE" or not all(map(is_name, (machine, pod, request.namespace))):
            return Verdict()
        try:
            topology = await self._topology(ObjectKey(request.namespace, pod), machine)
        except KubeError as error:
            return Verdict(problems=(warning("", f"the worker learns its topology later: {error}"),))
        return Verdict(patch=_patch(binding, topology) if topology is not None else ())

    async def _topology(self, pod: ObjectKey, machine: str) -> str | None:
        """What to tell the worker; None when this is no worker or there is nothing to tell."""
        found = await self._look.metadata(POD, pod)
        if found is None or not _is_worker(found):
            return None
        node = await self._look.metadata(KUBE_NODE, ObjectKey("", machine))
        topology = noted({"metadata": node}, "annotations", names.TOPOLOGY)
        return topology if topology != noted({"metadata": found}, "annotations", names.TOPOLOGY) else None


def _is_worker(metadata: dict[str, Any]) -> bool:
    labels = (names.LABEL_PART, names.APP_NAME)
    return "slurmd" in (noted({"metadata": metadata}, "labels", label) for label in labels)


def _target(binding: dict[str, Any]) -> str:
    target = binding.get("target")
    name = target.get("name") if isinstance(target, dict) else None
    return name if isinstance(name, str) else ""


def noted_name(thing: dict[str, Any]) -> str:
    metadata = thing.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _patch(binding: dict[str, Any], topology: str) -> tuple[dict[str, Any], ...]:
    metadata = binding.get("metadata")
    before = metadata.get("annotations") if isinstance(metadata, dict) else None
    annotations = {**(before if isinstance(before, dict) else {}), names.TOPOLOGY: topology}
    if not isinstance(metadata, dict):
        return ({"op": "add", "path": "/metadata", "value": {"annotations": annotations}},)
    return ({"op": "add", "path": "/metadata/annotations", "value": annotations},)
