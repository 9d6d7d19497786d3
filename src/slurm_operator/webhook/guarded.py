"""Secrets that must stay what they are while a cluster lives on them, such as the passwords of databases."""

from typing import Any

from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.api.nebius.names import GUARD_LABEL, GUARDING_CLUSTER
from slurm_operator.api.schema.problems import Problem
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import KubeError
from slurm_operator.webhook.lookup import Lookup, is_name
from slurm_operator.webhook.review import Request, Verdict


class SecretGuard:
    """Refuses what would part a guarded Secret from its cluster.

    Every update is refused, as Soperator does: labels and annotations are what guards it. One that is being
    deleted may lose its finalizers.
    """

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
                return await self._in_use(request.namespace, _cluster(old))
            case "UPDATE" if is_guarded(old):
                return None if _is_terminating(old) else _unchanging(old)
            case "CREATE" | "UPDATE" if is_guarded(new) and not _cluster(new):
                note = GUARDING_CLUSTER[0]
                message = f"a guarded Secret says whose it is: annotate it with {note}=<SlurmCluster>"
                return Problem(path="metadata.annotations", message=message)
            case _:
                return None

    async def _in_use(self, namespace: str, cluster: str) -> Problem | None:
        if not (is_name(cluster) and is_name(namespace)):
            return None
        try:
            if not await self._look.exists(SlurmCluster.KIND, ObjectKey(namespace, cluster)):
                return None
            why = f"SlurmCluster {cluster!r} uses it; delete that first"
        except KubeError as error:
            why = f"whether SlurmCluster {cluster!r} still uses it cannot be told: {error}"
        return Problem(path="", message=f"this Secret is guarded: {why}")


def _cluster(secret: dict[str, Any]) -> str:
    """Which SlurmCluster it is guarded for; empty when it does not say."""
    return next(filter(None, (noted(secret, "annotations", key) for key in GUARDING_CLUSTER)), "")


def _unchanging(secret: dict[str, Any]) -> Problem:
    whose = f"SlurmCluster {_cluster(secret)!r}" if _cluster(secret) else "a SlurmCluster"
    message = (
        f"this Secret is guarded by the label {GUARD_LABEL}=true and cannot change: {whose} uses it. To have "
        "another one, delete the SlurmCluster first, then the Secret"
    )
    return Problem(path="", message=message)


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
