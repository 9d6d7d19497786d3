"""Policies that refuse to delete things, inside the API server: what those that we install have in common."""

from collections.abc import Sequence

from slurm_operator.api.schema.kind import Kind
from slurm_operator.manifests.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING
from slurm_operator.manifests.meta import Manifest


def deletion_policy(
    name: str, kind: Kind, conditions: Sequence[Manifest], message: str, *, selector: Manifest | None = None
) -> Manifest:
    """Refuses DELETE of a kind where all conditions hold. `message` is CEL: a text about `oldObject`."""
    chosen = {} if selector is None else {"objectSelector": selector}
    return {
        "apiVersion": ADMISSION_POLICY.api_version,
        "kind": ADMISSION_POLICY.kind,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                **chosen,
                "resourceRules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": [kind.version],
                        "operations": ["DELETE"],
                        "resources": [kind.plural],
                    }
                ],
            },
            "matchConditions": list(conditions),
            "validations": [{"expression": "false", "messageExpression": message, "reason": "Forbidden"}],
        },
    }


def policy_binding(name: str, scope: Manifest | None = None) -> Manifest:
    """Of the policy of the same name: in all of the cluster, or where `scope` says."""
    where = {} if scope is None else {"matchResources": scope}
    return {
        "apiVersion": ADMISSION_POLICY_BINDING.api_version,
        "kind": ADMISSION_POLICY_BINDING.kind,
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **where},
    }
