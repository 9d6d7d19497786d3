{{/* The lines of every partition. */}}
{{- define "slurm.partitions" -}}
{{- $root := . -}}
{{- $known := include "slurm.enabled" (list . "slurm.nodeset" .Values.nodesets) | fromJsonArray -}}
{{- $lines := list -}}
{{- range $name, $partition := .Values.partitions -}}
{{- if $partition.enabled -}}
{{- if not $partition.nodesets }}{{- fail (printf "partitions.%s.nodesets is empty: name NodeSets, or ALL" $name) -}}{{- end -}}
{{- range $partition.nodesets -}}
{{- if and (ne . "ALL") (not (has . $known)) }}{{- fail (printf "partitions.%s names the NodeSet %q, which is not there or not enabled" $name .) -}}{{- end -}}
{{- end -}}
{{- $config := include "slurm.textOrMap" (list $partition.config $partition.configMap " ") -}}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name (join "," $partition.nodesets) $config | trim) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end }}

{{/* Everything for slurm.conf. */}}
{{- define "slurm.extraConf" -}}
{{- $own := include "slurm.textOrMap" (list .Values.controller.extraConf .Values.controller.extraConfMap "\n") -}}
{{- list (trimSuffix "\n" $own) (include "slurm.partitions" .) | compact | join "\n" -}}
{{- end }}

{{/* ConfigMaps of scripts, as JSON: (list ROOT "prolog"). */}}
{{- define "slurm.scriptRefs" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}
{{- $key := dict "prolog" "prolog" "epilog" "epilog" "prolog-slurmctld" "prologSlurmctld" "epilog-slurmctld" "epilogSlurmctld" -}}
{{- $refs := list -}}
{{- if get $root.Values (printf "%sScripts" (get $key $kind)) -}}
{{- $refs = append $refs (dict "name" (printf "%s-%s-scripts" (include "slurm.fullname" $root) $kind)) -}}
{{- end -}}
{{- if and $root.Values.vendor.nvidia.dcgm.enabled (has $kind (list "prolog" "epilog")) -}}
{{- $refs = append $refs (dict "name" (printf "%s-%s-dcgm" (include "slurm.fullname" $root) $kind)) -}}
{{- end -}}
{{- range get $root.Values (printf "%sScriptRefs" (get $key $kind)) -}}
{{- $refs = append $refs (ternary (dict "name" .) . (kindIs "string" .)) -}}
{{- end -}}
{{- toJson $refs -}}
{{- end }}

{{/* ConfigMaps of files, as JSON. */}}
{{- define "slurm.configRefs" -}}
{{- $refs := list -}}
{{- if .Values.configFiles }}{{- $refs = append $refs (dict "name" (printf "%s-config-extra" (include "slurm.fullname" .))) -}}{{- end -}}
{{- range default list .Values.configFileRefs }}{{- $refs = append $refs (ternary (dict "name" .) . (kindIs "string" .)) -}}{{- end -}}
{{- if and (or .Values.vendor.google.a3mega .Values.vendor.google.a3ultra) (not (hasKey .Values.configFiles "gres.conf")) -}}
{{- $refs = append $refs (dict "name" (printf "%s-config-google" (include "slurm.fullname" .))) -}}
{{- end -}}
{{- toJson $refs -}}
{{- end }}

{{- define "slurm.persistence" -}}
{{- $persistence := deepCopy .Values.controller.persistence -}}
{{- if hasKey $persistence "storageClassName" -}}
{{- if kindIs "invalid" $persistence.storageClassName }}{{- $_ := unset $persistence "storageClassName" -}}
{{- else if eq $persistence.storageClassName "-" }}{{- $_ := set $persistence "storageClassName" "" -}}{{- end -}}
{{- end -}}
{{- if not $persistence.existingClaim }}{{- $_ := unset $persistence "existingClaim" -}}{{- end -}}
{{- toYaml $persistence -}}
{{- end }}
