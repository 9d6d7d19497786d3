"""The policy that protects workers, as data; tests/integration tries it on a real API server."""

from slurm_operator.manifests.builders.protection import POD_GARBAGE_COLLECTOR, protection, service_account
from slurm_operator.manifests.kinds import kind_of


def conditions(*exempt: str) -> dict[str, str]:
    [policy, _] = protection(service_account("slurm", "op"), exempt=exempt)
    return {one["name"]: one["expression"] for one in policy["spec"]["matchConditions"]}


def test_whoever_is_exempt_stands_in_the_policy_once_and_in_order():
    users = f'["ci","system:serviceaccount:kube-system:{POD_GARBAGE_COLLECTOR.rpartition(":")[2]}","system:serviceaccount:slurm:op"]'

    assert conditions("ci", "ci")["not-someone-exempt"] == f"!(request.userInfo.username in {users})"


def test_a_name_cannot_break_out_of_its_quotes():
    hostile = '"] || true || "" in ["'

    assert '"\\"] || true || \\"\\" in [\\""' in conditions(hostile)["not-someone-exempt"]


def test_policy_and_binding_have_one_name_and_known_kinds():
    objects = protection("op", name="mine")

    assert [kind_of(one).plural for one in objects] == [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ]
    assert {one["metadata"]["name"] for one in objects} == {objects[1]["spec"]["policyName"]} == {"mine"}
    assert "matchResources" not in objects[1]["spec"]
