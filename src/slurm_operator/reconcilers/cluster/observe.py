"""Choose the facts about one Cluster: its parts, what this Kubernetes offers, and what Slurm says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.cluster import Cluster, Isolation
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import ConfigMap, KubeNode, Unread
from slurm_operator.manifests.platform import Namespace, StorageClass
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.cluster import isolation
from slurm_operator.reconcilers.shared import slurm_servers
from slurm_operator.reconcilers.shared.composed import PART_TYPES, Part
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.reconcilers.shared.parts import is_owned
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass(frozen=True)
class Seen:
    cluster: Cluster
    slurm: Snapshot | Unreachable
    # Every object of these kinds that the Cluster made, or that has a name which the Cluster wants.
    parts: Mapping[tuple[str, str], Part] = field(default_factory=dict)
    cgroup_conf: ConfigMap | Unread | None = None
    has_own_cgroup_conf: bool = False
    # None: the StorageClasses of this Kubernetes cannot be read.
    has_default_storage: bool | None = None
    against_cgroup: str = ""
    token: SecretHandle | Need | None = None

    @property
    def meta(self) -> Meta:
        return self.cluster.metadata

    @property
    def controller(self) -> Controller | None:
        """The Controller that this Cluster made."""
        found = self.parts.get(("Controller", self.meta.name))
        return found if isinstance(found, Controller) and is_owned(found, self.meta) else None

    def own(self, kind: str) -> list[Part]:
        """The parts of one kind that the Cluster made, by name."""
        return [
            part
            for (of_kind, _), part in sorted(self.parts.items())
            if of_kind == kind and is_owned(part, self.meta)
        ]


def observe(key: ObjectKey, world: World) -> Seen | None:
    cluster = world.get(Cluster, key.namespace, key.name)
    if cluster is None:
        return None
    where = slurm_servers.slurm_of(cluster)
    slurm = world.slurm(where.namespace, where.name)
    if cluster.spec.is_adopted:
        return Seen(
            cluster,
            slurm,
            parts=dict(_parts(cluster, world)),
            token=slurm_servers.adopted_token(cluster, world),
        )
    return Seen(
        cluster,
        slurm,
        parts=dict(_parts(cluster, world)),
        cgroup_conf=world.config_map(key.namespace, isolation.config_map_name(key.name)),
        has_own_cgroup_conf=_has_own_cgroup_conf(cluster, world),
        has_default_storage=_has_default_storage(world),
        against_cgroup=_against_cgroup(cluster, world),
    )


def _parts(cluster: Cluster, world: World) -> Iterator[tuple[tuple[str, str], Part]]:
    meta, spec = cluster.metadata, cluster.spec
    wanted = [one.name for one in spec.logins] + [one.name for one in spec.node_sets]
    mixed = {meta.name, *(names.cluster_part(meta.name, name) for name in wanted)}
    for type_ in PART_TYPES:
        for part in world.all(type_, meta.namespace):
            name = part.metadata.name
            if is_owned(part, meta) or name in mixed:
                yield (type_.KIND.kind, name), part


def _has_own_cgroup_conf(cluster: Cluster, world: World) -> bool:
    """Whether a file of the user's takes the place of the one that follows from `isolation`."""
    for ref in cluster.spec.controller.config_file_refs:
        found = world.config_map(cluster.metadata.namespace, ref.name)
        if isinstance(found, ConfigMap) and isolation.CGROUP_CONF in {*found.data, *found.binary_data}:
            return True
    return False


def _has_default_storage(world: World) -> bool | None:
    if not world.serves(kinds.STORAGE_CLASS):
        return None
    return any(storage.is_default for storage in world.all(StorageClass))


def _against_cgroup(cluster: Cluster, world: World) -> str:
    """What keeps workers here from having cgroups of their own; empty when nothing is known to."""
    if cluster.spec.isolation is not Isolation.AUTO or cluster.status.isolation:
        return ""  # Nobody asks any more.
    namespace = cluster.metadata.namespace
    found = world.get(Namespace, "", namespace)
    if found is not None and (level := found.refuses_privileged):
        return f"namespace {namespace!r} enforces Pod Security level {level!r}, which refuses privileged pods"
    for kube_node in world.all(KubeNode):
        if kube_node.metadata.labels.get(isolation.NODE_LABEL) == Isolation.PROCESS:
            return f"Kubernetes node {kube_node.metadata.name!r} is labelled {isolation.NODE_LABEL}=process"
    return ""
