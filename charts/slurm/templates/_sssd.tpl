{{- define "slurm.sssdRef" -}}
name: {{ default (printf "%s-sssd-conf" (include "slurm.fullname" .)) .Values.sssd.secretRef.name }}
key: {{ default "sssd.conf" .Values.sssd.secretRef.key }}
{{- end }}

{{/* Of one LoginSet, which may have a text of its own, as in version 1.0: (list ROOT NAME ENTRY). */}}
{{- define "slurm.sssdRefOf" -}}
{{- $root := index . 0 -}}{{- $entry := index . 2 -}}
{{- if $entry.sssdConf -}}
name: {{ include "slurm.fullname" $root }}-login-{{ index . 1 }}-sssd-conf
key: sssd.conf
{{- else if dig "name" "" (default dict $entry.sssdConfRef) -}}
{{- toYaml $entry.sssdConfRef -}}
{{- else -}}
{{- include "slurm.sssdRef" $root -}}
{{- end -}}
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
