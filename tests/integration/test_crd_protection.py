"""Who may delete a CRD of ours, asked of a real API server."""

import json

import pytest
import yaml
from chart_rig import rendered
from kinds_rig import apply, get, ours

from slurm_local.errors import LocalError
from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.manifests.builders.crd_protection import NAME, crd_protection
from testing.control_plane import ControlPlane
from testing.managers import until

NODESETS = "nodesets.slinky.slurm.net"
FOREIGN = "things.example.com"
SECOND = "slurmclusters.slurm.nebius.ai"
REFUSED = "is not deleted: with it Kubernetes would delete every"


def definition(name: str) -> dict:
    plural, _, group = name.partition(".")
    kind = plural.removesuffix("s").capitalize()
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("crds"), controller_manager=True).running() as plane:
        for kind in KINDS:
            plane.caller.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
        apply(plane, definition(FOREIGN), definition(SECOND), *crd_protection())
        wait_established(plane.kubectl)
        until(lambda: is_refused(plane, NODESETS, "--dry-run=server"), what="the policy at work")
        yield plane


def is_refused(plane, name: str, *flags: str) -> bool:
    try:
        plane.kubectl("delete", "crd", name, *flags)
    except LocalError as error:
        return REFUSED in str(error)
    return False


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND.kind)
def test_a_crd_of_ours_is_not_deleted_and_the_reason_says_what_would_be_lost(plane, kind):
    name = f"{kind.KIND.plural}.{kind.KIND.group}"

    with pytest.raises(LocalError) as refusal:
        plane.kubectl("delete", "crd", name)

    assert f"CRD {name} {REFUSED} {kind.KIND.kind} in every namespace, their pods and the jobs" in str(
        refusal.value
    )
    assert f"kubectl annotate crd {name} slinky.slurm.net/allow-deletion=true" in str(refusal.value)


def test_neither_is_one_of_the_second_group(plane):
    assert is_refused(plane, SECOND)


def test_deleting_all_of_them_takes_only_those_of_others(plane):
    with pytest.raises(LocalError, match=REFUSED):
        plane.kubectl("delete", "crd", "--all", "--wait=false")

    until(lambda: get(plane, "", "crd", FOREIGN) is None, what="the CRD of somebody else gone")
    apply(plane, definition(FOREIGN))
    assert plane.kubectl("get", "crd", "-o", "name").count("slinky.slurm.net") == len(KINDS)


def test_it_can_be_changed_applied_again_and_scaled_by_a_chart(plane):
    plane.kubectl("annotate", "crd", NODESETS, "example.com/note=here", "--overwrite")
    plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=rendered("slurm-operator-crds", {})
    )
    plane.kubectl("replace", "-f", "-", stdin=json.dumps(get(plane, "", "crd", NODESETS)))

    assert get(plane, "", "crd", NODESETS)["metadata"]["annotations"]["example.com/note"] == "here"


def test_a_namespace_with_objects_of_ours_is_deleted_as_ever(plane):
    plane.kubectl("create", "namespace", "going")
    apply(
        plane, ours("Token", "going", "alice", {"username": "alice", "jwtKeyRef": {"name": "k", "key": "k"}})
    )

    plane.kubectl("delete", "namespace", "going", "--timeout=60s")

    assert get(plane, "", "namespace", "going") is None


def test_who_allows_it_may_delete_it_and_what_is_deleted_already_may_be_hurried(plane):
    name = "tokens.slinky.slurm.net"
    plane.kubectl("create", "namespace", "kept")
    held = ours("Token", "kept", "alice", {"username": "alice", "jwtKeyRef": {"name": "k", "key": "k"}})
    held["metadata"]["finalizers"] = ["example.com/held"]
    apply(plane, held)

    plane.kubectl("annotate", "crd", name, f"{names.CRD_ALLOW_DELETION}=false")
    assert is_refused(plane, name)
    plane.kubectl("annotate", "crd", name, f"{names.CRD_ALLOW_DELETION}=true", "--overwrite")
    plane.kubectl("delete", "crd", name, "--wait=false")
    plane.kubectl("annotate", "crd", name, f"{names.CRD_ALLOW_DELETION}-")
    assert not is_refused(plane, name, "--wait=false")

    plane.kubectl(
        "patch", "token", "alice", "-n", "kept", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )
    until(lambda: get(plane, "", "crd", name) is None, what="the CRD gone")


def test_the_api_server_finds_nothing_to_warn_about_in_the_policy(plane):
    def checked() -> dict:
        return get(plane, "", "validatingadmissionpolicy", NAME).get("status", {})

    until(lambda: "typeChecking" in checked(), what="the types in the policy checked")

    assert checked()["typeChecking"] == {}


@pytest.mark.parametrize("enabled", [True, False])
def test_the_chart_has_both_policies_or_none(enabled):
    text = rendered("slurm-operator", {"protection": {"enabled": enabled}, "fullnameOverride": "op"})
    policies = [
        thing["metadata"]["name"]
        for thing in yaml.safe_load_all(text)
        if thing and thing["kind"] == "ValidatingAdmissionPolicy"
    ]

    assert sorted(policies) == (["op-crds", "op-workers"] if enabled else [])
