"""The policy that protects CRDs, as data; tests/integration tries it on a real API server."""

from slurm_operator.api import KINDS
from slurm_operator.api.registry import GROUPS
from slurm_operator.manifests.builders.crd_protection import crd_protection
from slurm_operator.manifests.kinds import kind_of


def test_every_group_of_ours_is_protected():
    assert {kind.KIND.group for kind in KINDS} <= set(GROUPS)


def test_policy_and_binding_have_one_name_and_known_kinds():
    objects = crd_protection("mine")

    assert [kind_of(one).plural for one in objects] == [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ]
    assert {one["metadata"]["name"] for one in objects} == {objects[1]["spec"]["policyName"]} == {"mine"}


def test_it_is_about_nothing_but_the_deletion_of_crds():
    [policy, _] = crd_protection()

    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["DELETE"], ["customresourcedefinitions"])
