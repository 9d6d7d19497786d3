"""Whom the writer of files in the shared root is: to the API server, and to the root."""

import pytest

from slurm_operator.api import registry
from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.install import rights
from slurm_operator.plan.actions import Apply
from slurm_operator.reconcilers.nebius.shared.families import Family, family
from testing.slurmclusters import OURS, decide, manifest, settled, with_our_images, world

NAME = "smallest-sconfigcontroller"
CONTAINER = {
    "container": {"image": "registry.example/operator:1"},
    "node": {"size": 1, "k8sNodeFilterName": "all"},
}


def made(*, ours: bool = True, **writer) -> dict[str, dict]:
    """What the first pass makes for the writer, by kind."""
    body = manifest("SlurmCluster", "smallest", spec__sConfigController={**CONTAINER, **writer})
    _, plan = decide(world(with_our_images(body) if ours else body), SlurmCluster, "smallest")
    found = [action.manifest for action in plan.actions() if isinstance(action, Apply)]
    return {one["kind"]: one for one in found if one["metadata"]["name"] == NAME}


def pod(**writer) -> dict:
    return made(**writer)["Deployment"]["spec"]["template"]["spec"]


def test_a_writer_without_an_account_gets_one_that_is_bound_to_its_role():
    found = made()

    assert set(found) == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}
    [subject] = found["RoleBinding"]["subjects"]
    assert (subject["name"], subject["namespace"]) == (NAME, "ns")
    assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"]
    assert pod()["serviceAccountName"] == NAME


def test_an_account_that_the_manifest_names_is_the_users_own():
    found = made(serviceAccountName="mine")

    assert set(found) == {"Deployment"}
    assert found["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_it_reads_one_secret_and_no_other():
    rules = [rule for rule in made()["Role"]["rules"] if "secrets" in rule["resources"]]

    assert [(rule["resourceNames"], rule["verbs"]) for rule in rules] == [
        (["smallest-rest-jwt-key"], ["get"])
    ]


def test_the_operator_has_every_right_that_it_gives():
    """The API server refuses a Role with a right that its maker does not have."""
    has = {
        (right.group, resource, verb)
        for right in rights.in_namespaces(registry.ALL)
        if not right.named
        for resource in right.resources
        for verb in right.verbs
    }
    given = {
        (group, resource, verb)
        for rule in made()["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert given <= has


def test_what_is_there_is_not_written_again():
    body = manifest("SlurmCluster", "smallest", spec__sConfigController=CONTAINER)
    there = settled(world(with_our_images(body)), (SlurmCluster, "smallest"))
    _, plan = decide(there, SlurmCluster, "smallest")

    kinds = {action.manifest["kind"] for action in plan.actions() if isinstance(action, Apply)}
    assert not kinds & {"ServiceAccount", "Role", "RoleBinding"}


@pytest.mark.parametrize(
    ("writer", "user", "has_init"),
    [
        pytest.param({}, {"runAsUser": 0, "runAsGroup": 0}, False, id="root: whose /etc/slurm is"),
        pytest.param(
            {"runAsUid": 1001}, {"runAsUser": 1001}, True, id="somebody else: is given /etc/slurm first"
        ),
        pytest.param({"ours": False}, {}, False, id="Soperator's image: its own user"),
    ],
)
def test_whom_the_writer_runs_as(writer, user, has_init):
    spec = pod(**writer)
    security = spec["containers"][0]["securityContext"]

    assert {name: security[name] for name in ("runAsUser", "runAsGroup") if name in security} == user
    assert bool(spec.get("initContainers")) is has_init


def test_the_image_that_populates_a_root_is_one_of_ours():
    assert family(OURS.format(daemon="populate-jail"), {}) is Family.OURS
    assert family("registry.example/populate-jail:1", {}) is Family.SOPERATOR
