"""The policy that keeps our CRDs from being deleted by mistake, and with them every Slurm cluster.

Kubernetes deletes all objects of a kind with its CRD. `helm uninstall` deletes CRDs unless the chart says
`helm.sh/resource-policy: keep`, and so may a GitOps tool that prunes. Like the policy for workers this is CEL
inside the API server. It is only about DELETE of a CRD: updates, upgrades and namespaces do not ask it.
"""

from typing import Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.shared import names
from slurm_operator.manifests.builders.deletion_policy import deletion_policy, policy_binding
from slurm_operator.manifests.kinds import CUSTOM_RESOURCE_DEFINITION
from slurm_operator.manifests.meta import Manifest

NAME: Final = "slurm-operator-crds"

_CRD: Final = "oldObject.metadata"
_KIND: Final = "oldObject.spec.names.kind"

_MESSAGE: Final = (
    f"'CRD ' + {_CRD}.name + ' is not deleted: with it Kubernetes would delete every ' + {_KIND} + "
    "' in every namespace, their pods and the jobs on them. "
    "Slurm also runs without the operator, so the CRDs can stay when you remove it. "
    f"To delete this CRD with all its objects: kubectl annotate crd ' + {_CRD}.name + "
    f"' {names.CRD_ALLOW_DELETION}=true'"
)


def crd_protection(name: str = NAME) -> list[Manifest]:
    """The policy and its binding. Nobody is exempt: who means it annotates the CRD."""
    groups = wire.encode(registry.GROUPS).decode()
    allowed = f"{_CRD}.?annotations[?'{names.CRD_ALLOW_DELETION}'].orValue('') == 'true'"
    conditions = [
        {"name": "of-ours", "expression": f"oldObject.spec.group in {groups}"},
        {"name": "not-already-terminating", "expression": f"!has({_CRD}.deletionTimestamp)"},
        {"name": "not-allowed", "expression": f"!({allowed})"},
    ]
    policy = deletion_policy(name, CUSTOM_RESOURCE_DEFINITION, conditions, _MESSAGE)
    return [policy, policy_binding(name)]
