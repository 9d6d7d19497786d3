{{- define "checks.cluster" -}}
{{- required "slurmClusterRefName: say which SlurmCluster is checked" .Values.slurmClusterRefName -}}
{{- end }}

{{/* The checks that are on, by name, as JSON. */}}
{{- define "checks.on" -}}
{{- $found := dict -}}
{{- range $name, $check := .Values.checks -}}
{{- if kindIs "map" $check }}{{- if eq (toString $check.enabled) "true" }}{{- $_ := set $found $name $check -}}{{- end -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* The full name of a check, as people may have written it already: (list ROOT NAME). */}}
{{- define "checks.name" -}}
{{- $cluster := include "checks.cluster" (index . 0) -}}
{{- printf "%s-%s" $cluster (index . 1 | trimPrefix (printf "%s-" $cluster)) -}}
{{- end }}

{{/* A container with what all have, as JSON: (list ROOT CONTAINER IMAGE IS-WHOLE). */}}
{{- define "checks.container" -}}
{{- $root := index . 0 -}}{{- $container := omit (deepCopy (default dict (index . 1))) "enabled" -}}
{{- $image := tpl (default (index . 2) $container.image | toString) $root -}}
{{- $_ := set $container "image" (include "soperator.named" (list $root $image (printf "images.%s=REGISTRY/%s" (index . 4) (ternary "slurmd:26.05" "login:26.05" (eq (index . 4) "munge"))))) -}}
{{- if not $container.imagePullPolicy }}{{- $_ := set $container "imagePullPolicy" (default "IfNotPresent" $root.Values.imagePullPolicy) -}}{{- end -}}
{{- if index . 3 -}}
{{- range list "env" "volumeMounts" "volumes" -}}
{{- $names := list -}}
{{- $own := default list (get $container .) -}}
{{- range $own }}{{- $names = append $names .name -}}{{- end -}}
{{- $all := $own -}}
{{- range default list (get $root.Values.jobContainer .) }}{{- if not (has .name $names) }}{{- $all = append $all . -}}{{- end -}}{{- end -}}
{{- if $all }}{{- $_ := set $container . $all -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $container -}}
{{- end }}

{{/* The script of a check, or nothing: (list ROOT NAME CHECK). */}}
{{- define "checks.script" -}}
{{- $root := index . 0 -}}{{- $check := index . 2 -}}
{{- if $check.script -}}
{{- tpl $check.script $root -}}
{{- else -}}
{{- $root.Files.Get (printf "files/scripts/%s" (default (printf "%s.sh" (index . 1)) $check.scriptFile)) -}}
{{- end -}}
{{- end }}

{{- define "checks.hostUsers" -}}
{{- if not (kindIs "invalid" .Values.hostUsers) -}}
{{- toString .Values.hostUsers -}}
{{- else if semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end }}
