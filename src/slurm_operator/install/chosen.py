"""What can be chosen about an installation without Helm. The charts have more."""

from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import DEFAULT_GROUPS, Registry, with_parts
from slurm_operator.install.rights import Right, rules

Manifest = dict[str, Any]

NAME: Final = "slurm-operator"
_RBAC: Final = "rbac.authorization.k8s.io"


class Installation(wire.Record):
    """One operator in one cluster."""

    image: str
    webhook_image: str = ""  # Empty: no webhook.
    namespace: str = NAME
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    slurm_images: str = ""
    mariadb_image: str = ""
    namespaces: tuple[str, ...] = ()  # Slurm clusters live in these only; empty is everywhere.
    sees_cluster: bool = True  # With namespaces: whether it may look at machines and storage classes.
    is_protecting: bool = True
    limits_users: bool = False  # Privileged pods and administrators' tokens are for those who may `use` them.
    is_recording: bool = False  # Keeps its last decisions: see `kubectl slurm record`.
    kinds: Registry = registry.DEFAULT  # Those that are on.

    @property
    def needed(self) -> Registry:
        """Those that must be there: also the parts that clusters are made of."""
        return with_parts(self.kinds)

    @property
    def apis(self) -> list[str]:
        """As flags of manager and webhook; none where only the usual group is on."""
        return (
            [] if self.kinds.groups == DEFAULT_GROUPS else [f"--api={group}" for group in self.kinds.groups]
        )

    @property
    def serves_nebius(self) -> bool:
        return nebius_names.GROUP in self.kinds.groups

    def metadata(self, component: str, name: str = "", *, namespace: str | None = None) -> Manifest:
        return {
            "name": name or component,
            "namespace": self.namespace if namespace is None else namespace,
            "labels": labels(component),
        }


def labels(component: str) -> dict[str, str]:
    """By which Services, budgets and policies find the pods."""
    return {"app.kubernetes.io/name": component, "app.kubernetes.io/instance": NAME}


def granted(
    chosen: Installation, component: str, kind: str, where: str, rights: tuple[Right, ...], name: str = ""
) -> list[Manifest]:
    """A role and its binding to the service account of one component."""
    metadata = chosen.metadata(component, name, namespace=where)
    if kind == "ClusterRole":
        del metadata["namespace"]
    subject = {"kind": "ServiceAccount", "name": component, "namespace": chosen.namespace}
    role = {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules(rights)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        },
    ]
