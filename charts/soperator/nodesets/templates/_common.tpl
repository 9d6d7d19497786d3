{{/* What the charts of this folder have in common. Each has a copy: change charts/soperator/common.tpl. */}}

{{/* Everything is read through this first: fills in what values lack. It gives nothing back, and may run any number of times.
     Of values that Soperator's chart left behind everything that is missing is filled in; of others only what templates
     look into, so that null takes a default away. */}}
{{- define "soperator.ready" -}}
{{- $isOurs := eq (toString (get .Values "valuesOf")) "slurm-operator" -}}
{{- include "soperator.fill" (list .Values (.Files.Get "files/defaults.yaml" | fromYaml) $isOurs) -}}
{{- end }}

{{/* (list VALUES DEFAULTS ONLY-MAPS) */}}
{{- define "soperator.fill" -}}
{{- $values := index . 0 -}}{{- $onlyMaps := index . 2 -}}
{{- $whole := list "livenessProbe" "readinessProbe" "resources" "updateStrategy" "volumeClaimTemplateSpec" "failureReactions" "successReactions" -}}
{{- range $key, $default := index . 1 -}}
{{- $there := get $values $key -}}
{{- $isPart := and (kindIs "map" $default) (not (has $key $whole)) -}}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" $there) -}}
{{- if or $isPart (and (not $onlyMaps) (not (kindIs "invalid" $default)) (not (hasKey $values $key))) }}{{- $_ := set $values $key (deepCopy $default) -}}{{- end -}}
{{- else if and (kindIs "map" $there) $isPart -}}
{{- include "soperator.fill" (list $there $default $onlyMaps) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What the API knows of a value, without nulls, as JSON {"v": ...}: (list VALUE FIELDS). FIELDS: a map by name, a list
     with the fields of each entry, or true for anything. */}}
{{- define "soperator.given" -}}
{{- $value := index . 0 -}}{{- $fields := index . 1 -}}
{{- if kindIs "map" $value -}}
{{- $found := dict -}}
{{- range $key, $inner := $value -}}
{{- $known := true -}}
{{- if kindIs "map" $fields }}{{- $known = get $fields $key -}}{{- end -}}
{{- if and $known (not (kindIs "invalid" $inner)) -}}
{{- $_ := set $found $key (include "soperator.given" (list $inner $known) | fromJson).v -}}
{{- end -}}
{{- end -}}
{{- dict "v" $found | toJson -}}
{{- else if kindIs "slice" $value -}}
{{- $found := list -}}
{{- $known := true -}}
{{- if kindIs "slice" $fields }}{{- $known = index $fields 0 -}}{{- end -}}
{{- range $value }}{{- if not (kindIs "invalid" .) }}{{- $found = append $found (include "soperator.given" (list . $known) | fromJson).v -}}{{- end -}}{{- end -}}
{{- dict "v" $found | toJson -}}
{{- else -}}
{{- dict "v" $value | toJson -}}
{{- end -}}
{{- end }}

{{/* A line for each value that nobody reads, or of which there is something to say: (list VALUES KNOWN PATH). */}}
{{- define "soperator.unread" -}}
{{- $known := index . 1 -}}{{- $path := index . 2 -}}
{{- range $key, $value := index . 0 -}}
{{- $there := get $known $key -}}
{{- if not (hasKey $known $key) }}{{- $there = get $known "*" -}}{{- end -}}
{{- $name := ternary $key (printf "%s.%s" $path $key) (eq $path "") -}}
{{- if kindIs "invalid" $value -}}
{{- else if and (kindIs "string" $there) $there }}
  {{ $name }} {{ $there }}
{{- else if not $there }}
  {{ $name }} is not known
{{- else if and (kindIs "map" $there) (kindIs "map" $value) -}}
{{- include "soperator.unread" (list $value $there $name) -}}
{{- else if and (kindIs "slice" $there) (kindIs "slice" $value) -}}
{{- range $index, $one := $value -}}
{{- if and (kindIs "map" $one) (kindIs "map" (index $there 0)) }}{{- include "soperator.unread" (list $one (index $there 0) (printf "%s[%d]" $name $index)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What the notes say of such values: (list ROOT MORE), where MORE are lines of the chart's own. */}}
{{- define "soperator.notes" -}}
{{- $root := index . 0 -}}
{{- $unread := include "soperator.unread" (list $root.Values ($root.Files.Get "files/known.yaml" | fromYaml) "") -}}
{{- with index . 1 }}{{- $unread = printf "%s%s" $unread . -}}{{- end -}}
{{- if $unread }}

Some values have no effect here, or another one than with Soperator's chart:
{{ $unread }}
{{- end -}}
{{- end }}

{{/* On every object, and on no pod: a new version of the chart alone restarts nothing. */}}
{{- define "soperator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* By which Services and monitors find pods. These never change: a Deployment's selector cannot. */}}
{{- define "soperator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "soperator.fullname" -}}
{{- default .Release.Name (get .Values "fullnameOverride") | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* A text from a string, or from repository and tag: (list IMAGE TAG). */}}
{{- define "soperator.image" -}}
{{- $image := index . 0 -}}
{{- if kindIs "map" $image -}}
{{- printf "%s:%v" $image.repository (default (index . 1) $image.tag) -}}
{{- else -}}
{{- $image -}}
{{- end -}}
{{- end }}

{{/* An image, where it may be used: (list ROOT IMAGE SETTING). Anybody could publish one under a name of the local cluster. */}}
{{- define "soperator.named" -}}
{{- $image := toString (index . 1) -}}
{{- if and (hasPrefix "docker.io/local/" $image) (ne (toString (index . 0).Values.localImages) "true") -}}
{{- fail (printf "there is no default image, and %s is one of the local cluster, under a name that anybody could publish. Bring our images to a registry of yours and set %s; on the local cluster set localImages=true" $image (index . 2)) -}}
{{- end -}}
{{- $image -}}
{{- end }}

{{/* Names from a comma-separated list as JSON; none for all namespaces. */}}
{{- define "soperator.namespaces" -}}
{{- $names := list -}}
{{- range splitList "," (toString (default "" .)) }}{{- with trim . }}{{- $names = append $names . }}{{- end }}{{- end -}}
{{- if has "*" $names }}{{- $names = list -}}{{- end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end }}

{{/* Those arguments that a program knows, or those it does not, as JSON: (list ARGUMENTS FLAGS WANTED). A word without a
     dash belongs to the flag before it. */}}
{{- define "soperator.arguments" -}}
{{- $flags := index . 1 -}}{{- $wanted := index . 2 -}}{{- $found := list -}}{{- $isWanted := false -}}
{{- range default list (index . 0) -}}
{{- $word := toString . -}}
{{- if hasPrefix "-" $word }}{{- $isWanted = eq (has (splitList "=" $word | first | trimPrefix "-" | trimPrefix "-") $flags) $wanted -}}{{- end -}}
{{- if $isWanted }}{{- $found = append $found $word -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* The port of an address among arguments: (list ARGUMENTS FLAG DEFAULT); 0 where it is off. */}}
{{- define "soperator.port" -}}
{{- $flag := index . 1 -}}{{- $port := index . 2 -}}
{{- range default list (index . 0) -}}
{{- $said := trimPrefix "-" . | trimPrefix "-" -}}
{{- if hasPrefix (printf "%s=" $flag) $said }}{{- $port = splitList ":" $said | last | splitList "=" | last -}}{{- end -}}
{{- end -}}
{{- int $port -}}
{{- end }}

{{/* `--controllers` for a map of switches: (list SWITCHES KNOWN). Nothing while all are on. */}}
{{- define "soperator.controllers" -}}
{{- $off := list -}}
{{- range $name, $isOn := index . 0 -}}
{{- if and (has $name (index $ 1)) (eq (toString $isOn) "false") }}{{- $off = append $off (printf "-%s" $name) -}}{{- end -}}
{{- end -}}
{{- if $off }}{{- printf "--controllers=*,%s" (join "," (sortAlpha $off)) -}}{{- end -}}
{{- end }}

{{/* A role and who has it: (dict "root" "kind" "name" "namespace" "account" "home" "rules"). */}}
{{- define "soperator.granted" -}}
{{- $where := "" }}{{- if .namespace }}{{- $where = printf "\n  namespace: %s" .namespace }}{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}{{ $where }}
  labels:
    {{- include "soperator.labels" .root | nindent 4 }}
rules: {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}{{ $where }}
  labels:
    {{- include "soperator.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .home }}
{{- end }}

{{/* A ServiceMonitor for a Service with a port `metrics`: (list ROOT NAME MONITOR IS-SECURE LABELS). */}}
{{- define "soperator.serviceMonitor" -}}
{{- $root := index . 0 -}}{{- $monitor := index . 2 -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "soperator.labels" $root | nindent 4 }}
    {{- with $monitor.additionalLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with $monitor.jobLabel }}
  jobLabel: {{ . }}
  {{- end }}
  selector:
    matchLabels: {{- index . 4 | nindent 6 }}
  endpoints:
    - port: metrics
      {{- with $monitor.interval }}
      interval: {{ . }}
      {{- end }}
      {{- with $monitor.scrapeTimeout }}
      scrapeTimeout: {{ . }}
      {{- end }}
      {{- if index . 3 }}
      scheme: https
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      tlsConfig:
        # It signs its certificate itself; who may read is decided by the token.
        insecureSkipVerify: true
      {{- end }}
      {{- with $monitor.relabelings }}
      relabelings: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.metricRelabelings }}
      metricRelabelings: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* A PodMonitor for the node-exporter beside a program: (list ROOT NAME MONITOR SELECTOR), where SELECTOR are matchLabels. */}}
{{- define "soperator.podMonitor" -}}
{{- $root := index . 0 -}}{{- $monitor := index . 2 -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "soperator.labels" $root | nindent 4 }}
spec:
  selector:
    matchLabels: {{- index . 3 | nindent 6 }}
  podMetricsEndpoints:
    - port: node-exporter
      {{- with $monitor.interval }}
      interval: {{ . }}
      {{- end }}
      {{- with $monitor.scrapeTimeout }}
      scrapeTimeout: {{ . }}
      {{- end }}
      {{- with $monitor.relabelings }}
      relabelings: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.metricRelabelings }}
      metricRelabelings: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* The head of a pod that needs no rights on its node: (list ACCOUNT PULL-SECRETS PLACE). */}}
{{- define "soperator.pod" -}}
serviceAccountName: {{ index . 0 }}
terminationGracePeriodSeconds: 15
{{- with index . 1 }}
imagePullSecrets:
  {{- range . }}
  - {{ if kindIs "string" . }}name: {{ . }}{{ else }}{{ toJson . }}{{ end }}
  {{- end }}
{{- end }}
{{- with (index . 2).nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with (index . 2).affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with (index . 2).tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "soperator.probes" -}}
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

{{/* A Service for a port `metrics` of pods: (list ROOT NAME PORT SELECTOR). */}}
{{- define "soperator.metricsService" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ index . 1 }}-metrics
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- index . 3 | nindent 4 }}
    helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
    app.kubernetes.io/managed-by: {{ $root.Release.Service }}
spec:
  selector:
    {{- index . 3 | nindent 4 }}
  ports:
    - name: metrics
      port: {{ index . 2 }}
      targetPort: metrics
{{- end }}

{{/* An account and what it may do, everywhere or in the namespaces that are watched: (dict "root" "name" "rights"
     "inNamespaces" "atHome" "more" "isSecure" "annotations" "namespaces"). */}}
{{- define "soperator.access" -}}
{{- $common := dict "root" .root "account" .name "home" .root.Release.Namespace }}
{{- $namespaces := include "soperator.namespaces" .namespaces | fromJsonArray }}
{{- $everywhere := concat .rights.clusterWide .more }}
{{- if not $namespaces }}
{{- $everywhere = concat $everywhere .inNamespaces | uniq }}
{{- end }}
{{- if .isSecure }}
{{- $everywhere = concat $everywhere .rights.secureMetrics }}
{{- end }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "soperator.labels" .root | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
---
{{ include "soperator.granted" (merge (dict "kind" "ClusterRole" "name" .name "rules" $everywhere) $common) }}
---
{{ include "soperator.granted" (merge (dict "kind" "Role" "name" .name "namespace" .root.Release.Namespace "rules" .atHome) $common) }}
{{- $name := .name }}{{- $inNamespaces := .inNamespaces }}
{{- range $namespaces }}
---
{{ include "soperator.granted" (merge (dict "kind" "Role" "name" (printf "%s-clusters" $name) "namespace" . "rules" $inNamespaces) $common) }}
{{- end }}
{{- if .isSecure }}
---
# Bound to nobody: bind it to whoever may read the metrics.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}-metrics-reader
  labels:
    {{- include "soperator.labels" .root | nindent 4 }}
rules:
  - nonResourceURLs:
      - /metrics
    verbs:
      - get
{{- end }}
{{- end }}
