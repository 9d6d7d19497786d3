"""Choose the facts about one NodeSet: its SlurmCluster and that one's root, and the part that it became."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.nodeset import NodeSet, NodeSetSpec
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.nebius.slurmcluster import Maintenance, SlurmCluster, SlurmClusterSpec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, KubeNode, Pod, Secret, Unread
from slurm_operator.plan.world import OWNER, World
from slurm_operator.reconcilers.nebius.shared import takeover
from slurm_operator.reconcilers.nebius.shared.config_source import shared_source
from slurm_operator.reconcilers.nebius.shared.families import Family, family, kept_family
from slurm_operator.reconcilers.nebius.shared.inherited import inherited, of_nodeset
from slurm_operator.reconcilers.nebius.shared.mount_points import MountPoints, observe_mount_points
from slurm_operator.reconcilers.nebius.shared.places import SHARED_ROOT_VARIABLE
from slurm_operator.reconcilers.nebius.shared.root import Root, observe_root
from slurm_operator.reconcilers.nebius.shared.soperator_pods import Remains, remains
from slurm_operator.reconcilers.nebius.shared.takeover import Handover
from slurm_operator.reconcilers.nebius.shared.user_namespaces import was_refused
from slurm_operator.reconcilers.shared.parts import is_owned


@dataclass(frozen=True)
class Seen:
    nodeset: NodeSet
    cluster: SlurmCluster | None = None
    clusters: tuple[str, ...] = ()  # Every SlurmCluster in the namespace.
    root: Root = field(default_factory=Root)
    part: WorkerPart | None = None  # Whatever has the name of what this becomes.
    children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)
    config_maps: Mapping[str, ConfigMap | Unread | None] = field(default_factory=dict)
    sssd_secret: Secret | Unread | None = None
    keys: Secret | Unread | None = None  # Of the SlurmCluster; it says whose images the root is used with.
    has_files: bool = False  # Whether the root has had Slurm's files once.
    has_user_namespaces: bool = False  # Whether every Kubernetes node can give a pod its own.
    is_namespace_refused: bool = False  # Whether a worker could not start in one, because of a volume.
    jailed_mount_points: JailedConfig | None = None
    profile: Child | None = None  # The AppArmor profile of its SlurmCluster's pods.
    power: NodeSetPowerState | None = None  # Which of its workers should run, where Slurm decides that.
    has_power_states: bool = True  # Whether this Kubernetes knows the kind.
    soperator: Remains = field(default_factory=Remains)  # What Soperator made for its cluster, and is there.
    handover: Handover = field(default_factory=Handover)  # Of the workers that Soperator made for it.
    # What Soperator made and the part is to have, while it still belongs to the NodeSet.
    inherited: Mapping[tuple[Kind, str], Meta] = field(default_factory=dict)

    @property
    def meta(self) -> Meta:
        return self.nodeset.metadata

    @property
    def name(self) -> str:
        return self.nodeset.metadata.name

    @property
    def spec(self) -> NodeSetSpec:
        assert self.nodeset.spec is not None
        return self.nodeset.spec

    @property
    def of(self) -> SlurmClusterSpec:
        """The spec of its SlurmCluster."""
        assert self.cluster is not None
        assert self.cluster.spec is not None
        return self.cluster.spec

    @property
    def own(self) -> WorkerPart | None:
        """The part that this NodeSet made."""
        return self.part if self.part is not None and is_owned(self.part, self.meta) else None

    @property
    def family(self) -> Family:
        """Whose image the workers have: kept while there are workers, then as the shared root is used."""
        if self.own is None:
            return self.family_of_image
        has_workers = bool(self.own.spec.replicas or self.own.status.replicas)
        if not has_workers and self.family_of_image is kept_family(self.keys):
            return self.family_of_image
        named = {one.get("name") for one in self.own.spec.slurmd.get("env") or ()}
        return Family.OURS if SHARED_ROOT_VARIABLE in named else Family.SOPERATOR

    @property
    def family_of_image(self) -> Family:
        """Whose image this is, by its name or by an annotation."""
        notes = self.cluster.metadata.annotations if self.cluster is not None else {}
        return family(self.spec.slurmd.image.reference, {**notes, **self.meta.annotations})

    @property
    def is_ephemeral(self) -> bool:
        """Whether Slurm decides which of its workers run."""
        return self.spec.ephemeral_nodes

    @property
    def is_down(self) -> bool:
        return self.of.maintenance not in (Maintenance.NONE, Maintenance.SKIP_POPULATE_JAIL)

    @property
    def reads_files(self) -> bool:
        """Whether slurmd finds Slurm's files in the root, where somebody writes them."""
        has_writer = self.of.s_config_controller is not None
        source = shared_source(self.own, has_writer=has_writer, has_files=self.has_files)
        return source == ConfigSource.FILES

    @property
    def unknown_files(self) -> list[str]:
        """ConfigMaps whose contents are not known: they are not there, or cannot be read."""
        return [name for name, found in self.config_maps.items() if not isinstance(found, ConfigMap)]

    @property
    def knows_files(self) -> bool:
        return not self.unknown_files

    @property
    def mount_points(self) -> MountPoints:
        """Directories in the root that workers mount volumes on."""
        return observe_mount_points(self.of, self.root, self.jailed_mount_points, self.family)

    @property
    def supervisord(self) -> str:
        """The ConfigMap with supervisord.conf."""
        return self.spec.config_map_ref_supervisord or names.supervisord(self.nodeset.cluster)

    @property
    def sshd(self) -> str:
        """The ConfigMap with sshd_config."""
        return self.spec.config_map_ref_sshd or names.worker_ssh_configs(self.nodeset.cluster)


def observe(key: ObjectKey, world: World) -> Seen | None:
    nodeset = world.get(NodeSet, key.namespace, key.name)
    if nodeset is None:
        return None
    part = world.get(WorkerPart, key.namespace, key.name)
    clusters = tuple(one.metadata.name for one in world.all(SlurmCluster, key.namespace))
    cluster = world.get(SlurmCluster, key.namespace, nodeset.cluster)
    if nodeset.spec is None or cluster is None:
        return Seen(nodeset, cluster, clusters, part=part)
    jailed = world.get(JailedConfig, key.namespace, names.slurm_configs(nodeset.cluster))
    limits = (kinds.CONFIG_MAP, names.nodeset_limits(nodeset.cluster, key.name))
    child = world.child(limits[0], key.namespace, limits[1])
    seen = Seen(
        nodeset,
        cluster,
        clusters,
        root=observe_root(cluster, world),
        part=part,
        children={limits: child} if child is not None else {},
        has_files=jailed is not None and jailed.status.is_written,
        has_user_namespaces=_has_user_namespaces(world),
        jailed_mount_points=world.get(JailedConfig, key.namespace, names.mount_points(nodeset.cluster)),
        profile=world.child(
            kinds.APP_ARMOR_PROFILE, key.namespace, names.profile(cluster.metadata.name, key.namespace)
        ),
        power=world.get(NodeSetPowerState, key.namespace, key.name),
        has_power_states=world.serves(NodeSetPowerState.KIND),
        soperator=remains(cluster.metadata, [key.name], world),
        handover=takeover.observe(nodeset, cluster, part.metadata if part is not None else None, world),
        inherited=inherited(nodeset.metadata, of_nodeset(nodeset.cluster, key.name), world),
    )
    return _with_named(seen, world)


def _with_named(seen: Seen, world: World) -> Seen:
    namespace, cluster = seen.meta.namespace, seen.nodeset.cluster
    wanted = (seen.supervisord, seen.sshd)
    sssd = names.nodeset_sssd_secret(cluster, seen.name) if seen.spec.sssd is not None else ""
    return replace(
        seen,
        is_namespace_refused=_is_namespace_refused(seen, world),
        config_maps={name: world.config_map(namespace, name) for name in wanted},
        sssd_secret=world.secret(namespace, sssd) if sssd else None,
        keys=world.secret(namespace, names.munge_secret(cluster)),
    )


def _is_namespace_refused(seen: Seen, world: World) -> bool:
    own = seen.own
    if own is None or own.spec.template.spec.get("hostUsers") is not False:
        return False
    # Thousands of pods are looked through only where some are not ready.
    is_asked = own.status.ready_replicas < len(own.spec.numbers)
    return is_asked and was_refused(world.find(Pod, OWNER, own.metadata.uid))


def _has_user_namespaces(world: World) -> bool:
    machines = world.all(KubeNode) if world.serves(kinds.KUBE_NODE) else ()
    return bool(machines) and all(machine.has_user_namespaces for machine in machines)
