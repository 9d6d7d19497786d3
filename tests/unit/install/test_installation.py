"""The installation as data: what runs, with which rights, under which security."""

import pytest
import yaml
from click.testing import CliRunner

from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.cli import main
from slurm_operator.cli.manager import manager
from slurm_operator.cli.webhook import webhook as webhook_command
from slurm_operator.install import Installation, installation, rights
from slurm_operator.manifests.builders.admission import path_of
from slurm_operator.operator import OUR_CHILD_KINDS, program
from slurm_operator.runtime.settings import Settings
from testing.rights import CLUSTER_WIDE, IN_NAMESPACES

CHOSEN = Installation(image="registry.example/slurm-operator:1")


def made(chosen: Installation, kind: str) -> list[dict]:
    return [thing for thing in installation(chosen) if thing["kind"] == kind]


def allowed(*granted: rights.Right) -> set[tuple[str, str, str]]:
    return {
        (right.group, resource, verb)
        for right in granted
        for resource in right.resources
        for verb in right.verbs
    }


def test_everything_that_is_watched_may_be_watched():
    watched = {source.kind for source in program(Settings()).sources.records} | set(OUR_CHILD_KINDS)
    granted = allowed(*CLUSTER_WIDE, *IN_NAMESPACES)

    assert {(kind.group, kind.plural, verb) for kind in watched for verb in ("list", "watch")} <= granted


def test_every_kind_has_a_status_that_may_be_written():
    granted = allowed(*IN_NAMESPACES)

    assert {(kind.KIND.group, f"{kind.KIND.plural}/status", "patch") for kind in KINDS} <= granted


def test_no_right_is_given_twice_or_by_a_wildcard():
    granted = [
        (right.group, resource) for right in (*CLUSTER_WIDE, *IN_NAMESPACES) for resource in right.resources
    ]

    assert len(granted) == len(set(granted))
    assert "*" not in str(
        rights.rules((*CLUSTER_WIDE, *IN_NAMESPACES, *rights.AT_HOME, *rights.SECURE_METRICS))
    )


def test_confined_to_namespaces_it_has_no_right_to_change_anything_elsewhere():
    chosen = wire.replace(CHOSEN, namespaces=("blue", "red"))
    [everywhere, *people] = made(chosen, "ClusterRole")

    assert {verb for rule in everywhere["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert all("aggregate-to-admin" in str(role["metadata"]["labels"]) for role in people)
    assert sorted(role["metadata"]["namespace"] for role in made(chosen, "Role")) == [
        "blue",
        "red",
        "slurm-operator",
    ]
    [deployment] = made(chosen, "Deployment")
    assert "--namespaces=blue,red" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_with_roles_alone_it_has_no_right_outside_its_namespaces():
    chosen = wire.replace(CHOSEN, namespaces=("blue",), sees_cluster=False)

    assert made(chosen, "ClusterRole") == made(chosen, "ClusterRoleBinding") == []


def test_pods_are_fit_for_the_restricted_level_that_their_namespace_enforces():
    [namespace] = made(CHOSEN, "Namespace")
    [deployment] = made(CHOSEN, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True
    }  # fmt: skip


@pytest.mark.parametrize(
    ("replicas", "budgets"), [(1, 0), (2, 1)], ids=["one: nothing to keep", "two: one stays"]
)
def test_a_budget_is_for_several_managers(replicas, budgets):
    assert len(made(wire.replace(CHOSEN, replicas=replicas), "PodDisruptionBudget")) == budgets


WHOLE = wire.replace(CHOSEN, webhook_image="registry.example/slurm-operator-webhook:1")


def test_manifests_prints_the_definitions_and_then_the_installation():
    said = CliRunner().invoke(
        main, ["manifests", "--image", WHOLE.image, "--webhook-image", WHOLE.webhook_image]
    )
    definitions, found, rest = said.output.partition("---\napiVersion: v1\nkind: Namespace\n")

    assert said.exit_code == 0
    assert definitions.count("\nkind: CustomResourceDefinition\n") == len(KINDS)
    assert list(yaml.safe_load_all(found + rest)) == installation(WHOLE)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param([], "No image is named, and there is no default.", id="none"),
        pytest.param(["--no-webhook"], "No image is named, and there is no default.", id="none, no webhook"),
        pytest.param(["--webhook-image=r/hook:1"], "No image is named", id="the webhook's alone"),
        pytest.param(["--image=r/op@sha256:1"], "name --webhook-image too", id="a digest"),
        pytest.param(
            ["--image=ghcr.io/slinkyproject/slurm-operator:1.3.0"], "another program", id="Slinky's operator"
        ),
        pytest.param(
            ["--image=r/op:1", "--webhook-image=ghcr.io/slinkyproject/slurm-operator-webhook:1.3.0"],
            "another program",
            id="Slinky's webhook",
        ),
    ],
)
def test_an_image_that_anybody_could_publish_is_never_printed(flags, words):
    said = CliRunner().invoke(main, ["manifests", *flags])

    assert said.exit_code == 2
    assert words in said.output
    assert "kind: Deployment" not in said.output


@pytest.mark.parametrize(
    ("image", "webhook"),
    [
        ("r/op:1", "r/op-webhook:1"),
        ("r:5000/op", "r:5000/op-webhook"),
        ("r:5000/op:1", "r:5000/op-webhook:1"),
    ],
)
def test_the_image_of_the_webhook_is_called_after_that_of_the_operator(image, webhook):
    said = CliRunner().invoke(main, ["manifests", "--no-crds", f"--image={image}"])
    named = [
        thing["spec"]["template"]["spec"]["containers"][0]["image"]
        for thing in yaml.safe_load_all(said.output)
        if thing["kind"] == "Deployment"
    ]

    assert named == [image, webhook]


def test_only_the_policies_are_printed_for_an_operator_that_was_installed_otherwise():
    said = CliRunner().invoke(main, ["manifests", "--only-protection", "--namespace", "slinky"])
    policy, binding, *of_crds = yaml.safe_load_all(said.output)

    assert (policy["kind"], binding["kind"]) == (
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
    assert "system:serviceaccount:slinky:slurm-operator" in str(policy["spec"]["matchConditions"])
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == "slurm-operator-workers-slinky"
    assert {one["metadata"]["name"] for one in of_crds} == {"slurm-operator-crds-slinky"}
    assert [one["kind"] for one in of_crds] == [policy["kind"], binding["kind"]]


def test_the_api_server_asks_about_our_kinds_where_the_webhook_answers_and_goes_on_without_it():
    [configuration] = made(WHOLE, "ValidatingWebhookConfiguration")
    asked = {hook["clientConfig"]["service"]["path"]: hook for hook in configuration["webhooks"]}

    assert set(asked) == {path_of(kind.KIND) for kind in KINDS}
    assert {group for hook in asked.values() for rule in hook["rules"] for group in rule["apiGroups"]} == {
        "slinky.slurm.net"
    }
    assert {hook["failurePolicy"] for hook in asked.values()} == {"Ignore"}


def test_the_webhook_is_told_where_it_is_and_may_write_only_its_own_certificates():
    _, webhook = made(WHOLE, "Deployment")
    [container] = webhook["spec"]["template"]["spec"]["containers"]
    flags = webhook_command.make_context("webhook", list(container["args"])).params

    assert (
        flags["webhook_configurations"]
        == made(WHOLE, "ValidatingWebhookConfiguration")[0]["metadata"]["name"]
    )
    assert flags["service_name"] in [service["metadata"]["name"] for service in made(WHOLE, "Service")]
    writes = [
        rule
        for role in made(WHOLE, "ClusterRole")
        if role["metadata"]["name"].endswith("webhook")
        for rule in role["rules"]
        if "patch" in rule["verbs"]
    ]
    assert [rule["resourceNames"] for rule in writes] == [[flags["webhook_configurations"]]]


def test_the_manager_takes_the_flags_that_it_is_given():
    [deployment] = made(wire.replace(CHOSEN, namespaces=("blue",)), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]

    assert manager.make_context("manager", list(container["args"])).params["namespaces"] == "blue"
