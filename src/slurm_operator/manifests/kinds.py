"""The Kubernetes kinds this operator names, each with what its address needs."""

from collections.abc import Mapping
from typing import Any

from slurm_operator.api import registry
from slurm_operator.api.schema.kind import Kind as Kind


def _core(kind: str, plural: str, *, namespaced: bool = True) -> Kind:
    return Kind(group="", version="v1", kind=kind, plural=plural, namespaced=namespaced)


def _admission(kind: str, plural: str) -> Kind:
    group = "admissionregistration.k8s.io"
    return Kind(group=group, version="v1", kind=kind, plural=plural, namespaced=False)


POD = _core("Pod", "pods")
KUBE_NODE = _core("Node", "nodes", namespaced=False)
NAMESPACE = _core("Namespace", "namespaces", namespaced=False)
SECRET = _core("Secret", "secrets")
CONFIG_MAP = _core("ConfigMap", "configmaps")
SERVICE = _core("Service", "services")
PERSISTENT_VOLUME_CLAIM = _core("PersistentVolumeClaim", "persistentvolumeclaims")
STATEFUL_SET = Kind(group="apps", version="v1", kind="StatefulSet", plural="statefulsets")
REPLICA_SET = Kind(group="apps", version="v1", kind="ReplicaSet", plural="replicasets")
DEPLOYMENT = Kind(group="apps", version="v1", kind="Deployment", plural="deployments")
DAEMON_SET = Kind(group="apps", version="v1", kind="DaemonSet", plural="daemonsets")
SERVICE_ACCOUNT = _core("ServiceAccount", "serviceaccounts")
ROLE = Kind(group="rbac.authorization.k8s.io", version="v1", kind="Role", plural="roles")
ROLE_BINDING = Kind(
    group="rbac.authorization.k8s.io", version="v1", kind="RoleBinding", plural="rolebindings"
)
NETWORK_POLICY = Kind(group="networking.k8s.io", version="v1", kind="NetworkPolicy", plural="networkpolicies")
JOB = Kind(group="batch", version="v1", kind="Job", plural="jobs")
CRON_JOB = Kind(group="batch", version="v1", kind="CronJob", plural="cronjobs")
POD_TEMPLATE = _core("PodTemplate", "podtemplates")
CONTROLLER_REVISION = Kind(
    group="apps", version="v1", kind="ControllerRevision", plural="controllerrevisions"
)
DISRUPTION_BUDGET = Kind(
    group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets"
)
LEASE = Kind(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")
EVENT = Kind(group="events.k8s.io", version="v1", kind="Event", plural="events")
SERVICE_MONITOR = Kind(
    group="monitoring.coreos.com", version="v1", kind="ServiceMonitor", plural="servicemonitors"
)
POD_MONITOR = Kind(group="monitoring.coreos.com", version="v1", kind="PodMonitor", plural="podmonitors")
MARIADB = Kind(group="k8s.mariadb.com", version="v1alpha1", kind="MariaDB", plural="mariadbs")
MARIADB_GRANT = Kind(group="k8s.mariadb.com", version="v1alpha1", kind="Grant", plural="grants")
APP_ARMOR_PROFILE = Kind(
    group="security-profiles-operator.x-k8s.io",
    version="v1alpha1",
    kind="AppArmorProfile",
    plural="apparmorprofiles",
)
KRUISE_STATEFUL_SET = Kind(
    group="apps.kruise.io", version="v1beta1", kind="StatefulSet", plural="statefulsets"
)
STORAGE_CLASS = Kind(
    group="storage.k8s.io", version="v1", kind="StorageClass", plural="storageclasses", namespaced=False
)

ADMISSION_POLICY = _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
ADMISSION_POLICY_BINDING = _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
VALIDATING_WEBHOOKS = _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
MUTATING_WEBHOOKS = _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
CUSTOM_RESOURCE_DEFINITION = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)

_OURS = [one.kind for one in registry.ALL]
_THEIRS = [kind for kind in list(globals().values()) if isinstance(kind, Kind)]
_NAMED = {(kind.api_version, kind.kind): kind for kind in (*_THEIRS, *_OURS)}


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """The kind of an object we are about to write. Raises KeyError for one that is not in this table."""
    return _NAMED[manifest["apiVersion"], manifest["kind"]]
