{{- define "cluster.name" -}}
{{- required "clusterName: say how the cluster is called" .Values.clusterName -}}
{{- end }}

{{/* The image of a container: (list ROOT NAME DAEMON), where NAME is that in `images`. */}}
{{- define "cluster.image" -}}
{{- $root := index . 0 -}}
{{- $own := printf "docker.io/local/slurm-operator:%s" $root.Chart.AppVersion -}}
{{- $default := ternary $own (default "docker.io/local/{daemon}:26.05" $root.Values.defaultImages | replace "{daemon}" (index . 2)) (eq (index . 2) "operator") -}}
{{- $setting := ternary (printf "images.%s=REGISTRY/slurm-operator:%s" (index . 1) $root.Chart.AppVersion) "defaultImages=REGISTRY/{daemon}:26.05" (eq (index . 2) "operator") -}}
{{- include "soperator.named" (list $root (default $default (get $root.Values.images (index . 1))) $setting) -}}
{{- end }}

{{/* populate-jail has its image in parts, too. */}}
{{- define "cluster.populateImage" -}}
{{- $images := .Values.images -}}
{{- if and (not $images.populateJail) $images.populateJailRepository -}}
{{- printf "%s:%v" $images.populateJailRepository (default "latest" $images.populateJailTag) -}}
{{- else -}}
{{- include "cluster.image" (list . "populateJail" "populate-jail") -}}
{{- end -}}
{{- end }}

{{/* A container as the API has it, as JSON: (list ROOT CONTAINER IMAGE). */}}
{{- define "cluster.container" -}}
{{- $root := index . 0 -}}
{{- $container := deepCopy (default dict (index . 1)) -}}
{{- if not $container.image }}{{- $_ := set $container "image" (index . 2) -}}{{- end -}}
{{- $_ := set $container "resources" (include "cluster.resources" $container.resources | fromJson) -}}
{{- if not $container.resources }}{{- $_ := unset $container "resources" -}}{{- end -}}
{{- if not $container.imagePullPolicy }}{{- $_ := set $container "imagePullPolicy" (default "IfNotPresent" $root.Values.imagePullPolicy) -}}{{- end -}}
{{- if and (not $container.imagePullSecrets) $root.Values.imagePullSecrets }}{{- $_ := set $container "imagePullSecrets" $root.Values.imagePullSecrets -}}{{- end -}}
{{- toJson $container -}}
{{- end }}

{{/* Resources by the names that Kubernetes has for them, as JSON. */}}
{{- define "cluster.resources" -}}
{{- $found := dict -}}
{{- range $name, $amount := default dict . -}}
{{- if not (kindIs "invalid" $amount) }}{{- $_ := set $found (get (dict "ephemeralStorage" "ephemeral-storage" "gpu" "nvidia.com/gpu") $name | default $name) $amount -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* What every part has, as JSON: (list ROOT PART NAME). */}}
{{- define "cluster.part" -}}
{{- $root := index . 0 -}}{{- $part := deepCopy (index . 1) -}}{{- $name := index . 2 -}}
{{- if not $part.priorityClass -}}
{{- if $root.Values.priorityClasses.create }}{{- $_ := set $part "priorityClass" (printf "%s-slurm-%s" (include "cluster.name" $root) $name) -}}{{- end -}}
{{- end -}}
{{- if not $part.k8sNodeFilterName }}{{- $_ := set $part "k8sNodeFilterName" "no-gpu" -}}{{- end -}}
{{- if dig "nodeExporter" "enabled" false $part -}}
{{- $exporter := include "cluster.nodeExporter" $root | fromYaml -}}
{{- $_ := set $part "customInitContainers" (append (default list $part.customInitContainers) $exporter) -}}
{{- end -}}
{{- toJson $part -}}
{{- end }}

{{- define "cluster.nodeExporter" -}}
name: pod-node-exporter
image: {{ include "cluster.image" (list . "nodeExporter" "node-exporter") }}
imagePullPolicy: {{ default "IfNotPresent" .Values.imagePullPolicy }}
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

{{/* The account of a part, or nothing where the operator is to make it: (list ROOT PART SUFFIX). */}}
{{- define "cluster.account" -}}
{{- $account := default dict (index . 1).serviceAccount -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else if and (ne (toString $account.create) "false") -}}
{{- printf "%s-%s" (include "cluster.name" (index . 0)) (index . 2) -}}
{{- end -}}
{{- end }}

{{/* sssd beside slurmctld and sshd, as JSON: (list ROOT PART). A part may have one of its own. */}}
{{- define "cluster.sssd" -}}
{{- $root := index . 0 -}}{{- $part := deepCopy (index . 1) -}}{{- $shared := $root.Values.slurmNodes.sssd -}}
{{- if or $shared.enabled $part.sssd -}}
{{- $own := mustMergeOverwrite (deepCopy $shared) (default dict $part.sssd) -}}
{{- $_ := set $part "sssd" (include "cluster.container" (list $root $own (include "cluster.image" (list $root "sssd" "login"))) | fromJson) -}}
{{- range list "sssdDebugLevel" "sssdConfSecretRefName" "sssdLdapCAConfigMapRefName" -}}
{{- if and (not (get $part .)) (get $shared .) }}{{- $_ := set $part . (get $shared .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $part -}}
{{- end }}

{{/* Volume sources without what only says how their claim is made. */}}
{{- define "cluster.sources" -}}
{{- $found := list -}}{{- $names := list -}}
{{- range .Values.volumeSources -}}
{{- $found = append $found (omit . "createPVC" "storageClassName" "size" "accessModes") -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if not (has "slurm-scripts" $names) -}}
{{- $found = append $found (dict "name" "slurm-scripts" "configMap" (dict "name" (include "cluster.scripts" .) "defaultMode" 493)) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- define "cluster.scripts" -}}
{{- printf "%s-slurm-scripts" (include "cluster.name" .) -}}
{{- end }}

{{/* Mounts with that of the scripts, as JSON: (list MOUNTS NAME). Whoever mounts something there has that. */}}
{{- define "cluster.withScripts" -}}
{{- $found := default list (index . 0) -}}
{{- $isThere := false -}}
{{- range $found }}{{- if eq (toString .mountPath | trimSuffix "/") "/opt/slurm_scripts" }}{{- $isThere = true -}}{{- end -}}{{- end -}}
{{- if not $isThere -}}
{{- $found = append $found (dict "name" (index . 1) "mountPath" "/opt/slurm_scripts" "volumeSourceName" "slurm-scripts" "readOnly" true) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Where the text of a built-in script is. Two of them are one program, which looks at its name. */}}
{{- define "cluster.script" -}}
{{- printf "files/scripts/%s" (replace ".undrain.py" ".drain.py" .) -}}
{{- end }}
