"""`slurmNodes.worker` of older releases: workers of a SlurmCluster before they had NodeSets."""

from collections.abc import Iterator

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import NodeContainer, SlurmNode
from slurm_operator.api.nebius.volumes import NodeVolume, NodeVolumeMount, given
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.openapi import Quantity
from slurm_operator.api.schema.problems import Problem, warning

_NOT_IN_NODESETS = "has no equivalent in a NodeSet and is ignored"


class CgroupVersion(Choice):
    """Which cgroups Slurm uses."""

    V1 = "v1", "the older ones."
    V2 = "v2", "the unified ones."


@model
class OlderWorkerContainer(NodeContainer):
    """A container of workers."""

    command: list[str] = prop(
        "Replaced the entry point of the image.", default=[], deprecated=_NOT_IN_NODESETS
    )
    args: list[str] = prop("Replaced the arguments of the image.", default=[], deprecated=_NOT_IN_NODESETS)


@model
class OlderWorkerVolumes:
    """Volumes of workers."""

    spool: NodeVolume = prop("Where slurmd keeps its files.")
    jail: NodeVolume = prop("The root directory that all nodes share.")
    jail_sub_mounts: list[NodeVolumeMount] = prop(
        "Volumes that appear inside the shared root directory.", default=[]
    )
    custom_mounts: list[NodeVolumeMount] = prop("More volumes.", default=[])
    shared_memory_size: Quantity = prop("Size of /dev/shm.", default="64Gi")


@model
class OlderWorker(SlurmNode):
    """Workers of older releases. They are read as a NodeSet called `worker`."""

    max_unavailable: int | str = prop(
        "How many workers, or which share of them, may be away during an update.", default="20%"
    )
    slurmd: OlderWorkerContainer = prop("The slurmd container.")
    munge: OlderWorkerContainer = prop("The munge container beside it.")
    volumes: OlderWorkerVolumes = prop("Volumes of workers.")
    cgroup_version: CgroupVersion = prop("Which cgroups Slurm uses.", default=CgroupVersion.V2)
    enable_gdr_copy: bool = prop("Whether jobs can use GDRCopy.", default=False, name="enableGDRCopy")
    slurm_node_extra: str = prop("Text for the Extra field of the Slurm nodes.", default="")
    supervisord_config_map_ref_name: str = prop("ConfigMap with your own supervisord.conf.", default="")
    sshd_config_map_ref_name: str = prop("ConfigMap with your own sshd_config.", default="")
    worker_annotations: dict[str, str] = prop("Annotations of the worker pods.", default={})

    def problems(self) -> Iterator[Problem]:
        """Warnings about what a NodeSet cannot take over."""
        yield warning(
            "", f"is read as a NodeSet called {names.OLDER_WORKERS!r}; new manifests say it in a NodeSet"
        )
        for name, container in (("slurmd", self.slurmd), ("munge", self.munge)):
            if "@" in container.image:
                message = "a digest has no equivalent in a NodeSet; it is kept as the end of the repository"
                yield warning(f"{name}.image", message)
        if given(self.volumes.spool.volume_claim_template_spec):
            message = (
                "becomes a claim that lives as long as the pod: spool files of old pods are not taken over"
            )
            yield warning("volumes.spool.volumeClaimTemplateSpec", message)
        if given(self.volumes.jail.volume_claim_template_spec):
            message = "has no equivalent in a NodeSet: name one claim for all workers in volumeSources"
            yield warning("volumes.jail.volumeClaimTemplateSpec", message)
        if self.host_users is False:
            message = (
                "never had an effect in older releases; with a NodeSet it has one, and needs user namespaces"
            )
            yield warning("hostUsers", message)
