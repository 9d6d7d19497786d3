{{- define "slurm.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* The release's name, if it says what this is; else both. */}}
{{- define "slurm.fullname" -}}
{{- $name := include "slurm.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{/* On objects, never on pods: a new version of the chart alone replaces no worker. */}}
{{- define "slurm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Metadata of one object: (list ROOT NAME). */}}
{{- define "slurm.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ include "slurm.namespace" $root }}
labels:
  {{- include "slurm.labels" $root | nindent 2 }}
{{- end }}

{{/* The image of a container, or nothing: (list ROOT IMAGE DAEMON). Parts that are missing come from defaultImages. */}}
{{- define "slurm.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}{{- $daemon := index . 2 -}}
{{- $default := "" -}}
{{- if $daemon }}{{- $default = default "" $root.Values.defaultImages | replace "{daemon}" $daemon -}}{{- end -}}
{{- if kindIs "map" $image -}}
{{- $last := splitList "/" $default | last -}}
{{- $tag := "" -}}
{{- if contains ":" $last }}{{- $tag = splitList ":" $last | last -}}{{- end -}}
{{- $repository := default (trimSuffix (printf ":%s" $tag) $default) $image.repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else if $repository -}}
{{- $named := default $tag $image.tag -}}
{{- if $named }}{{- printf "%s:%v" $repository $named -}}{{- else }}{{- $repository -}}{{- end -}}
{{- end -}}
{{- else -}}
{{- default $default $image -}}
{{- end -}}
{{- end }}

{{/* A container as the operator lays it over its own: (list ROOT CONTAINER DAEMON). */}}
{{- define "slurm.container" -}}
{{- $root := index . 0 -}}{{- $container := deepCopy (default dict (index . 1)) -}}
{{- $image := include "slurm.image" (list $root $container.image (index . 2)) -}}
{{- $_ := unset $container "image" -}}
{{- if $image }}{{- $_ := set $container "image" $image -}}{{- end -}}
{{- if and $root.Values.imagePullPolicy (not $container.imagePullPolicy) -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.imagePullPolicy -}}
{{- end -}}
{{- toYaml $container -}}
{{- end }}

{{/* A pod template from metadata and podSpec: (list ROOT PART). */}}
{{- define "slurm.template" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- $spec := dict -}}
{{- range $key, $value := default dict $part.podSpec -}}
{{- if not (empty $value) }}{{- $_ := set $spec $key $value -}}{{- end -}}
{{- end -}}
{{- with $root.Values.imagePullSecrets -}}
{{- $secrets := list -}}
{{- range . }}{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) -}}{{- end -}}
{{- if not $spec.imagePullSecrets }}{{- $_ := set $spec "imagePullSecrets" $secrets -}}{{- end -}}
{{- end -}}
{{- if and $root.Values.priorityClass.enabled (not $spec.priorityClassName) -}}
{{- $_ := set $spec "priorityClassName" $root.Values.priorityClass.name -}}
{{- end -}}
{{- $made := dict "spec" $spec -}}
{{- with $part.metadata }}{{- $_ := set $made "metadata" . -}}{{- end -}}
{{- toYaml $made -}}
{{- end }}

{{/* `Key=Value` for each entry of a map, lists joined by commas: (list MAP SEPARATOR). */}}
{{- define "slurm.conf" -}}
{{- $lines := list -}}
{{- range $key, $value := default dict (index . 0) -}}
{{- $text := "" -}}
{{- if kindIs "slice" $value }}{{- $text = join "," $value -}}{{- else if kindIs "float64" $value }}{{- $text = ternary (toString (int64 $value)) (toString $value) (eq (toString (float64 (int64 $value))) (toString $value)) -}}{{- else }}{{- $text = toString $value -}}{{- end -}}
{{- $lines = append $lines (printf "%s=%s" $key $text) -}}
{{- end -}}
{{- join (index . 1) $lines -}}
{{- end }}

{{/* The text, or else the map as lines: (list TEXT MAP SEPARATOR). */}}
{{- define "slurm.textOrMap" -}}
{{- if index . 0 }}{{- index . 0 -}}{{- else }}{{- include "slurm.conf" (list (index . 1) (index . 2)) -}}{{- end -}}
{{- end }}

{{/* Everything of a NodeSet's entry, with the defaults and what vendors add, as JSON: (list ROOT NAME). */}}
{{- define "slurm.nodeset" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
{{- $entry := mustMergeOverwrite (deepCopy $root.Values.nodesetDefaults) (deepCopy (default dict (get $root.Values.nodesets $name))) -}}
{{- if $entry.enabled -}}
{{- $entry = include "slurm.vendor" (list $root $name $entry) | fromJson -}}
{{- end -}}
{{- toJson $entry -}}
{{- end }}

{{- define "slurm.loginset" -}}
{{- $root := index . 0 -}}
{{- toJson (mustMergeOverwrite (deepCopy $root.Values.loginsetDefaults) (deepCopy (default dict (get $root.Values.loginsets (index . 1))))) -}}
{{- end }}

{{/* Names of what is enabled, sorted, as JSON: (list ROOT "slurm.nodeset" MAP). */}}
{{- define "slurm.enabled" -}}
{{- $root := index . 0 -}}{{- $read := index . 1 -}}
{{- $names := list -}}
{{- range $name, $_ := default dict (index . 2) -}}
{{- $entry := include $read (list $root $name) | fromJson -}}
{{- if $entry.enabled }}{{- $names = append $names $name -}}{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* The Secret behind a key, or nothing when the operator is to make it: (list ROOT KEY "auth-slurm" "slurm.key"). */}}
{{- define "slurm.keyRef" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $name := printf "%s-%s" (include "slurm.fullname" $root) (index . 2) -}}
{{- if $key.secretRef.name -}}
name: {{ $key.secretRef.name }}
key: {{ default (index . 3) $key.secretRef.key }}
{{- else if or (not $key.create) $root.Values.controller.external (include "slurm.kept" (list $root (index . 2))) -}}
name: {{ $name }}
key: {{ index . 3 }}
{{- end -}}
{{- end }}

{{/* The data of a key that an earlier release of this name holds: without it in the chart, Helm would delete it. */}}
{{- define "slurm.kept" -}}
{{- $root := index . 0 -}}
{{- $there := lookup "v1" "Secret" (include "slurm.namespace" $root) (printf "%s-%s" (include "slurm.fullname" $root) (index . 1)) -}}
{{- if $there -}}
{{- $by := get (default dict $there.metadata.labels) "app.kubernetes.io/managed-by" -}}
{{- if eq (toString $by) "Helm" }}{{- toJson $there.data -}}{{- end -}}
{{- end -}}
{{- end }}
