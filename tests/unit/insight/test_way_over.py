"""`doctor --from slinky`: what it says of installations as Slinky's charts make them, and what it keeps to itself."""

import base64
import gzip
import json

import pytest

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.insight.doctor.finding import Level
from slurm_operator.insight.doctor.helm_releases import Release, release_of, unread
from slurm_operator.insight.doctor.hooks import Hook
from slurm_operator.insight.doctor.way_over import Found, findings
from slurm_operator.manifests.objects import Unread
from testing.slinky_charts import KINDS, definition

CRDS = [f"{plural}.slinky.slurm.net" for plural in KINDS.values()]


def deployment(container: str = "slurm-operator", release: str = "slurm-operator") -> dict:
    notes = {"meta.helm.sh/release-name": release} if release else {}
    return {
        "metadata": {
            "name": "slurm-operator", "namespace": "slinky", "annotations": notes,
            "labels": {"app.kubernetes.io/name": "slurm-operator", "helm.sh/chart": "slurm-operator-1.3.0"},
        },
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": container, "image": "ghcr.io/x:1.3.0"}]}}},
    }  # fmt: skip


def crds(release: str) -> dict:
    made = {}
    for kind in KINDS:
        one = definition(kind)
        if release:
            one["metadata"]["annotations"]["meta.helm.sh/release-name"] = release
        made[one["metadata"]["name"]] = one
    return made


def secret(values: dict, chart: str = "slurm", manifest: str = "") -> dict:
    """A release as Helm keeps it."""
    record = {
        "name": "slurm", "namespace": "lab", "config": values, "manifest": manifest,
        "chart": {"metadata": {"name": chart, "version": "1.1.0"}},
    }  # fmt: skip
    packed = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    return {"type": "helm.sh/release.v1", "data": {"release": base64.b64encode(packed).decode()}}


LIVING = Found(
    deployments=(deployment(),),
    crds=crds("slurm-operator-crds"),
    hooks=(
        Hook(
            plural="validatingwebhookconfigurations", name="slurm-operator-webhook", is_blocking=True,
            service="slinky/slurm-operator-webhook", is_served=True, is_ours=False,
        ),
    ),
    certificates=("-n slinky certificates.cert-manager.io/slurm-operator-webhook",),
    released=(Release(name="slurm", namespace="lab", chart="slurm", version="1.3.0", values=("nodesets.gpu.replicas",)),),
    objects={one.kind.kind: [] for one in registry.DEFAULT},
)  # fmt: skip


def said(found: Found, check: str) -> list[tuple[str, str, str]]:
    return [(one.level, one.message, one.remedy) for one in findings(found) if one.check == check]


def test_a_living_installation_can_be_moved_and_the_steps_say_how():
    assert all(one.level is not Level.FAIL for one in findings(LIVING))
    steps = [remedy for _, message, remedy in said(LIVING, "Order") if message.startswith("Step")]
    taking_over = "--server-side=true --force-conflicts --take-ownership"
    assert steps == [
        f"`helm upgrade slurm-operator-crds charts/slurm-operator-crds {taking_over}`",
        f"`helm upgrade slurm-operator charts/slurm-operator -n slinky -f values.yaml {taking_over}`",
    ]
    assert "clusters" in said(LIVING, "CRDs")[1][1], "a kind that only we have"


def test_crds_of_a_sub_chart_are_kept_before_the_release_is_upgraded_without_them():
    steps = [remedy for _, _, remedy in said(wire.replace(LIVING, crds=crds("slurm-operator")), "Order")][1:]

    assert steps[0].startswith("`kubectl annotate --overwrite crd accountings.slinky.slurm.net")
    assert steps[0].endswith("helm.sh/resource-policy=keep`")
    assert "--set crds.enabled=false --server-side=true --force-conflicts --take-ownership`" in steps[1]
    assert "--take-ownership" in steps[2]


def test_without_helm_the_image_is_swapped():
    found = wire.replace(LIVING, deployments=(deployment(release=""),), crds=crds(""))

    steps = [remedy for _, _, remedy in said(found, "Order")]

    assert any("set image deployment/slurm-operator slurm-operator=IMAGE" in step for step in steps)


@pytest.mark.parametrize(
    ("is_blocking", "level"), [(True, Level.FAIL), (False, Level.WARN)], ids=["Fail", "Ignore"]
)
def test_a_webhook_that_was_left_behind_is_found_with_the_command(is_blocking, level):
    [hook] = LIVING.hooks
    left = wire.replace(hook, is_served=False, is_blocking=is_blocking)

    [(found, _, remedy)] = said(wire.replace(LIVING, hooks=(left,), deployments=()), "Webhooks")

    assert found == level
    assert remedy == "Run `kubectl delete validatingwebhookconfiguration slurm-operator-webhook`."


def test_our_own_webhook_is_not_taken_for_theirs():
    [hook] = LIVING.hooks

    assert said(wire.replace(LIVING, hooks=(wire.replace(hook, is_ours=True),)), "Webhooks") == []


def test_certificates_that_were_left_behind_are_found_with_the_command():
    [(level, _, remedy)] = said(wire.replace(LIVING, deployments=()), "Certificates")

    assert level == Level.WARN
    assert remedy == "Run `kubectl delete -n slinky certificates.cert-manager.io/slurm-operator-webhook`."


OUTDATED = {
    "nodesets": {"gpu": {"taintKubeNodes": True, "replcas": 3, "image": {"tag": "x"}}},
    "slurm-exporter": {"enabled": True, "password": "hunter2"},
    "sssd": {"conf": "ldap_default_authtok = hunter2"},
    "frobnicate": {"deep": {"secret": "hunter2"}},
}


def test_values_that_nobody_would_read_are_named_without_their_content():
    release = release_of(secret(OUTDATED))
    assert release is not None

    assert unread(release) == {
        "frobnicate": "is not known",
        "nodesets.gpu.image": "is read as slurmd.image; write it there",
        "nodesets.gpu.replcas": "is not known",
        "nodesets.gpu.taintKubeNodes": "has no effect: taint the Kubernetes nodes yourself; "
        "workers tolerate nodeset.slinky.slurm.net/worker",
        "slurm-exporter": "is read as restapi.exporter.enabled; the rest of it has no effect",
    }
    told = findings(wire.replace(LIVING, released=(release,)))
    assert len([one for one in told if one.check == "Values"]) == 5
    assert "hunter2" not in repr(told) + repr(release)


def test_which_crds_a_release_contains_is_read_from_its_manifest():
    text = "---\nkind: CustomResourceDefinition\nmetadata:\n  annotations: {}\n  name: nodesets.slinky.slurm.net\n---\nkind: Service\nmetadata:\n  name: x\n"

    release = release_of(secret({}, "slurm-operator", text))

    assert release is not None
    assert release.crds == ("nodesets.slinky.slurm.net",)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"data": {}},
        {"data": {"release": "%%%"}},
        {"data": {"release": base64.b64encode(b"abc").decode()}},
    ],
    ids=["no data", "no record", "no base64", "no gzip"],
)
def test_a_record_that_cannot_be_read_is_left_out(broken):
    assert release_of(broken) is None


@pytest.mark.parametrize("field", ["deployments", "crds", "hooks", "certificates", "released", "objects"])
def test_what_may_not_be_looked_at_is_said_and_hides_nothing_else(field):
    found = wire.replace(LIVING, **{field: Unread(why="list x is not allowed to you")})

    told = findings(found)

    assert [one.is_unread for one in told].count(True) == 1
    assert len(told) > 4


def test_a_spec_that_we_would_refuse_is_told_before_the_move():
    spec = {"controllerRef": {"name": "slurm"}, "taintKubeNodes": True, "extraConf": "no pair"}
    nodeset = {"metadata": {"name": "gpu", "namespace": "lab"}, "spec": spec}
    objects = {**LIVING.objects, "NodeSet": [nodeset]}

    told = said(wire.replace(LIVING, objects=objects), "Objects")

    assert (told[0][0], told[1][0]) == ("note", "FAIL")
    assert told[0][1].startswith("NodeSet lab/gpu: spec.taintKubeNodes: is ignored")
