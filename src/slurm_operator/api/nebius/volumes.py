"""Volumes: named sources that parts of a cluster share, and claims of their own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.schema.problems import Problem, warning
from slurm_operator.api.shared.pods import ClaimSpec, Json

# Written below a volume by some charts, where Kubernetes knows no such source.
_CLAIM_TEMPLATE: Final = "volumeClaimTemplateSpec"


@model
class ClaimSource:
    OPEN: ClassVar[bool] = True

    claim_name: str = prop("Name of the PersistentVolumeClaim.")
    read_only: bool | None = prop("Whether pods may only read it.", default=None)


@model
class HostPathSource:
    OPEN: ClassVar[bool] = True

    path: str = prop("Path on the Kubernetes node.")
    type: str = prop("What has to be there, such as DirectoryOrCreate.", default="")


@model
class NfsSource:
    OPEN: ClassVar[bool] = True

    server: str = prop("Host name or address of the NFS server.")
    path: str = prop("Exported path.")
    read_only: bool | None = prop("Whether pods may only read it.", default=None)


@model
class VolumeSource:
    """Where a volume comes from, as in a pod. Every source of Kubernetes is accepted; give one."""

    OPEN: ClassVar[bool] = True

    persistent_volume_claim: Json = prop("A claim that exists.", default={}, shape=ClaimSource)
    host_path: Json = prop("A path of the Kubernetes node.", default={}, shape=HostPathSource)
    nfs: Json = prop("A path that an NFS server exports.", default={}, shape=NfsSource)
    empty_dir: Json = prop("An empty directory that lives as long as the pod.", default={})
    config_map: Json = prop("Entries of a ConfigMap as files.", default={})
    secret: Json = prop("Entries of a Secret as files.", default={})
    csi: Json = prop("A volume that a CSI driver makes for the pod.", default={})
    ephemeral: Json = prop("A claim that lives as long as the pod.", default={})
    projected: Json = prop("Several sources in one directory.", default={})
    downward_api: Json = prop("Facts about the pod as files.", default={}, name="downwardAPI")


@model
class NamedVolumeSource(VolumeSource):
    """An entry of the catalogue of volumes."""

    name: str = prop("Name by which parts of the cluster refer to it.", min_length=1)


CLAIM_TEMPLATE: Any = prop(
    "A PersistentVolumeClaim that each pod gets of its own; absent where volumeSourceName says which volume.",
    default={},
    shape=ClaimSpec,
)


@model
class NodeVolume:
    """One volume: an entry of volumeSources, or a claim per pod."""

    volume_source_name: str = prop("Name of an entry of volumeSources.", default="")
    volume_claim_template_spec: Json = CLAIM_TEMPLATE

    def problems(self, sources: Iterable[str]) -> Iterator[Problem]:
        yield from _one_source(self.volume_source_name, self.volume_claim_template_spec, sources)


@model
class NodeVolumeMount(NodeVolume):
    """A volume and where it appears."""

    name: str = prop("Name of the volume in the pod.")
    mount_path: str = prop("Where it appears.")
    sub_path: str = prop("Only this path of the volume.", default="")
    read_only: bool = prop("Whether the pod may only read it.", default=False)


@model
class WorkerVolumeMount:
    """A volume of workers and where it appears."""

    name: str = prop("Name of the volume in the pod.")
    mount_path: str = prop("Where it appears.")
    sub_path: str = prop("Only this path of the volume.", default="")
    read_only: bool = prop("Whether the pod may only read it.", default=False)
    volume_source: Json = prop("Where the volume comes from.", default={}, shape=VolumeSource)
    volume_claim_template_spec: Json = prop(
        "A PersistentVolumeClaim that each worker gets of its own; absent where volumeSource is given.",
        default={},
        shape=ClaimSpec,
    )

    def problems(self) -> Iterator[Problem]:
        has_source = bool(given(self.volume_source))
        if not has_source and not given(self.volume_claim_template_spec):
            yield Problem(path="", message="needs volumeSource or volumeClaimTemplateSpec")
        elif has_source and given(self.volume_claim_template_spec):
            yield warning("volumeClaimTemplateSpec", "is ignored: volumeSource says which volume it is")
        yield from (problem.under("volumeSource") for problem in source_problems(self.volume_source))


def given(foreign: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody wrote in foreign JSON, without the nulls that typed clients add."""
    return {name: value for name, value in foreign.items() if value is not None}


def source_problems(source: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the source of one volume."""
    found = [name for name in given(source) if name not in ("name", _CLAIM_TEMPLATE)]
    if given(source).get(_CLAIM_TEMPLATE):
        yield warning(
            _CLAIM_TEMPLATE,
            "is ignored: it is no volume source; for a claim per pod write ephemeral.volumeClaimTemplate",
        )
    if len(found) > 1:
        yield Problem(path="", message=f"has several sources ({', '.join(sorted(found))}); keep one")


def _one_source(name: str, claim: Mapping[str, Any], sources: Iterable[str]) -> Iterator[Problem]:
    known = sorted(set(sources))
    if name and name not in known:
        there = ", ".join(known) or "none"
        message = f"there is no {name!r} in spec.volumeSources, which has: {there}"
        yield Problem(path="volumeSourceName", message=message)
    elif name and given(claim):
        yield warning("volumeClaimTemplateSpec", "is ignored: volumeSourceName says which volume it is")
    elif not name and not given(claim):
        yield Problem(path="", message="needs volumeSourceName or volumeClaimTemplateSpec")
