"""Where pods on the shared root find Slurm's files, also while that changes."""

from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart


def shared_source(part: LoginSet | WorkerPart | None, *, has_writer: bool, has_files: bool) -> str:
    """Files in the root where somebody writes them there; slurmctld hands them out otherwise.

    Pods that run with files from slurmctld go on with those until the root has some: a pod that is replaced
    before that would find none.
    """
    if not has_writer:
        return str(ConfigSource.CONFIGLESS)
    runs_without = part is not None and part.spec.replicas > 0 and not reads_files(part)
    return str(ConfigSource.CONFIGLESS if runs_without and not has_files else ConfigSource.FILES)


def reads_files(part: LoginSet | WorkerPart) -> bool:
    """Whether its pods are made to read Slurm's files in the root."""
    return part.spec.config_source is ConfigSource.FILES


def may_read_files(part: LoginSet | WorkerPart) -> bool:
    """Whether one of its pods may still read them: it wants to, or was made when it did."""
    status = part.status
    is_read = status.observed_generation >= part.metadata.generation
    return reads_files(part) or not is_read or status.updated_replicas < status.replicas
