"""Slurm around one shared root on the local cluster: a SlurmCluster and a NodeSet of the second API."""

from pathlib import Path
from typing import Any

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.image.images import POPULATE
from slurm_local.image.roots import SLURM_SERIES
from slurm_local.progress import Progress
from slurm_local.slurm_cluster import CLIENT_S, CLUSTER, NAMESPACE, install, wait_started, wait_until_idle
from slurm_operator.api import registry
from slurm_operator.api.nebius import names
from slurm_operator.install.admission import WEBHOOK

GROUP = names.GROUP
NODESET = "worker"
LOGIN_PORT = 30022

# Sessions of users are in the root; so is whoever looks at it with us.
LOGIN = ("-n", NAMESPACE, f"{names.login(CLUSTER)}-0", "-c", "login", "--", "chroot", names.ROOT)

_READY_S = 400
_FILTER = "all"
_NOTE = "/etc/slurm-operator-first-job"

# Workers need no cgroups of their own then. Everything else is as a SlurmCluster has it.
_SLURM_CONF = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
_CGROUP_CONF = "CgroupPlugin=disabled\n"


def manifests(
    workers: int, namespace: str = NAMESPACE, *, login_port: int = LOGIN_PORT, **spec: Any
) -> list[Any]:
    """A claim for the root, a SlurmCluster and its NodeSet. `spec` replaces fields of the SlurmCluster."""
    return [_claim(namespace), slurm_cluster(namespace, login_port, **spec), nodeset(workers, namespace)]


def _claim(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": names.JAIL, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "4Gi"}}},
    }


def slurm_cluster(namespace: str, login_port: int, **spec: Any) -> dict[str, Any]:
    munge = {"image": image.slurm_image("slurmd")}
    jail, chosen = {"volumeSourceName": names.JAIL}, {"k8sNodeFilterName": _FILTER}
    spool = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "SlurmCluster",
        "metadata": {"name": CLUSTER, "namespace": namespace},
        "spec": {
            "customSlurmConfig": _SLURM_CONF,
            "customCgroupConfig": _CGROUP_CONF,
            "populateJail": {"image": image.slurm_image(POPULATE), **chosen},
            "k8sNodeFilters": [{"name": _FILTER}],
            "volumeSources": [{"name": names.JAIL, "persistentVolumeClaim": {"claimName": names.JAIL}}],
            "secrets": {},
            "sConfigController": {
                "node": {"size": 1, **chosen},
                "container": {"image": image.OPERATOR_IMAGE},
            },
            "slurmNodes": {
                "controller": {
                    **chosen,
                    "slurmctld": {"image": image.slurm_image("slurmctld"), "port": 6817},
                    "munge": munge,
                    "volumes": {"spool": {"volumeClaimTemplateSpec": spool}, "jail": jail},
                },
                "login": {
                    **chosen,
                    "size": 1,
                    "sshd": {"image": image.slurm_image("login"), "port": 22},
                    "munge": munge,
                    "sshdServiceType": "NodePort",
                    "sshdServiceNodePort": login_port,
                    "sshRootPublicKeys": public_keys(),
                    "volumes": {"jail": jail},
                },
                "accounting": chosen,
                "rest": chosen,
                "exporter": chosen,
            },
            **spec,
        },
    }


def nodeset(workers: int, namespace: str = NAMESPACE, name: str = NODESET) -> dict[str, Any]:
    source = {"persistentVolumeClaim": {"claimName": names.JAIL}}
    slurmd = {"repository": image.slurm_image("slurmd").removesuffix(f":{SLURM_SERIES}"), "tag": SLURM_SERIES}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterName": CLUSTER,
            "replicas": workers,
            "slurmd": {
                "image": slurmd,
                "resources": {"cpu": "500m", "memory": "1Gi"},
                "volumes": {"spool": {"emptyDir": {}}, "jail": source, "sharedMemorySize": "64Mi"},
            },
            "munge": {"image": slurmd, "resources": {"cpu": "10m", "memory": "64Mi"}},
        },
    }


def public_keys(home: Path | None = None) -> list[str]:
    """Those of whoever starts the cluster, who may log in with them as root."""
    found = sorted(((home or Path.home()) / ".ssh").glob("*.pub"))
    return [path.read_text().strip() for path in found]


def start(cluster: Cluster, operator: Path, workers: int, progress: Progress) -> str:
    """Brings Slurm up; what a job printed that reads on one worker what another one wrote to /etc."""
    with progress.step("The operator and its webhook"):
        cluster.load_image(operator)
        install(cluster, image.OPERATOR_IMAGE, registry.ALL)
    with progress.step(f"Slurm with {workers} workers on a shared root, from a SlurmCluster") as step:
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        cluster.apply(manifests(workers))
        wait_available(cluster)
        step.say("waiting for every worker")
        wait_started(cluster, WEBHOOK)
        wait_until_idle(cluster, workers, login)
    with progress.step("First jobs"):
        return first_jobs(cluster, workers)


def wait_available(cluster: Cluster, namespace: str = NAMESPACE) -> None:
    wanted = ("--for=jsonpath={.status.phase}=Available", f"slurmclusters.{GROUP}/{CLUSTER}")
    limit = f"--timeout={_READY_S}s"
    cluster.kubectl("wait", *wanted, "-n", namespace, limit, timeout_s=_READY_S + 30)


def first_jobs(cluster: Cluster, workers: int) -> str:
    first, last = f"{NODESET}-0", f"{NODESET}-{workers - 1}"
    login(cluster, "srun", f"--nodelist={first}", "sh", "-c", f"hostname > {_NOTE}")
    return login(
        cluster, "srun", f"--nodelist={last}", "sh", "-c", f'echo "$(hostname) reads of $(cat {_NOTE})"'
    )


def login(cluster: Cluster, *command: str) -> str:
    """What a command prints in the root, on the login pod."""
    limited = ["timeout", str(CLIENT_S), *command]
    return cluster.kubectl("exec", *LOGIN, *limited, timeout_s=2 * CLIENT_S)
