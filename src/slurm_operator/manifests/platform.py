"""What the Kubernetes around us offers, as far as decisions depend on it."""

from typing import Final

from slurm_operator import wire
from slurm_operator.manifests.meta import Manifest, Meta

_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_ENFORCED: Final = "pod-security.kubernetes.io/enforce"


class StorageClass(wire.CamelRecord):
    metadata: Meta

    @property
    def is_default(self) -> bool:
        """Whether volumes come from here that name no class."""
        return self.metadata.annotations.get(_IS_DEFAULT) == "true"


class VolumeClaimSpec(wire.CamelRecord):
    access_modes: tuple[str, ...] = ()


class VolumeClaim(wire.CamelRecord):
    """A PersistentVolumeClaim, whoever made it."""

    metadata: Meta
    spec: VolumeClaimSpec = VolumeClaimSpec()


class Namespace(wire.CamelRecord):
    metadata: Meta

    @property
    def refuses_privileged(self) -> str:
        """The level of Pod Security that keeps privileged pods out; empty when none does."""
        level = self.metadata.labels.get(_ENFORCED, "")
        return level if level in ("baseline", "restricted") else ""


class PodTemplate(wire.CamelRecord):
    """A template for pods that somebody keeps beside what uses it."""

    metadata: Meta
    template: Manifest = {}
