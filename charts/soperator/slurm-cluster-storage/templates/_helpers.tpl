{{/* A name that Kubernetes takes. */}}
{{- define "storage.name" -}}
{{- regexReplaceAll "[^a-z0-9]+" (. | trim | lower) "-" | trimAll "-" -}}
{{- end }}

{{/* All volumes as JSON: each with name, size, class, place, and what is mounted. */}}
{{- define "storage.volumes" -}}
{{- $found := list -}}
{{- range $key := list "jail" "controllerSpool" "accounting" -}}
{{- $volume := get $.Values.volume $key -}}
{{- if or (eq $key "jail") (eq (toString $volume.enabled) "true") -}}
{{- $found = append $found (merge (dict "place" (get $.Values.storage $key) "key" $key) $volume) -}}
{{- end -}}
{{- end -}}
{{- range .Values.volume.jailSubMounts -}}
{{- $found = append $found (merge (dict "place" $.Values.storage.jail "key" (printf "jailSubMounts: %s" .name)) .) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* What is mounted, as words of a command. */}}
{{- define "storage.source" -}}
{{- if eq (toString .type) "glusterfs" -}}
{{- printf "-t glusterfs %s:/%s" (required (printf "volume.%s: glusterfs needs a glusterfsHostName" .key) .glusterfsHostName) (include "storage.name" .name) -}}
{{- else -}}
{{- printf "-t virtiofs %s" (required (printf "volume.%s needs a filestoreDeviceName, or a storageClassName" .key) .filestoreDeviceName) -}}
{{- end -}}
{{- end }}
