"""The installation as data: what runs, with which rights, under which security."""

import pytest
import yaml
from click.testing import CliRunner

from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.cli import main
from slurm_operator.install import Installation, installation, rights
from slurm_operator.operator import OUR_CHILD_KINDS, program
from slurm_operator.runtime.settings import Settings

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
    granted = allowed(*rights.CLUSTER_WIDE, *rights.IN_NAMESPACES)

    assert {(kind.group, kind.plural, verb) for kind in watched for verb in ("list", "watch")} <= granted


def test_every_kind_has_a_status_that_may_be_written():
    granted = allowed(*rights.IN_NAMESPACES)

    assert {(kind.KIND.group, f"{kind.KIND.plural}/status", "patch") for kind in KINDS} <= granted


def test_no_right_is_given_twice_or_by_a_wildcard():
    granted = [
        (right.group, resource)
        for right in (*rights.CLUSTER_WIDE, *rights.IN_NAMESPACES)
        for resource in right.resources
    ]

    assert len(granted) == len(set(granted))
    assert "*" not in str(
        rights.rules((*rights.CLUSTER_WIDE, *rights.IN_NAMESPACES, *rights.AT_HOME, *rights.SECURE_METRICS))
    )


def test_confined_to_namespaces_it_has_no_right_to_change_anything_elsewhere():
    chosen = wire.replace(CHOSEN, namespaces=("blue", "red"))
    [everywhere] = made(chosen, "ClusterRole")

    assert {verb for rule in everywhere["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    assert sorted(role["metadata"]["namespace"] for role in made(chosen, "Role")) == [
        "blue",
        "red",
        "slurm-operator",
    ]
    [deployment] = made(chosen, "Deployment")
    assert "--namespaces=blue,red" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


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


def test_manifests_prints_the_definitions_and_then_the_installation():
    said = CliRunner().invoke(main, ["manifests", "--image", CHOSEN.image])
    definitions, found, rest = said.output.partition("---\napiVersion: v1\nkind: Namespace\n")

    assert said.exit_code == 0
    assert definitions.count("\nkind: CustomResourceDefinition\n") == len(KINDS)
    assert list(yaml.safe_load_all(found + rest)) == installation(CHOSEN)
