"""A cluster as Soperator leaves it: its objects by the names, labels and owners that it gives them.

Rebuilt from a description of Soperator, with its own program nowhere near: what counts here is who owns what,
what makes pods, and what those pods live on.
"""

from typing import Any

from slurm_operator.api.nebius import names
from testing.slurmclusters import manifest

CLUSTER, WORKERS = "smallest", "cpu"
PLACE = "soperator-system"
KRUISE = "apps.kruise.io/v1beta1"
CLAIM = f"controller-spool-{names.controller(CLUSTER)}-0"
DEPLOYMENTS = (names.sconfigcontroller(CLUSTER), names.exporter(CLUSTER))
SERVICES: dict[str, dict[str, Any]] = {
    names.controller_service(CLUSTER): {"type": "ClusterIP", "port": 6817},
    names.login_service(CLUSTER): {"type": "LoadBalancer", "port": 22},
    names.login_headless_service(CLUSTER): {"clusterIP": "None", "port": 22},
    names.nodeset_service(CLUSTER): {"clusterIP": "None", "port": 6818},
}
SECRETS = {
    names.munge_secret(CLUSTER): names.MUNGE_KEY,
    names.rest_jwt_secret(CLUSTER): names.REST_JWT_KEY,
    names.sshd_keys_secret(CLUSTER): "ssh_host_rsa_key",
}
# What makes pods, with the component of its pods and how many there are.
STATEFUL_SETS = {
    names.controller(CLUSTER): ("controller", "slurmctld", 1),
    names.login(CLUSTER): ("login", "sshd", 1),
    WORKERS: ("nodeset", "slurmd", 2),
}
SPOOL = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}

# Kruise's own definition has many more fields; whatever is written is kept.
KRUISE_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "statefulsets.apps.kruise.io"},
    "spec": {
        "group": "apps.kruise.io",
        "scope": "Namespaced",
        "names": {"kind": "StatefulSet", "plural": "statefulsets", "singular": "statefulset"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def match(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "slurmcluster",
        "app.kubernetes.io/instance": CLUSTER,
        "app.kubernetes.io/component": component,
    }


def labels(component: str) -> dict[str, str]:
    managed = ("part-of", "managed-by")
    return match(component) | {f"app.kubernetes.io/{key}": "slurm-operator" for key in managed}


def owner(body: dict[str, Any], uid: str) -> dict[str, Any]:
    """A reference to the object that an API server gave this uid."""
    return {
        "apiVersion": body["apiVersion"], "kind": body["kind"], "name": body["metadata"]["name"], "uid": uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def thing(
    version: str,
    kind: str,
    name: str,
    component: str,
    owners: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    meta = {"name": name, "labels": labels(component), **({"ownerReferences": owners} if owners else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def cluster(**changes: Any) -> dict[str, Any]:
    return manifest(
        "SlurmCluster", CLUSTER, **{"spec__slurmNodes__controller__volumes__spool": SPOOL, **changes}
    )


def workers(**changes: Any) -> dict[str, Any]:
    return manifest("NodeSet", WORKERS, spec__clusterName=CLUSTER, spec__replicas=2, **changes)


def around(of_cluster: dict[str, Any], of_workers: dict[str, Any]) -> list[dict[str, Any]]:
    """What belongs to the SlurmCluster or the NodeSet, and makes no pods of Kruise."""
    mine = [of_cluster]
    made = [_service(name, "controller", mine, **wished) for name, wished in SERVICES.items()]
    made.append(
        _service(
            names.one_nodeset_service(CLUSTER, WORKERS), "nodeset", [of_workers], clusterIP="None", port=6818
        )
    )
    made += [
        thing("v1", "Secret", name, "common", mine, stringData={entry: f"key of {name}"})
        for name, entry in SECRETS.items()
    ]
    configs = names.slurm_configs(CLUSTER)
    made.append(thing("v1", "ConfigMap", configs, "controller", mine, data=SLURM_FILES))
    made += [_deployment(name, mine) for name in DEPLOYMENTS]
    made.append(claim())
    return made


def claim() -> dict[str, Any]:
    """Kruise gives a claim the labels that its StatefulSet selects pods by, and no owner."""
    spec = SPOOL["volumeClaimTemplateSpec"]
    meta = {"name": CLAIM, "labels": match("controller")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def populated(of_cluster: dict[str, Any]) -> dict[str, Any]:
    """The Job that has populated the root."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "populate-jail", "image": "populate:x"}]}
    spec = {"parallelism": 1, "completions": 1, "template": {"metadata": {}, "spec": pod}}
    return thing("batch/v1", "Job", names.populate_jail(CLUSTER), "populate-jail", [of_cluster], spec=spec)


def stateful_sets(of_cluster: dict[str, Any], of_workers: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        thing(
            KRUISE, "StatefulSet", name, component, [of_workers if name == WORKERS else of_cluster],
            spec={"replicas": count, "selector": {"matchLabels": match(component)}},
        )
        for name, (component, _, count) in STATEFUL_SETS.items()
    ]  # fmt: skip


def pods(of_workload: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        thing(
            "v1", "Pod", f"{name}-{number}", component, [of_workload[name]],
            spec={"containers": [{"name": container, "image": f"{container}:x"}]},
        )
        for name, (component, container, count) in STATEFUL_SETS.items()
        for number in range(count)
    ]  # fmt: skip


def manager(replicas: int = 1, image: str = "cr.example/soperator/slurm-operator:5.0.0") -> dict[str, Any]:
    container = {"name": "manager", "image": image, "command": ["/usr/bin/slurm_operator"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "soperator-manager", "namespace": PLACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"control-plane": "manager"}},
            "template": {
                "metadata": {"labels": {"control-plane": "manager"}},
                "spec": {"containers": [container]},
            },
        },
    }


def webhook() -> dict[str, Any]:
    """Guards Secrets and SlurmClusters; the manager itself answers."""
    service = {"name": "soperator-webhook-service", "namespace": PLACE, "path": "/validate"}
    rule = {
        "apiGroups": ["slurm.nebius.ai"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["slurmclusters"],
    }  # fmt: skip
    hook = {
        "name": "vslurmcluster.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "clientConfig": {"service": service}, "rules": [rule],
    }  # fmt: skip
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "soperator-validating-webhook-configuration"},
        "webhooks": [hook],
    }


SLURM_FILES = {
    "slurm.conf": (
        "include /etc/slurm/slurm_base.conf.noedit\ninclude /etc/slurm/slurm_k8s_extra.conf.noedit\n"
    ),
    "slurm_base.conf.noedit": f"""\
# Managed by Soperator.

ClusterName={CLUSTER}
SlurmctldHost={CLUSTER}-controller-0({CLUSTER}-controller-svc)
AuthType=auth/munge
CredType=cred/munge
MpiDefault=pmix
MailProg=/usr/bin/true
PluginDir=/usr/lib/slurm
ProctrackType=proctrack/cgroup
ReturnToService=2
SlurmctldPidFile=/var/run/slurmctld.pid
SlurmctldPort=6817
SlurmdPidFile=/var/run/slurmd.pid
SlurmdSpoolDir=/var/spool/slurmd
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
TaskPlugin=task/cgroup,task/affinity
SlurmctldTimeout=180
SlurmdTimeout=180
SlurmctldParameters=conmgr_max_connections=1024,conmgr_threads=32,validate_nodeaddr_threads=32,enable_stepmgr
PrologFlags=contain
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
SlurmctldLogFile=/dev/null
SlurmdLogFile=/dev/null
MaxNodeCount=1024
JobRequeue=1
PreemptMode=REQUEUE
PreemptType=preempt/partition_prio
NodeName={WORKERS}-[0-1] State=CLOUD NodeAddr={WORKERS}-[0-1].{names.nodeset_service(CLUSTER)}.ns.svc.cluster.local RealMemory=8192
PartitionName=main Nodes=ALL Default=YES PriorityTier=10 MaxTime=INFINITE State=UP OverSubscribe=YES
PartitionName=hidden Nodes=ALL Default=NO PriorityTier=10 PreemptMode=OFF Hidden=YES MaxTime=INFINITE State=UP OverSubscribe=YES
NodeSet={WORKERS} Nodes={WORKERS}-[0-1]
""",
    "slurm_k8s_extra.conf.noedit": "# Managed by Soperator.\n",
    "cgroup.conf": "CgroupMountpoint=/sys/fs/cgroup\nCgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n",
    "gres.conf": "# Managed by Soperator.\n",
}  # fmt: skip


def _service(
    name: str, component: str, owners: list[dict[str, Any]], port: int, **spec: Any
) -> dict[str, Any]:
    ports = [{"name": "port", "port": port, "protocol": "TCP"}]
    return thing(
        "v1", "Service", name, component, owners, spec={**spec, "selector": match(component), "ports": ports}
    )


def _deployment(name: str, owners: list[dict[str, Any]]) -> dict[str, Any]:
    component = name.removeprefix(f"{CLUSTER}-").removeprefix("slurm-")
    pod = {"containers": [{"name": "program", "image": "program:x"}]}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": match(component)},
        "template": {"metadata": {"labels": match(component)}, "spec": pod},
    }
    return thing("apps/v1", "Deployment", name, component, owners, spec=spec)
