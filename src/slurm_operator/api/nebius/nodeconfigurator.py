"""NodeConfigurator: a pod on every Kubernetes node that prepares it, and reboots it when asked to."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import (
    AFFINITY,
    HOST_USERS,
    LIVENESS_PROBE,
    NODE_SELECTOR,
    READINESS_PROBE,
    TOLERATIONS,
    CustomContainer,
    Image,
)
from slurm_operator.api.nebius.status import StatusMetadata
from slurm_operator.api.schema.crd import METADATA, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import EnvVar, Json, Resources


class EvictionMethod(Choice):
    """How pods are removed from a Kubernetes node before a reboot."""

    EVICT = "evict", "by eviction, which respects PodDisruptionBudgets."


class LogLevel(Choice):
    """How much is logged."""

    DEBUG = "debug", "for debugging."
    INFO = "info", "what happens."
    WARN = "warn", "what may need attention."
    ERROR = "error", "errors."


_SWITCH: Any = prop("Whether it runs.")


@model
class ContainerSettings:
    """The container, and the pod it runs in."""

    enabled: bool = _SWITCH
    name: str = prop("Name of the container.", default="")
    image: Image | None = prop("Image of the container.", default=None, nullable=True)
    command: list[str] = prop("Replaces the entry point of the image.", default=[])
    resources: Json = prop("CPU and memory, as in Kubernetes.", default={}, shape=Resources)
    liveness_probe: Json = LIVENESS_PROBE
    readiness_probe: Json = READINESS_PROBE
    env: list[Json] = prop("Environment variables.", default=[], shape=EnvVar)
    tolerations: list[Json] = TOLERATIONS
    node_selector: dict[str, str] = NODE_SELECTOR
    affinity: Json = AFFINITY
    priority_class_name: str = prop("PriorityClass of the pods.", default="")
    service_account_name: str = prop("ServiceAccount of the pods.", default="")
    host_users: bool | None = HOST_USERS


@model
class Rebooter(ContainerSettings):
    """Drains and reboots Kubernetes nodes whose conditions ask for it."""

    eviction_method: EvictionMethod = prop(
        "How pods are removed before a reboot.", default=EvictionMethod.EVICT
    )
    log_level: LogLevel = prop("How much is logged.", default=LogLevel.INFO)
    log_format: str = prop("How log lines are written, such as json.", default="")


@model
class NodeConfiguratorSpec:
    """What runs on each Kubernetes node."""

    host_network: bool = prop("Whether the pods use the network of the Kubernetes node.", default=True)
    host_ipc: bool = prop(
        "Whether the pods share shared memory with the Kubernetes node.", default=False, name="hostIPC"
    )
    share_process_namespace: bool = prop("Whether containers see each other's processes.", default=False)
    init_containers: list[Json] = prop(
        "Containers that run first on each Kubernetes node, for example to set sysctls.",
        default=[],
        shape=CustomContainer,
    )
    rebooter: Rebooter = prop("Drains and reboots Kubernetes nodes.", default=Rebooter(enabled=True))
    custom_container: ContainerSettings | None = prop(
        "A container of your own; it runs when rebooter is not enabled.", default=None, nullable=True
    )
    node_configurator: ContainerSettings | None = prop(
        "The container, in older releases.",
        default=None,
        nullable=True,
        deprecated="use customContainer; it is read as that where that is left out",
    )

    @property
    def custom(self) -> ContainerSettings | None:
        """The container of your own that is enabled, wherever it was written."""
        found = self.custom_container or self.node_configurator
        return found if found is not None and found.enabled else None

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        name = "customContainer" if self.custom_container is not None else "nodeConfigurator"
        if self.rebooter.enabled and self.custom is not None:
            yield warning(f"{name}.enabled", "is ignored: rebooter is enabled, and runs in its place")
        elif not self.rebooter.enabled and self.custom is None:
            yield warning("", "enables neither rebooter nor customContainer: no pods run")


@model
class NodeConfiguratorStatus(StatusMetadata):
    """How far the pods are."""


@model
class NodeConfigurator:
    """A pod on every Kubernetes node that prepares it, and reboots it when its conditions ask for that."""

    KIND: ClassVar[Kind] = Kind(
        group=names.GROUP, version="v1alpha1", kind="NodeConfigurator", plural="nodeconfigurators"
    )
    CRD: ClassVar[Definition] = Definition(
        columns=(
            Column(
                name="Rebooter Enabled",
                path=".spec.rebooter.enabled",
                type="boolean",
                description="Whether Kubernetes nodes are rebooted.",
            ),
            Column(
                name="NodeConfigurator Enabled",
                path=".spec.nodeConfigurator.enabled",
                type="boolean",
                description="Whether the container of older releases runs.",
            ),
        ),
    )

    metadata: Meta = METADATA
    spec: NodeConfiguratorSpec | None = prop("What you want.", default=None, nullable=True)
    status: NodeConfiguratorStatus = prop(
        "How it is; written by the operator.", default=NodeConfiguratorStatus()
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        if self.spec is None:
            yield warning("spec", "is missing: nothing is made until there is one")
        else:
            yield from spec_problems(self.spec, old.spec if old else None, refs)
