"""What `doctor` looks at, as records. `Unread` stands for what could not be asked, with the reason."""

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.manifests.meta import Manifest, Meta
from slurm_operator.manifests.objects import KubeNodeSpec, Pod, PodCondition, Unread
from slurm_operator.manifests.platform import Namespace, StorageClass


class NodeInfo(wire.CamelRecord):
    architecture: str = ""
    kubelet_version: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    operating_system: str = "linux"


class MachineStatus(wire.CamelRecord):
    conditions: tuple[PodCondition, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Machine(wire.CamelRecord):
    """A Kubernetes node, as far as Slurm depends on it."""

    metadata: Meta
    spec: KubeNodeSpec = KubeNodeSpec()
    status: MachineStatus = MachineStatus()

    @property
    def is_ready(self) -> bool:
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)


class Right(wire.Record):
    """One verb on one resource; `namespace` is empty for everywhere."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    @property
    def what(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def place(self) -> str:
        return f"in namespace {self.namespace}" if self.namespace else "in the whole cluster"


class Operator(wire.Record):
    """A Deployment that runs an operator for our kinds."""

    namespace: str
    name: str
    image: str
    account: str
    wanted: int
    ready: int
    missing: tuple[Right, ...] | Unread = ()
    has_plain_metrics: bool = False  # As far as its arguments tell.


class Webhook(wire.Record):
    """A webhook about our kinds, and what came of asking it."""

    configuration: str
    service: str
    is_blocking: bool
    trouble: str = ""


class Serving(wire.Record):
    """A Service by which something is found, and how many endpoints of it are ready."""

    namespace: str
    name: str
    ready: int


class Kubelet(wire.CamelRecord):
    """How a kubelet sets up the cgroups of pods, as far as jobs depend on it."""

    cgroup_driver: str = ""
    cpu_manager_policy: str = "none"
    single_process_oom_kill: bool = False


class Facts(wire.Record):
    """One Kubernetes cluster, seen by one user who wants to use one namespace."""

    namespace: str
    version: str | Unread
    user: str | Unread
    machines: tuple[Machine, ...] | Unread
    cgroups: dict[str, int] | Unread
    missing_rights: tuple[Right, ...] | Unread
    storage_classes: tuple[StorageClass, ...] | Unread
    home: Namespace | Unread | None
    crds: dict[str, Manifest] | Unread
    operators: tuple[Operator, ...] | Unread
    webhooks: tuple[Webhook, ...] | Unread
    is_protected: bool | Unread
    are_crds_protected: bool | Unread
    has_monitoring: bool | Unread
    dns: tuple[Serving, ...] | Unread
    accountings: tuple[Accounting, ...] | Unread
    databases: dict[str, Serving | Unread | None]
    pods: tuple[Pod, ...] | Unread
    network_policies: tuple[Manifest, ...] | Unread
    forced: tuple[str, ...] | Unread  # Objects that are deleted whatever it costs, as `kubectl` takes them.
    kubelets: dict[str, Kubelet] | Unread = {}  # Those that tell.
    cgroup_files: dict[str, str] | Unread = {}  # cgroup.conf of each Controller whose files may be read.
    ours: Registry = registry.DEFAULT  # The kinds that should be there.
