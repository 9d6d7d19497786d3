"""Directories of the shared root that pods mount volumes on: made before pods need them, by one program.

The Job that populates the root makes those that are known then. The sconfigcontroller makes the others: it
writes a small file into each, which the volume hides. A container runtime would make them too, in all pods
that start together at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.slurmcluster import SlurmClusterSpec
from slurm_operator.api.nebius.volumes import NodeVolumeMount, WorkerVolumeMount
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.manifests.meta import Child
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.root import Root

VARIABLE: Final = "POPULATE_MOUNT_POINTS"
FILE: Final = ".slurm-operator-mount-point"
KEY: Final = "text"
_WRITING: Final = "Refresh"
TEXT: Final = "Pods of this SlurmCluster mount a volume on this directory.\n"


@dataclass(frozen=True)
class MountPoints:
    """What is known of them. Where `is_known` is false nobody but the container runtime makes any."""

    is_known: bool = False
    by_job: frozenset[str] = frozenset()
    by_writer: frozenset[str] = frozenset()
    trouble: str = ""  # Why the sconfigcontroller could not make one, in its words.

    def lacks(self, path: str) -> bool:
        return self.is_known and plain(path) not in self.by_job | self.by_writer

    def left_to_writer(self, paths: Iterable[str]) -> list[str]:
        """Those that the Job did not know of."""
        return sorted({plain(path) for path in paths} - self.by_job) if self.is_known else []


def observe_mount_points(
    spec: SlurmClusterSpec, root: Root, jailed: JailedConfig | None, family: Family
) -> MountPoints:
    """Soperator's pods make directories themselves. A writer that is not root may not make any."""
    writer = spec.s_config_controller
    is_made = writer is not None and not writer.run_as_uid and family is Family.OURS
    if not is_made or root.job is None or not root.is_usable:
        return MountPoints()
    return MountPoints(
        is_known=True,
        by_job=frozenset(_of_job(root.job)),
        by_writer=frozenset(_of_writer(jailed)),
        trouble=_trouble(jailed),
    )


def plain(path: str) -> str:
    return f"/{path.strip('/')}"


def mounted(
    wished: Iterable[NodeVolumeMount] | Iterable[WorkerVolumeMount], points: MountPoints, there: Iterable[str]
) -> frozenset[str]:
    """Names of the sub mounts that pods may have: what they have they keep."""
    kept = set(there)
    return frozenset(one.name for one in wished if one.name in kept or not points.lacks(one.mount_path))


def _of_job(job: Child) -> list[str]:
    pod = job.body.get("spec", {}).get("template", {}).get("spec", {})
    told = (env for one in pod.get("containers", ()) for env in one.get("env", ()) if env["name"] == VARIABLE)
    return [plain(path) for env in told for path in str(env.get("value", "")).split()]


def _of_writer(jailed: JailedConfig | None) -> list[str]:
    if jailed is None or not jailed.status.is_written or _is_unread(jailed):
        return []
    return [item.path.removesuffix(f"/{FILE}") for item in jailed.spec.items]


def _is_unread(jailed: JailedConfig) -> bool:
    return jailed.status.observed_generation < jailed.metadata.generation


def _trouble(jailed: JailedConfig | None) -> str:
    if jailed is None or _is_unread(jailed):
        return ""
    found = (one for one in jailed.status.conditions if one.type == "FilesWritten")
    return next((one.message for one in found if one.status is Truth.FALSE and one.reason != _WRITING), "")
