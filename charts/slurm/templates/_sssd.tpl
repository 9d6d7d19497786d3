{{- define "slurm.sssdRef" -}}
name: {{ default (printf "%s-sssd-conf" (include "slurm.fullname" .)) .Values.sssd.secretRef.name }}
key: {{ default "sssd.conf" .Values.sssd.secretRef.key }}
{{- end }}

{{/* Whether anybody reads sssd.conf; empty when nobody does. */}}
{{- define "slurm.needsSssd" -}}
{{- $root := . -}}
{{- if include "slurm.enabled" (list . "slurm.loginset" .Values.loginsets) | fromJsonArray }}yes{{- end -}}
{{- range include "slurm.enabled" (list . "slurm.nodeset" .Values.nodesets) | fromJsonArray -}}
{{- $entry := include "slurm.nodeset" (list $root .) | fromJson -}}
{{- if $entry.ssh.enabled }}yes{{- end -}}
{{- end -}}
{{- end }}
