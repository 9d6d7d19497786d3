{{/* Everything is read through this first: fills in what values of another chart lack, and maps what they called otherwise.
     It gives nothing back, and may run any number of times. */}}
{{- define "slurm.ready" -}}
{{- $values := .Values -}}
{{- if ne (toString (get $values "valuesOf")) "slurm-operator" -}}
{{- include "slurm.fill" (list $values (.Files.Get "files/defaults.yaml" | fromYaml)) -}}
{{- end -}}
{{- range list "nodesets" "loginsets" "partitions" -}}
{{- $entries := get $values . -}}
{{- if kindIs "slice" $entries -}}
{{- $named := dict -}}
{{- range $entries }}{{- $_ := set $named .name (omit . "name") -}}{{- end -}}
{{- $_ := set $values . $named -}}
{{- else if not (kindIs "map" $entries) -}}
{{- $_ := set $values . dict -}}
{{- end -}}
{{- end -}}
{{- range $new, $old := dict "slurmKey" "slurmKeyRef" "jwtKey" "jwtHs256KeyRef" -}}
{{- $given := get $values $old -}}
{{- if and (kindIs "map" $given) $given -}}
{{- if and (get $given "name") (not (dig "secretRef" "name" "" (get $values $new))) }}{{- $_ := set (get $values $new) "secretRef" $given -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- include "slurm.moved" (list $values.controller "slurmctld") -}}
{{- include "slurm.moved" (list $values.restapi "slurmrestd") -}}
{{- include "slurm.moved" (list $values.accounting "slurmdbd") -}}
{{- include "slurm.moved" (list $values.nodesetDefaults "slurmd") -}}
{{- include "slurm.moved" (list $values.loginsetDefaults "login") -}}
{{- range $values.nodesets }}{{- include "slurm.moved" (list . "slurmd") -}}{{- end -}}
{{- range $values.loginsets }}{{- include "slurm.moved" (list . "login") -}}{{- end -}}
{{- $exporter := get $values "slurm-exporter" -}}
{{- if and (kindIs "map" $exporter) (not (hasKey (default dict $values.restapi.exporter) "enabled")) -}}
{{- if get (default dict $exporter) "enabled" -}}
{{- $_ := set $values.restapi "exporter" (mustMergeOverwrite (deepCopy (default dict $values.restapi.exporter)) (dict "enabled" true)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Values with the defaults for keys that they lack: (list VALUES DEFAULTS). */}}
{{- define "slurm.fill" -}}
{{- $values := index . 0 -}}
{{- range $key, $default := index . 1 -}}
{{- $there := get $values $key -}}
{{- if or (not (hasKey $values $key)) (and (kindIs "invalid" $there) (kindIs "map" $default)) -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $there) (kindIs "map" $default) (not (has $key (list "podSpec" "nodesets" "loginsets" "partitions"))) -}}
{{- include "slurm.fill" (list $there $default) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* `image`, `imagePullPolicy` and `resources` beside a container belong to that container: (list PART CONTAINER). */}}
{{- define "slurm.moved" -}}
{{- $part := index . 0 -}}{{- $name := index . 1 -}}
{{- if kindIs "map" $part -}}
{{- range list "image" "imagePullPolicy" "resources" -}}
{{- $given := get $part . -}}
{{- if $given -}}
{{- $container := default dict (get $part $name) -}}
{{- if not (get $container .) -}}
{{- $_ := set $part $name (mustMergeOverwrite (deepCopy $container) (dict . $given)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A line for each value that nobody reads, or that another name was found for: (list VALUES KNOWN PATH). */}}
{{- define "slurm.unread" -}}
{{- $known := index . 1 -}}{{- $path := index . 2 -}}
{{- range $key, $value := index . 0 -}}
{{- $there := get $known $key -}}
{{- if not (hasKey $known $key) }}{{- $there = get $known "*" -}}{{- end -}}
{{- $name := ternary $key (printf "%s.%s" $path $key) (eq $path "") -}}
{{- if and (kindIs "string" $there) $there }}
  {{ $name }} {{ $there }}
{{- else if kindIs "map" $there -}}
{{- if kindIs "map" $value }}{{- include "slurm.unread" (list $value $there $name) -}}{{- end -}}
{{- else if not $there }}
  {{ $name }} is not known
{{- end -}}
{{- end -}}
{{- end }}
