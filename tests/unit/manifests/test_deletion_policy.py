"""What the policies that refuse deletions have in common; tests/integration tries them on a real API server."""

import pytest

from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.crd_protection import crd_protection
from slurm_operator.manifests.builders.deletion_policy import deletion_policy, policy_binding
from slurm_operator.manifests.builders.protection import protection


@pytest.mark.parametrize(
    ("objects", "kind"),
    [
        pytest.param(protection("op"), kinds.POD, id="of workers"),
        pytest.param(crd_protection(), kinds.CUSTOM_RESOURCE_DEFINITION, id="of CRDs"),
    ],
)
def test_a_deletion_is_refused_also_when_the_policy_cannot_be_evaluated(objects, kind):
    [policy, binding] = objects
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]

    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["validationActions"] == ["Deny"]
    assert rule == {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["DELETE"],
        "resources": [kind.plural],
    }


def test_a_policy_without_a_selector_and_a_binding_without_a_scope_are_about_everything():
    policy, binding = deletion_policy("mine", kinds.POD, [], "''"), policy_binding("mine")

    assert "objectSelector" not in policy["spec"]["matchConstraints"]
    assert "matchResources" not in binding["spec"]
