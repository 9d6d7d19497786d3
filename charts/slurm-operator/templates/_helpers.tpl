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

{{/* Whether an account is made: (list ROOT COMPONENT). */}}
{{- define "slurm-operator.makesAccount" -}}
{{- if and (index . 1).serviceAccount.create (index . 0).Values.rbac.serviceAccount.create }}yes{{- end -}}
{{- end }}

{{/* Whether roles are made and bound: (list ROOT COMPONENT). */}}
{{- define "slurm-operator.makesRoles" -}}
{{- if and (index . 1).enabled (index . 1).serviceAccount.create (index . 0).Values.rbac.create }}yes{{- end -}}
{{- end }}

{{- define "slurm-operator.serviceAccount" -}}
{{- $named := default .Values.rbac.serviceAccount.name .Values.operator.serviceAccount.name -}}
{{- $made := include "slurm-operator.makesAccount" (list . .Values.operator) -}}
{{- default (ternary (include "slurm-operator.fullname" .) "default" (eq $made "yes")) $named -}}
{{- end }}

{{- define "slurm-operator.webhook.serviceAccount" -}}
{{- $made := eq (include "slurm-operator.makesAccount" (list . .Values.webhook)) "yes" -}}
{{- $named := .Values.rbac.serviceAccount.name -}}
{{- if and $named $made }}{{- $named = printf "%s-webhook" $named -}}{{- end -}}
{{- default (default (ternary (include "slurm-operator.webhook.fullname" .) "default" $made) $named) .Values.webhook.serviceAccount.name -}}
{{- end }}

{{/* The metrics port of the operator; 0 is off. */}}
{{- define "slurm-operator.metricsPort" -}}
{{- $said := .Values.global.metrics -}}
{{- $port := .Values.operator.metricsPort -}}
{{- if not (kindIs "invalid" $said.port) }}{{- $port = $said.port -}}{{- end -}}
{{- if eq (toString $said.enabled) "false" }}{{- $port = 0 -}}{{- end -}}
{{- include "slurm-operator.port" (list "operator.metricsPort" $port 0) -}}
{{- end }}

{{/* Whether the operator's metrics are for those alone who may read them; empty is no. */}}
{{- define "slurm-operator.metricsSecure" -}}
{{- $said := .Values.operator.metricsSecure -}}
{{- $monitored := or .Values.monitoring.serviceMonitor.enabled .Values.global.metrics.serviceMonitor.enabled -}}
{{- if kindIs "invalid" $said -}}
{{- if and $monitored (ne (include "slurm-operator.metricsPort" .) "0") }}yes{{ end -}}
{{- else if $said }}yes{{ end -}}
{{- end }}

{{/* What a container may use: the first of these that says something. */}}
{{- define "slurm-operator.resources" -}}
{{- $found := dict -}}
{{- range . }}{{- if and . (not $found) }}{{- $found = . -}}{{- end -}}{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{/* When images are pulled: (list ROOT COMPONENT). */}}
{{- define "slurm-operator.pullPolicy" -}}
{{- coalesce (index . 1).imagePullPolicy (index . 0).Values.global.image.pullPolicy (index . 0).Values.imagePullPolicy -}}
{{- end }}

{{/* The image of a component: (list ROOT IMAGE SUFFIX), where SUFFIX is what its name has behind that of the operator.
     There is no default: whoever published an image of that name would run with the operator's rights. */}}
{{- define "slurm-operator.imageOf" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}{{- $suffix := index . 2 -}}{{- $said := $root.Values.global.image -}}
{{- $part := ternary "webhook" "operator" (eq $suffix "-webhook") -}}
{{- if and (eq $part "webhook") $root.Values.operator.enabled }}{{- $_ := include "slurm-operator.imageOf" (list $root $root.Values.operator.image "") -}}{{- end -}}
{{- $usual := $said.repository -}}
{{- if and (not $usual) (kindIs "map" $root.Values.operator.image) }}{{- $usual = $root.Values.operator.image.repository -}}{{- end -}}
{{- if kindIs "map" $image -}}
{{- $image = deepCopy $image -}}
{{- if and $usual (not $image.repository) }}{{- $_ := set $image "repository" (printf "%s%s" $usual $suffix) -}}{{- end -}}
{{- if and $said.tag (not $image.tag) }}{{- $_ := set $image "tag" (toString $said.tag) -}}{{- end -}}
{{- end -}}
{{- $name := "" -}}
{{- if or (kindIs "string" $image) $image.repository }}{{- $name = include "slurm-operator.image" (list $root $image) -}}{{- end -}}
{{- $line := printf "%s.image.repository=REGISTRY/slurm-operator%s" $part $suffix -}}
{{- if not $name -}}
{{- fail (printf "%s.image names no image, and there is no default. Bring the operator's images to a registry of yours and set %s" $part $line) -}}
{{- end -}}
{{- if regexMatch "slinkyproject/slurm-operator" $name -}}
{{- fail (printf "%s.image is %s, the image of Slinky's operator, which is another program. Set %s and %s.image.tag=%s" $part $name $line $part $root.Chart.Version) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* The ConfigMap with settings, or nothing. */}}
{{- define "slurm-operator.config" -}}
{{- if .Values.config.existingConfigMap -}}
{{- .Values.config.existingConfigMap -}}
{{- else if .Values.config.enabled -}}
{{- printf "%s-config" (include "slurm-operator.fullname" .) -}}
{{- end -}}
{{- end }}

{{/* A setting as text: maps and lists as YAML, whole numbers without a point. */}}
{{- define "slurm-operator.setting" -}}
{{- if or (kindIs "map" .) (kindIs "slice" .) -}}
{{- toYaml . -}}
{{- else if kindIs "float64" . -}}
{{- ternary (toString (int64 .)) (toString .) (eq (float64 (int64 .)) .) -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
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

{{/* Flags of the operator, as JSON. None that says what is so anyway: flags win over the environment and over settings. */}}
{{- define "slurm-operator.flags" -}}
{{- $flags := list -}}{{- $values := .Values.operator -}}
{{- $health := int $values.healthPort -}}{{- $metrics := include "slurm-operator.metricsPort" . -}}
{{- if ne $health 8081 }}{{- $flags = append $flags (printf "--health-addr=:%d" $health) -}}{{- end -}}
{{- if ne $metrics "8080" }}{{- $flags = append $flags (printf "--metrics-addr=%s" (ternary "0" (printf ":%s" $metrics) (eq $metrics "0"))) -}}{{- end -}}
{{- if include "slurm-operator.metricsSecure" . }}{{- $flags = append $flags "--metrics-secure=true" -}}{{- end -}}
{{- if not $values.leaderElection }}{{- $flags = append $flags "--leader-elect=false" -}}{{- end -}}
{{- $flags = concat $flags (include "slurm-operator.common" (list . $values) | fromJsonArray) -}}
{{- with .Values.propagatedNodeConditions }}{{- $flags = append $flags (printf "--propagated-node-conditions=%s" (join "," .)) -}}{{- end -}}
{{- if $values.profile -}}
{{- $flags = append $flags "--profile=true" -}}
{{- if ne (toString $values.profileAddr) "localhost:6060" }}{{- $flags = append $flags (printf "--profile-addr=%s" $values.profileAddr) -}}{{- end -}}
{{- end -}}
{{- if $values.record }}{{- $flags = append $flags "--record=/var/lib/slurm-operator" -}}{{- end -}}
{{- range $reconciler := list "cluster" "controller" "restapi" "accounting" "nodeset" "loginset" "token" -}}
{{- $workers := int (get $values (printf "%sWorkers" $reconciler)) -}}
{{- if ne $workers 4 }}{{- $flags = append $flags (printf "--%s-workers=%d" $reconciler $workers) -}}{{- end -}}
{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{/* Flags of the webhook, as JSON, by the same rule. */}}
{{- define "slurm-operator.webhook.flags" -}}
{{- $flags := list -}}{{- $values := .Values.webhook -}}
{{- $name := include "slurm-operator.webhook.fullname" . -}}
{{- if ne (int $values.healthPort) 8081 }}{{- $flags = append $flags (printf "--health-addr=:%d" (int $values.healthPort)) -}}{{- end -}}
{{- if ne (int $values.metricsPort) 0 }}{{- $flags = append $flags (printf "--metrics-addr=:%d" (int $values.metricsPort)) -}}{{- end -}}
{{- if $values.metricsSecure }}{{- $flags = append $flags "--metrics-secure=true" -}}{{- end -}}
{{- if ne (int $values.serverPort) 9443 }}{{- $flags = append $flags (printf "--server-addr=:%d" (int $values.serverPort)) -}}{{- end -}}
{{- if not .Values.certManager.enabled -}}
{{- if ne $name "slurm-operator-webhook" -}}
{{- $flags = concat $flags (list (printf "--service-name=%s" $name) (printf "--cert-secret=%s-certificates" $name) (printf "--webhook-configurations=%s" $name)) -}}
{{- end -}}
{{- end -}}
{{- if not $values.podsBinding }}{{- $flags = append $flags "--pods-binding=false" -}}{{- end -}}
{{- $flags = concat $flags (include "slurm-operator.common" (list . $values) | fromJsonArray) -}}
{{- toJson $flags -}}
{{- end }}

{{/* Flags that both have, as JSON: (list ROOT COMPONENT). */}}
{{- define "slurm-operator.common" -}}
{{- $root := index . 0 -}}{{- $values := index . 1 -}}{{- $flags := list -}}
{{- range splitList "\n" (include "slurm-operator.apis" $root | trim) }}{{- with trimPrefix "- " . }}{{- $flags = append $flags . -}}{{- end -}}{{- end -}}
{{- with include "slurm-operator.split" $values.namespaces | fromJsonArray }}{{- $flags = append $flags (printf "--namespaces=%s" (join "," .)) -}}{{- end -}}
{{- if include "slurm-operator.config" $root }}{{- $flags = append $flags "--config=/etc/slurm-operator" -}}{{- end -}}
{{- if ne (toString $values.logLevel) "info" }}{{- $flags = append $flags (printf "--zap-log-level=%v" $values.logLevel) -}}{{- end -}}
{{- toJson $flags -}}
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

{{/* Everything is read through this first: fills in what values of another chart lack. It gives nothing back, and may run
     any number of times. */}}
{{- define "slurm-operator.ready" -}}
{{- if ne (toString (get .Values "valuesOf")) "slurm-operator" -}}
{{- include "slurm-operator.fill" (list .Values (.Files.Get "files/defaults.yaml" | fromYaml)) -}}
{{- end -}}
{{- end }}

{{/* Values with the defaults for keys that they lack: (list VALUES DEFAULTS). */}}
{{- define "slurm-operator.fill" -}}
{{- $values := index . 0 -}}
{{- range $key, $default := index . 1 -}}
{{- $there := get $values $key -}}
{{- if or (not (hasKey $values $key)) (and (kindIs "invalid" $there) (kindIs "map" $default)) -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $there) (kindIs "map" $default) -}}
{{- include "slurm-operator.fill" (list $there $default) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A line for each value that nobody reads: (list VALUES KNOWN PATH). */}}
{{- define "slurm-operator.unread" -}}
{{- $known := index . 1 -}}{{- $path := index . 2 -}}
{{- range $key, $value := index . 0 -}}
{{- $there := get $known $key -}}
{{- if not (hasKey $known $key) }}{{- $there = get $known "*" -}}{{- end -}}
{{- $name := ternary $key (printf "%s.%s" $path $key) (eq $path "") -}}
{{- if and (kindIs "string" $there) $there }}
  {{ $name }} {{ $there }}
{{- else if kindIs "map" $there -}}
{{- if kindIs "map" $value }}{{- include "slurm-operator.unread" (list $value $there $name) -}}{{- end -}}
{{- else if not $there }}
  {{ $name }} is not known
{{- end -}}
{{- end -}}
{{- end }}
