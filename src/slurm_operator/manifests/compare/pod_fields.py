"""The fields of a pod, as a typed client of Kubernetes 1.36 knows them: which it writes out, and how.

One line for each type of k8s.io/api/core/v1 that a PodSpec leads to: `field:type`, where `s`, `b` and `n` are
a string, a truth and a number, `Q` a quantity, `I` a number or a name, `*` may be absent although it is zero,
`[]` a list and `{}` a map. A field after `!` is always written.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple


class Field(NamedTuple):
    type: str
    is_always_written: bool


@cache
def fields() -> Mapping[str, Mapping[str, Field]]:
    """By type and name."""
    return dict(_types(_TYPES.replace("\n  ", " ").splitlines()))


def _types(lines: list[str]) -> Iterator[tuple[str, dict[str, Field]]]:
    for line in lines:
        name, *words = line.split()
        pairs = [word.split(":", 1) for word in words]
        yield name, {field.lstrip("!"): Field(type_, field.startswith("!")) for field, type_ in pairs}


_TYPES = """\
AWSElasticBlockStoreVolumeSource fsType:s partition:n readOnly:b !volumeID:s
Affinity nodeAffinity:*NodeAffinity podAffinity:*PodAffinity podAntiAffinity:*PodAntiAffinity
AppArmorProfile localhostProfile:*s !type:s
AzureDiskVolumeSource cachingMode:*s !diskName:s !diskURI:s fsType:*s kind:*s readOnly:*b
AzureFileVolumeSource readOnly:b !secretName:s !shareName:s
CSIVolumeSource !driver:s fsType:*s nodePublishSecretRef:*LocalObjectReference readOnly:*b
  volumeAttributes:{}s
Capabilities add:[]s drop:[]s
CephFSVolumeSource !monitors:[]s path:s readOnly:b secretFile:s secretRef:*LocalObjectReference user:s
CinderVolumeSource fsType:s readOnly:b secretRef:*LocalObjectReference !volumeID:s
ClusterTrustBundleProjection labelSelector:*LabelSelector name:*s optional:*b !path:s signerName:*s
ConfigMapEnvSource name:s optional:*b
ConfigMapKeySelector !key:s name:s optional:*b
ConfigMapProjection items:[]KeyToPath name:s optional:*b
ConfigMapVolumeSource defaultMode:*n items:[]KeyToPath name:s optional:*b
Container args:[]s command:[]s env:[]EnvVar envFrom:[]EnvFromSource image:s imagePullPolicy:s
  lifecycle:*Lifecycle livenessProbe:*Probe !name:s ports:[]ContainerPort readinessProbe:*Probe
  resizePolicy:[]ContainerResizePolicy resources:ResourceRequirements restartPolicy:*s
  restartPolicyRules:[]ContainerRestartRule securityContext:*SecurityContext startupProbe:*Probe stdin:b
  stdinOnce:b terminationMessagePath:s terminationMessagePolicy:s tty:b volumeDevices:[]VolumeDevice
  volumeMounts:[]VolumeMount workingDir:s
ContainerPort !containerPort:n hostIP:s hostPort:n name:s protocol:s
ContainerResizePolicy !resourceName:s !restartPolicy:s
ContainerRestartRule action:s exitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes operator:s values:[]n
DownwardAPIProjection items:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile fieldRef:*ObjectFieldSelector mode:*n !path:s resourceFieldRef:*ResourceFieldSelector
DownwardAPIVolumeSource defaultMode:*n items:[]DownwardAPIVolumeFile
EmptyDirVolumeSource medium:s sizeLimit:*Q
EnvFromSource configMapRef:*ConfigMapEnvSource prefix:s secretRef:*SecretEnvSource
EnvVar !name:s value:s valueFrom:*EnvVarSource
EnvVarSource configMapKeyRef:*ConfigMapKeySelector fieldRef:*ObjectFieldSelector fileKeyRef:*FileKeySelector
  resourceFieldRef:*ResourceFieldSelector secretKeyRef:*SecretKeySelector
EphemeralVolumeSource volumeClaimTemplate:*PersistentVolumeClaimTemplate
ExecAction command:[]s
FCVolumeSource fsType:s lun:*n readOnly:b targetWWNs:[]s wwids:[]s
FileKeySelector !key:s optional:*b !path:s !volumeName:s
FlexVolumeSource !driver:s fsType:s options:{}s readOnly:b secretRef:*LocalObjectReference
FlockerVolumeSource datasetName:s datasetUUID:s
GCEPersistentDiskVolumeSource fsType:s partition:n !pdName:s readOnly:b
GRPCAction !port:n !service:*s
GitRepoVolumeSource directory:s !repository:s revision:s
GlusterfsVolumeSource !endpoints:s !path:s readOnly:b
HTTPGetAction host:s httpHeaders:[]HTTPHeader path:s !port:I scheme:s
HTTPHeader !name:s !value:s
HostAlias hostnames:[]s !ip:s
HostPathVolumeSource !path:s type:*s
ISCSIVolumeSource chapAuthDiscovery:b chapAuthSession:b fsType:s initiatorName:*s !iqn:s iscsiInterface:s
  !lun:n portals:[]s readOnly:b secretRef:*LocalObjectReference !targetPortal:s
ImageVolumeSource pullPolicy:s reference:s
KeyToPath !key:s mode:*n !path:s
LabelSelector matchExpressions:[]LabelSelectorRequirement matchLabels:{}s
LabelSelectorRequirement !key:s !operator:s values:[]s
Lifecycle postStart:*LifecycleHandler preStop:*LifecycleHandler stopSignal:*s
LifecycleHandler exec:*ExecAction httpGet:*HTTPGetAction sleep:*SleepAction tcpSocket:*TCPSocketAction
LocalObjectReference name:s
NFSVolumeSource !path:s readOnly:b !server:s
NodeAffinity preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
NodeSelector !nodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorRequirement !key:s !operator:s values:[]s
NodeSelectorTerm matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement
ObjectFieldSelector apiVersion:s !fieldPath:s
ObjectMeta annotations:{}s deletionGracePeriodSeconds:*n finalizers:[]s generateName:s generation:n
  labels:{}s name:s namespace:s resourceVersion:s selfLink:s uid:s
PersistentVolumeClaimSpec accessModes:[]s dataSource:*TypedLocalObjectReference
  dataSourceRef:*TypedObjectReference resources:VolumeResourceRequirements selector:*LabelSelector
  storageClassName:*s volumeAttributesClassName:*s volumeMode:*s volumeName:s
PersistentVolumeClaimTemplate metadata:ObjectMeta !spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource !claimName:s readOnly:b
PhotonPersistentDiskVolumeSource fsType:s !pdID:s
PodAffinity preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
PodAffinityTerm labelSelector:*LabelSelector matchLabelKeys:[]s mismatchLabelKeys:[]s
  namespaceSelector:*LabelSelector namespaces:[]s !topologyKey:s
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
PodCertificateProjection certificateChainPath:s credentialBundlePath:s keyPath:s keyType:s
  maxExpirationSeconds:*n signerName:s userAnnotations:{}s
PodDNSConfig nameservers:[]s options:[]PodDNSConfigOption searches:[]s
PodDNSConfigOption name:s value:*s
PodOS !name:s
PodReadinessGate !conditionType:s
PodResourceClaim !name:s resourceClaimName:*s resourceClaimTemplateName:*s
PodSchedulingGate !name:s
PodSchedulingGroup podGroupName:*s
PodSecurityContext appArmorProfile:*AppArmorProfile fsGroup:*n fsGroupChangePolicy:*s runAsGroup:*n
  runAsNonRoot:*b runAsUser:*n seLinuxChangePolicy:*s seLinuxOptions:*SELinuxOptions
  seccompProfile:*SeccompProfile supplementalGroups:[]n supplementalGroupsPolicy:*s sysctls:[]Sysctl
  windowsOptions:*WindowsSecurityContextOptions
PodSpec activeDeadlineSeconds:*n affinity:*Affinity automountServiceAccountToken:*b !containers:[]Container
  dnsConfig:*PodDNSConfig dnsPolicy:s enableServiceLinks:*b hostAliases:[]HostAlias hostIPC:b hostNetwork:b
  hostPID:b hostUsers:*b hostname:s hostnameOverride:*s imagePullSecrets:[]LocalObjectReference
  initContainers:[]Container nodeName:s nodeSelector:{}s os:*PodOS overhead:{}Q preemptionPolicy:*s
  priority:*n priorityClassName:s readinessGates:[]PodReadinessGate resourceClaims:[]PodResourceClaim
  resources:*ResourceRequirements restartPolicy:s runtimeClassName:*s schedulerName:s
  schedulingGates:[]PodSchedulingGate schedulingGroup:*PodSchedulingGroup
  securityContext:*PodSecurityContext serviceAccount:s serviceAccountName:s setHostnameAsFQDN:*b
  shareProcessNamespace:*b subdomain:s terminationGracePeriodSeconds:*n tolerations:[]Toleration
  topologySpreadConstraints:[]TopologySpreadConstraint volumes:[]Volume
PortworxVolumeSource fsType:s readOnly:b !volumeID:s
PreferredSchedulingTerm !preference:NodeSelectorTerm !weight:n
Probe exec:*ExecAction failureThreshold:n grpc:*GRPCAction httpGet:*HTTPGetAction initialDelaySeconds:n
  periodSeconds:n successThreshold:n tcpSocket:*TCPSocketAction terminationGracePeriodSeconds:*n
  timeoutSeconds:n
ProjectedVolumeSource defaultMode:*n !sources:[]VolumeProjection
QuobyteVolumeSource group:s readOnly:b !registry:s tenant:s user:s !volume:s
RBDVolumeSource fsType:s !image:s keyring:s !monitors:[]s pool:s readOnly:b secretRef:*LocalObjectReference
  user:s
ResourceClaim !name:s request:s
ResourceFieldSelector containerName:s divisor:Q !resource:s
ResourceRequirements claims:[]ResourceClaim limits:{}Q requests:{}Q
SELinuxOptions level:s role:s type:s user:s
ScaleIOVolumeSource fsType:s !gateway:s protectionDomain:s readOnly:b !secretRef:*LocalObjectReference
  sslEnabled:b storageMode:s storagePool:s !system:s volumeName:s
SeccompProfile localhostProfile:*s !type:s
SecretEnvSource name:s optional:*b
SecretKeySelector !key:s name:s optional:*b
SecretProjection items:[]KeyToPath name:s optional:*b
SecretVolumeSource defaultMode:*n items:[]KeyToPath optional:*b secretName:s
SecurityContext allowPrivilegeEscalation:*b appArmorProfile:*AppArmorProfile capabilities:*Capabilities
  privileged:*b procMount:*s readOnlyRootFilesystem:*b runAsGroup:*n runAsNonRoot:*b runAsUser:*n
  seLinuxOptions:*SELinuxOptions seccompProfile:*SeccompProfile
  windowsOptions:*WindowsSecurityContextOptions
ServiceAccountTokenProjection audience:s expirationSeconds:*n !path:s
SleepAction !seconds:n
StorageOSVolumeSource fsType:s readOnly:b secretRef:*LocalObjectReference volumeName:s volumeNamespace:s
Sysctl !name:s !value:s
TCPSocketAction host:s !port:I
Toleration effect:s key:s operator:s tolerationSeconds:*n value:s
TopologySpreadConstraint labelSelector:*LabelSelector matchLabelKeys:[]s !maxSkew:n minDomains:*n
  nodeAffinityPolicy:*s nodeTaintsPolicy:*s !topologyKey:s !whenUnsatisfiable:s
TypedLocalObjectReference !apiGroup:*s !kind:s !name:s
TypedObjectReference !apiGroup:*s !kind:s !name:s namespace:*s
Volume awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource azureDisk:*AzureDiskVolumeSource
  azureFile:*AzureFileVolumeSource cephfs:*CephFSVolumeSource cinder:*CinderVolumeSource
  configMap:*ConfigMapVolumeSource csi:*CSIVolumeSource downwardAPI:*DownwardAPIVolumeSource
  emptyDir:*EmptyDirVolumeSource ephemeral:*EphemeralVolumeSource fc:*FCVolumeSource
  flexVolume:*FlexVolumeSource flocker:*FlockerVolumeSource gcePersistentDisk:*GCEPersistentDiskVolumeSource
  gitRepo:*GitRepoVolumeSource glusterfs:*GlusterfsVolumeSource hostPath:*HostPathVolumeSource
  image:*ImageVolumeSource iscsi:*ISCSIVolumeSource !name:s nfs:*NFSVolumeSource
  persistentVolumeClaim:*PersistentVolumeClaimVolumeSource
  photonPersistentDisk:*PhotonPersistentDiskVolumeSource portworxVolume:*PortworxVolumeSource
  projected:*ProjectedVolumeSource quobyte:*QuobyteVolumeSource rbd:*RBDVolumeSource
  scaleIO:*ScaleIOVolumeSource secret:*SecretVolumeSource storageos:*StorageOSVolumeSource
  vsphereVolume:*VsphereVirtualDiskVolumeSource
VolumeDevice !devicePath:s !name:s
VolumeMount !mountPath:s mountPropagation:*s !name:s readOnly:b recursiveReadOnly:*s subPath:s subPathExpr:s
VolumeProjection clusterTrustBundle:*ClusterTrustBundleProjection configMap:*ConfigMapProjection
  downwardAPI:*DownwardAPIProjection podCertificate:*PodCertificateProjection secret:*SecretProjection
  serviceAccountToken:*ServiceAccountTokenProjection
VolumeResourceRequirements limits:{}Q requests:{}Q
VsphereVirtualDiskVolumeSource fsType:s storagePolicyID:s storagePolicyName:s !volumePath:s
WeightedPodAffinityTerm !podAffinityTerm:PodAffinityTerm !weight:n
WindowsSecurityContextOptions gmsaCredentialSpec:*s gmsaCredentialSpecName:*s hostProcess:*b
  runAsUserName:*s
"""
