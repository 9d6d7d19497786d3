"""The parts of a SlurmCluster: slurmctld, login pods, slurmrestd, the exporter, the writer of files."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

from slurm_operator.api.nebius.amounts import amount, amount_in
from slurm_operator.api.nebius.containers import (
    CUSTOM_INIT_CONTAINERS,
    HOST_USERS,
    SSSD_CA,
    SSSD_CONF,
    SSSD_DEBUG_LEVEL,
    NodeContainer,
    SlurmNode,
)
from slurm_operator.api.nebius.volumes import NodeVolume, NodeVolumeMount
from slurm_operator.api.schema import durations
from slurm_operator.api.schema.cel import matches
from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.schema.openapi import Quantity
from slurm_operator.api.schema.problems import Problem, warning
from slurm_operator.api.shared.pods import Json
from slurm_operator.api.shared.services import PROMETHEUS_DURATION

# Where a cluster does not say how much memory one user of a login pod may have.
DEFAULT_HIGH = Decimal("0.8")
DEFAULT_MAX = Decimal("0.9")

NODE_PORTS = range(30000, 32769)
_SERVICE_TYPES = ("LoadBalancer", "NodePort")
_QUANTITY_LENGTH = 64  # Also tells CEL how much a quantity can cost.


class MetricFamily(Choice):
    """A family of slurmctld's own metrics."""

    JOBS = "jobs", "jobs by state."
    JOBS_USERS_ACCTS = "jobs-users-accts", "jobs by user and account."
    NODES = "nodes", "nodes by state."
    PARTITIONS = "partitions", "partitions."
    SCHEDULER = "scheduler", "the scheduler."


class JobSource(Choice):
    """Where the exporter reads jobs."""

    CONTROLLER = "controller", "from slurmctld."
    ACCOUNTING = "accounting", "from slurmdbd."


def _is_duration(expression: str) -> str:
    return matches(durations.PATTERN).replace("self", expression, 1)


def _interval(what: str, default: str) -> Any:
    return prop(what, default=default, pattern=PROMETHEUS_DURATION)


@model
class SlurmctldMonitor:
    """How Prometheus reads slurmctld's own metrics."""

    interval: str = _interval("How often to scrape.", "30s")
    scrape_timeout: str = _interval("Time limit of one scrape.", "28s")
    endpoints: list[MetricFamily] = prop("Families to scrape; all if left out.", default=[])


@model
class OpenMetrics:
    """slurmctld's own metrics."""

    enabled: bool = prop("Whether slurmctld serves metrics.", default=True)
    service_monitor: SlurmctldMonitor = prop("How Prometheus reads them.", default=SlurmctldMonitor())


@model
class ControllerVolumes:
    """Volumes of slurmctld."""

    spool: NodeVolume = prop("Where slurmctld keeps its state.")
    jail: NodeVolume = prop("The root directory that all nodes share.")
    custom_mounts: list[NodeVolumeMount] = prop("More volumes.", default=[])


@model
class SlurmNodeController:
    """slurmctld."""

    k8s_node_filter_name: str = prop("Where it runs: the name of an entry of k8sNodeFilters.")
    custom_init_containers: list[Json] = CUSTOM_INIT_CONTAINERS
    priority_class: str = prop("PriorityClass of the pod.", default="")
    host_users: bool | None = HOST_USERS
    service_account_name: str = prop(
        "ServiceAccount of the pod, used to power nodes up and down.", default=""
    )
    slurmctld: NodeContainer = prop("The slurmctld container; its port is usually 6817.")
    munge: NodeContainer = prop("The munge container beside it.")
    sssd: NodeContainer | None = prop(
        "A container beside it that looks users up in a directory service.", default=None, nullable=True
    )
    sssd_debug_level: int = SSSD_DEBUG_LEVEL
    sssd_conf_secret_ref_name: str = SSSD_CONF
    sssd_ldap_ca_config_map_ref_name: str = SSSD_CA
    volumes: ControllerVolumes = prop("Volumes of slurmctld.")
    open_metrics: OpenMetrics = prop("slurmctld's own metrics.", default=OpenMetrics())
    size: int = prop(
        "Number of slurmctld pods, in older releases.",
        default=0,
        deprecated="has no equivalent and is ignored: one slurmctld runs",
    )


@model
class LoginVolumes:
    """Volumes of login pods."""

    jail: NodeVolume = prop("The root directory that all nodes share.")
    jail_sub_mounts: list[NodeVolumeMount] = prop(
        "Volumes that appear inside the shared root directory.", default=[]
    )
    custom_mounts: list[NodeVolumeMount] = prop("More volumes.", default=[])


@model
class UserIsolation:
    """Limits for each user of a login pod."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!has(self.memoryHigh) || !has(self.memoryMax) || "
            "quantity(string(self.memoryHigh)).compareTo(quantity(string(self.memoryMax))) <= 0",
            message="memoryHigh cannot be more than memoryMax",
            path=".memoryHigh",
            holds=lambda limits, old: limits.is_ordered,
        ),
    )

    enabled: bool = prop("Whether users are kept apart; needs cgroup v2.", default=False)
    memory_high: Quantity | None = prop(
        "Memory from which a user's processes are slowed down. Left out: 80 % of the sshd container.",
        default=None,
        max_length=_QUANTITY_LENGTH,
    )
    memory_max: Quantity | None = prop(
        "Memory at which a user's processes are ended. Left out: 90 % of the sshd container.",
        default=None,
        max_length=_QUANTITY_LENGTH,
    )
    cpu_weight: int = prop(
        "Share of each user when CPUs are short.", default=100, minimum=1, maximum=10000, format="int64"
    )

    @property
    def is_ordered(self) -> bool:
        """Whether the two limits, if both are given, stand in the right order."""
        high, most = (None if one is None else amount(one) for one in (self.memory_high, self.memory_max))
        return high is None or most is None or high <= most

    def problems(self, memory: Decimal | None) -> Iterator[Problem]:
        """What is wrong with the limits in a container with this much memory."""
        if not self.enabled:
            return
        limits = {"memoryHigh": self.memory_high, "memoryMax": self.memory_max}
        given = {name: amount(limit) for name, limit in limits.items() if limit is not None}
        for name, limit in given.items():
            if limit is not None and limit <= 0:
                yield Problem(path=name, message="must be more than 0")
            elif limit is not None and memory is not None and limit >= memory:
                yield Problem(path=name, message="must be less than the memory of the sshd container")
        yield from self._order(given, memory)

    def _order(self, given: dict[str, Decimal | None], memory: Decimal | None) -> Iterator[Problem]:
        if len(given) != 1 or memory is None:
            return  # Both are compared by the API server.
        high = given.get("memoryHigh") or memory * DEFAULT_HIGH
        most = given.get("memoryMax") or memory * DEFAULT_MAX
        if high > most:
            left_out = "the one left out is 80 % or 90 % of the memory of sshd"
            message = f"would make memoryHigh more than memoryMax: {left_out}"
            yield Problem(path=next(iter(given)), message=message)


@model
class SlurmNodeLogin(SlurmNode):
    """Login pods."""

    sshd: NodeContainer = prop("The sshd container; its port is usually 22.")
    munge: NodeContainer = prop("The munge container beside it.")
    sssd: NodeContainer | None = prop(
        "A container beside it that looks users up in a directory service.", default=None, nullable=True
    )
    sssd_debug_level: int = SSSD_DEBUG_LEVEL
    sssd_conf_secret_ref_name: str = SSSD_CONF
    sssd_ldap_ca_config_map_ref_name: str = SSSD_CA
    sshd_service_type: str = prop("Type of the Service: LoadBalancer or NodePort.")
    sshd_service_annotations: dict[str, str] = prop("Annotations of the Service.", default={})
    sshd_service_load_balancer_ip: str = prop(
        "Address of the load balancer.", default="", name="sshdServiceLoadBalancerIP"
    )
    sshd_service_load_balancer_source_ranges: list[str] = prop(
        "Who may reach the load balancer, such as 10.0.0.0/8.", default=[]
    )
    sshd_service_node_port: int = prop(
        "Port on every Kubernetes node, for NodePort: 30000 to 32768.", default=0
    )
    sshd_config_map_ref_name: str = prop(
        "ConfigMap with your own sshd_config. Left out: the operator writes one.", default=""
    )
    ssh_root_public_keys: list[str] = prop("Public keys that may log in as root; may be empty.")
    volumes: LoginVolumes = prop("Volumes of login pods.")
    user_isolation: UserIsolation = prop("Limits for each user.", default=UserIsolation())

    def problems(self) -> Iterator[Problem]:
        if self.sshd_service_type not in _SERVICE_TYPES:
            message = f"is {' or '.join(_SERVICE_TYPES)}, not {self.sshd_service_type!r}"
            yield Problem(path="sshdServiceType", message=message)
        elif self.sshd_service_type == "NodePort" and self.sshd_service_node_port not in NODE_PORTS:
            message = f"must be {NODE_PORTS[0]} to {NODE_PORTS[-1]} for a Service of type NodePort"
            yield Problem(path="sshdServiceNodePort", message=message)
        memory = amount_in(self.sshd.resources, "memory")
        yield from (problem.under("userIsolation") for problem in self.user_isolation.problems(memory))


@model
class SlurmRest(SlurmNode):
    """slurmrestd for users. The operator has one of its own."""

    enabled: bool = prop("Whether it runs.", default=False)
    rest: NodeContainer | None = prop(
        "The slurmrestd container; its port is 6820 if left out.", default=None, nullable=True
    )
    thread_count: int = prop("How many threads answer requests.", default=3, minimum=2, maximum=1024)
    max_connections: int = prop("How many connections are served at once.", default=10, minimum=2)


@model
class PodMonitorConfig:
    """How Prometheus reads the exporter."""

    job_label: str = prop(
        "Label of the pod that names the job of Prometheus; slurm-exporter if this object is left out.",
        default="",
    )
    interval: str = _interval("How often to scrape; 30s if this object is left out.", "")
    scrape_timeout: str = _interval("Time limit of one scrape; 20s if this object is left out.", "")
    relabel_config: list[Json] = prop("Rules for labels of targets, as in a PodMonitor.", default=[])
    metric_relabel_configs: list[Json] = prop("Rules for labels of metrics, as in a PodMonitor.", default=[])


@model
class OlderContainer(NodeContainer):
    """A container of older releases."""

    image: str = prop("Image reference.", default="")


@model
class OlderExporter(OlderContainer):
    """The exporter of older releases."""

    pod_template_name_ref: str = prop("PodTemplate of the exporter; was never used.", default="")


@model
class ExporterVolumes:
    """Volumes of the exporter, in older releases."""

    jail: NodeVolume = prop("The root directory that all nodes share.")


@model
class SlurmExporter(SlurmNode):
    """Metrics of Slurm for Prometheus."""

    enabled: bool = prop("Whether it runs.", default=False)
    exporter_container: NodeContainer | None = prop("The exporter.", default=None, nullable=True)
    pod_monitor_config: PodMonitorConfig = prop(
        "How Prometheus reads it.",
        default=PodMonitorConfig(job_label="slurm-exporter", interval="30s", scrape_timeout="20s"),
    )
    collection_interval: str = _interval("How often Slurm is asked.", "30s")
    max_collector_inflight: int = prop("How many collections may run at once.", default=1, minimum=1)
    job_source: JobSource = prop("Where jobs are read.", default=JobSource.CONTROLLER)
    accounting_jobs_lookback: str = prop(
        "How far back jobs are read from slurmdbd; more than 0.",
        default="1h",
        max_length=64,
        pattern=PROMETHEUS_DURATION,
        rules=[
            Rule(
                expression="self.matches('[1-9]')",
                message="must be more than 0",
                holds=lambda text, old: any(digit in text for digit in "123456789"),
            )
        ],
    )
    service_account_name: str = prop("ServiceAccount of the exporter.", default="")
    exporter: OlderExporter = prop(
        "The exporter, in older releases.",
        default=OlderExporter(),
        deprecated="use exporterContainer; it is read as that where that is left out",
    )
    munge: OlderContainer = prop(
        "The munge container, in older releases.",
        default=OlderContainer(),
        deprecated="has no equivalent and is ignored: the exporter uses tokens",
    )
    volumes: ExporterVolumes = prop(
        "Volumes of the exporter, in older releases.",
        default=ExporterVolumes(jail=NodeVolume()),
        deprecated="has no equivalent and is ignored: the exporter reads no files",
    )
    use_soperator_exporter: bool = prop(
        "Chose between two exporters in older releases.",
        default=False,
        deprecated="has no equivalent and is ignored: there is one exporter",
    )

    @property
    def container(self) -> NodeContainer | None:
        """The exporter's container, wherever it was written; None when it has no image."""
        found = self.exporter_container or self.exporter
        return found if found.is_given else None

    def problems(self) -> Iterator[Problem]:
        if self.enabled and self.container is None:
            yield warning("exporterContainer", "is missing: the exporter starts when it has an image")


@model
class SConfigController:
    """The writer of files in the shared root directory; without it no configuration reaches that."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=f"!{_is_duration('self.reconfigureWaitTimeout')} || "
            f"!{_is_duration('self.reconfigurePollInterval')} || "
            "duration(self.reconfigureWaitTimeout) > duration(self.reconfigurePollInterval)",
            message="reconfigureWaitTimeout must be longer than reconfigurePollInterval",
            path=".reconfigureWaitTimeout",
            holds=lambda writer, old: writer.reconfigure_wait_timeout > writer.reconfigure_poll_interval,
        ),
    )

    node: SlurmNode | None = prop("How many pods, and where they run.", default=None, nullable=True)
    container: NodeContainer | None = prop("Its container.", default=None, nullable=True)
    run_as_uid: int | None = prop("User that owns the files.", default=None, format="int64")
    run_as_gid: int | None = prop("Group that owns the files.", default=None, format="int64")
    reconfigure_poll_interval: timedelta = prop(
        "How often it looks whether nodes took a new configuration.", default=timedelta(seconds=20)
    )
    reconfigure_wait_timeout: timedelta = prop(
        "How long it waits for that; longer than reconfigurePollInterval.", default=timedelta(minutes=5)
    )
    service_account_name: str = prop(
        "ServiceAccount of the pods. Left out, as in manifests of older releases: the operator makes one.",
        default="",
    )
    host_users: bool | None = prop(
        "Was a switch for the user namespace.", default=None, deprecated="is ignored; use node.hostUsers"
    )
