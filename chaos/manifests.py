"""The Slurm cluster that is tormented, as manifests: accounting with its own database, and four workers."""

from pathlib import Path
from typing import Any

from operator_rig import PROCESS_CONF, Slurm, volume

from chaos.impact import WORKERS
from slurm_local.image.images import slurm_image

Manifest = dict[str, Any]

# A slurmd that is stopped for two minutes is waited for, as it is by default. A waiting job starts soon after
# a worker is back, and jobs spread out, so that every worker has one.
SETTINGS = (
    PROCESS_CONF.replace("SlurmdTimeout=30", "SlurmdTimeout=300")
    + "SchedulerParameters=batch_sched_delay=1,bf_interval=2,sched_interval=2\n"
)
PARTITION = "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED LLN=YES"
EXTRA_CONF = f"{SETTINGS}{PARTITION}\n"
STATE = "state"
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
            persistence={"enabled": True, "existingClaim": STATE},
        ),
        slurm.restapi(),
        slurm.nodeset(replicas=WORKERS, scalingMode="StatefulSet", updateStrategy=STRATEGY),
    ]


def state_volume(directory: Path, namespace: str) -> list[Manifest]:
    """A directory of this machine for slurmctld's state, and the claim for it."""
    return volume(STATE, directory, namespace, size="24Mi", mode="ReadWriteOnce")
