{{/* NodeSets as JSON list; of a map the keys are their names. */}}
{{- define "nodesets.all" -}}
{{- $found := list -}}
{{- if kindIs "map" .Values.nodesets -}}
{{- range $name, $one := .Values.nodesets }}{{- if kindIs "map" $one }}{{- $found = append $found (merge (dict "name" $name) $one) -}}{{- end -}}{{- end -}}
{{- else -}}
{{- range .Values.nodesets }}{{- if kindIs "map" . }}{{- $found = append $found . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- define "nodesets.cluster" -}}
{{- default (index . 0).Values.clusterName (index . 1).clusterName -}}
{{- end }}

{{/* Resources by the names that Kubernetes has for them, as JSON. */}}
{{- define "nodesets.resources" -}}
{{- $found := dict -}}
{{- range $name, $amount := default dict . -}}
{{- if not (kindIs "invalid" $amount) }}{{- $_ := set $found (get (dict "ephemeralStorage" "ephemeral-storage" "gpu" "nvidia.com/gpu") $name | default $name) $amount -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* A container as the API has it, as JSON: (list CONTAINER DEFAULT-IMAGE ROOT SETTING). */}}
{{- define "nodesets.container" -}}
{{- $container := deepCopy (default dict (index . 0)) -}}{{- $default := index . 1 -}}
{{- if not (kindIs "map" $default) }}{{- $default = include "nodesets.parts" $default | fromJson -}}{{- end -}}
{{- $image := $container.image -}}
{{- if and $image (not (kindIs "map" $image)) }}{{- $image = include "nodesets.parts" $image | fromJson -}}{{- end -}}
{{- $_ := set $container "image" (mustMergeOverwrite (deepCopy $default) (default dict $image)) -}}
{{- $_ := set $container.image "tag" (toString $container.image.tag) -}}
{{- $_ := include "soperator.named" (list (index . 2) $container.image.repository (printf "%s.repository=REGISTRY/slurmd" (index . 3))) -}}
{{- $_ := set $container "resources" (include "nodesets.resources" $container.resources | fromJson) -}}
{{- toJson $container -}}
{{- end }}

{{/* Repository and tag of an image that is one text, as JSON. */}}
{{- define "nodesets.parts" -}}
{{- $last := splitList "/" . | last -}}
{{- $tag := ternary (splitList ":" $last | last) "" (contains ":" $last) -}}
{{- dict "repository" (trimSuffix (printf ":%s" $tag) .) "tag" $tag | toJson -}}
{{- end }}

{{/* Mounts with that of the scripts, as JSON: (list ROOT NODESET MOUNTS NAME). Whoever mounts something there has that. */}}
{{- define "nodesets.withScripts" -}}
{{- $root := index . 0 -}}{{- $found := default list (index . 2) -}}
{{- $isThere := not $root.Values.slurmScripts.enabled -}}
{{- range $found }}{{- if eq (toString .mountPath | trimSuffix "/") "/opt/slurm_scripts" }}{{- $isThere = true -}}{{- end -}}{{- end -}}
{{- if not $isThere -}}
{{- $scripts := dict "configMap" (dict "name" (printf "%s-slurm-scripts" (include "nodesets.cluster" (list $root (index . 1)))) "defaultMode" 493) -}}
{{- $found = append $found (dict "name" (index . 3) "mountPath" "/opt/slurm_scripts" "readOnly" true "volumeSource" $scripts) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- define "nodesets.nodeExporter" -}}
name: pod-node-exporter
image: {{ include "soperator.image" (list .Values.images.nodeExporter "latest") }}
restartPolicy: Always
args:
  - --collector.disable-defaults
  - --collector.netdev
  - --collector.netstat
  - --collector.sockstat
  - --collector.conntrack
  - --web.listen-address=:9100
ports:
  - name: node-exporter
    containerPort: 9100
resources:
  requests:
    cpu: 50m
    memory: 64Mi
  limits:
    memory: 64Mi
{{- end }}
