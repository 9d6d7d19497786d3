"""What slurmctld needs where Slurm powers nodes up and down: programs to call, and who carries them out.

slurmctld calls a program without an environment and waits for it. So the program only leaves a note in a
directory that slurmctld's pod shares with power-manager, which tells the API server for as long as it takes.
Soperator's images bring programs and a power-manager of their own.
"""

from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.shared.images import default_image
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import Maker
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.slurm_lines import Power, power_of_two

POWER_MANAGER: Final = "power-manager"
CALLS: Final = "/run/slurm-power"  # As the programs in the image have it.
_VOLUME: Final = "power-calls"
_TOKEN: Final = "power-manager-token"  # noqa: S105 - the name of a volume
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a directory
_NOBODY: Final = 65532
_TOKEN_SECONDS: Final = 3607

# What power-manager may do.
_GROUP: Final = NodeSetPowerState.KIND.group
RULES: Final[list[Manifest]] = [
    {"apiGroups": [_GROUP], "resources": [NodeSet.KIND.plural], "verbs": ["get"]},
    {"apiGroups": [_GROUP], "resources": [NodeSetPowerState.KIND.plural], "verbs": ["get", "patch"]},
]


def is_used(seen: Seen) -> bool:
    return any(one.spec is not None and one.spec.ephemeral_nodes for one in seen.nodesets)


def of(seen: Seen) -> Power:
    """Nodes of all other NodeSets are left alone: nobody would start them again.

    Names that do not exist are passed over. So a range is wider than it need be, and scaling does not change
    the configuration.
    """
    others = [
        one
        for one in seen.nodesets
        if one.spec is not None and not one.spec.ephemeral_nodes and one.spec.replicas
    ]
    ranges = (
        f"{one.metadata.name}-[0-{power_of_two(one.spec.replicas) - 1}]"
        for one in others
        if one.spec is not None
    )
    return Power(is_used=is_used(seen), excluded=tuple(ranges))


def _is_ours(seen: Seen) -> bool:
    return is_used(seen) and seen.family is Family.OURS


def account(seen: Seen) -> str:
    """Whom power-manager is to the API server, where the manifest names nobody."""
    return names.slurm_controller(seen.name) if _is_ours(seen) else ""


def mounts(seen: Seen) -> list[Manifest]:
    return [pods.mount(_VOLUME, CALLS)] if _is_ours(seen) else []


def volumes(seen: Seen) -> list[Manifest]:
    """The notes, and a token that only power-manager sees."""
    if not _is_ours(seen):
        return []
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    return [{"name": _VOLUME, "emptyDir": {}}, {"name": _TOKEN, "projected": {"sources": sources}}]


def sidecars(seen: Seen) -> list[Manifest]:
    if not _is_ours(seen):
        return []
    return [
        {
            "name": POWER_MANAGER,
            "image": default_image("exporter"),  # The operator's own.
            "restartPolicy": "Always",
            "command": ["slurm-operator", POWER_MANAGER, "serve", f"--calls={CALLS}"],
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
            "securityContext": {
                "runAsUser": _NOBODY,
                "runAsGroup": _NOBODY,
                "runAsNonRoot": True,
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": [pods.mount(_VOLUME, CALLS), pods.mount(_TOKEN, _TOKEN_PATH, read_only=True)],
        }
    ]


def rights(seen: Seen, made: Maker) -> list[Manifest]:
    """The account of power-manager, and what it may do; none where the manifest names an account."""
    if not _is_ours(seen) or seen.spec.slurm_nodes.controller.service_account_name:
        return []
    name = names.slurm_controller(seen.name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": seen.meta.namespace}
    role = {"apiGroup": kinds.ROLE.group, "kind": kinds.ROLE.kind, "name": name}
    return [
        made.object(kinds.SERVICE_ACCOUNT, name, "controller") | {"automountServiceAccountToken": False},
        made.object(kinds.ROLE, name, "controller") | {"rules": RULES},
        made.object(kinds.ROLE_BINDING, name, "controller") | {"roleRef": role, "subjects": [subject]},
    ]
