{{/* A NodeSet with what machines of a vendor need, as JSON: (list ROOT NAME ENTRY). */}}
{{- define "slurm.vendor" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}{{- $entry := index . 2 -}}
{{- range $root.Values.vendor.google.a3mega -}}
{{- if eq .targetNodeSet $name }}{{- $entry = include "slurm.patched" (list $entry (include "slurm.a3mega" . | fromYaml)) | fromJson -}}{{- end -}}
{{- end -}}
{{- range $root.Values.vendor.google.a3ultra -}}
{{- if eq .targetNodeSet $name }}{{- $entry = include "slurm.patched" (list $entry (include "slurm.a3ultra" . | fromYaml)) | fromJson -}}{{- end -}}
{{- end -}}
{{- if and $root.Values.vendor.nvidia.dcgm.enabled (contains "nvidia.com/gpu" (toJson (dig "slurmd" "resources" dict $entry))) -}}
{{- $entry = include "slurm.patched" (list $entry (include "slurm.dcgm" $root | fromYaml)) | fromJson -}}
{{- end -}}
{{- toJson $entry -}}
{{- end }}

{{/* The second laid over the first: maps by key, lists by the name of their items, else added: (list ONE OTHER). */}}
{{- define "slurm.patched" -}}
{{- $one := index . 0 -}}{{- $other := index . 1 -}}
{{- range $key, $value := $other -}}
{{- $there := get $one $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $there) -}}
{{- $_ := set $one $key (include "slurm.patched" (list $there $value) | fromJson) -}}
{{- else if and (kindIs "slice" $value) (kindIs "slice" $there) -}}
{{- $_ := set $one $key (include "slurm.patchedList" (list $there $value) | fromJsonArray) -}}
{{- else -}}
{{- $_ := set $one $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $one -}}
{{- end }}

{{- define "slurm.patchedList" -}}
{{- $items := index . 0 -}}
{{- range $new := index . 1 -}}
{{- $merged := list -}}{{- $found := false -}}
{{- range $old := $items -}}
{{- $isSame := false -}}
{{- if and (kindIs "map" $old) (kindIs "map" $new) -}}
{{- range $by := list "key" "name" -}}
{{- if and (get $new $by) (eq (toString (get $new $by)) (toString (get $old $by))) }}{{- $isSame = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $isSame -}}
{{- $found = true -}}
{{- $merged = append $merged (include "slurm.patched" (list $old $new) | fromJson) -}}
{{- else -}}
{{- $merged = append $merged $old -}}
{{- end -}}
{{- end -}}
{{- if not $found }}{{- $merged = append $merged $new -}}{{- end -}}
{{- $items = $merged -}}
{{- end -}}
{{- toJson $items -}}
{{- end }}

{{- define "slurm.dcgm" -}}
slurmd:
  volumeMounts:
    - name: dcgm-job-mapping
      mountPath: {{ .Values.vendor.nvidia.dcgm.jobMappingDir }}
podSpec:
  volumes:
    - name: dcgm-job-mapping
      hostPath:
        path: {{ .Values.vendor.nvidia.dcgm.jobMappingDir }}
        type: DirectoryOrCreate
{{- end }}

{{/* The networks of a machine as GKE wants to know them: (list ENTRY FIRST), where FIRST is the number of the second. */}}
{{- define "slurm.networks" -}}
{{- $entry := index . 0 -}}{{- $first := int (index . 1) -}}
{{- if ne (len (default list $entry.networks)) 9 -}}
{{- fail (printf "vendor.google: the NodeSet %q needs exactly 9 networks, not %d" $entry.targetNodeSet (len (default list $entry.networks))) -}}
{{- end -}}
{{- $interfaces := list -}}
{{- range $index, $network := $entry.networks -}}
{{- $number := ternary 0 (add $index $first -1) (eq $index 0) -}}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (int $number)) "network" $network) -}}
{{- end -}}
{{- toJson $interfaces -}}
{{- end }}

{{- define "slurm.a3ultra" -}}
{{- $networks := include "slurm.networks" (list . 2) -}}
slurmd:
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    - name: PATH
      value: /usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  resources:
    requests: {nvidia.com/gpu: 8}
    limits: {nvidia.com/gpu: 8}
  volumeMounts:
    - name: library-dir-host
      mountPath: /usr/local/nvidia
    - name: gib
      mountPath: /usr/local/gib
extraConfMap:
  Gres: gpu:nvidia_h200:8
metadata:
  annotations:
    networking.gke.io/default-interface: eth0
    networking.gke.io/interfaces: {{ $networks | squote }}
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .nodePool | quote }}
  volumes:
    - name: library-dir-host
      hostPath: {path: /home/kubernetes/bin/nvidia}
    - name: gib
      hostPath: {path: /home/kubernetes/bin/gib}
{{- end }}

{{- define "slurm.a3mega" -}}
{{- $networks := include "slurm.networks" (list . 1) -}}
slurmd:
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    - name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY
      value: /dev/aperture_devices
    - name: NCCL_FASTRAK_CTRL_DEV
      value: eth0
    - name: NCCL_FASTRAK_IFNAME
      value: eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8
    - name: NCCL_SOCKET_IFNAME
      value: eth0
  resources:
    requests: {nvidia.com/gpu: 8}
    limits: {nvidia.com/gpu: 8}
  volumeMounts:
    - name: library-dir-host
      mountPath: /usr/local/nvidia
    - name: aperture-devices
      mountPath: /dev/aperture_devices
extraConfMap:
  Gres: gpu:nvidia_h100_80gb_hbm3:8
metadata:
  annotations:
    devices.gke.io/container.tcpxo-daemon: |
      {{- range $index := until 8 }}
      - path: /dev/nvidia{{ $index }}
      {{- end }}
      - path: /dev/nvidiactl
      - path: /dev/nvidia-uvm
      - path: /dev/dmabuf_import_helper
    networking.gke.io/default-interface: eth0
    networking.gke.io/interfaces: {{ $networks | squote }}
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .nodePool | quote }}
  initContainers:
    - name: tcpxo-daemon
      image: {{ default "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21" .tcpxoImage }}
      restartPolicy: Always
      command: [/bin/sh, -c]
      args: ["chmod 755 /fts/entrypoint_rxdm_container.sh && /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr"]
      env:
        - name: LD_LIBRARY_PATH
          value: /usr/local/nvidia/lib64
      securityContext:
        capabilities:
          add: [NET_ADMIN, NET_BIND_SERVICE]
      volumeMounts:
        - name: library-dir-host
          mountPath: /usr/local/nvidia
        - name: sys
          mountPath: /hostsysfs
        - name: proc-sys
          mountPath: /hostprocsysfs
  volumes:
    - name: library-dir-host
      hostPath: {path: /home/kubernetes/bin/nvidia}
    - name: aperture-devices
      hostPath: {path: /dev/aperture_devices}
    - name: sys
      hostPath: {path: /sys}
    - name: proc-sys
      hostPath: {path: /proc/sys}
{{- end }}
