{{- define "soperator.manager" -}}
{{- printf "%s-manager" (include "soperator.fullname" .) -}}
{{- end }}

{{/* The Service in front of admission, and the configuration of the same name. */}}
{{- define "soperator.webhook" -}}
{{- printf "%s-webhook-service" (include "soperator.fullname" .) -}}
{{- end }}

{{- define "soperator.podSelector" -}}
control-plane: controller-manager
{{ include "soperator.selector" . }}
{{- end }}

{{- define "soperator.hasWebhooks" -}}
{{- if ne (toString .Values.controllerManager.manager.env.enableWebhooks) "false" }}yes{{- end -}}
{{- end }}

{{/* Flags that the manager is started with, as JSON. */}}
{{- define "soperator.flags" -}}
{{- $manager := .Values.controllerManager.manager -}}
{{- $known := .Files.Get "files/flags.yaml" | fromYaml -}}
{{- $flags := include "soperator.arguments" (list $manager.args $known.flags true) | fromJsonArray -}}
{{- with include "soperator.controllers" (list $manager.controllersEnabled $known.controllers) }}{{- $flags = append $flags . -}}{{- end -}}
{{- if and (include "soperator.hasWebhooks" .) (not .Values.certManager.enabled) -}}
{{- $flags = append $flags (printf "--webhook-service=%s" (include "soperator.webhook" .)) -}}
{{- end -}}
{{- if ne (toString .Values.checks.inManager) "true" }}{{- $flags = append $flags "--checks=false" -}}{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{- define "soperator.isSecure" -}}
{{- range include "soperator.flags" . | fromJsonArray }}{{- if has . (list "--metrics-secure" "--metrics-secure=true") }}yes{{- end -}}{{- end -}}
{{- end }}

{{- define "soperator.exporterImage" -}}
{{- $image := default (printf "docker.io/local/slurm-operator:%s" .Chart.AppVersion) .Values.exporterImage -}}
{{- include "soperator.named" (list . $image (printf "exporterImage=REGISTRY/slurm-operator:%s" .Chart.AppVersion)) -}}
{{- end }}
