"""`doctor` against a real API server: an installation with its rights, webhooks and policies, and nothing written."""

import json

import pytest
from click.testing import CliRunner
from kinds_rig import apply, ns, plane

from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.install.objects import Installation, installation
from testing.audit import asked_by, changes_by

__all__ = ["ns", "plane"]


def told(plane, ns: str, user: str = "doctor", *groups: str) -> dict[str, tuple[str, str]]:
    """What it says under each name, the worst last."""
    kubeconfig = plane.kubeconfig_for(user, *groups)
    command = ["doctor", "-n", ns, "-o", "json", "--kubeconfig", str(kubeconfig)]
    result = CliRunner().invoke(kubectl_slurm, command)
    found = json.loads(result.stdout)
    fails = any(one["level"] == "FAIL" for one in found)
    is_unknown = any(one["is_unread"] and one["check"] in ("Operator", "CRDs") for one in found)
    assert result.exit_code == (1 if fails or is_unknown else 0)
    return {one["check"]: (one["level"], one["message"]) for one in found}


@pytest.fixture(scope="module")
def installed(plane) -> None:
    apply(plane, *installation(Installation(image="slurm-operator:test")))


def test_an_installation_is_looked_at_and_nothing_is_changed(plane, ns, installed):
    found = told(plane, ns, "doctor", "system:masters")

    assert found["Kubernetes"][0] == "ok"
    assert found["CRDs"] == ("ok", "All 7 kinds are installed, in this program's version.")
    assert found["Operator"] == ("FAIL", "slurm-operator/slurm-operator has 0 of 1 pods ready.")
    assert found["Operator's rights"][0] == "ok", "its own Role is enough"
    assert found["Protection"][0] == "ok"
    assert found["Nodes"][0] == "FAIL", "this API server has no kubelets"
    assert found["Your rights"][0] == "ok"
    assert asked_only(plane, "doctor")


def asked_only(plane, user: str) -> bool:
    """Whether the API server's own log has nothing but questions of this user."""
    changing = changes_by(plane.audit_log, user)
    reviews = [entry for entry in changing if entry["requestURI"].endswith("reviews")]
    rehearsals = [entry for entry in changing if "dryRun=All" in entry["requestURI"]]
    return len(asked_by(plane.audit_log, user)) > 10 and len(changing) == len(reviews) + len(rehearsals)


def test_a_role_that_lost_a_right_is_noticed(plane, ns, installed):
    role = json.loads(plane.kubectl("get", "clusterrole", "slurm-operator", "-o", "json"))
    less = [rule for rule in role["rules"] if "pods/status" not in rule["resources"]]
    plane.kubectl("patch", "clusterrole", "slurm-operator", "--type=merge", "-p", json.dumps({"rules": less}))

    level, message = told(plane, ns, "doctor", "system:masters")["Operator's rights"]

    apply(plane, *installation(Installation(image="slurm-operator:test")))
    assert level == "FAIL"
    assert f"may not patch pods/status (in namespace {ns})" in message


@pytest.mark.parametrize("kind", ["validatingadmissionpolicy", "validatingadmissionpolicybinding"])
def test_a_protection_that_somebody_took_away_is_noticed(plane, ns, installed, kind):
    plane.kubectl("delete", kind, "slurm-operator-workers")

    level, message = told(plane, ns, "doctor", "system:masters")["Protection"]

    apply(plane, *installation(Installation(image="slurm-operator:test")))
    assert level == "warn"
    assert message.startswith("No policy protects workers")


def test_a_webhook_that_nobody_answers_for_is_noticed(plane, ns):
    rule = {
        "apiGroups": ["slinky.slurm.net"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["*"],
    }
    hook = {
        "name": "away.slinky.slurm.net",
        "clientConfig": {"service": {"namespace": "slurm-operator", "name": "away", "path": "/"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    apply(plane, {**kind, "metadata": {"name": "away"}, "webhooks": [hook]})

    level, message = told(plane, ns, "doctor", "system:masters")["Webhook"]

    plane.kubectl("delete", "validatingwebhookconfiguration", "away")
    assert (level, "failed calling webhook" in message) == ("FAIL", True)


def test_pod_security_is_that_of_the_namespace(plane, ns):
    assert told(plane, ns, "doctor", "system:masters")["Pod Security"][0] == "ok"
    plane.kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")

    assert told(plane, ns, "doctor", "system:masters")["Pod Security"][0] == "FAIL"
    assert told(plane, "nowhere", "doctor", "system:masters")["Pod Security"] == (
        "warn",
        "There is no namespace nowhere yet.",
    )


def test_somebody_without_rights_is_told_which(plane, ns):
    found = told(plane, ns, "stranger")

    assert "Could not be looked at" in found["CRDs"][1]
    level, message = found["Your rights"]
    assert level == "warn"
    assert "stranger may not list clusters.slinky.slurm.net, " in message
    assert f"get pods/log, services/proxy, secrets; create services/proxy (in namespace {ns})" in message
    assert found["Nodes"] == ("warn", "Could not be looked at: get /api/v1/nodes is not allowed to you")
