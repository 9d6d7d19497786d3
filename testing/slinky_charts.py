"""Stand-ins for Slinky's charts, in our own words: as much of them as moving over has to do with.

`slurm-operator-crds` has six CRDs as templates, without a resource policy; `slurm-operator` has the operator and its
webhook, and the CRDs as a sub-chart with `crds.enabled`; `slurm` has a cluster as their chart renders it, with nulls.
Names of objects, containers, labels and fields are those of its releases 1.0 to 1.3; there is no program behind them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

GROUP = "slinky.slurm.net"
KINDS = {
    "Accounting": "accountings",
    "Controller": "controllers",
    "LoginSet": "loginsets",
    "NodeSet": "nodesets",
    "RestApi": "restapis",
    "Token": "tokens",
}
VERSION = "1.3.0"

# The rules of the ClusterRole in their chart: an image that is swapped has these rights and no others.
_KEEP = ["create", "delete", "get", "list", "patch", "update", "watch"]
_CORE = ["configmaps", "events", "persistentvolumeclaims", "pods", "secrets", "services"]
_OURS = [*KINDS.values()]
_RULES: tuple[tuple[str, list[str], list[str]], ...] = (
    ("", _CORE, _KEEP),
    ("", ["nodes"], ["get", "list", "watch"]),
    ("", ["pods/status"], ["get", "patch", "update"]),
    ("", ["secrets/finalizers"], ["update"]),
    ("apps", ["controllerrevisions", "deployments", "statefulsets"], _KEEP),
    ("authentication.k8s.io", ["tokenreviews"], ["create"]),
    ("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ("coordination.k8s.io", ["leases"], ["create", "get", "patch", "update"]),
    ("events.k8s.io", ["events"], ["create", "patch"]),
    ("monitoring.coreos.com", ["servicemonitors"], _KEEP),
    ("policy", ["poddisruptionbudgets"], _KEEP),
    (GROUP, _OURS, _KEEP),
    (GROUP, [f"{plural}/finalizers" for plural in _OURS], ["update"]),
    (GROUP, [f"{plural}/status" for plural in _OURS], ["get", "patch", "update"]),
)


def rules() -> list[dict[str, Any]]:
    """As they stand in the ClusterRole."""
    return [{"apiGroups": [group], "resources": what, "verbs": verbs} for group, what, verbs in _RULES]


_LABELS = """\
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
    app.kubernetes.io/part-of: slurm-operator
    app.kubernetes.io/name: @name@
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}
"""

_PROGRAM = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: @name@
  namespace: {{ .Release.Namespace }}
  labels:
@labels@
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: @name@
  labels:
@labels@
rules: @rules@
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: @name@
  labels:
@labels@
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: @name@}
subjects:
  - {kind: ServiceAccount, name: @name@, namespace: {{ .Release.Namespace }}}
---
apiVersion: v1
kind: Service
metadata:
  name: @name@
  namespace: {{ .Release.Namespace }}
  labels:
@labels@
spec:
  @service@
  selector:
    app.kubernetes.io/name: @name@
    app.kubernetes.io/instance: {{ .Release.Name }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: @name@
  namespace: {{ .Release.Namespace }}
  labels:
@labels@
spec:
  replicas: {{ .Values.@value@.replicas }}
  revisionHistoryLimit: 0
  selector:
    matchLabels:
      app.kubernetes.io/name: @name@
      app.kubernetes.io/instance: {{ .Release.Name }}
  template:
    metadata:
      labels:
        helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
        app.kubernetes.io/name: @name@
        app.kubernetes.io/instance: {{ .Release.Name }}
    spec:
      hostname: @name@
      serviceAccountName: @name@
      containers:
        - name: @container@
          image: ghcr.io/slinkyproject/@name@:{{ .Chart.Version }}
          args: [@args@]
"""


def write_charts(place: Path) -> None:
    """The three charts as directories below `place`."""
    crds, operator, slurm = (place / name for name in ("slurm-operator-crds", "slurm-operator", "slurm"))
    _chart(crds, {"crds.yaml": yaml.safe_dump_all([definition(kind) for kind in KINDS], sort_keys=False)})
    depends = {"name": crds.name, "version": VERSION, "repository": "", "condition": "crds.enabled"}
    values = {"crds": {"enabled": False}, "operator": {"replicas": 1}, "webhook": {"replicas": 1}}
    programs = {
        "operator.yaml": _program("slurm-operator", "slurm-operator", "operator", "--leader-elect"),
        "webhook.yaml": _program("slurm-operator-webhook", "webhook", "webhook", "--zap-log-level, info"),
    }
    _chart(operator, programs, values, dependencies=[depends])
    shutil.copytree(crds, operator / "charts" / crds.name)
    _chart(slurm, {"cluster.yaml": _CLUSTER}, {"replicas": 2, "extraConf": "MinJobAge=10"})


def _chart(place: Path, templates: dict[str, str], values: dict[str, Any] | None = None, **more: Any) -> None:
    (place / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": place.name, "version": VERSION, "appVersion": "26.05", **more}
    (place / "Chart.yaml").write_text(yaml.safe_dump(about))
    (place / "values.yaml").write_text(yaml.safe_dump(values or {}))
    for name, text in templates.items():
        (place / "templates" / name).write_text(text)


def _program(name: str, container: str, value: str, args: str) -> str:
    ports = "ports: [{name: health, port: 8081}]"
    service = f"clusterIP: None\n  {ports}" if value == "operator" else ports.replace("8081", "443")
    text = _PROGRAM.replace("@labels@\n", _LABELS).replace("@service@", service)
    text = text.replace("@rules@", json.dumps(rules()))
    for mark, word in {"name": name, "container": container, "value": value, "args": args}.items():
        text = text.replace(f"@{mark}@", word)
    return text


def definition(kind: str) -> dict[str, Any]:
    """A CRD without what is checked: one version, status and scale, and no word on who may delete it."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": spec}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": scale} if kind in ("NodeSet", "LoginSet") else {})},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": KINDS[kind], "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{KINDS[kind]}.{GROUP}",
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.20.0"},
        },
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


# As their chart renders its defaults with one NodeSet and a LoginSet: lists without entries become null, maps stay empty.
_CLUSTER = """\
apiVersion: v1
kind: Secret
metadata:
  name: slurm-auth-slurm
  namespace: {{ .Release.Namespace }}
  annotations: {helm.sh/resource-policy: keep}
data: {slurm.key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
---
apiVersion: v1
kind: Secret
metadata:
  name: slurm-auth-jwt
  namespace: {{ .Release.Namespace }}
  annotations: {helm.sh/resource-policy: keep}
data: {jwt.key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
---
apiVersion: v1
kind: Secret
metadata:
  name: slurm-sssd-conf
  namespace: {{ .Release.Namespace }}
data: {sssd.conf: W3Nzc2RdCg==}
---
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata:
  name: slurm
  namespace: {{ .Release.Namespace }}
  labels: &labels
    helm.sh/chart: slurm-{{ .Chart.Version }}
    app.kubernetes.io/part-of: slurm
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}
spec:
  slurmKeyRef: {name: slurm-auth-slurm, key: slurm.key}
  jwtKeyRef: {name: slurm-auth-jwt, key: jwt.key}
  extraConf: |
    {{- .Values.extraConf | nindent 4 }}
  configFileRefs:
  prologScriptRefs:
  epilogScriptRefs:
  prologSlurmctldScriptRefs:
  epilogSlurmctldScriptRefs:
  inplaceReconfigure: false
  ha: {enabled: false, backups: 1}
  slurmctld: &container
    image: ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04
    imagePullPolicy: IfNotPresent
    args: []
    resources: {}
  reconfigure: {image: "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04", imagePullPolicy: IfNotPresent, resources: {}}
  logfile: &logfile {image: "docker.io/library/alpine:latest", imagePullPolicy: IfNotPresent, resources: {}}
  template:
    metadata:
      annotations:
      labels: *labels
    spec: &pod
      affinity: {}
      imagePullSecrets: null
      initContainers: []
      nodeSelector: {kubernetes.io/os: linux}
      priorityClassName: ""
      resources: {}
      tolerations: []
  persistence:
    enabled: true
    existingClaim: ""
    accessModes: [ReadWriteOnce]
    resources: {requests: {storage: 4Gi}}
  service: {metadata: {}, spec: {}}
  metrics:
    enabled: false
    serviceMonitor:
      enabled: false
      annotations: {}
      labels: {}
      interval: 30s
      scrapeTimeout: 25s
      endpoints: [{path: /metrics/jobs}, {path: /metrics/nodes}, {path: /metrics/partitions}, {path: /metrics/scheduler}]
---
apiVersion: slinky.slurm.net/v1beta1
kind: RestApi
metadata: {name: slurm, namespace: "{{ .Release.Namespace }}"}
spec:
  controllerRef: {name: slurm}
  replicas: 1
  slurmrestd: {image: "ghcr.io/slinkyproject/slurmrestd:26.05-ubuntu26.04", imagePullPolicy: IfNotPresent, args: [], env: [], resources: {}}
  template: {metadata: {annotations: null, labels: null}, spec: {affinity: {}, imagePullSecrets: null, priorityClassName: "", tolerations: []}}
  service: {metadata: {annotations: null, labels: null}, spec: {}}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: slurm-worker-slinky, namespace: "{{ .Release.Namespace }}"}
spec:
  controllerRef: {name: slurm}
  scalingMode: StatefulSet
  replicas: {{ .Values.replicas }}
  slurmd: {image: "ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04", imagePullPolicy: IfNotPresent, args: [], env: [], resources: {}}
  logfile: {image: "docker.io/library/alpine:latest", imagePullPolicy: IfNotPresent, resources: {}}
  partition: {enabled: true}
  volumeClaimTemplates:
  template:
    metadata: {annotations: null, labels: {app.kubernetes.io/part-of: slurm}}
    spec: {affinity: {}, hostname: slinky-, imagePullSecrets: null, nodeSelector: {kubernetes.io/os: linux}, priorityClassName: "", tolerations: []}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 25%}
    scheduledUpdate: {duration: 30m, flags: null}
  ordinalPadding: 0
  pinToNode: false
  oversubscribeNode: false
  workloadDisruptionProtection: true
  pruneSlurmNodeRecords: Never
---
apiVersion: slinky.slurm.net/v1beta1
kind: LoginSet
metadata: {name: slurm-login-slinky, namespace: "{{ .Release.Namespace }}"}
spec:
  controllerRef: {name: slurm}
  replicas: 1
  sssdConfRef: {name: slurm-sssd-conf, key: sssd.conf}
  login: {image: "ghcr.io/slinkyproject/login:26.05-ubuntu26.04", imagePullPolicy: IfNotPresent, env: [], resources: {}, securityContext: {privileged: false}, volumeMounts: []}
  initconf: {image: "docker.io/library/alpine:latest", imagePullPolicy: IfNotPresent, resources: {}}
  template: {metadata: {annotations: null}, spec: {affinity: {}, imagePullSecrets: null, priorityClassName: "", volumes: []}}
  service: {metadata: {labels: null}, spec: {type: LoadBalancer}, port: 22}
"""
