"""The Slurm cluster that is tormented, as manifests: accounting with its own database, and four workers."""

from pathlib import Path
from typing import Any

from operator_rig import PROCESS_CONF, Slurm

from chaos.impact import WORKERS
from slurm_local.image.images import slurm_image

Manifest = dict[str, Any]

# A slurmd that is stopped for two minutes is waited for, as it is by default.
_PATIENT = PROCESS_CONF.replace("SlurmdTimeout=30", "SlurmdTimeout=300")

# Jobs spread out, so that every worker has one; and a waiting one starts soon after a worker is back.
EXTRA_CONF = (
    f"{_PATIENT}SchedulerParameters=batch_sched_delay=1,bf_interval=2,sched_interval=2\n"
    "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED LLN=YES\n"
)
STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": WORKERS - 1}}


def components(slurm: Slurm) -> list[Manifest]:
    """Accounting, Controller, RestApi and NodeSet, in the order in which they can be made."""
    ours = {"image": slurm_image("slurmdbd"), "imagePullPolicy": "Never"}
    database = {"image": slurm_image("mariadb"), "imagePullPolicy": "Never"}
    managed = {"mariadb": database, "storage": {"size": "1Gi"}}
    return [
        slurm.kind("Accounting", "slurm", {"slurmdbd": ours, "managed": managed}),
        slurm.controller(
            accountingRef={"name": "slurm"},
            extraConf=EXTRA_CONF,
            persistence={"enabled": True, "existingClaim": "state"},
        ),
        slurm.restapi(),
        slurm.nodeset(replicas=WORKERS, scalingMode="StatefulSet", updateStrategy=STRATEGY),
    ]


def state_volume(directory: Path, namespace: str) -> list[Manifest]:
    """A directory of this machine for slurmctld's state, and the claim that the Controller names."""
    size, modes = {"storage": "24Mi"}, ["ReadWriteOnce"]
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "state"},
        "spec": {"capacity": size, "accessModes": modes, "storageClassName": "",
                 "hostPath": {"path": str(directory), "type": "Directory"}},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "state", "namespace": namespace},
        "spec": {"accessModes": modes, "storageClassName": "", "volumeName": "state",
                 "resources": {"requests": size}},
    }  # fmt: skip
    return [volume, claim]
