"""The three charts: values people have, what they turn into, and that a real API server takes it."""

import json
import re
import shutil

import pytest
import yaml
from chart_rig import (
    CHARTS,
    OPERATOR_IMAGE,
    HelmError,
    helm,
    objects,
    rendered,
    with_image,
    without_helm,
)
from click.testing import CliRunner
from kinds_rig import apply, get, ns, plane

import slurm_operator
from slurm_operator.api import registry
from slurm_operator.cli import main
from testing import slinky_values
from testing.chart_schema import passed_on
from testing.foreign_kinds import definitions
from testing.ports import ports

__all__ = ["ns", "plane"]

NETWORKS = [f"net-{number}" for number in range(9)]
MACHINES = [{"targetNodeSet": "gpu", "nodePool": "pool", "networks": NETWORKS}]

# Values as they stand in people's files, and something that must follow from them: a path into one object.
OPERATOR = {
    "defaults": ({}, "Deployment", "slurm-operator", "spec.replicas", 1),
    "image as a string": ({"operator": {"image": "r/op:7"}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "r/op:7"),
    "image by tag": ({"operator": {"image": {"tag": "7"}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "registry.example/slurm-operator:7"),
    "the webhook's image by that of the operator": ({"operator": {"image": {"repository": "r/mine", "tag": "7"}}, "global": {"image": {"repository": ""}}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.image", "r/mine-webhook:0.1.0"),
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
    "metrics off": ({"operator": {"metricsPort": 0}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--metrics-addr=0"]),
    "strict webhook": ({"webhook": {"validating": {"failurePolicy": "Fail"}, "timeoutSeconds": 3}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.failurePolicy", "Fail"),
    "selector of one's own": ({"webhook": {"validating": {"namespaceSelector": {"matchLabels": {"x": "mine"}}}}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.namespaceSelector.matchLabels.x", "mine"),
    "binding helper": ({"webhook": {"podsBinding": True}}, "MutatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.0.failurePolicy", "Ignore"),
    "guarded Secrets": ({"webhook": {"guardSecrets": True}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "webhooks.7.objectSelector.matchLabels", {"slurm.nebius.ai/webhook": "true"}),
    "protection with others exempt": ({"protection": {"exempt": ["robot"]}}, "ValidatingAdmissionPolicy", "slurm-operator-workers", "spec.matchConditions.0.expression", '!(request.userInfo.username in ["robot","system:serviceaccount:kube-system:pod-garbage-collector","system:serviceaccount:slurm-operator:slurm-operator"])'),
    "extra objects": ({"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}}]}, "ConfigMap", "slurm-operator-x", "kind", "ConfigMap"),
    "another name": ({"fullnameOverride": "op"}, "Deployment", "op-webhook", "metadata.name", "op-webhook"),
    "flags": ({"operator": {"nodesetWorkers": 9, "logLevel": "debug"}, "propagatedNodeConditions": ["GpuBad"]}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--zap-log-level=debug", "--propagated-node-conditions=GpuBad", "--nodeset-workers=9"]),
    "alerts": ({"monitoring": {"prometheusRule": {"enabled": True, "labels": {"release": "kube"}}}}, "PrometheusRule", "slurm-operator", "spec.groups.0.name", "slurm-operator"),
    "the Lease before other work": ({"flowSchema": {"enabled": True}}, "FlowSchema", "slurm-operator-lease", "spec.priorityLevelConfiguration.name", "leader-election"),
    "workers before other work": ({"flowSchema": {"enabled": True}}, "FlowSchema", "slurm-operator-workers", "spec.rules.0.resourceRules.0.verbs", ["patch", "delete"]),
    "policies about users": ({"userPolicies": {"enabled": True, "exempt": ["robot"]}}, "ValidatingAdmissionPolicy", "slurm-operator-tokens", "spec.matchConditions.0.expression", '!(request.userInfo.username in ["robot","system:serviceaccount:slurm-operator:slurm-operator"])'),
    "policies about users of the second API": ({"userPolicies": {"enabled": True}, "apis": {"nebius": True}}, "ValidatingAdmissionPolicyBinding", "slurm-operator-privileged-slurmclusters.slurm.nebius.ai", "spec.validationActions", ["Deny"]),
    "policies about users of some namespaces": ({"userPolicies": {"enabled": True}, "operator": {"namespaces": "red"}}, "ValidatingAdmissionPolicyBinding", "slurm-operator-tokens", "spec.matchResources.namespaceSelector.matchExpressions.0.values", ["red"]),
    "who may use privileged pods": ({"userPolicies": {"enabled": True}}, "ClusterRole", "slurm-operator-privileged", "rules.0.verbs", ["use"]),
    "a monitor brings its token": ({"monitoring": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor", "slurm-operator", "spec.endpoints.0.bearerTokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
    "metrics with a monitor are secure": ({"monitoring": {"serviceMonitor": {"enabled": True}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--metrics-secure=true"]),
    "metrics with anybody's monitor are secure": ({"global": {"metrics": {"serviceMonitor": {"enabled": True}}}}, "ClusterRole", "slurm-operator-metrics-reader", "rules.0.nonResourceURLs", ["/metrics"]),
    "a monitor of plain metrics": ({"operator": {"metricsSecure": False}, "monitoring": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor", "slurm-operator", "spec.endpoints.0", {"port": "metrics", "interval": "30s"}),
    "a monitor of secure metrics": ({"operator": {"metricsSecure": True}, "monitoring": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor", "slurm-operator", "spec.endpoints.0.scheme", "https"),
    "cert-manager": ({"certManager": {"enabled": True}}, "ValidatingWebhookConfiguration", "slurm-operator-webhook", "metadata.annotations", {"cert-manager.io/inject-ca-from": "slurm-operator/slurm-operator-webhook"}),
    "certificates of cert-manager": ({"certManager": {"enabled": True}}, "Certificate", "slurm-operator-webhook", "spec.secretName", "slurm-operator-webhook-ca"),
    "one image for both": ({"global": {"image": {"repository": "r/op", "tag": "7"}}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.image", "r/op-webhook:7"),
    "an image of one's own": ({"global": {"image": {"repository": "r/op", "tag": "7"}}, "operator": {"image": {"repository": "mine", "tag": "8"}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.image", "mine:8"),
    "pull policy of both": ({"global": {"image": {"pullPolicy": "Always"}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.imagePullPolicy", "Always"),
    "metrics off for all": ({"global": {"metrics": {"enabled": False}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--metrics-addr=0"]),
    "another metrics port": ({"global": {"metrics": {"enabled": True, "port": 9090}}}, "Service", "slurm-operator", "spec.ports.1.port", 9090),
    "a monitor for all": ({"global": {"metrics": {"serviceMonitor": {"enabled": True}}}}, "ServiceMonitor", "slurm-operator", "spec.endpoints.0.port", "metrics"),
    "resources of both": ({"global": {"resources": {"limits": {"cpu": 1}}}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.resources", {"limits": {"cpu": 1}}),
    "resources of the manager": ({"crds": {"controller": {"resources": {"limits": {"cpu": 2}}}}, "global": {"resources": {"limits": {"cpu": 1}}}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.resources", {"limits": {"cpu": 2}}),
    "resources of the webhook": ({"webhook": {"resources": {"limits": {"cpu": 3}}}, "global": {"resources": {"limits": {"cpu": 1}}}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.resources", {"limits": {"cpu": 3}}),
    "measured resources": ({}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.resources.requests.memory", "128Mi"),
    "another account": ({"rbac": {"serviceAccount": {"name": "mine"}}}, "ServiceAccount", "mine", "metadata.name", "mine"),
    "another account of the webhook": ({"rbac": {"serviceAccount": {"name": "mine"}}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.serviceAccountName", "mine-webhook"),
    "an account that exists": ({"rbac": {"serviceAccount": {"create": False, "name": "mine"}}}, "ClusterRoleBinding", "slurm-operator-webhook", "subjects.0.name", "mine"),
    "variables": ({"operator": {"env": [{"name": "LEADER_ELECTION_ID", "value": "x"}]}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.env.1", {"name": "LEADER_ELECTION_ID", "value": "x"}),
    "variables of the webhook": ({"webhook": {"env": [{"name": "WEBHOOK_TLS_FILE", "value": "/x"}]}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.containers.0.env", [{"name": "WEBHOOK_TLS_FILE", "value": "/x"}]),
    "settings": ({"config": {"enabled": True, "data": {"controller-workers": 8, "client-timeout": "10s", "builder-default-annotations": {"a/b": "c"}}}}, "ConfigMap", "slurm-operator-config", "data", {"controller-workers": "8", "client-timeout": "10s", "builder-default-annotations": "a/b: c"}),
    "settings are mounted": ({"config": {"enabled": True}}, "Deployment", "slurm-operator-webhook", "spec.template.spec.volumes.0.configMap.name", "slurm-operator-config"),
    "settings of one's own": ({"config": {"existingConfigMap": "mine"}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--config=/etc/slurm-operator"]),
    "a level of zap": ({"operator": {"logLevel": "dpanic"}}, "Deployment", "slurm-operator", "spec.template.spec.containers.0.args", ["--zap-log-level=dpanic"]),
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
    "a network": ({"networkPolicies": {"enabled": True}}, "NetworkPolicy", "slurm-database", "spec.ingress.0.from.0.podSelector.matchLabels", {"app.kubernetes.io/name": "slurmdbd"}),
    "a network with others": ({"networkPolicies": {"enabled": True, "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}}, "NetworkPolicy", "slurm-daemons", "spec.ingress.1.from.0.ipBlock.cidr", "10.0.0.0/8"),
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
    "an empty entry": ({"controller": {"extraConfMap": {"A": 1, "B": None, "C": "", "D": [], "E": 0, "F": False}}}, "Controller", "slurm", "spec.extraConf", "A=1\nE=0\nF=false\n"),
    "nothing but empty entries": ({"nodesets": {"gpu": {"extraConfMap": {"Gres": ""}}}}, "NodeSet", "slurm-worker-gpu", "spec.partition.enabled", False),
    "false and zero in pods": ({"controller": {"podSpec": {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "tolerations": []}}}, "Controller", "slurm", "spec.template.spec", {"automountServiceAccountToken": False, "nodeSelector": {"kubernetes.io/os": "linux"}, "terminationGracePeriodSeconds": 0, "tolerations": []}),
    "pull secrets of all and of one": ({"imagePullSecrets": [{"name": "all"}], "nodesets": {"gpu": {"podSpec": {"imagePullSecrets": [{"name": "own"}, {"name": "all"}]}}}}, "NodeSet", "slurm-worker-gpu", "spec.template.spec.imagePullSecrets", [{"name": "own"}, {"name": "all"}]),
    "labels of the object": ({"controller": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}, "Controller", "slurm", "metadata.annotations", {"c": "d"}),
    "labels of its pods": ({"controller": {"metadata": {"labels": {"a": "b"}}}}, "Controller", "slurm", "spec.template.metadata.labels", {"a": "b"}),
    "labels of a NodeSet": ({"nodesetDefaults": {"metadata": {"labels": {"a": "b"}}}, "nodesets": {"gpu": {"metadata": {"labels": {"x": "mine"}}}}}, "NodeSet", "slurm-worker-gpu", "metadata.labels.x", "mine"),
    "an empty NodeSet": ({"nodesets": {"slinky": {}}}, "NodeSet", "slurm-worker-slinky", "spec.replicas", 1),
    "an empty LoginSet": ({"loginsets": {"slinky": {}}}, "LoginSet", "slurm-login-slinky", "spec.replicas", 1),
    "a NodeSet without a word": ({"nodesets": {"slinky": None}}, "Controller", "slurm", "kind", "Controller"),
    "a list of NodeSets": ({"nodesets": [{"name": "gpu", "replicas": 3}]}, "NodeSet", "slurm-worker-gpu", "spec.replicas", 3),
    "older names of keys": ({"slurmKeyRef": {"name": "k", "key": "s"}, "jwtHs256KeyRef": {"name": "j", "key": "t"}}, "Controller", "slurm", "spec.jwtKeyRef", {"name": "j", "key": "t"}),
    "an image beside slurmd": ({"nodesets": {"gpu": {"image": {"repository": "r/slurmd", "tag": "5"}}}}, "NodeSet", "slurm-worker-gpu", "spec.slurmd.image", "r/slurmd:5"),
    "resources beside slurmctld": ({"controller": {"resources": {"limits": {"cpu": 1}}}}, "Controller", "slurm", "spec.slurmctld.resources", {"limits": {"cpu": 1}}),
    "an older exporter": ({"slurm-exporter": {"enabled": True}}, "RestApi", "slurm", "spec.exporter", {"enabled": True}),
    "an older sssd.conf": ({"loginsets": {"a": {"sssdConf": "[sssd]\n"}}}, "LoginSet", "slurm-login-a", "spec.sssdConfRef.name", "slurm-login-a-sssd-conf"),
    "files of others": ({"configFileRefs": [{"name": "mine"}]}, "Controller", "slurm", "spec.configFileRefs", [{"name": "mine"}]),
    "a3 mega": ({"nodesets": {"gpu": {}}, "vendor": {"google": {"a3mega": MACHINES}}}, "NodeSet", "slurm-worker-gpu", "spec.extraConf", "Gres=gpu:nvidia_h100_80gb_hbm3:8"),
    "a3 ultra": ({"nodesets": {"gpu": {}}, "vendor": {"google": {"a3ultra": MACHINES}}}, "ConfigMap", "slurm-config-google", "data", {"gres.conf": "AutoDetect=nvidia\n"}),
}  # fmt: skip

REFUSED = {
    "unknown NodeSet": ("slurm", {"partitions": {"p": {"enabled": True, "nodesets": ["no"]}}}, 'names the NodeSet "no"'),
    "disabled NodeSet": ("slurm", {"nodesets": {"x": {"enabled": False}}, "partitions": {"p": {"enabled": True, "nodesets": ["x"]}}}, "not there or not enabled"),
    "empty partition": ("slurm", {"partitions": {"p": {"enabled": True, "nodesets": []}}}, "partitions.p.nodesets is empty"),
    "too few networks": ("slurm", {"nodesets": {"gpu": {}}, "vendor": {"google": {"a3mega": [{**MACHINES[0], "networks": ["a"]}]}}}, "exactly 9 networks, not 1"),
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
    image = ["--set", f"global.image.repository={OPERATOR_IMAGE}"] if chart == "slurm-operator" else []
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", str(CHARTS / chart), *image)


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


def test_no_replicas_is_not_zero_replicas():
    made = objects(rendered("slurm", {"restapi": {"replicas": None}}))

    assert "replicas" not in made["RestApi", "slurm"]["spec"]


# Anything that a field of ours may be, by the field: the chart hands it on without looking.
MORE = {
    "controller": ("Controller", "slurm"),
    "restapi": ("RestApi", "slurm"),
    "accounting": ("Accounting", "slurm"),
    "nodesets.gpu": ("NodeSet", "slurm-worker-gpu"),
    "loginsets.gpu": ("LoginSet", "slurm-login-gpu"),
}


@pytest.mark.parametrize("section", MORE)
def test_every_field_of_ours_can_be_set(section):
    kind, name = MORE[section]
    for number, field in enumerate(passed_on()[kind]):
        inner = {field: {"some": f"value-{number}"}} | ({"enabled": True} if section == "accounting" else {})
        for word in reversed(section.split(".")):
            inner = {word: inner}

        assert objects(rendered("slurm", inner))[kind, name]["spec"][field] == {"some": f"value-{number}"}


def test_what_the_chart_does_not_write_itself_is_passed_on_for_every_kind():
    """So that a new field of a model can be set from the chart on the day it comes."""
    assert {kind: set(fields) for kind, fields in passed_on().items()} == {
        "Controller": {"auth", "slurmUser", "children"},
        "Accounting": {"auth", "slurmUser", "children"},
        "RestApi": {"children"},
        "LoginSet": {"ordered", "configSource", "sshHostKeysRef", "children"},
        "NodeSet": {
            "ordinals", "records", "configSource", "supervisor", "drainPolicy", "terminationGracePeriodSeconds",
            "revisionHistoryLimit", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
            "podInfoInComment", "children",
        },
    }  # fmt: skip


def test_roles_are_made_by_somebody_else_where_rbac_is_off():
    made = objects(rendered("slurm-operator", {"rbac": {"create": False}}))

    kinds = {kind for kind, _ in made}
    assert not any("RoleBinding" in kind for kind in kinds)
    assert ("ServiceAccount", "slurm-operator") in made
    made = objects(
        rendered("slurm-operator", {"rbac": {"serviceAccount": {"create": False, "name": "mine"}}})
    )
    assert not any(kind == "ServiceAccount" for kind, _ in made)


@pytest.mark.parametrize("namespaces", ["", "red, blue"])
def test_the_right_to_run_commands_in_pods_is_given_only_where_it_is_asked_for(namespaces):
    def given(**rbac: bool) -> set[str]:
        made = objects(rendered("slurm-operator", {"rbac": rbac, "operator": {"namespaces": namespaces}}))
        return {
            name
            for (kind, name), one in made.items()
            if kind in ("Role", "ClusterRole")
            and any("pods/exec" in rule.get("resources", ()) for rule in one["rules"])
        }

    assert given() == set()
    roles = {"red/slurm-operator-clusters", "slurm-operator-clusters"} if namespaces else {"slurm-operator"}
    assert {name.replace("blue/", "red/") for name in given(podsExec=True)} == roles


def test_no_flag_says_what_is_so_anyway():
    """Because flags win over the environment and over settings."""
    made = objects(rendered("slurm-operator", {}))

    containers = [
        thing["spec"]["template"]["spec"]["containers"][0]
        for (kind, _), thing in made.items()
        if kind == "Deployment"
    ]
    assert [one.get("args", []) for one in containers] == [[], ["--pods-binding=false"]]


def notes(chart: str, values: dict, *flags: str) -> str:
    """What `helm install` would tell, without a cluster."""
    text = helm(
        "install",
        chart,
        str(CHARTS / chart),
        "--dry-run=client",
        "-f",
        "-",
        *flags,
        stdin=yaml.safe_dump(with_image(chart, values)),
    )
    return text.partition("NOTES:")[2]


@pytest.mark.parametrize(
    ("chart", "values", "told"),
    [
        pytest.param("slurm", {"nodesets": {"gpu": {"replcas": 1}}}, ["nodesets.gpu.replcas is not known"], id="a typing error"),
        pytest.param("slurm", {"nodesets": {"gpu": {"taintKubeNodes": True, "useResourceLimits": True}}}, ["nodesets.gpu.taintKubeNodes has no effect", "nodesets.gpu.useResourceLimits has no effect"], id="without a meaning"),
        pytest.param("slurm", {"slurmKeyRef": {"name": "x"}, "jwtHs256KeyRef": {"name": "y"}}, ["slurmKeyRef is read as slurmKey.secretRef", "jwtHs256KeyRef is read as jwtKey.secretRef"], id="older names"),
        pytest.param("slurm", {"loginsets": {"a": {"sssdConf": "x", "image": "i"}}}, ["loginsets.a.sssdConf is the sssd.conf of this LoginSet alone", "loginsets.a.image is read as login.image"], id="of a LoginSet"),
        pytest.param("slurm", {"accounting": {"initconf": {"image": "x"}}, "slurm-exporter": {"enabled": False}}, ["accounting.initconf has no effect", "slurm-exporter is read as restapi.exporter.enabled"], id="containers that went"),
        pytest.param("slurm-operator", {"operator": {"frobnicate": True}, "something": 1}, ["operator.frobnicate is not known", "something is not known"], id="of the operator"),
    ],
)  # fmt: skip
def test_values_that_nobody_reads_are_listed_and_stop_nothing(chart, values, told):
    text = notes(chart, values)

    assert [one for one in told if one not in text] == []
    assert text.count(" is not known") == sum("is not known" in one for one in told)


@pytest.mark.parametrize("chart", ["slurm", "slurm-operator"])
def test_values_that_are_all_known_are_not_listed(chart):
    assert "is not known" not in notes(
        chart, {"nodesets": {"gpu": {"minReadySeconds": 5}}} if chart == "slurm" else {}
    )


@pytest.mark.parametrize("chart", ["slurm-operator-crds", "slurm-operator", "slurm"])
def test_kubernetes_1_29_is_offered_nothing_later(chart):
    values = everything("ns", "").get(chart, {})
    if "userPolicies" in values:  # Whoever asks for them is told that they need 1.30.
        with pytest.raises(HelmError, match=r"userPolicies needs Kubernetes 1\.30 or newer"):
            rendered(chart, values, "--kube-version", "1.29.0")
        values = values | {"userPolicies": {"enabled": False}}
    made = objects(rendered(chart, values, "--kube-version", "1.29.0"))

    assert {thing["apiVersion"] for thing in made.values()} <= SERVED_BY_1_29
    later = [path for key, thing in made.items() for path in fields_after_1_29(thing, "/".join(key))]
    assert later == []


def test_the_policies_are_installed_from_1_30_on():
    before, after = (
        {kind for kind, _ in objects(rendered("slurm-operator", {}, "--kube-version", version))}
        for version in ("1.29.4", "1.30.0")
    )

    assert after - before == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def reused(tmp_path, chart: str, before: dict, values: dict, *flags: str) -> str:
    """As `helm upgrade --reuse-values` renders it: the values of the chart before stand where our defaults do."""
    copy = tmp_path / chart
    shutil.copytree(CHARTS / chart, copy)
    (copy / "values.yaml").write_text(yaml.safe_dump(before))
    return helm("template", chart, str(copy), "-n", chart, "-f", "-", *flags, stdin=yaml.safe_dump(values))


def test_a_slurm_release_can_be_upgraded_with_the_values_of_slinkys_chart_alone(tmp_path):
    values = {
        "nodesets": {"slinky": {"replicas": 2}},
        "loginsets": {"slinky": {}},
        "accounting": {"enabled": True},
    }

    before = objects(reused(tmp_path, "slurm", slinky_values.SLURM, values))

    assert before["NodeSet", "slurm-worker-slinky"]["spec"]["replicas"] == 2
    assert before["NodeSet", "slurm-worker-slinky"]["spec"]["pruneSlurmNodeRecords"] == "Never"
    assert (
        before["Controller", "slurm"]["spec"]["slurmctld"]["image"]
        == "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04"
    )
    assert {kind for kind, _ in before} == {
        "Controller",
        "RestApi",
        "Accounting",
        "NodeSet",
        "LoginSet",
        "Secret",
    }


def test_an_operator_release_can_be_upgraded_with_the_values_of_slinkys_chart_alone(tmp_path):
    values = {
        "operator": {"image": {"repository": "r/op", "tag": "1"}},
        "webhook": {"image": {"repository": "r/hook", "tag": "1"}},
    }

    made = objects(reused(tmp_path, "slurm-operator", slinky_values.OPERATOR, values))

    assert (
        made["Deployment", "slurm-operator"]["spec"]["template"]["spec"]["containers"][0]["image"] == "r/op:1"
    )
    assert (
        made["ValidatingWebhookConfiguration", "slurm-operator-webhook"]["webhooks"][0]["failurePolicy"]
        == "Fail"
    )
    assert ("ValidatingAdmissionPolicy", "slurm-operator-workers") in made


@pytest.mark.parametrize(
    ("chart", "values"), [("slurm", slinky_values.SLURM), ("slurm-operator", slinky_values.OPERATOR)]
)
def test_every_value_of_slinkys_charts_is_known(chart, values):
    images = {part: {"image": {"repository": "r/op"}} for part in ("operator", "webhook")}
    if chart == "slurm-operator":
        values = values | {part: values[part] | image for part, image in images.items()}

    assert "is not known" not in notes(chart, values)


SERVED_BY_1_29 = {
    "v1", "apps/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1", "scheduling.k8s.io/v1",
    "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "slinky.slurm.net/v1beta1", "monitoring.coreos.com/v1",
    "flowcontrol.apiserver.k8s.io/v1",
}  # fmt: skip
# Fields of the kinds above that came with 1.30 or later, and functions of CEL that did.
AFTER_1_29 = {
    "selectableFields", "supplementalGroupsPolicy", "resourceClaimName", "trafficDistribution", "appArmorProfile",
    "podReplacementPolicy", "recursiveReadOnly",
}  # fmt: skip
CEL_AFTER_1_29 = re.compile(
    r"\b(isIP|ip|isCIDR|cidr|isSemver|semver|format\.dns1123Label|jsonpatch)\(|\.two\w*\(|cel\.bind"
)


def fields_after_1_29(thing, path: str):
    if isinstance(thing, dict):
        # Names of properties in a schema are ours to choose: what they describe may be of any version.
        for key, value in thing.items():
            here = f"{path}.{key}"
            if key in AFTER_1_29 and ".properties" not in path:
                yield here
            if (
                key in ("rule", "expression", "messageExpression")
                and isinstance(value, str)
                and CEL_AFTER_1_29.search(value)
            ):
                yield here
            yield from fields_after_1_29(value, here)
    elif isinstance(thing, list):
        for index, value in enumerate(thing):
            yield from fields_after_1_29(value, f"{path}[{index}]")


@pytest.mark.parametrize(("chart", "values", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_a_reason(chart, values, words):
    with pytest.raises(HelmError, match=re.escape(words)):
        rendered(chart, values)


SLINKYS = {"repository": "ghcr.io/slinkyproject/slurm-operator", "tag": "1.3.0"}
NO_IMAGE = {
    "none": ({}, "operator.image names no image, and there is no default.", "set operator.image.repository=REGISTRY/slurm-operator"),
    "a tag alone": ({"operator": {"image": {"tag": "7"}}}, "operator.image names no image", "set operator.image.repository="),
    "an empty string": ({"operator": {"image": ""}}, "operator.image names no image", "set operator.image.repository="),
    "none for the webhook": ({"operator": {"image": "r/op:7"}}, "webhook.image names no image", "set webhook.image.repository=REGISTRY/slurm-operator-webhook"),
    "that of Slinky's operator": ({"operator": {"image": SLINKYS}}, "operator.image is ghcr.io/slinkyproject/slurm-operator:1.3.0, the image of Slinky's operator", "Set operator.image.repository=REGISTRY/slurm-operator and operator.image.tag=0.1.0"),
    "Slinky's, as a string": ({"operator": {"image": "mirror.example/slinkyproject/slurm-operator@sha256:1"}}, "is another program", "Set operator.image.repository="),
}  # fmt: skip


@pytest.mark.parametrize(("values", "words", "line"), NO_IMAGE.values(), ids=NO_IMAGE)
def test_an_image_that_anybody_could_publish_is_never_installed(values, words, line):
    with pytest.raises(HelmError) as refused:
        helm("template", "op", str(CHARTS / "slurm-operator"), "-f", "-", stdin=yaml.safe_dump(values))

    assert words in str(refused.value)
    assert line in str(refused.value)


def test_the_values_of_slinkys_chart_name_its_own_image_and_are_refused(tmp_path):
    with pytest.raises(HelmError, match=r"Set (operator|webhook)\.image\.repository=REGISTRY/slurm-operator"):
        reused(tmp_path, "slurm-operator", slinky_values.OPERATOR, {})


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
    flags = [f"--image={OPERATOR_IMAGE}:{slurm_operator.__version__}", "--no-crds"]
    flags += ["--namespaces", namespaces, *([] if is_reader else ["--no-cluster-reader"])]
    flags += [f"--api={group}" for group in groups]
    printed = objects(CliRunner().invoke(main, ["manifests", *flags]).output)
    printed.pop(("Namespace", "slurm-operator"))  # Helm makes it.

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
        "monitoring": {"dashboard": {"enabled": True}}, "userPolicies": {"enabled": True}, "flowSchema": {"enabled": True},
        "apis": {"nebius": True},
    }  # fmt: skip
    slurm = {
        "namespaceOverride": ns, "nodesets": {"gpu": {"ssh": {"enabled": True}, "partition": {"enabled": True}, "slurmd": {"resources": {"limits": {"nvidia.com/gpu": 8}}}}},
        "loginsets": {"slinky": {"enabled": True}}, "accounting": {"enabled": True}, "configFiles": {"gres.conf": "x"},
        "prologScripts": {"a": "#!/bin/sh"}, "priorityClass": {"enabled": True, "create": True}, "restapi": {"pdb": {"enabled": True}},
        "partitions": {"all": {"enabled": True}}, "vendor": {"nvidia": {"dcgm": {"enabled": True}}, "google": {"a3mega": MACHINES}},
        "controller": {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}},
        "networkPolicies": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]},
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
