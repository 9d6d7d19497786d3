"""Choose the facts about one SlurmCluster: its parts, its NodeSets, its root, and what Slurm says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import Maintenance, SlurmCluster, SlurmClusterSpec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, KubeNode, Pod, Secret, Unread
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.plan.world import OWNER, World
from slurm_operator.reconcilers.nebius.shared.families import Family, family, kept_family
from slurm_operator.reconcilers.nebius.shared.inherited import (
    inherited,
    of_cluster,
    soperator_files,
    soperator_state,
)
from slurm_operator.reconcilers.nebius.shared.mount_points import MountPoints, observe_mount_points
from slurm_operator.reconcilers.nebius.shared.root import Root, jail_source, observe_root
from slurm_operator.reconcilers.nebius.shared.soperator_pods import Remains, remains
from slurm_operator.reconcilers.shared.composed import Part
from slurm_operator.reconcilers.shared.parts import is_owned
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

# The kinds of parts that belong to the SlurmCluster itself; workers belong to its NodeSets.
OWN_PARTS: tuple[type[Controller | Accounting | RestApi | LoginSet], ...] = (
    Accounting,
    Controller,
    RestApi,
    LoginSet,
)

# What the exporter consists of and is deleted with its switch.
EXPORTER_KINDS = (kinds.DEPLOYMENT, kinds.POD_MONITOR)

_DOWN = (
    Maintenance.DOWNSCALE,
    Maintenance.DELETE_POPULATE_JAIL,
    Maintenance.OVERWRITE_POPULATE_JAIL,
)


@dataclass(frozen=True)
class Seen:
    cluster: SlurmCluster
    slurm: Snapshot | Unreachable
    root: Root = field(default_factory=Root)
    # Every object of these kinds that the cluster made, or that has a name which it wants.
    parts: Mapping[tuple[str, str], Part] = field(default_factory=dict)
    nodesets: tuple[NodeSet, ...] = ()  # Of the cluster, by name.
    workers: Mapping[str, WorkerPart] = field(default_factory=dict)  # What its NodeSets became.
    older: NodeSet | None = None  # Whatever has the name of the NodeSet for workers of older releases.
    children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)
    secrets: Mapping[str, Secret | Unread | None] = field(default_factory=dict)
    tested: ConfigMap | Unread | None = None  # The files that slurmctld is known to run with.
    jailed: JailedConfig | None = None
    jailed_topology: JailedConfig | None = None
    jailed_mount_points: JailedConfig | None = None
    # Worker pods by NodeSet and name in Slurm, and the labels of their Kubernetes nodes.
    worker_pods: Mapping[str, Mapping[str, Pod]] = field(default_factory=dict)
    node_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tier_prefix: str = names.TIER_PREFIX
    sshd_config: ConfigMap | Unread | None = None  # The user's own.
    claim: VolumeClaim | None = None  # Of the shared root.
    has_mariadb_operator: bool = False  # Whether this Kubernetes has its kinds.
    has_pod_monitors: bool = False  # Those of the Prometheus operator.
    has_profiles: bool = False  # Those of the Security Profiles Operator.
    passwords: Mapping[str, Secret | Unread | None] = field(default_factory=dict)  # Of its database.
    soperator: Remains = field(default_factory=Remains)  # What Soperator made for it, and is still there.
    # What Soperator made and parts are to have, while it still belongs to the SlurmCluster.
    inherited: Mapping[tuple[Kind, str], Meta] = field(default_factory=dict)
    # Slurm's files by name, as Soperator wrote them; none once they are ours.
    soperator_files: Mapping[str, str] = field(default_factory=dict)
    # The volume with slurmctld's state as Soperator left it; None where nobody may look at claims.
    soperator_state: str | None = ""

    @property
    def meta(self) -> Meta:
        return self.cluster.metadata

    @property
    def name(self) -> str:
        return self.cluster.metadata.name

    @property
    def spec(self) -> SlurmClusterSpec:
        assert self.cluster.spec is not None
        return self.cluster.spec

    @property
    def family_of_images(self) -> Family:
        """Whose images the daemons have now, by their names or by the annotation."""
        return family(self.spec.slurm_nodes.controller.slurmctld.image, self.meta.annotations)

    @property
    def keys(self) -> Secret | Unread | None:
        """What stays as long as the root does, whatever becomes of the SlurmCluster."""
        return self.secrets.get(names.munge_secret(self.name))

    @property
    def family(self) -> Family:
        """Whose images everything on the root is made for: chosen once, and kept for the life of the root."""
        return kept_family(self.keys) or self.family_of_images

    @property
    def is_down(self) -> bool:
        """Whether the cluster is taken down for maintenance."""
        return self.spec.maintenance in _DOWN

    @property
    def controller(self) -> Controller | None:
        """The Controller that this cluster made."""
        found = self.parts.get(("Controller", self.name))
        return found if isinstance(found, Controller) and is_owned(found, self.meta) else None

    @property
    def login(self) -> LoginSet | None:
        found = self.parts.get(("LoginSet", names.login(self.name)))
        return found if isinstance(found, LoginSet) and is_owned(found, self.meta) else None

    @property
    def has_files(self) -> bool:
        """Whether the root has had Slurm's files once."""
        return self.jailed is not None and self.jailed.status.is_written

    @property
    def profile(self) -> Child | None:
        """The AppArmor profile of login pods and workers."""
        return self.children.get((kinds.APP_ARMOR_PROFILE, names.profile(self.name, self.meta.namespace)))

    @property
    def mount_points(self) -> MountPoints:
        """Directories in the root that login pods and workers mount volumes on."""
        return observe_mount_points(self.spec, self.root, self.jailed_mount_points, self.family)

    def own(self, kind: str) -> list[Part]:
        """The parts of one kind that the cluster made, by name."""
        return [
            part
            for (of_kind, _), part in sorted(self.parts.items())
            if of_kind == kind and is_owned(part, self.meta)
        ]


def config_map_names(cluster: str) -> tuple[str, ...]:
    """ConfigMaps that the cluster writes."""
    return (
        names.more_configs(cluster),
        names.topology_config(cluster),
        names.mount_points(cluster),
        names.ssh_configs(cluster),
        names.worker_ssh_configs(cluster),
        names.ssh_root_keys(cluster),
        names.login_limits(cluster),
        names.controller_limits(cluster),
        names.user_isolation(cluster),
        names.sysctl(cluster),
        names.supervisord(cluster),
    )


def secret_names(cluster: str, spec: SlurmClusterSpec) -> tuple[str, ...]:
    """Secrets that the cluster makes, or that it was told to use in their place."""
    return (
        names.munge_secret(cluster),
        names.rest_jwt_secret(cluster),
        spec.secrets.sshd_keys_name or names.sshd_keys_secret(cluster),
        names.sssd_secret(cluster),
    )


def part_names(cluster: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Accounting", cluster),
        ("Controller", cluster),
        ("RestApi", cluster),
        ("RestApi", names.operator_rest(cluster)),
        ("LoginSet", names.login(cluster)),
    )


def observe(key: ObjectKey, world: World, tier_prefix: str = names.TIER_PREFIX) -> Seen | None:
    cluster = world.get(SlurmCluster, key.namespace, key.name)
    if cluster is None:
        return None
    slurm = world.slurm(key.namespace, key.name)
    parts = dict(_parts(cluster, world))
    nodesets = tuple(_nodesets(key, world))
    workers = dict(_workers(nodesets, world))
    if cluster.spec is None:
        return Seen(cluster, slurm, parts=parts, nodesets=nodesets, workers=workers)
    worker_pods = dict(_worker_pods(workers, world))
    sshd = cluster.spec.slurm_nodes.login.sshd_config_map_ref_name
    return Seen(
        cluster,
        slurm,
        root=observe_root(cluster, world),
        parts=parts,
        nodesets=nodesets,
        workers=workers,
        older=world.get(NodeSet, key.namespace, names.OLDER_WORKERS),
        children=dict(_children(key, world)),
        secrets={name: world.secret(key.namespace, name) for name in secret_names(key.name, cluster.spec)},
        tested=world.config_map(key.namespace, names.tested_configs(key.name)),
        jailed=world.get(JailedConfig, key.namespace, names.slurm_configs(key.name)),
        jailed_mount_points=world.get(JailedConfig, key.namespace, names.mount_points(key.name)),
        jailed_topology=world.get(JailedConfig, key.namespace, names.topology_config(key.name)),
        worker_pods=worker_pods,
        node_labels=dict(_node_labels(worker_pods, world)),
        tier_prefix=tier_prefix,
        sshd_config=world.config_map(key.namespace, sshd) if sshd else None,
        claim=_claim(cluster.spec, key.namespace, world),
        has_mariadb_operator=world.serves(kinds.MARIADB) and world.serves(kinds.MARIADB_GRANT),
        has_pod_monitors=world.serves(kinds.POD_MONITOR),
        has_profiles=world.serves(kinds.APP_ARMOR_PROFILE),
        passwords=dict(_passwords(key, cluster.spec, world)),
        soperator=remains(cluster.metadata, [one.metadata.name for one in nodesets], world),
        inherited=inherited(cluster.metadata, of_cluster(key.name), world),
        soperator_files=soperator_files(key.name, key.namespace, world),
        soperator_state=soperator_state(key.name, key.namespace, world),
    )


def _passwords(
    key: ObjectKey, spec: SlurmClusterSpec, world: World
) -> Iterator[tuple[str, Secret | Unread | None]]:
    if spec.slurm_nodes.accounting.has_mariadb:
        for name in (names.database_password(key.name), names.database_root_password(key.name)):
            yield name, world.secret(key.namespace, name)


def _claim(spec: SlurmClusterSpec, namespace: str, world: World) -> VolumeClaim | None:
    """The claim of the shared root, where it is one and we may look."""
    source = (jail_source(spec) or {}).get("persistentVolumeClaim") or {}
    if not source.get("claimName") or not world.serves(kinds.PERSISTENT_VOLUME_CLAIM):
        return None
    return world.get(VolumeClaim, namespace, str(source["claimName"]))


def _parts(cluster: SlurmCluster, world: World) -> Iterator[tuple[tuple[str, str], Part]]:
    wanted = part_names(cluster.metadata.name)
    for type_ in OWN_PARTS:
        for part in world.all(type_, cluster.metadata.namespace):
            found = (type_.KIND.kind, part.metadata.name)
            if is_owned(part, cluster.metadata) or found in wanted:
                yield found, part


def _nodesets(key: ObjectKey, world: World) -> Iterator[NodeSet]:
    """Those with workers here, and those without workers that name us.

    Workers stay in the cluster that they were made for, whatever their NodeSet says later: partitions
    that left them out would end their jobs.
    """
    for nodeset in world.all(NodeSet, key.namespace):
        part = _part_of(nodeset, world)
        if (part.spec.controller if part is not None else nodeset.cluster) == key.name:
            yield nodeset


def _part_of(nodeset: NodeSet, world: World) -> WorkerPart | None:
    part = world.get(WorkerPart, nodeset.metadata.namespace, nodeset.metadata.name)
    return part if part is not None and is_owned(part, nodeset.metadata) else None


def _workers(nodesets: tuple[NodeSet, ...], world: World) -> Iterator[tuple[str, WorkerPart]]:
    for nodeset in nodesets:
        if (part := _part_of(nodeset, world)) is not None:
            yield nodeset.metadata.name, part


def _worker_pods(workers: Mapping[str, WorkerPart], world: World) -> Iterator[tuple[str, Mapping[str, Pod]]]:
    for name, part in workers.items():
        yield name, {slurm_node_name(pod): pod for pod in world.find(Pod, OWNER, part.metadata.uid)}


def _node_labels(
    pods: Mapping[str, Mapping[str, Pod]], world: World
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Labels of the Kubernetes nodes that workers are on; of those that are gone or out of sight, none."""
    names_ = {pod.spec.node_name for found in pods.values() for pod in found.values()}
    for name in sorted(names_ - {""}) if world.serves(kinds.KUBE_NODE) else ():
        found = world.get(KubeNode, "", name)
        yield name, found.metadata.labels if found is not None else {}


def _children(key: ObjectKey, world: World) -> Iterator[tuple[tuple[Kind, str], Child]]:
    wanted = [(kinds.CONFIG_MAP, name) for name in config_map_names(key.name)]
    program = (kinds.DEPLOYMENT, kinds.SERVICE_ACCOUNT, kinds.ROLE, kinds.ROLE_BINDING)
    for name in (names.sconfigcontroller(key.name), names.exporter(key.name)):
        wanted += [(kind, name) for kind in program]
    wanted += [(kind, names.slurm_controller(key.name)) for kind in program[1:]]
    wanted.append((kinds.POD_MONITOR, names.pod_monitor(key.name)))
    wanted += [(kind, names.database(key.name)) for kind in (kinds.MARIADB, kinds.MARIADB_GRANT)]
    wanted.append((kinds.APP_ARMOR_PROFILE, names.profile(key.name, key.namespace)))
    for kind, name in wanted:
        child = world.child(kind, key.namespace, name)
        if child is not None:
            yield (kind, name), child
