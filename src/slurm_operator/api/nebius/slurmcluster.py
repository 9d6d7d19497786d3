"""SlurmCluster: a whole Slurm cluster around one root directory that all its nodes share."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Self

from slurm_operator import wire
from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.accounting import SlurmNodeAccounting
from slurm_operator.api.nebius.containers import (
    AFFINITY,
    APP_ARMOR_PROFILE,
    HOST_USERS,
    NODE_SELECTOR,
    PULL_POLICY,
    PULL_SECRETS,
    TOLERATIONS,
    PullPolicy,
)
from slurm_operator.api.nebius.older_worker import CgroupVersion, OlderWorker
from slurm_operator.api.nebius.slurm_nodes import (
    SConfigController,
    SlurmExporter,
    SlurmNodeController,
    SlurmNodeLogin,
    SlurmRest,
)
from slurm_operator.api.nebius.slurm_settings import (
    HealthCheckConfig,
    MpiConfig,
    PartitionConfiguration,
    PlugStackConfig,
    SlurmConfig,
    Topology,
    WorkerFeature,
)
from slurm_operator.api.nebius.volumes import NamedVolumeSource, NodeVolume, source_problems
from slurm_operator.api.schema.crd import AGE, METADATA, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import Json

_NO_EQUIVALENT: Final = "has no equivalent and is ignored"


class Maintenance(Choice):
    """What the cluster is taken down for."""

    NONE = "none", "it runs."
    DOWNSCALE = "downscale", "its pods are removed when their jobs are done."
    DELETE_POPULATE_JAIL = (
        "downscaleAndDeletePopulateJail",
        "the same, and the Job that filled the shared root directory is deleted.",
    )
    OVERWRITE_POPULATE_JAIL = (
        "downscaleAndOverwritePopulateJail",
        "the same, and then the shared root directory is filled again.",
    )
    SKIP_POPULATE_JAIL = "skipPopulateJail", "it runs, and the shared root directory is not filled."


class ClusterType(Choice):
    """What the workers of older releases have."""

    GPU = "gpu", "GPUs of NVIDIA."
    CPU = "cpu", "no GPUs."


@model
class PopulateJail:
    """The Job that fills the root directory that all nodes share."""

    image: str = prop("Image with the contents of the root directory.")
    image_pull_policy: PullPolicy = PULL_POLICY
    image_pull_secrets: list[Json] = PULL_SECRETS
    k8s_node_filter_name: str = prop("Where the Job runs: the name of an entry of k8sNodeFilters.")
    jail_snapshot_volume: NodeVolume | None = prop(
        "A volume with the contents, used in place of the image's.", default=None, nullable=True
    )
    overwrite: bool = prop("Whether a root directory that is already filled is filled again.", default=False)
    app_armor_profile: str = APP_ARMOR_PROFILE
    priority_class: str = prop("PriorityClass of the Job's pod.", default="")
    host_users: bool | None = HOST_USERS


@model
class NodeFilter:
    """A named choice of Kubernetes nodes."""

    name: str = prop("Name by which parts of the cluster refer to it.", min_length=1)
    affinity: Json = AFFINITY
    tolerations: list[Json] = TOLERATIONS
    node_selector: dict[str, str] = NODE_SELECTOR


@model
class Secrets:
    """Secrets that you bring."""

    sshd_keys_name: str = prop(
        "Secret with ssh host keys. Left out: the operator makes `<cluster>-sshd-keys`.", default=""
    )


@model
class SlurmNodes:
    """The parts of the cluster besides its NodeSets."""

    accounting: SlurmNodeAccounting = prop("slurmdbd and its database.")
    controller: SlurmNodeController = prop("slurmctld.")
    login: SlurmNodeLogin = prop("Login pods.")
    exporter: SlurmExporter = prop("Metrics of Slurm for Prometheus.")
    rest: SlurmRest = prop("slurmrestd for users.")
    worker: OlderWorker | None = prop(
        "Workers, in older releases. They are read as a NodeSet called `worker`.", default=None, nullable=True
    )


@model
class SlurmClusterSpec:
    """What you want of the cluster."""

    cr_version: str = prop("Release that the manifest was written for; for information only.", default="")
    maintenance: Maintenance = prop("What the cluster is taken down for.", default=Maintenance.NONE)
    populate_jail: PopulateJail = prop("The Job that fills the root directory that all nodes share.")
    k8s_node_filters: list[NodeFilter] = prop(
        "Named choices of Kubernetes nodes, for the parts of the cluster to refer to.", min_items=1
    )
    volume_sources: list[Json] = prop(
        "Named volumes, for the parts of the cluster to refer to. One is usually called `jail`: the root "
        "directory that all nodes share.",
        default=[],
        shape=NamedVolumeSource,
    )
    secrets: Secrets = prop("Secrets that you bring; may be empty.")
    slurm_nodes: SlurmNodes = prop("The parts of the cluster besides its NodeSets.")
    partition_configuration: PartitionConfiguration = prop(
        "The partitions.", default=PartitionConfiguration()
    )
    slurm_config: SlurmConfig = prop("Lines of slurm.conf.", default=SlurmConfig())
    custom_slurm_config: str = prop("More lines for slurm.conf; they win over all others.", default="")
    cgroup_version: CgroupVersion = prop("Which cgroups Slurm uses.", default=CgroupVersion.V2)
    custom_cgroup_config: str = prop(
        "Lines for cgroup.conf; each replaces the line of the same name.", default=""
    )
    mpi_config: MpiConfig = prop("mpi.conf.", default=MpiConfig())
    plug_stack_config: PlugStackConfig = prop("SPANK plugins.", default=PlugStackConfig())
    topology: Topology = prop("The network that Slurm plans with.", default=Topology())
    s_config_controller: SConfigController | None = prop(
        "The writer of files in the shared root directory.", default=None, nullable=True
    )
    use_default_app_armor_profile: bool = prop(
        "Whether login pods and workers get an AppArmor profile that protects driver files; needs the "
        "security-profiles-operator.",
        default=False,
    )
    health_check_config: HealthCheckConfig | None = prop(
        "The program by which slurmd checks its node.", default=None, nullable=True
    )
    cluster_type: ClusterType | None = prop(
        "What the workers have, in older releases. It counts for slurmNodes.worker only; gpu if left out.",
        default=None,
        deprecated="use gpu.enabled of NodeSets; it counts for slurmNodes.worker only",
    )
    worker_features: list[WorkerFeature] = prop(
        "Features of workers, in older releases. They count for slurmNodes.worker only.",
        default=[],
        deprecated="use nodeConfig.features of NodeSets; it counts for slurmNodes.worker only",
    )
    nccl_settings: Json = prop("Settings of NCCL, in older releases.", default={}, deprecated=_NO_EQUIVALENT)
    periodic_checks: Json = prop(
        "Benchmarks on a schedule, in older releases.",
        default={},
        deprecated=f"{_NO_EQUIVALENT}; write ActiveChecks",
    )
    telemetry: Json = prop(
        "Telemetry of jobs, in older releases.",
        default={},
        deprecated=f"{_NO_EQUIVALENT}; slurmNodes.exporter serves metrics",
    )
    slurm_topology_config_map_ref_name: str = prop(
        "ConfigMap with topology.conf, in older releases.",
        default="",
        deprecated=f"{_NO_EQUIVALENT}: topology.conf follows labels of Kubernetes nodes",
    )
    pause: bool = prop(
        "Stopped the cluster, in older releases.",
        default=False,
        deprecated=f"{_NO_EQUIVALENT}; use maintenance: downscale",
    )

    @property
    def filters(self) -> dict[str, NodeFilter]:
        """By name; of two with one name the first counts."""
        return {one.name: one for one in reversed(self.k8s_node_filters)}

    @property
    def sources(self) -> dict[str, Json]:
        """Volume sources by name; of two with one name the first counts."""
        return {str(one.get("name") or ""): one for one in reversed(self.volume_sources)}

    @property
    def older_workers_have_gpus(self) -> bool:
        """Whether slurmNodes.worker has GPUs: it had in older releases where nobody said otherwise."""
        return self.cluster_type is not ClusterType.CPU

    @property
    def block_size(self) -> int:
        """Nodes per block of the topology; manifests of some older releases say it in slurmConfig."""
        is_said = self.topology.block_size != Topology().block_size
        older = self.slurm_config.topology_block_size
        return self.topology.block_size if is_said or older is None else older

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from self._filter_problems()
        yield from self._source_problems()
        nodes = self.slurm_nodes
        parts: list[tuple[str, Any]] = [
            ("partitionConfiguration", self.partition_configuration),
            ("slurmNodes.accounting", nodes.accounting),
            ("slurmNodes.login", nodes.login),
            ("slurmNodes.exporter", nodes.exporter),
            ("slurmNodes.worker", nodes.worker),
        ]
        for path, part in parts:
            if part is not None:
                yield from (problem.under(path) for problem in part.problems())
        yield from self._older_form_problems()

    def _filter_problems(self) -> Iterator[Problem]:
        given = [one.name for one in self.k8s_node_filters]
        for index, name in enumerate(given):
            if name in given[:index]:
                yield Problem(path=f"k8sNodeFilters[{index}].name", message=f"there is already a {name!r}")
        for path, name in self._filters_in_use():
            if name not in given:
                there = ", ".join(sorted(set(given)))
                message = f"there is no {name!r} in spec.k8sNodeFilters, which has: {there}"
                yield Problem(path=f"{path}.k8sNodeFilterName", message=message)

    def _filters_in_use(self) -> Iterator[tuple[str, str]]:
        """Where a filter is named by a part that runs; the others may name none."""
        nodes, writer = self.slurm_nodes, self.s_config_controller
        parts: list[tuple[str, Any, bool]] = [
            ("populateJail", self.populate_jail, self.maintenance is not Maintenance.SKIP_POPULATE_JAIL),
            ("slurmNodes.controller", nodes.controller, True),
            ("slurmNodes.login", nodes.login, True),
            ("slurmNodes.accounting", nodes.accounting, nodes.accounting.enabled),
            ("slurmNodes.exporter", nodes.exporter, nodes.exporter.enabled),
            ("slurmNodes.rest", nodes.rest, nodes.rest.enabled),
            ("slurmNodes.worker", nodes.worker, nodes.worker is not None),
            ("sConfigController.node", writer.node if writer else None, bool(writer and writer.node)),
        ]
        for path, part, runs in parts:
            if runs:
                yield path, part.k8s_node_filter_name

    def _source_problems(self) -> Iterator[Problem]:
        given = [str(one.get("name") or "") for one in self.volume_sources]
        for index, source in enumerate(self.volume_sources):
            path = f"volumeSources[{index}]"
            if given[index] in given[:index]:
                yield warning(
                    f"{path}.name", f"there is already a {given[index]!r}, and the first one counts"
                )
            yield from (problem.under(path) for problem in source_problems(source))
        for path, volume in self._volumes():
            yield from (problem.under(path) for problem in volume.problems(given))

    def _volumes(self) -> Iterator[tuple[str, NodeVolume]]:
        """Every volume of a part, with its path."""
        nodes = self.slurm_nodes
        if self.populate_jail.jail_snapshot_volume is not None:
            yield "populateJail.jailSnapshotVolume", self.populate_jail.jail_snapshot_volume
        yield "slurmNodes.controller.volumes.spool", nodes.controller.volumes.spool
        yield "slurmNodes.controller.volumes.jail", nodes.controller.volumes.jail
        yield "slurmNodes.login.volumes.jail", nodes.login.volumes.jail
        mounts: dict[str, list[Any]] = {
            "slurmNodes.controller.volumes.customMounts": nodes.controller.volumes.custom_mounts,
            "slurmNodes.login.volumes.jailSubMounts": nodes.login.volumes.jail_sub_mounts,
            "slurmNodes.login.volumes.customMounts": nodes.login.volumes.custom_mounts,
        }
        if nodes.worker is not None:
            yield "slurmNodes.worker.volumes.spool", nodes.worker.volumes.spool
            yield "slurmNodes.worker.volumes.jail", nodes.worker.volumes.jail
            mounts["slurmNodes.worker.volumes.jailSubMounts"] = nodes.worker.volumes.jail_sub_mounts
            mounts["slurmNodes.worker.volumes.customMounts"] = nodes.worker.volumes.custom_mounts
        for path, found in mounts.items():
            yield from ((f"{path}[{index}]", mount) for index, mount in enumerate(found))

    def _older_form_problems(self) -> Iterator[Problem]:
        worker = self.slurm_nodes.worker
        if worker is not None and worker.cgroup_version is not self.cgroup_version:
            message = f"is ignored: spec.cgroupVersion is {self.cgroup_version} and counts for all nodes"
            yield warning("slurmNodes.worker.cgroupVersion", message)


@model
class SlurmClusterStatus:
    """What the cluster is like now."""

    phase: str = prop(
        "Pending, Not available or Available; objects of older releases may say Reconciling.", default=""
    )
    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop(
        "CommonAvailable, ControllersAvailable, LoginAvailable, AccountingAvailable, "
        "SConfigControllerAvailable, PopulateJailMode, NodeSetRefsResolved; Ready, Progressing, Degraded.",
        default=[],
        keys=["type"],
    )
    ready_login: int = prop("Login pods that are ready.", default=0)
    ready_s_config_controller: int = prop("Pods of the sConfigController that are ready.", default=0)
    ready_workers: int = prop("Workers that are ready, in all NodeSets.", default=0)


def _available(name: str, part: str, what: str) -> Column:
    path = f'.status.conditions[?(@.type=="{part}Available")].status'
    return Column(name=name, path=path, description=f"Whether {what} available.")


@model
class SlurmCluster:
    """A Slurm cluster around one root directory that all its nodes share."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1", kind="SlurmCluster", plural="slurmclusters")
    CRD: ClassVar[Definition] = Definition(
        columns=(
            Column(name="Status", path=".status.phase", description="Pending, Not available or Available."),
            _available("Controllers", "Controllers", "slurmctld is"),
            Column(name="Login", path=".status.readyLogin", type="integer", description="Ready login pods."),
            _available("SConfigCtrl", "SConfigController", "the writer of files is"),
            _available("Accounting", "Accounting", "slurmdbd is"),
            Column(
                name="Workers",
                path=".status.readyWorkers",
                type="integer",
                description="Ready workers, in all NodeSets.",
                priority=1,
            ),
        ),
        age=wire.replace(AGE, priority=1),
    )

    metadata: Meta = METADATA
    spec: SlurmClusterSpec | None = prop("What you want.", default=None, nullable=True)
    status: SlurmClusterStatus = prop("How it is; written by the operator.", default=SlurmClusterStatus())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        if self.spec is None:
            yield warning("spec", "is missing: nothing is made until there is one")
        else:
            yield from spec_problems(self.spec, old.spec if old else None, refs)
