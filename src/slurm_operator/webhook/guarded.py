"""Secrets that must stay what they are while a cluster lives on them, such as the passwords of databases."""

from typing import Any, Final

from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import ObjectKey
from slurm_operator.api.problems import Problem
from slurm_operator.kube.errors import KubeError
from slurm_operator.manifests.admission import GUARD_LABEL
from slurm_operator.webhook.lookup import Lookup, is_name
from slurm_operator.webhook.review import Request, Verdict

CLUSTER: Final = "slurm.nebius.ai/cluster"

SLURM_CLUSTER: Final = Kind(
    group="slurm.nebius.ai", version="v1", kind="SlurmCluster", plural="slurmclusters"
)

_CONTENT: Final = ("data", "stringData", "type")


class SecretGuard:
    """Refuses what would part a guarded Secret from its cluster."""

    def __init__(self, look: Lookup) -> None:
        self._look = look

    async def __call__(self, request: Request) -> Verdict:
        if (request.kind.group, request.kind.kind) != ("", "Secret") or request.sub_resource:
            return Verdict()
        problem = await self._problem(request)
        return Verdict(problems=(problem,) if problem is not None else ())

    async def _problem(self, request: Request) -> Problem | None:
        new, old = request.object or {}, request.old_object or {}
        match request.operation:
            case "DELETE" if is_guarded(old):
                return await self._in_use(request.namespace, noted(old, "annotations", CLUSTER))
            case "UPDATE" if is_guarded(old) and not _is_terminating(new) and _differs(old, new):
                message = (
                    f"is guarded by the label {GUARD_LABEL}=true and cannot change: a running cluster uses it"
                )
                return Problem(path="data", message=message)
            case "CREATE" | "UPDATE" if is_guarded(new) and not noted(new, "annotations", CLUSTER):
                message = f"a guarded Secret says whose it is: annotate it with {CLUSTER}=<SlurmCluster>"
                return Problem(path="metadata.annotations", message=message)
            case _:
                return None

    async def _in_use(self, namespace: str, cluster: str) -> Problem | None:
        if not (is_name(cluster) and is_name(namespace)):
            return None
        try:
            if not await self._look.exists(SLURM_CLUSTER, ObjectKey(namespace, cluster)):
                return None
            why = f"SlurmCluster {cluster!r} uses it; delete that first"
        except KubeError as error:
            why = f"whether SlurmCluster {cluster!r} still uses it cannot be told: {error}"
        return Problem(path="", message=f"this Secret is guarded: {why}")


def is_guarded(secret: dict[str, Any]) -> bool:
    return noted(secret, "labels", GUARD_LABEL) == "true"


def noted(thing: dict[str, Any], where: str, key: str) -> str:
    """A label or annotation; empty when it is absent, or the object is not what it should be."""
    metadata = thing.get("metadata")
    notes = metadata.get(where) if isinstance(metadata, dict) else None
    value = notes.get(key) if isinstance(notes, dict) else None
    return value if isinstance(value, str) else ""


def _is_terminating(secret: dict[str, Any]) -> bool:
    metadata = secret.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _differs(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether more than notes of others changes: finalizers, owners and field managers are free."""
    content = any(old.get(name) != new.get(name) for name in _CONTENT)
    whose = noted(old, "annotations", CLUSTER) != noted(new, "annotations", CLUSTER)
    return content or whose or not is_guarded(new)
