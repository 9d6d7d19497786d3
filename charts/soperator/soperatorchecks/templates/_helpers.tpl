{{- define "checks.name" -}}
{{- printf "%s-checks" (include "soperator.fullname" .) -}}
{{- end }}

{{- define "checks.selector" -}}
control-plane: soperatorchecks
{{ include "soperator.selector" . }}
{{- end }}

{{/* Flags that the program is started with, as JSON. */}}
{{- define "checks.flags" -}}
{{- $manager := .Values.checks.manager -}}
{{- $known := .Files.Get "files/flags.yaml" | fromYaml -}}
{{- $flags := list -}}
{{- range include "soperator.arguments" (list $manager.args $known.flags true) | fromJsonArray -}}
{{- if not (contains "enable-node-replacement" .) }}{{- $flags = append $flags . -}}{{- end -}}
{{- end -}}
{{- $flags = append $flags (printf "--enable-node-replacement=%t" (eq (toString $manager.enableNodeReplacement) "true")) -}}
{{- with include "soperator.controllers" (list $manager.controllersEnabled $known.controllers) }}{{- $flags = append $flags . -}}{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{- define "checks.isSecure" -}}
{{- range include "checks.flags" . | fromJsonArray }}{{- if has . (list "--metrics-secure" "--metrics-secure=true") }}yes{{- end -}}{{- end -}}
{{- end }}
