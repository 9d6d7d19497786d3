"""The policy that keeps workers from being deleted under their jobs, whoever asks.

It is CEL inside the API server, so it works with the operator away, and it looks only at pods with our label:
no other object waits for it. Evictions do not come by here; the PodDisruptionBudget holds those.
"""

from collections.abc import Sequence
from typing import Final

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.builders.deletion_policy import deletion_policy, policy_binding
from slurm_operator.manifests.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, POD
from slurm_operator.manifests.meta import Manifest

NAME: Final = "slurm-operator-workers"

# For people: what installs the policy, and what lets the operator see it. NAMESPACE is the operator's.
INSTALL: Final = "slurm-operator manifests --only-protection --namespace NAMESPACE | kubectl apply -f -"
_RESOURCES: Final = ",".join(
    f"{kind.plural}.{kind.group}" for kind in (ADMISSION_POLICY, ADMISSION_POLICY_BINDING)
)
LET_LOOK: Final = (
    f"kubectl create clusterrole slurm-operator-policies --verb=list --resource={_RESOURCES}; "
    "kubectl create clusterrolebinding slurm-operator-policies --clusterrole=slurm-operator-policies "
    "--serviceaccount=NAMESPACE:slurm-operator"
)

# It deletes pods whose machine is gone, and nobody else may know that.
POD_GARBAGE_COLLECTOR: Final = "system:serviceaccount:kube-system:pod-garbage-collector"

_POD: Final = "oldObject.metadata"
_OVERRIDE: Final = f"{_POD}.?annotations[?'{names.ALLOW_DELETION}'].orValue('') == 'true'"

_ANNOTATE: Final = f"kubectl annotate pod -n ' + {_POD}.namespace + ' ' + {_POD}.name + '"

# One sentence on why, three on the right ways, one on the other way. CEL joins it for each pod.
_MESSAGE: Final = (
    f"'worker ' + {_POD}.name + ' may have running jobs, so it is not deleted. "
    "Lower replicas of its NodeSet, or delete the NodeSet: "
    "then the operator drains it and removes it when its jobs are done. "
    f"To have just this one replaced then: {_ANNOTATE} {names.POD_REPLACE}=true. "
    "To empty its machine: kubectl drain, which waits for the jobs. "
    f"To delete it all the same, with its jobs: {_ANNOTATE} {names.ALLOW_DELETION}=true'"
)


def service_account(namespace: str, name: str) -> str:
    """The user name under which the API server knows a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def protection(
    operator: str, *, exempt: Sequence[str] = (), namespaces: Sequence[str] = (), name: str = NAME
) -> list[Manifest]:
    """The policy and its binding. `operator` and `exempt` are users who may delete workers.

    Without `namespaces` it holds in all of them.
    """
    return [policy([operator, *exempt], name), binding(namespaces, name)]


def policy(exempt: Sequence[str], name: str = NAME) -> Manifest:
    users = wire.encode(sorted({*exempt, POD_GARBAGE_COLLECTOR})).decode()
    conditions = [
        _unless("someone-exempt", f"request.userInfo.username in {users}"),
        _unless("already-terminating", f"has({_POD}.deletionTimestamp)"),
        _unless(
            "its-own-kubelet",
            "request.userInfo.username == 'system:node:' + oldObject.spec.?nodeName.orValue('')",
        ),
        _unless("override", _OVERRIDE),
    ]
    protected = {"matchLabels": {names.LABEL_POD_PROTECT: "true"}}
    return deletion_policy(name, POD, conditions, _MESSAGE, selector=protected)


def _unless(name: str, expression: str) -> Manifest:
    return {"name": f"not-{name}", "expression": f"!({expression})"}


def binding(namespaces: Sequence[str] = (), name: str = NAME) -> Manifest:
    if not namespaces:
        return policy_binding(name)
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(namespaces)}
    return policy_binding(name, {"namespaceSelector": {"matchExpressions": [own]}})
