"""What a SlurmCluster asks for and does not get. It is accepted, and said here; never dropped silently."""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.older_worker import CgroupVersion
from slurm_operator.api.nebius.slurm_nodes import JobSource, SlurmNodeLogin
from slurm_operator.api.nebius.slurm_settings import Topology
from slurm_operator.api.nebius.slurmcluster import SlurmClusterSpec
from slurm_operator.api.nebius.volumes import given
from slurm_operator.reconcilers.nebius.ignored import Ignored, each, used
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.profile import is_loaded
from slurm_operator.reconcilers.nebius.slurmcluster import older_worker
from slurm_operator.reconcilers.nebius.slurmcluster.mariadb import MadeBy
from slurm_operator.reconcilers.nebius.slurmcluster.network import Plugin
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen

_STARTED: Final = "the operator starts it with a command of its own"
_NO_PORT: Final = "it listens on no port"
_NO_LIMITS: Final = "it gets the limits of the container runtime"
_NODES: Final = "slurmNodes"
_NO_PLUGIN: Final = "our images have no such plugin"
_OWN_SSSD: Final = "sssd of the login image runs, inside the login container"
# Everything about its container, but that there is one: that switches sssd on.
_SSSD_FIELDS: Final = (
    *("command", "args", "customEnv", "imagePullPolicy", "port", "resources", "livenessProbe"),
    *("readinessProbe", "securityLimitsConfig", "appArmorProfile", "procMount"),
)


def _helper(path: str) -> tuple[Ignored, ...]:
    """munge beside a daemon."""
    return (
        *each(path, ("command", "args"), _STARTED),
        Ignored(f"{path}.port", _NO_PORT),
        Ignored(f"{path}.securityLimitsConfig", _NO_LIMITS),
    )


# Everything that no part, file or object follows from, with every image or with those of one family.
IGNORED: Final = (
    *each(f"{_NODES}.controller.slurmctld", ("command", "args"), _STARTED),
    *_helper(f"{_NODES}.controller.munge"),
    Ignored(f"{_NODES}.controller.sssd.port", _NO_PORT),
    Ignored(f"{_NODES}.controller.sssd.securityLimitsConfig", _NO_LIMITS),
    *_helper(f"{_NODES}.login.munge"),
    Ignored(f"{_NODES}.login.sssd.port", _NO_PORT, Family.SOPERATOR),
    Ignored(f"{_NODES}.login.sssd.securityLimitsConfig", _NO_LIMITS, Family.SOPERATOR),
    *each(f"{_NODES}.login.sssd", _SSSD_FIELDS, _OWN_SSSD, Family.OURS),
    Ignored(f"{_NODES}.login.sssdDebugLevel", f"{_OWN_SSSD}; write it into sssd.conf", Family.OURS),
    *each(f"{_NODES}.accounting.slurmdbd", ("command", "args"), _STARTED),
    Ignored(f"{_NODES}.accounting.slurmdbd.securityLimitsConfig", _NO_LIMITS),
    *_helper(f"{_NODES}.accounting.munge"),
    Ignored(f"{_NODES}.accounting.size", "one slurmdbd runs"),
    *each(f"{_NODES}.rest.rest", ("command", "args"), _STARTED),
    Ignored(f"{_NODES}.rest.rest.securityLimitsConfig", _NO_LIMITS),
    Ignored(f"{_NODES}.exporter.size", "one exporter runs"),
    Ignored(f"{_NODES}.exporter.exporterContainer.port", "it listens on 8080 and 8081"),
    Ignored(f"{_NODES}.exporter.exporterContainer.securityLimitsConfig", _NO_LIMITS),
    Ignored("sConfigController.node.customInitContainers", "it has no init containers of yours"),
    Ignored("sConfigController.container.port", "it serves metrics on 8443"),
    Ignored("sConfigController.container.securityLimitsConfig", _NO_LIMITS),
    Ignored("plugStackConfig.pyxis", _NO_PLUGIN, Family.OURS),
    Ignored("plugStackConfig.ncclDebug", _NO_PLUGIN, Family.OURS),
    Ignored("plugStackConfig.ncclInspectorPreConf", _NO_PLUGIN, Family.OURS),
    Ignored("mpiConfig.pmixEnv", "our images have no PMIx", Family.OURS),
)


_MARIADB: Final = f"{_NODES}.accounting.mariadbOperator"

# What the MariaDB that we run ourselves has no use for.
IGNORED_BY_OUR_MARIADB: Final = (
    *each(_MARIADB, ("command", "args"), _STARTED),
    Ignored(f"{_MARIADB}.port", "it listens on 3306"),
    Ignored(f"{_MARIADB}.securityLimitsConfig", _NO_LIMITS),
    Ignored(
        f"{_MARIADB}.protectedSecret", "its password stays when the cluster is deleted, and is not guarded"
    ),
    Ignored(f"{_MARIADB}.metrics.enabled", "it serves no metrics"),
    Ignored(f"{_MARIADB}.replication", "one database pod is run"),
    Ignored(f"{_MARIADB}.replicas", "one database pod is run"),
)
_IGNORED_BY_MARIADB_OPERATOR: Final = (
    Ignored(f"{_MARIADB}.securityLimitsConfig", _NO_LIMITS),
    Ignored(f"{_MARIADB}.appArmorProfile", "the MariaDB operator makes the pods"),
    Ignored(f"{_MARIADB}.procMount", "the MariaDB operator makes the pods"),
)


def unsupported(seen: Seen, database: MadeBy) -> Iterator[str]:
    """One sentence for each, with the field first."""
    spec, family = seen.spec, seen.family
    nodes = spec.slurm_nodes
    if nodes.exporter.enabled and nodes.exporter.container is None:
        yield "slurmNodes.exporter: no exporter is run, because exporterContainer has no image"
    wants_books = nodes.exporter.enabled and nodes.exporter.job_source is JobSource.ACCOUNTING
    if wants_books and not nodes.accounting.enabled:
        yield "slurmNodes.exporter.jobSource: there is no accounting, so jobs are read from slurmctld"
    if spec.slurm_config.topology_plugin != Plugin.BLOCK and spec.block_size != Topology().block_size:
        yield f"topology.blockSize: it is for {Plugin.BLOCK}, and slurmConfig.topologyPlugin is another"
    if spec.use_default_app_armor_profile and seen.has_profiles and not is_loaded(seen.profile):
        yield (
            "useDefaultAppArmorProfile: pods get the profile when AppArmorProfile "
            f"{names.profile(seen.name, seen.meta.namespace)} is Installed on every Kubernetes node"
        )
    elif spec.use_default_app_armor_profile and not seen.has_profiles:
        yield (
            "useDefaultAppArmorProfile: no profile is made, because this Kubernetes does not have the kind "
            "AppArmorProfile v1alpha1, in namespaces, of the Security Profiles Operator"
        )
    if nodes.login.user_isolation.enabled and spec.cgroup_version is CgroupVersion.V1:
        yield "slurmNodes.login.userIsolation: it is off, because it needs cgroup v2"
    elif nodes.login.user_isolation.enabled and family is Family.OURS:
        yield "slurmNodes.login.userIsolation: it is off, because our login image has no such program"
    if family is Family.OURS and _is_another_sssd(nodes.login):
        yield f"slurmNodes.login.sssd.image: {_OWN_SSSD}"
    if spec.s_config_controller is None:
        yield "sConfigController: there is none, so slurmctld hands out the configuration"
    if nodes.accounting.enabled and database is MadeBy.OURSELVES:
        yield from used(spec, IGNORED_BY_OUR_MARIADB, family)
        yield from _storage(spec)
    if nodes.accounting.enabled and database is MadeBy.MARIADB_OPERATOR:
        yield from used(spec, _IGNORED_BY_MARIADB_OPERATOR, family)
    yield from used(spec, IGNORED, family)
    worker = nodes.worker
    _, some = older_worker.features(spec, worker) if worker is not None else ([], [])
    for feature in some:
        yield f"workerFeatures: {feature} is given to no worker, because it is not for all of them"


def _is_another_sssd(login: SlurmNodeLogin) -> bool:
    """Whether the image for sssd is not the one that brings it."""
    return login.sssd is not None and login.sssd.is_given and login.sssd.image != login.sshd.image


def _storage(spec: SlurmClusterSpec) -> Iterator[str]:
    """Of the MariaDB operator's words for a volume, our own MariaDB knows two."""
    wished = spec.slurm_nodes.accounting.mariadb_operator
    others = sorted({*given(wished.storage)} - {"size", "storageClassName"}) if wished is not None else []
    if others:
        yield f"{_MARIADB}.storage: only size and storageClassName count, not {', '.join(others)}"
