"""NodeSet: identical workers of a SlurmCluster, each of them one Slurm node."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Self

from slurm_operator import wire
from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.amounts import amount_in
from slurm_operator.api.nebius.containers import (
    AFFINITY,
    CUSTOM_INIT_CONTAINERS,
    LIVENESS_PROBE,
    NODE_SELECTOR,
    PULL_SECRETS,
    READINESS_PROBE,
    SSSD_CA,
    SSSD_CONF,
    SSSD_DEBUG_LEVEL,
    TOLERATIONS,
    Image,
    Security,
)
from slurm_operator.api.nebius.older_worker import CgroupVersion
from slurm_operator.api.nebius.volumes import VolumeSource, WorkerVolumeMount, given, source_problems
from slurm_operator.api.schema.crd import AGE, METADATA, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.schema.openapi import Quantity
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import EnvVar, Json
from slurm_operator.api.shared.probes import deadly_probes
from slurm_operator.api.shared.worker_parts import Retention

MOST_UNAVAILABLE: Final = 500
_SHARE: Final = r"^[1-9][0-9]{0,8}%$"


class UpdateStrategy(Choice):
    """How workers are replaced when what they are made from changes."""

    ROLLING_UPDATE = (
        "rollingUpdate",
        "as many at a time as maxUnavailable allows, each when its jobs are done.",
    )
    SLURM_AWARE = (
        "slurmAwareRollingUpdate",
        "the same, and the labels and phases of each replacement stand on its pod.",
    )


@model
class ClaimRetention:
    """What becomes of the claims of workers."""

    when_deleted: Retention = prop("When the NodeSet is deleted.", default=Retention.DELETE)
    when_scaled: Retention = prop("When their worker is removed.", default=Retention.DELETE)


@model
class WorkerVolumes:
    """Volumes of workers."""

    spool: Json = prop("Where slurmd keeps its files; empty: as long as the pod lives.", shape=VolumeSource)
    jail: Json = prop("The root directory that all nodes share.", shape=VolumeSource)
    jail_sub_mounts: list[WorkerVolumeMount] = prop(
        "Volumes that appear inside the shared root directory.", default=[]
    )
    custom_volume_mounts: list[WorkerVolumeMount] = prop("More volumes.", default=[])
    shared_memory_size: Quantity = prop("Size of /dev/shm.", default="64Gi")
    persistent_volume_claim_retention_policy: ClaimRetention = prop(
        "What becomes of the claims of workers.", default=ClaimRetention()
    )

    def problems(self) -> Iterator[Problem]:
        for name, source in (("spool", self.spool), ("jail", self.jail)):
            yield from (problem.under(name) for problem in source_problems(source))
        if not given(self.jail):
            # Kubernetes takes a volume without a source for an empty directory of the pod's own.
            yield Problem(
                path="jail", message="needs a volume source: that of the SlurmCluster's shared root"
            )
        for name, mounts in (
            ("jailSubMounts", self.jail_sub_mounts),
            ("customVolumeMounts", self.custom_volume_mounts),
        ):
            for index, mount in enumerate(mounts):
                yield from (problem.under(f"{name}[{index}]") for problem in mount.problems())


@model
class Slurmd:
    """The slurmd container."""

    image: Image = prop("Image of slurmd.")
    resources: dict[str, Quantity] = prop(
        "What slurmd and its jobs get, such as `cpu: 16`, `memory: 64Gi`, `nvidia.com/gpu: 8`. Limits are "
        "the same. cpu and memory are needed; memory also says how much Slurm may give to jobs."
    )
    port: int = prop("Port on which slurmd listens.", default=6818)
    custom_env: list[Json] = prop("More environment variables.", default=[], shape=EnvVar)
    liveness_probe: Json = LIVENESS_PROBE
    readiness_probe: Json = READINESS_PROBE
    security: Security = prop("What the container may do.", default=Security())
    volumes: WorkerVolumes = prop("Volumes of workers.")
    cgroup_version: CgroupVersion | None = prop(
        "Which cgroups Slurm uses, in older releases.",
        default=None,
        deprecated="is ignored; spec.cgroupVersion of the SlurmCluster counts for all nodes",
    )

    def problems(self) -> Iterator[Problem]:
        for name in ("cpu", "memory"):
            asked = amount_in(self.resources, name)
            if asked is None or asked <= 0:
                yield Problem(path="resources", message=f"needs {name} of more than 0")
        for index, variable in enumerate(self.custom_env):
            if variable.get("name") in names.RESERVED_SLURMD_ENV:
                message = f"{variable['name']} is set by the operator; remove it"
                yield Problem(path=f"customEnv[{index}].name", message=message)
        yield from (problem.under("volumes") for problem in self.volumes.problems())


@model
class Sidecar:
    """A container beside slurmd."""

    image: Image = prop("Its image.")
    resources: dict[str, Quantity] = prop(
        "What it requests, such as `cpu: 100m`, `memory: 128Mi`. Limits are the same, without cpu."
    )
    liveness_probe: Json = LIVENESS_PROBE
    readiness_probe: Json = READINESS_PROBE
    security: Security = prop("What the container may do.", default=Security())


@model
class NodeConfig:
    """What Slurm is told about the nodes."""

    features: list[str] = prop("Features that jobs can ask for.", default=[])
    auto_resume: bool = prop(
        "Whether a node that was down takes jobs again when it registers. false needs a patched Slurm.",
        default=True,
    )
    static: str = prop("More parameters of the nodes, such as `CPUs=16 Gres=gpu:8`.", default="")
    dynamic: str = prop(
        "Text for the Extra field of each node; environment variables of slurmd are filled in.", default=""
    )
    gres_config: list[str] = prop(
        "Lines for gres.conf; each counts for the nodes of this NodeSet.", default=[]
    )

    def problems(self) -> Iterator[Problem]:
        for word in self.static.split():
            if word.startswith(("Feature=", "State=")):
                yield warning("static", f"{word!r} is left out: the operator writes it; use features")
        if not self.auto_resume:
            yield warning(
                "autoResume", "has no equivalent in Slurm as released: it counts with a patched Slurm"
            )


@model
class Nvidia:
    """GPUs of NVIDIA."""

    gdr_copy_enabled: bool = prop("Whether jobs can use GDRCopy.", default=False)


@model
class Gpu:
    """GPUs of the workers."""

    enabled: bool = prop("Whether the workers have GPUs.", default=False)
    nvidia: Nvidia = prop("GPUs of NVIDIA.", default=Nvidia())


@model
class Docker:
    """Docker inside jobs."""

    enabled: bool = prop("Whether jobs can use Docker.", default=True)


@model
class NodeSetTopology:
    """Where the workers are in the network."""

    fabric: str = prop("Name of the switch at the root of their fabric.", default="root")


@model
class OlderNodeAttributes:
    """What Slurm was told about the nodes, in older releases."""

    features: list[str] = prop("Features that jobs can ask for.", default=[])
    extra: str = prop("Text for the Extra field of each node.", default="")


def _is_within(spec: "NodeSetSpec") -> bool:
    share = spec.max_unavailable
    if isinstance(share, int):
        return 1 <= share <= MOST_UNAVAILABLE
    is_share = re.fullmatch(_SHARE, share, re.ASCII) is not None
    return is_share and int(share[:-1]) * spec.replicas // 100 <= MOST_UNAVAILABLE


@model
class NodeSetSpec:
    """What you want of these workers."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="type(self.maxUnavailable) == int "
            f"? self.maxUnavailable >= 1 && self.maxUnavailable <= {MOST_UNAVAILABLE} "
            f": self.maxUnavailable.matches('{_SHARE}') && "
            f"int(self.maxUnavailable.replace('%', '')) * self.replicas / 100 <= {MOST_UNAVAILABLE}",
            message=f"maxUnavailable is 1 to {MOST_UNAVAILABLE}, or a percentage such as 20% that gives at "
            f"most {MOST_UNAVAILABLE} workers",
            path=".maxUnavailable",
            holds=lambda spec, old: _is_within(spec),
        ),
    )

    cluster_name: str = prop("SlurmCluster in the same namespace that these workers belong to.", default="")
    replicas: int = prop("How many workers to run.", default=1)
    max_unavailable: int | str = prop(
        "How many workers, or which share of them, may be away at once, in updates and when scaling.",
        default=MOST_UNAVAILABLE,
        max_length=64,
    )
    update_strategy: UpdateStrategy = prop(
        "How workers are replaced when what they are made from changes.",
        default=UpdateStrategy.ROLLING_UPDATE,
    )
    ephemeral_nodes: bool = prop("Whether Slurm powers workers up and down as jobs need them.", default=False)
    initial_number_ephemeral_nodes: int = prop(
        "How many ephemeral workers run at first.", default=1, minimum=0
    )
    ephemeral_topology_wait_timeout: int = prop(
        "Seconds for which a starting worker waits for its place in the network.", default=180, minimum=60
    )
    enable_host_user_namespace: bool = prop(
        "Whether workers use the user namespace of the Kubernetes node.", default=False
    )
    worker_init_random_delay_seconds: int = prop(
        "Each worker waits up to this long before it registers, so that not all do at once.",
        default=0,
        minimum=0,
    )
    slurmd: Slurmd = prop("The slurmd container.")
    munge: Sidecar = prop("The munge container beside it.")
    sssd: Sidecar | None = prop(
        "A container beside it that looks users up in a directory service.", default=None, nullable=True
    )
    sssd_debug_level: int = SSSD_DEBUG_LEVEL
    sssd_conf_secret_ref_name: str = SSSD_CONF
    sssd_ldap_ca_config_map_ref_name: str = SSSD_CA
    node_config: NodeConfig = prop("What Slurm is told about the nodes.", default=NodeConfig())
    gpu: Gpu = prop("GPUs of the workers.", default=Gpu())
    docker: Docker = prop("Docker inside jobs.", default=Docker())
    topology: NodeSetTopology = prop("Where the workers are in the network.", default=NodeSetTopology())
    config_map_ref_supervisord: str = prop(
        "ConfigMap with your own supervisord.conf. Left out: the operator writes one.", default=""
    )
    config_map_ref_sshd: str = prop(
        "ConfigMap with your own sshd_config. Left out: the operator writes one.", default=""
    )
    node_selector: dict[str, str] = NODE_SELECTOR
    affinity: Json = AFFINITY
    tolerations: list[Json] = TOLERATIONS
    priority_class: str = prop("PriorityClass of the pods.", default="")
    worker_annotations: dict[str, str] = prop("Annotations of the worker pods.", default={})
    custom_init_containers: list[Json] = CUSTOM_INIT_CONTAINERS
    image_pull_secrets: list[Json] = PULL_SECRETS
    node_attributes: OlderNodeAttributes = prop(
        "What Slurm was told about the nodes, in older releases.",
        default=OlderNodeAttributes(),
        deprecated="use nodeConfig.features and nodeConfig.dynamic; it is read as those where they are empty",
    )

    @property
    def features(self) -> list[str]:
        """Features of the nodes; manifests of older releases say them in nodeAttributes."""
        return self.node_config.features or self.node_attributes.features

    @property
    def extra(self) -> str:
        """Text for the Extra field; manifests of older releases say it in nodeAttributes."""
        return self.node_config.dynamic or self.node_attributes.extra

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("slurmd") for problem in self.slurmd.problems())
        yield from (problem.under("nodeConfig") for problem in self.node_config.problems())
        yield from deadly_probes({"livenessProbe": self.slurmd.liveness_probe}, {})


@model
class NodeSetStatus:
    """What the workers are like now."""

    phase: str = prop("Pending, Configuring, Provisioning, Ready, Degraded or Terminating.", default="")
    replicas: int = prop("Workers that are ready.", default=0)
    label_selector: str = prop("Finds the worker pods; for autoscalers.", default="")
    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop(
        "ConfigUpdated, ConfigDynamicUpdated, StatefulSetUpdated, PodsReady, StatefulSetTerminated; Ready, "
        "Progressing, Degraded.",
        default=[],
        keys=["type"],
    )


@model
class NodeSet:
    """Identical workers of a SlurmCluster; each of them is one Slurm node."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1alpha1", kind="NodeSet", plural="nodesets")
    CRD: ClassVar[Definition] = Definition(
        columns=(
            Column(name="Status", path=".status.phase", description="How far it is."),
            Column(name="Desired", path=".spec.replicas", type="integer", description="Workers wanted."),
            Column(name="Ready", path=".status.replicas", type="integer", description="Ready workers."),
            Column(
                name="Ephemeral",
                path=".spec.ephemeralNodes",
                type="boolean",
                description="Whether Slurm powers workers up and down.",
            ),
        ),
        age=wire.replace(AGE, priority=1),
        has_scale=True,
        selector_path=".status.labelSelector",
    )

    metadata: Meta = METADATA
    spec: NodeSetSpec | None = prop("What you want.", default=None, nullable=True)
    status: NodeSetStatus = prop("How it is; written by the operator.", default=NodeSetStatus())

    @property
    def cluster(self) -> str:
        """The SlurmCluster these workers belong to; older NodeSets say it in an annotation."""
        said = self.spec.cluster_name if self.spec is not None else ""
        return said or self.metadata.annotations.get(names.PARENTAL_CLUSTER_REF, "")

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        if self.spec is None:
            yield warning("spec", "is missing: nothing is made until there is one")
            return
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        if not self.cluster:
            yield warning("spec.clusterName", "is empty: workers start when it names a SlurmCluster")
