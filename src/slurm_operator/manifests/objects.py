"""The parts of Kubernetes objects that decisions read. Whatever is not named here is not kept in memory."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.manifests.meta import Meta

# ---- Pods


class ContainerStateRunning(wire.CamelRecord):
    started_at: datetime | None = None


class ContainerStateWaiting(wire.CamelRecord):
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(wire.CamelRecord):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(wire.CamelRecord):
    running: ContainerStateRunning | None = None
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(wire.CamelRecord):
    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    image_id: str = wire.field(name="imageID", default="")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()

    @property
    def has_ever_started(self) -> bool:
        """A process of this container runs, or ran before."""
        return (
            self.state.running is not None
            or self.state.terminated is not None
            or self.last_state.terminated is not None
            or self.restart_count > 0
        )


class PodCondition(wire.CamelRecord):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodIP(wire.CamelRecord):
    ip: str = ""


class PodStatus(wire.CamelRecord):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = wire.field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] = wire.field(name="podIPs", default=())
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()

    def condition(self, type_: str) -> PodCondition | None:
        for (
            condition
        ) in self.conditions:  # Asked of thousands of pods in every pass; a generator takes longer.
            if condition.type == type_:
                return condition
        return None


class Probe(wire.CamelRecord):
    """That there is one is all that matters."""


class Container(wire.CamelRecord):
    name: str
    image: str = ""
    liveness_probe: Probe | None = None


class NodeFieldRule(wire.CamelRecord):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(wire.CamelRecord):
    match_fields: tuple[NodeFieldRule, ...] = ()


class NodeSelector(wire.CamelRecord):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(wire.CamelRecord):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(wire.CamelRecord):
    node_affinity: NodeAffinity | None = None


class PodSpec(wire.CamelRecord):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    priority: int = 0
    containers: tuple[Container, ...] = ()
    affinity: Affinity | None = None

    @property
    def bound_to(self) -> str:
        """The one machine that it may be scheduled to, by name; empty where it may have any."""
        wanted = self.affinity.node_affinity if self.affinity is not None else None
        required = wanted.required_during_scheduling_ignored_during_execution if wanted is not None else None
        terms = required.node_selector_terms if required is not None else ()
        rules = terms[0].match_fields if len(terms) == 1 else ()
        names = [rule.values for rule in rules if (rule.key, rule.operator) == ("metadata.name", "In")]
        return names[0][0] if len(names) == 1 and len(names[0]) == 1 else ""


class Pod(wire.CamelRecord):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_ready(self) -> bool:
        if self.status.phase != "Running":
            return False
        ready = self.status.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def has_ended(self) -> bool:
        """Every container has ended for good, as the kubelet reports it."""
        return self.status.phase in {"Failed", "Succeeded"}


# ---- Nodes


class Taint(wire.CamelRecord):
    key: str
    value: str = ""
    effect: str = ""


class KubeNodeSpec(wire.CamelRecord):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeSystemInfo(wire.CamelRecord):
    boot_id: str = wire.field(name="bootID", default="")


class RuntimeFeatures(wire.CamelRecord):
    user_namespaces: bool = False


class RuntimeHandler(wire.CamelRecord):
    name: str = ""
    features: RuntimeFeatures | None = None


class KubeNodeStatus(wire.CamelRecord):
    conditions: tuple[PodCondition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    allocatable: dict[str, str] = {}
    runtime_handlers: tuple[RuntimeHandler, ...] = ()


class KubeNode(wire.CamelRecord):
    metadata: Meta
    spec: KubeNodeSpec = KubeNodeSpec()
    status: KubeNodeStatus = KubeNodeStatus()

    @property
    def has_user_namespaces(self) -> bool:
        """Whether the runtime that pods get by default can give them a user namespace of their own."""
        default = [one for one in self.status.runtime_handlers if not one.name]
        return any(one.features is not None and one.features.user_namespaces for one in default)


# ---- What specs refer to by name


class Secret(wire.Record):
    """A Secret without its values: per key a digest, which is all that a decision may depend on."""

    metadata: Meta
    digests: dict[str, str] = {}
    immutable: bool = False
    known_since: datetime | None = None  # When this process learnt of these values.


class ConfigMap(wire.CamelRecord):
    metadata: Meta
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    immutable: bool = False


class Unread(wire.Record):
    """A referenced object that could not be read: not the same as one that is not there."""

    why: str
