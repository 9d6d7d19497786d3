"""The three charts: values people have, what they turn into, and that a real API server takes it."""

import json
import re

import pytest
import yaml
from chart_rig import CHARTS, HelmError, helm, objects, rendered, without_helm
from click.testing import CliRunner
from kinds_rig import apply, get, ns, plane

from slurm_operator.api import registry
from slurm_operator.cli import main
from testing.foreign_kinds import definitions
from testing.ports import ports

__all__ = ["ns", "plane"]

NETWORKS = [f"net-{number}" for number in range(9)]
MACHINES = [{"targetNodeSet": "gpu", "nodePool": "pool", "networks": NETWORKS}]

# Values as they stand in people's files, and something that must follow from them: a path into one object.
OPERATOR = {
    "defaults": ({}, "Deployment", "slurm-operator", "spec.replicas", 1),
    "image as a string": ({"operator": {"image": "r/op:7"}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "r/op:7"),
    "image by tag": ({"operator": {"image": {"tag": "7"}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "docker.io/local/slurm-operator:7"),
    "image by digest": ({"operator": {"image": {"repository": "r/op", "digest": "sha256:1"}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "r/op@sha256:1"),
    "pull policy": ({"imagePullPolicy": "Always"}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.imagePullPolicy", "Always"),
    "pull secrets": ({"imagePullSecrets": [{"name": "x"}]}, "Deployment", "slurm-operator", "spec.template.spec.imagePullSecrets", [{"name": "x"}]),
    "priority": ({"priorityClassName": "high"}, "Deployment", "slurm-operator-webhook", "spec.template.spec.priorityClassName", "high"),
    "our Slurm images by one value": ({"slurmImages": "r/{daemon}:1"}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.env.1.value", "r/{daemon}:1"),
    "replicas with a budget": ({"operator": {"replicas": 2, "pdb": {"enabled": True}}}, "PodDisruptionBudget", "slurm-operator", "spec.minAvailable", 1),
    "budget by share": ({"webhook": {"replicas": 3, "pdb": {"enabled": True, "maxUnavailable": "50%"}}}, "PodDisruptionBudget", "slurm-operator-webhook", "spec.maxUnavailable", "50%"),
    "scheduling": ({"operator": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}]}}, "Deployment", "slurm-operator", "spec.template.spec.nodeSelector", {"a": "b"}),
    "own account": ({"operator": {"serviceAccount": {"create": False, "name": "mine"}}}, "Deployment", "slurm-operator", "spec.template.spec.serviceAccountName", "mine"),
    "security laid over": ({"operator": {"podSecurityContext": {"runAsUser": 7}}}, "Deployment", "slurm-operator", "spec.template.spec.securityContext.runAsNonRoot", True),
    "a namespace's rights": ({"operator": {"namespaces": "red, blue"}}, "Role", "slurm-operator-clusters", "metadata.namespace", "blue"),
    "secure metrics of the webhook alone": ({"webhook": {"metricsSecure": True, "metricsPort": 8082}}, "ClusterRole", "slurm-operator-metrics-reader", "rules.0.nonResourceURLs", ["/metrics"]),
    "secure metrics": ({"operator": {"metricsSecure": True}}, "ClusterRole", "slurm-operator-metrics-reader", "rules.0.nonResourceURLs", ["/metrics"]),
    "metrics off": ({"operator": {"metricsPort": 0}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args.1", "--metrics-addr=0"),
    "strict webhook": ({"webhook": {"validating": {"failurePolicy": "Fail"}, "timeoutSeconds": 3}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.failurePolicy", "Fail"),
    "selector of one's own": ({"webhook": {"validating": {"namespaceSelector": {"matchLabels": {"x": "mine"}}}}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.namespaceSelector.matchLabels.x", "mine"),
    "binding helper": ({"webhook": {"podsBinding": True}}, "MutatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.failurePolicy", "Ignore"),
    "guarded Secrets": ({"webhook": {"guardSecrets": True}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.7.objectSelector.matchLabels", {"slurm.nebius.ai/webhook": "true"}),
    "protection with others exempt": ({"protection": {"exempt": ["robot"]}}, "ValidatingAdmissionPolicy", "slurm-operator-workers", "spec.matchConditions.0.expression", '!(request.userInfo.username in ["robot","system:serviceaccount:kube-system:pod-garbage-collector","system:serviceaccount:slurm-operator:slurm-operator"])'),
    "extra objects": ({"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}}]}, "ConfigMap", "slurm-operator-x", "kind", "ConfigMap"),
    "another name": ({"fullnameOverride": "op"}, "Deployment", "op-webhook", "metadata.name", "op-webhook"),
    "flags": ({"operator": {"nodesetWorkers": 9, "logLevel": "debug"}, "propagatedNodeConditions": ["GpuBad"]}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args.3", "--propagated-node-conditions=GpuBad"),
    "alerts": ({"monitoring": {"prometheusRule": {"enabled": True, "labels": {"release": "kube"}}}}, "PrometheusRule", "slurm-operator", "spec.groups.0.name", "slurm-operator"),
    "a monitor of secure metrics": ({"operator": {"metricsSecure": True}, "monitoring": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor", "slurm-operator", "spec.endpoints.0.scheme", "https"),
    "cert-manager": ({"certManager": {"enabled": True}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "metadata.annotations", {"cert-manager.io/inject-ca-from": "slurm-operator/slurm-operator-webhook"}),
    "certificates of cert-manager": ({"certManager": {"enabled": True}}, "Certificate", "slurm-operator-webhook", "spec.secretName", "slurm-operator-webhook-ca"),
    "dashboard": ({"monitoring": {"dashboard": {"enabled": True}}}, "ConfigMap", "slurm-operator-dashboard", "metadata.labels.grafana_dashboard", "1"),
}  # fmt: skip

SLURM = {
    "defaults": ({}, "Controller", "slurm", "spec.slurmctld.image", "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04"),
    "our images by one value": ({"defaultImages": "r/{daemon}:1"}, "RestApi", "slurm", "spec.slurmrestd.image", "r/slurmrestd:1"),
    "the operator's images": ({"defaultImages": ""}, "RestApi", "slurm", "spec.slurmrestd", {"imagePullPolicy": "IfNotPresent"}),
    "only a tag": ({"controller": {"slurmctld": {"image": {"tag": "x"}}}}, "Controller", "slurm", "spec.slurmctld.image", "ghcr.io/slinkyproject/slurmctld:x"),
    "a digest": ({"restapi": {"slurmrestd": {"image": {"repository": "r:5000/x", "digest": "sha256:1"}}}}, "RestApi", "slurm", "spec.slurmrestd.image", "r:5000/x@sha256:1"),
    "a NodeSet": ({"nodesets": {"gpu": {"replicas": 3}}}, "NodeSet", "slurm-worker-gpu", "spec.template.spec.hostname", "gpu-"),
    "words of a NodeSet": ({"nodesets": {"gpu": {"extraConfMap": {"Gres": ["gpu:8"], "Weight": 5}}}}, "NodeSet", "slurm-worker-gpu", "spec.extraConf", "Gres=gpu:8 Weight=5"),
    "defaults of NodeSets": ({"nodesetDefaults": {"ordinalPadding": 3}, "nodesets": {"gpu": {}}}, "NodeSet", "slurm-worker-gpu", "spec.ordinalPadding", 3),
    "ssh": ({"nodesets": {"gpu": {"ssh": {"enabled": True}}}}, "NodeSet", "slurm-worker-gpu", "spec.ssh.sssdConfRef.name", "slurm-sssd-conf"),
    "partitions": ({"nodesets": {"gpu": {}}, "partitions": {"all": {"enabled": True}, "big": {"enabled": True, "nodesets": ["gpu"], "config": "MaxTime=5"}}}, "Controller", "slurm", "spec.extraConf", "PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED\nPartitionName=big Nodes=gpu MaxTime=5\n"),
    "slurm.conf": ({"controller": {"extraConfMap": {"MinJobAge": 10, "GresTypes": ["gpu", "mps"]}}}, "Controller", "slurm", "spec.extraConf", "GresTypes=gpu,mps\nMinJobAge=10\n"),
    "the string wins": ({"controller": {"extraConf": "A=1", "extraConfMap": {"B": 2}}}, "Controller", "slurm", "spec.extraConf", "A=1\n"),
    "no provisioning": ({"controller": {"persistence": {"storageClassName": "-"}}}, "Controller", "slurm", "spec.persistence.storageClassName", ""),
    "backups": ({"controller": {"ha": {"enabled": True}, "persistence": {"existingClaim": "state"}}}, "Controller", "slurm", "spec.ha.backups", 1),
    "elsewhere": ({"controller": {"external": True, "externalConfig": {"host": "h"}}}, "Controller", "slurm", "spec.externalConfig.port", 6817),
    "keys of one's own": ({"slurmKey": {"create": False, "secretRef": {"name": "k", "key": "s"}}}, "Controller", "slurm", "spec.slurmKeyRef.name", "k"),
    "identity provider": ({"jwksKeys": {"enabled": True}}, "Controller", "slurm", "spec.jwksKeyRef.key", "jwks.json"),
    "metrics": ({"controller": {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}}}, "Controller", "slurm", "spec.metrics.serviceMonitor.interval", "30s"),
    "accounting": ({"accounting": {"enabled": True}}, "Accounting", "slurm", "spec.storageConfig.passwordKeyRef.name", "mariadb-password"),
    "accounting elsewhere": ({"accounting": {"enabled": True, "external": True}}, "Accounting", "slurm", "spec.externalConfig.port", 6819),
    "a database of ours": ({"accounting": {"enabled": True, "managed": {"storage": {"size": "1Gi"}}}}, "Accounting", "slurm", "spec.managed.storage.size", "1Gi"),
    "login": ({"loginsets": {"slinky": {"enabled": True, "replicas": 2, "rootSshAuthorizedKeys": "ssh-ed25519 AAAA me"}}}, "LoginSet", "slurm-login-slinky", "spec.service.spec.type", "LoadBalancer"),
    "files and scripts": ({"configFiles": {"gres.conf": "AutoDetect=nvml\n"}, "prologScripts": {"a.sh": "#!/bin/sh\n"}, "epilogSlurmctldScripts": {"b": "#!/bin/sh\n"}}, "ConfigMap", "slurm-prolog-scripts", "data", {"prolog-a.sh": "#!/bin/sh\n"}),
    "scripts of others": ({"prologScriptRefs": [{"name": "mine"}]}, "Controller", "slurm", "spec.prologScriptRefs", [{"name": "mine"}]),
    "priority": ({"priorityClass": {"enabled": True, "create": True}}, "PriorityClass", "slurm-system-critical", "value", 1000000000),
    "budget of slurmrestd": ({"restapi": {"replicas": 2, "pdb": {"enabled": True}}}, "PodDisruptionBudget", "slurm-restapi", "spec.minAvailable", 1),
    "job mapping": ({"nodesets": {"gpu": {"slurmd": {"resources": {"limits": {"nvidia.com/gpu": 8}}}}}, "vendor": {"nvidia": {"dcgm": {"enabled": True}}}}, "NodeSet", "slurm-worker-gpu", "spec.slurmd.volumeMounts.0.name", "dcgm-job-mapping"),
    "a3 mega": ({"nodesets": {"gpu": {}}, "vendor": {"google": {"a3mega": MACHINES}}}, "NodeSet", "slurm-worker-gpu", "spec.extraConf", "Gres=gpu:nvidia_h100:8"),
    "a3 ultra": ({"nodesets": {"gpu": {}}, "vendor": {"google": {"a3ultra": MACHINES}}}, "ConfigMap", "slurm-config-google", "data", {"gres.conf": "AutoDetect=nvidia\n"}),
}  # fmt: skip

REFUSED = {
    "unknown NodeSet": ("slurm", {"partitions": {"p": {"enabled": True, "nodesets": ["no"]}}}, 'names the NodeSet "no"'),
    "disabled NodeSet": ("slurm", {"partitions": {"p": {"enabled": True, "nodesets": ["slinky"]}}}, "not there or not enabled"),
    "empty partition": ("slurm", {"partitions": {"p": {"enabled": True, "nodesets": []}}}, "partitions.p.nodesets is empty"),
    "too few networks": ("slurm", {"nodesets": {"gpu": {}}, "vendor": {"google": {"a3mega": [{**MACHINES[0], "networks": ["a"]}]}}}, "exactly 9 networks, not 1"),
    "a typing error": ("slurm", {"nodesets": {"gpu": {"replcas": 1}}}, "'replcas' not allowed"),
    "a port that is none": ("slurm-operator", {"operator": {"metricsPort": 70000}}, "metricsPort"),
    "a port in words": ("slurm-operator", {"operator": {"metricsPort": "8080x"}}, "metricsPort"),
    "secure without a port": ("slurm-operator", {"operator": {"metricsPort": 0, "metricsSecure": True}}, "set operator.metricsPort"),
    "an unknown policy": ("slurm-operator", {"webhook": {"validating": {"failurePolicy": "Maybe"}}}, "failurePolicy"),
}  # fmt: skip


def at(thing, path: str):
    for word in path.split("."):
        thing = thing[int(word)] if word.isdigit() and isinstance(thing, list) else thing[word]
    return thing


@pytest.mark.parametrize("chart", ["slurm-operator-crds", "slurm-operator", "slurm"])
def test_a_chart_has_nothing_to_complain_about(chart):
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", str(CHARTS / chart))


@pytest.mark.parametrize(
    ("chart", "values", "kind", "name", "path", "value"),
    [
        pytest.param(chart, *row, id=f"{chart}: {name}")
        for chart, table in (("slurm-operator", OPERATOR), ("slurm", SLURM))
        for name, row in table.items()
    ],
)
def test_a_value_means_what_it_always_meant(chart, values, kind, name, path, value):
    assert at(objects(rendered(chart, values))[kind, name], path) == value


@pytest.mark.parametrize(("chart", "values", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_a_reason(chart, values, words):
    with pytest.raises(HelmError, match=re.escape(words)):
        rendered(chart, values)


@pytest.mark.parametrize(
    ("namespaces", "is_reader"),
    [("", True), ("blue,red", True), ("blue,red", False)],
    ids=["everywhere", "in two namespaces", "with roles alone"],
)
@pytest.mark.parametrize(
    ("apis", "groups"),
    [
        pytest.param({}, (), id="the usual API"),
        pytest.param({"nebius": True}, registry.GROUPS, id="both"),
        pytest.param({"slinky": False, "nebius": True}, registry.GROUPS[1:], id="the second alone"),
    ],
)
def test_the_chart_and_the_manifests_are_the_same_installation(namespaces, is_reader, apis, groups):
    values = {
        "apis": apis,
        "operator": {"namespaces": namespaces, "clusterReader": is_reader},
        "webhook": {"namespaces": namespaces},
    }
    by_helm = objects(rendered("slurm-operator", values, "--skip-tests"))
    flags = ["--no-crds", "--namespaces", namespaces, *([] if is_reader else ["--no-cluster-reader"])]
    flags += [f"--api={group}" for group in groups]
    printed = objects(CliRunner().invoke(main, ["manifests", *flags]).output)
    printed.pop(("Namespace", "slurm-operator"))  # Helm makes it by itself.

    assert {key: without_helm(thing) for key, thing in by_helm.items()} == printed


def test_the_second_api_is_in_the_charts_only_where_it_is_asked_for():
    first, both = (rendered("slurm-operator", {"apis": {"nebius": on}}) for on in (False, True))

    assert "slurmclusters" not in first
    assert "--api" not in first
    hooks = objects(both)["ValidatingWebhookConfiguration", "slurm-operator-webhook"]["webhooks"]
    asked = [
        rule["resources"]
        for hook in hooks
        for rule in hook["rules"]
        if rule["apiGroups"] != ["slinky.slurm.net"]
    ]
    assert asked == [
        ["slurmclusters"], ["nodesets"], ["nodesetpowerstates"], ["nodeconfigurators"], ["jailedconfigs"],
        ["activechecks"], ["secrets"],
    ]  # fmt: skip
    with pytest.raises(HelmError, match="at least one must be on"):
        rendered("slurm-operator", {"apis": {"slinky": False}})


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        ("slurm-operator-crds", {"apis": {"nebius": True}}),
        ("slurm-operator", {"crds": {"enabled": True}, "slurm-operator-crds": {"apis": {"nebius": True}}}),
    ],
)
def test_its_definitions_have_a_switch_of_their_own(chart, values):
    kinds = {name for kind, name in objects(rendered(chart, values)) if kind == "CustomResourceDefinition"}

    assert kinds == {f"{one.plural}.{one.group}" for one in registry.ALL}
    values["apis" if chart.endswith("crds") else "slurm-operator-crds"] = {}
    kept = {name for kind, name in objects(rendered(chart, values)) if kind == "CustomResourceDefinition"}
    assert kept == {f"{one.plural}.{one.group}" for one in registry.DEFAULT}


def test_without_the_reader_a_namespaced_installation_has_no_right_outside():
    made = objects(
        rendered(
            "slurm-operator",
            {"operator": {"namespaces": "blue", "clusterReader": False}, "webhook": {"enabled": False}},
        )
    )

    assert [kind for kind, _ in made if kind.startswith("ClusterRole")] == []


def test_pods_carry_nothing_that_changes_with_the_version_of_a_chart():
    values = {
        "nodesets": {"gpu": {}},
        "loginsets": {"slinky": {"enabled": True}},
        "accounting": {"enabled": True},
    }
    made = {**objects(rendered("slurm", values)), **objects(rendered("slurm-operator", {}))}
    templates = [thing["spec"].get("template") for thing in made.values() if "spec" in thing]

    assert "helm.sh/chart" not in json.dumps(templates)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"operator": {"metricsPort": 0}}, id="metrics off"),
        pytest.param({"operator": {"healthPort": 9081, "metricsPort": 9080}, "webhook": {"metricsPort": 9082, "serverPort": 10443, "healthPort": 9083}}, id="other ports"),
    ],
)  # fmt: skip
def test_network_policies_let_in_what_is_listened_on_and_nothing_else(values):
    for found in ports(objects(rendered("slurm-operator", values)).values()).values():
        assert found.listened == found.declared == found.reachable == found.served
        assert found.probed <= found.listened


def test_objects_for_prometheus_and_cert_manager_are_taken_by_their_definitions(plane, ns):
    apply(plane, *definitions())
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    values = {
        "namespaceOverride": ns,
        "operator": {"metricsSecure": True},
        "certManager": {"enabled": True},
        "monitoring": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    }
    foreign = {"ServiceMonitor", "PrometheusRule", "Issuer", "Certificate"}
    made = [
        thing for thing in objects(rendered("slurm-operator", values)).values() if thing["kind"] in foreign
    ]

    said = plane.kubectl("apply", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(made))

    assert said.count(" created") == len(made) == 6
    assert {thing["kind"] for thing in made} == foreign
    [sent] = [thing for thing in made if thing["kind"] == "PrometheusRule"]
    kept = get(plane, ns, "prometheusrule", "slurm-operator")["spec"]["groups"]
    counts = [len(group["rules"]) for group in kept]
    assert counts == [len(group["rules"]) for group in sent["spec"]["groups"]], "nothing was pruned"
    assert sum(counts) > 10


def everything(ns: str, namespaces: str) -> dict[str, dict]:
    """Values that switch on whatever there is."""
    operator = {
        "namespaceOverride": ns, "operator": {"replicas": 2, "namespaces": namespaces, "metricsSecure": True, "pdb": {"enabled": True}},
        "webhook": {"replicas": 2, "podsBinding": True, "guardSecrets": True, "pdb": {"enabled": True}, "namespaces": namespaces},
        "monitoring": {"dashboard": {"enabled": True}},
    }  # fmt: skip
    slurm = {
        "namespaceOverride": ns, "nodesets": {"gpu": {"ssh": {"enabled": True}, "partition": {"enabled": True}, "slurmd": {"resources": {"limits": {"nvidia.com/gpu": 8}}}}},
        "loginsets": {"slinky": {"enabled": True}}, "accounting": {"enabled": True}, "configFiles": {"gres.conf": "x"},
        "prologScripts": {"a": "#!/bin/sh"}, "priorityClass": {"enabled": True, "create": True}, "restapi": {"pdb": {"enabled": True}},
        "partitions": {"all": {"enabled": True}}, "vendor": {"nvidia": {"dcgm": {"enabled": True}}, "google": {"a3mega": MACHINES}},
        "controller": {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}},
    }  # fmt: skip
    return {"slurm-operator": operator, "slurm": slurm}


@pytest.mark.parametrize("is_confined", [False, True], ids=["everywhere", "in a namespace"])
def test_everything_is_rendered_the_same_twice_and_taken_by_the_api_server(plane, ns, is_confined):
    values = everything(ns, ns if is_confined else "")
    texts = [rendered(chart, values[chart]) for chart in values]
    assert [rendered(chart, values[chart]) for chart in values] == texts

    made = [thing for text in texts for thing in objects(text).values()]
    said = plane.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
        stdin=yaml.safe_dump_all(made),
    )
    assert said.count("serverside-applied") == len(made)


def test_the_definitions_of_the_chart_are_those_of_the_program(plane):
    said = plane.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--force-conflicts",
        "-f",
        "-",
        stdin=rendered("slurm-operator-crds", {}),
    )

    assert said.count("serverside-applied") == 7
    made = objects(rendered("slurm-operator", {"crds": {"enabled": True}}))
    kept = [
        thing["metadata"]["annotations"]["helm.sh/resource-policy"]
        for (kind, _), thing in made.items()
        if kind == "CustomResourceDefinition"
    ]
    assert kept == ["keep"] * 7
