"""The SlurmCluster that is tormented, as manifests: slurmdbd has a database, and four workers one root."""

from pathlib import Path

from operator_rig import volume
from slurmcluster_rig import ACCOUNTING

from chaos.impact import WORKERS
from chaos.manifests import PARTITION, SETTINGS, STATE, Manifest
from slurm_local.shared_root_cluster import LOGIN_PORT, nodeset, slurm_cluster
from slurm_operator.api.nebius import names


def objects(namespace: str) -> list[Manifest]:
    """The SlurmCluster and its NodeSet. What runs change of them is said here, so that it can be put back."""
    made = slurm_cluster(
        namespace,
        LOGIN_PORT,
        customSlurmConfig=SETTINGS,
        partitionConfiguration={"configType": "custom", "rawConfig": [PARTITION]},
        maintenance="none",
        volumeSources=[_claimed(names.JAIL), _claimed(STATE)],
    )
    nodes = made["spec"]["slurmNodes"]
    nodes["accounting"] = ACCOUNTING
    nodes["controller"]["volumes"]["spool"] = {"volumeSourceName": STATE}
    workers = nodeset(WORKERS, namespace, "cpu")
    workers["spec"]["maxUnavailable"] = WORKERS - 1
    return [made, workers]


def root_volume(directory: Path, namespace: str) -> list[Manifest]:
    """A directory of this machine for the shared root, and the claim that the SlurmCluster names."""
    return volume(names.JAIL, directory, namespace, size="4Gi", mode="ReadWriteMany")


def _claimed(name: str) -> Manifest:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}
