"""A release of Slinky's chart upgraded to ours with the real helm: keys and NodeSets stay, and `doctor` says so before.

Slinky's chart is a stand-in that makes its keys itself, without a word on keeping them, under the names of its versions.
No pod ever runs here.
"""

import json
import subprocess
import uuid
from pathlib import Path

import pytest
import yaml
from chart_rig import CHARTS, HelmError, program
from click.testing import CliRunner
from kinds_rig import apply, get, ns, plane

from slurm_operator.cli.kubectl import kubectl_slurm
from testing import slinky_values
from testing.audit import changes_by
from testing.slinky_charts import write_charts

__all__ = ["ns", "plane"]

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

CLUSTER = """\
{{- range $name, $entry := dict (default "slurm-auth-slurm" .Values.slurmKey.secretRef.name) "slurm.key" (default .Values.jwtName .Values.jwtKey.secretRef.name) .Values.jwtEntry }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  labels: {app.kubernetes.io/managed-by: Helm}
immutable: true
data: { {{ $entry }}: @key@ }
{{- end }}
---
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: slurm}
spec:
  slurmKeyRef: {name: {{ default "slurm-auth-slurm" .Values.slurmKey.secretRef.name }}, key: slurm.key}
  jwtKeyRef: {name: {{ default .Values.jwtName .Values.jwtKey.secretRef.name }}, key: {{ .Values.jwtEntry }}}
  slurmctld: {image: "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04"}
  persistence: {enabled: true, accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Gi}}}
---
apiVersion: slinky.slurm.net/v1beta1
kind: RestApi
metadata: {name: slurm}
spec: {controllerRef: {name: slurm}, replicas: 1}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: slurm-worker-slinky}
spec:
  controllerRef: {name: slurm}
  replicas: 0
  template: {spec: {hostname: slinky-}}
"""


@pytest.fixture(scope="module")
def slinky(tmp_path_factory) -> Path:
    """Slinky's `slurm` chart: its whole values, and a cluster of one NodeSet."""
    place = tmp_path_factory.mktemp("slinky") / "slurm"
    (place / "templates").mkdir(parents=True)
    (place / "Chart.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v2", "name": "slurm", "version": "1.1.0"})
    )
    more = {"jwtName": "slurm-auth-jwt", "jwtEntry": "jwt.key", "frobnicate": {"password": "hunter2"}}
    (place / "values.yaml").write_text(yaml.safe_dump(slinky_values.SLURM | more))
    (place / "templates" / "cluster.yaml").write_text(CLUSTER.replace("@key@", KEY))
    return place


def helm(plane, *args: str, values: dict | None = None) -> str:
    command = [str(program()), "--kubeconfig", str(plane.kubeconfig), *args]
    done = subprocess.run(
        [*command, *(["-f", "-"] if values is not None else [])],
        input=yaml.safe_dump(values or {}), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise HelmError(f"helm {' '.join(args)}: {done.stderr}")
    return done.stdout


def living(plane, ns: str) -> dict[str, str]:
    """Uids of what must not be made again."""
    found = plane.kubectl(
        "get", "-n", ns, "-o", "json", "secrets,controllers.slinky.slurm.net,nodesets.slinky.slurm.net"
    )
    items = [one for one in json.loads(found)["items"] if not one["metadata"]["name"].startswith("sh.helm.")]
    return {f"{one['kind']} {one['metadata']['name']}": one["metadata"]["uid"] for one in items}


CUSTOM = {
    "slurmKey": {"secretRef": {"name": "my-slurm"}},
    "jwtKey": {"secretRef": {"name": "my-jwt", "key": "jwt.key"}},
}
OLDEST = {"jwtName": "slurm-auth-jwths256", "jwtEntry": "jwt_hs256.key"}


@pytest.mark.parametrize(
    ("values", "refs"),
    [
        pytest.param({}, ("slurm-auth-slurm", "slurm-auth-jwt", "jwt.key"), id="the usual names"),
        pytest.param(CUSTOM, ("my-slurm", "my-jwt", "jwt.key"), id="names of one's own"),
        pytest.param(OLDEST, ("slurm-auth-slurm", "slurm-auth-jwths256", "jwt_hs256.key"), id="names of 1.0"),
    ],
)
@pytest.mark.parametrize("is_reused", [True, False], ids=["with --reuse-values", "with a values file"])
def test_keys_and_nodesets_survive_the_upgrade_to_our_chart(plane, ns, slinky, values, refs, is_reused):
    values = values | {"nodesets": {"slinky": {"replicas": 0} if is_reused else {}}}
    helm(plane, "install", "slurm", str(slinky), "-n", ns, values=values)
    before = living(plane, ns)
    assert len(before) == 4

    how = ("--reuse-values",) if is_reused else ()
    notes = helm(
        plane, "upgrade", "slurm", str(CHARTS / "slurm"), "-n", ns, *how, values={} if is_reused else values
    )

    after = living(plane, ns)
    assert {name: after.get(name) for name in before} == before
    spec = get(plane, ns, "controller.slinky.slurm.net", "slurm")["spec"]
    assert (spec["slurmKeyRef"]["name"], spec["jwtKeyRef"]["name"], spec["jwtKeyRef"]["key"]) == refs
    assert get(plane, ns, "secret", refs[0])["data"] == {"slurm.key": KEY}
    assert ("frobnicate is not known" in notes) == is_reused
    helm(plane, "uninstall", "slurm", "-n", ns)
    assert get(plane, ns, "secret", refs[1])["data"] == {refs[2]: KEY}, "the keys stay"


def doctor(plane, user: str = "mover", *groups: str) -> list[dict]:
    kubeconfig = plane.kubeconfig_for(user, *groups)
    result = CliRunner().invoke(
        kubectl_slurm, ["doctor", "--from", "slinky", "-o", "json", "--kubeconfig", str(kubeconfig)]
    )
    assert "hunter2" not in result.output
    return json.loads(result.stdout)


def test_doctor_looks_at_a_living_installation_and_changes_nothing(plane, ns, slinky, tmp_path):
    write_charts(tmp_path)
    release = f"slurm-operator-{uuid.uuid4().hex[:6]}"
    helm(plane, "install", release, str(tmp_path / "slurm-operator"), "-n", ns)
    helm(
        plane,
        "install",
        "slurm",
        str(slinky),
        "-n",
        ns,
        values={
            "frobnicate": {"password": "hunter2"},
            "nodesets": {"slinky": {"replicas": 0, "taintKubeNodes": True}},
        },
    )
    hook = {
        "name": "nodeset.slinky.slurm.net", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": ns, "name": "gone"}},
        "rules": [{"apiGroups": ["slinky.slurm.net"], "apiVersions": ["v1beta1"], "operations": ["DELETE"], "resources": ["tokens"]}],
    }  # fmt: skip
    apply(plane, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": f"left-{ns}"}, "webhooks": [hook]})  # fmt: skip
    try:
        told = doctor(plane, "mover", "system:masters")
    finally:
        plane.kubectl("delete", "validatingwebhookconfiguration", f"left-{ns}")
        helm(plane, "uninstall", "slurm", "-n", ns)
        helm(plane, "uninstall", release, "-n", ns)

    words = [f"{one['level']} {one['check']}: {one['message']} {one['remedy']}" for one in told]
    assert any(f"Deployment {ns}/slurm-operator" in one for one in words)
    assert any(f"FAIL Webhooks: left-{ns} has failurePolicy Fail" in one for one in words)
    assert any(f"kubectl delete validatingwebhookconfiguration left-{ns}" in one for one in words)
    assert any("frobnicate is not known" in one for one in words)
    assert any("nodesets.slinky.taintKubeNodes has no effect" in one for one in words)
    assert any("1 NodeSet" in one for one in words)
    assert changes_by(plane.audit_log, "mover") == []


def test_who_may_look_at_nothing_is_told_so(plane):
    told = doctor(plane, "nobody-at-all")

    assert sum(one["is_unread"] for one in told) >= 5
