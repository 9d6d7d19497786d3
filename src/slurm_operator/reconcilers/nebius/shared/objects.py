"""Objects around the parts: their labels and owners, ConfigMaps and Secrets."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.meta import Manifest

APP = "slurmcluster"
OPERATOR = "slurm-operator"


def match_labels(cluster: str, component: str) -> dict[str, str]:
    """Finds the pods of one component of a cluster."""
    return {
        shared_names.APP_NAME: APP,
        shared_names.APP_INSTANCE: cluster,
        shared_names.APP_COMPONENT: component,
    }


def labels(cluster: str, component: str) -> dict[str, str]:
    """What every object of a cluster carries."""
    return {
        **match_labels(cluster, component),
        "app.kubernetes.io/part-of": OPERATOR,
        "app.kubernetes.io/managed-by": OPERATOR,
    }


@dataclass(frozen=True)
class Maker:
    """Makes objects of one cluster that belong to `meta`: the SlurmCluster itself, or one of its NodeSets."""

    kind: Kind
    meta: Meta
    cluster: str

    def object(self, kind: Kind, name: str, component: str, *, is_owned: bool = True) -> Manifest:
        """Without the owner's own labels and annotations: they would end up on pods, and replace them."""
        owners = {"ownerReferences": [owner_reference(self.kind, self.meta)]} if is_owned else {}
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": name,
                "namespace": self.meta.namespace,
                "labels": labels(self.cluster, component),
                **owners,
            },
        }

    def config_map(self, name: str, component: str, data: Mapping[str, str]) -> Manifest:
        return self.object(kinds.CONFIG_MAP, name, component) | {"data": dict(data)}

    def account(self, name: str, component: str, rules: list[Manifest]) -> list[Manifest]:
        """Whom a pod is to the API server, and what it may do there, in its own namespace only.

        Nobody can give rights that they do not have: the operator has every one of these.
        """
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.meta.namespace}
        role = {"apiGroup": kinds.ROLE.group, "kind": kinds.ROLE.kind, "name": name}
        return [
            self.object(kinds.SERVICE_ACCOUNT, name, component),
            self.object(kinds.ROLE, name, component) | {"rules": rules},
            self.object(kinds.ROLE_BINDING, name, component) | {"roleRef": role, "subjects": [subject]},
        ]

    def part(self, kind: Kind, name: str, component: str, spec: Manifest) -> Manifest:
        return self.object(kind, name, component) | {"spec": spec}


def children(
    cluster: str, component: str, roles: Mapping[str, str], more: Mapping[str, str] | None = None
) -> Manifest:
    """The option of a part that names its objects and gives them the labels of the cluster."""
    return {"names": dict(roles), "labels": {**labels(cluster, component), **(more or {})}}
