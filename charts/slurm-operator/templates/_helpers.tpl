{{/* The name of everything, shortened by nameOverride. */}}
{{- define "slurm-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* The release's name, if it says what this is; else both. */}}
{{- define "slurm-operator.fullname" -}}
{{- $name := include "slurm-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "slurm-operator.webhook.fullname" -}}
{{- printf "%s-webhook" (include "slurm-operator.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end }}

{{- define "slurm-operator.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{/* By which Services, budgets and policies find pods. These never change: a Deployment's selector cannot. */}}
{{- define "slurm-operator.selector" -}}
app.kubernetes.io/name: {{ include "slurm-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "slurm-operator.webhook.selector" -}}
app.kubernetes.io/name: {{ include "slurm-operator.name" . }}-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* On every object, and on no pod: a new version of the chart alone restarts nothing. */}}
{{- define "slurm-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "slurm-operator.serviceAccount" -}}
{{- default (ternary (include "slurm-operator.fullname" .) "default" .Values.operator.serviceAccount.create) .Values.operator.serviceAccount.name -}}
{{- end }}

{{- define "slurm-operator.webhook.serviceAccount" -}}
{{- default (ternary (include "slurm-operator.webhook.fullname" .) "default" .Values.webhook.serviceAccount.create) .Values.webhook.serviceAccount.name -}}
{{- end }}

{{/* An image from a string or from repository, tag and digest: (list ROOT IMAGE). */}}
{{- define "slurm-operator.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- if kindIs "string" $image -}}
{{- $image -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.Version $image.tag) -}}
{{- end -}}
{{- end }}

{{/* A port, strictly: (list NAME VALUE LOWEST). Helm turns whole numbers of values files into floats. */}}
{{- define "slurm-operator.port" -}}
{{- $name := index . 0 -}}{{- $value := index . 1 -}}{{- $lowest := index . 2 -}}
{{- if not (regexMatch "^[0-9]+$" (toString $value)) -}}
{{- fail (printf "%s must be a whole number from %d to 65535, not %v" $name (int $lowest) $value) -}}
{{- end -}}
{{- if or (lt (int $value) (int $lowest)) (gt (int $value) 65535) -}}
{{- fail (printf "%s must be a whole number from %d to 65535, not %v" $name (int $lowest) $value) -}}
{{- end -}}
{{- int $value -}}
{{- end }}

{{/* Names from a comma-separated list, sorted, as JSON. */}}
{{- define "slurm-operator.split" -}}
{{- $names := list -}}
{{- range splitList "," (default "" .) }}{{- with trim . }}{{- $names = append $names . }}{{- end }}{{- end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end }}

{{- define "slurm-operator.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "slurm-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
    - ALL
readOnlyRootFilesystem: true
{{- end }}

{{- define "slurm-operator.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 10
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 2
{{- end }}

{{/* The rights in a list of files/rights.yaml, with those for other API groups that are on: (list ROOT NAME). */}}
{{- define "slurm-operator.rights" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
{{- $rights := get ($root.Files.Get "files/rights.yaml" | fromYaml) $name -}}
{{- if $root.Values.apis.nebius -}}
{{- $rights = concat $rights (get ($root.Files.Get "files/rights-nebius.yaml" | fromYaml) $name) -}}
{{- end -}}
{{- $rights | toJson -}}
{{- end }}

{{/* Flags for the API groups that are on; none for the usual one alone. */}}
{{- define "slurm-operator.apis" -}}
{{- $apis := .Values.apis -}}
{{- if not (or $apis.slinky $apis.nebius) }}{{ fail "apis: at least one must be on" }}{{ end -}}
{{- if $apis.nebius -}}
{{- if $apis.slinky }}
- --api=slinky.slurm.net
{{- end }}
- --api=slurm.nebius.ai
{{- end -}}
{{- end }}

{{/* Where pods run: (list ROOT COMPONENT). */}}
{{- define "slurm-operator.scheduling" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {{ if kindIs "string" . }}name: {{ . }}{{ else }}{{ toJson . }}{{ end }}
  {{- end }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What a budget says: maxUnavailable wins. */}}
{{- define "slurm-operator.budget" -}}
{{- if not (kindIs "invalid" .maxUnavailable) -}}
maxUnavailable: {{ .maxUnavailable }}
{{- else -}}
minAvailable: {{ .minAvailable }}
{{- end -}}
{{- end }}

{{/* A role and who has it: (dict "root" "kind" "name" "namespace" "account" "rules" "selector"). */}}
{{- define "slurm-operator.granted" -}}
{{- $where := "" }}{{- if .namespace }}{{- $where = printf "\n  namespace: %s" .namespace }}{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}{{ $where }}
  labels:
    {{- include .selector .root | nindent 4 }}
    {{- include "slurm-operator.labels" .root | nindent 4 }}
rules: {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}{{ $where }}
  labels:
    {{- include .selector .root | nindent 4 }}
    {{- include "slurm-operator.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ include "slurm-operator.namespace" .root }}
{{- end }}
