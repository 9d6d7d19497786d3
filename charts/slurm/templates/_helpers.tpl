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

{{/* Metadata of one object: (list ROOT NAME), or with what its values say: (list ROOT NAME METADATA). */}}
{{- define "slurm.metadata" -}}
{{- $root := index . 0 -}}
{{- $given := dict -}}{{- if gt (len .) 2 }}{{- $given = default dict (index . 2) -}}{{- end -}}
name: {{ index . 1 }}
namespace: {{ include "slurm.namespace" $root }}
labels:
  {{- include "slurm.labels" $root | nindent 2 }}
  {{- with omit (default dict $given.labels) "helm.sh/chart" "app.kubernetes.io/part-of" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $given.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
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

{{/* Pull secrets of this pod and those of all, each once, as JSON: (list ROOT OWN). */}}
{{- define "slurm.pullSecrets" -}}
{{- $found := list -}}{{- $names := list -}}
{{- range concat (default list (index . 1)) (default list (index . 0).Values.imagePullSecrets) -}}
{{- $secret := ternary (dict "name" .) . (kindIs "string" .) -}}
{{- if not (has $secret.name $names) -}}
{{- $names = append $names $secret.name -}}
{{- $found = append $found $secret -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* A pod template from metadata and podSpec: (list ROOT PART). What is empty, zero or false was said, too. */}}
{{- define "slurm.template" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- $spec := dict -}}
{{- range $key, $value := default dict $part.podSpec -}}
{{- if not (kindIs "invalid" $value) }}{{- $_ := set $spec $key $value -}}{{- end -}}
{{- end -}}
{{- with include "slurm.pullSecrets" (list $root $spec.imagePullSecrets) | fromJsonArray -}}
{{- $_ := set $spec "imagePullSecrets" . -}}
{{- end -}}
{{- if and $root.Values.priorityClass.enabled (not $spec.priorityClassName) -}}
{{- $_ := set $spec "priorityClassName" $root.Values.priorityClass.name -}}
{{- end -}}
{{- $made := dict "spec" $spec -}}
{{- with $part.metadata }}{{- $_ := set $made "metadata" . -}}{{- end -}}
{{- toYaml $made -}}
{{- end }}

{{/* Fields of a kind that its template does not list, as its values say them: (list ROOT KIND PART). */}}
{{- define "slurm.more" -}}
{{- $part := index . 2 -}}{{- $found := dict -}}
{{- range get ((index . 0).Files.Get "files/fields.yaml" | fromYaml) (index . 1) -}}
{{- $value := get $part . -}}
{{- if and (hasKey $part .) (not (kindIs "invalid" $value)) }}{{- $_ := set $found . $value -}}{{- end -}}
{{- end -}}
{{- if $found }}{{- toYaml $found -}}{{- end -}}
{{- end }}

{{/* `Key=Value` for each entry of a map, lists joined by commas, without empty ones: (list MAP SEPARATOR). */}}
{{- define "slurm.conf" -}}
{{- $lines := list -}}
{{- range $key, $value := default dict (index . 0) -}}
{{- $isSaid := not (or (kindIs "invalid" $value) (and (or (kindIs "string" $value) (kindIs "slice" $value)) (empty $value))) -}}
{{- if $isSaid -}}
{{- $text := "" -}}
{{- if kindIs "slice" $value }}{{- $text = join "," $value -}}{{- else if kindIs "float64" $value }}{{- $text = ternary (toString (int64 $value)) (toString $value) (eq (toString (float64 (int64 $value))) (toString $value)) -}}{{- else }}{{- $text = toString $value -}}{{- end -}}
{{- $lines = append $lines (printf "%s=%s" $key $text) -}}
{{- end -}}
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

{{/* The name of the Secret with a key: (list ROOT KEY "auth-slurm"). */}}
{{- define "slurm.keyName" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $name := printf "%s-%s" (include "slurm.fullname" $root) (index . 2) -}}
{{- $named := dig "name" "" (default dict $key.secretRef) -}}
{{- /* Version 1.0 of the chart before this one called it so. */ -}}
{{- if and (not $named) (eq (index . 2) "auth-jwt") -}}
{{- $namespace := include "slurm.namespace" $root -}}{{- $older := printf "%s-auth-jwths256" (include "slurm.fullname" $root) -}}
{{- if and (lookup "v1" "Secret" $namespace $older) (not (lookup "v1" "Secret" $namespace $name)) }}{{- $named = $older -}}{{- end -}}
{{- end -}}
{{- default $name $named -}}
{{- end }}

{{/* The entry of the Secret with a key: the one that values name, else the usual one, else the first there is. */}}
{{- define "slurm.keyEntry" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}{{- $usual := index . 3 -}}
{{- $there := lookup "v1" "Secret" (include "slurm.namespace" $root) (include "slurm.keyName" .) -}}
{{- $entries := keys (default dict (get (default dict $there) "data")) | sortAlpha -}}
{{- $found := $usual -}}
{{- if and $entries (not (has $usual $entries)) }}{{- $found = first $entries -}}{{- end -}}
{{- default $found (dig "key" "" (default dict $key.secretRef)) -}}
{{- end }}

{{/* The Secret behind a key, or nothing when the operator is to make it: (list ROOT KEY "auth-slurm" "slurm.key"). */}}
{{- define "slurm.keyRef" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $name := include "slurm.keyName" . -}}
{{- $isUsual := eq $name (printf "%s-%s" (include "slurm.fullname" $root) (index . 2)) -}}
{{- if or (not $isUsual) (not $key.create) $root.Values.controller.external (include "slurm.kept" .) -}}
name: {{ $name }}
key: {{ include "slurm.keyEntry" . }}
{{- end -}}
{{- end }}

{{/* The data of a key that an earlier version of this release made: without it in the chart, Helm would delete it. */}}
{{- define "slurm.kept" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $there := lookup "v1" "Secret" (include "slurm.namespace" $root) (include "slurm.keyName" .) -}}
{{- if and $there $key.create -}}
{{- $by := get (default dict $there.metadata.labels) "app.kubernetes.io/managed-by" -}}
{{- $release := get (default dict $there.metadata.annotations) "meta.helm.sh/release-name" -}}
{{- if and (eq (toString $by) "Helm") (has (toString $release) (list $root.Release.Name "")) }}{{- toJson $there.data -}}{{- end -}}
{{- end -}}
{{- end }}
