"""Choose the facts about one NodeConfigurator: what it asks for, and the objects that it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeconfigurator import (
    ContainerSettings,
    NodeConfigurator,
    NodeConfiguratorSpec,
)
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared.children import seen_children


class Program(StrEnum):
    """What runs in its pods."""

    REBOOTER = "rebooter"
    CUSTOM = "custom"
    OLDER = "older"  # A container of one's own, as older releases had it.
    NONE = "none"


@dataclass(frozen=True)
class Seen:
    configurator: NodeConfigurator
    children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)

    @property
    def meta(self) -> Meta:
        return self.configurator.metadata

    @property
    def name(self) -> str:
        return self.configurator.metadata.name

    @property
    def spec(self) -> NodeConfiguratorSpec:
        assert self.configurator.spec is not None
        return self.configurator.spec

    @property
    def program(self) -> Program:
        if self.configurator.spec is None:
            return Program.NONE
        if self.spec.rebooter.enabled:
            return Program.REBOOTER
        if self.spec.custom is None:
            return Program.NONE
        return Program.CUSTOM if self.spec.custom is self.spec.custom_container else Program.OLDER

    @property
    def settings(self) -> ContainerSettings:
        """Those of the container that runs; the pod takes its place from there, too."""
        chosen = self.spec.rebooter if self.program is Program.REBOOTER else self.spec.custom
        assert chosen is not None
        return chosen

    @property
    def daemon_set(self) -> Child | None:
        return self.children.get((kinds.DAEMON_SET, names.node_configurator(self.name)))

    @property
    def has_own_account(self) -> bool:
        """Whether the pods use an account that the operator makes."""
        return self.program is Program.REBOOTER and not self.settings.service_account_name


def observe(key: ObjectKey, world: World) -> Seen | None:
    configurator = world.get(NodeConfigurator, key.namespace, key.name)
    if configurator is None:
        return None
    account = names.rebooter_account(key.name)
    of_account = (kinds.SERVICE_ACCOUNT, kinds.ROLE, kinds.ROLE_BINDING)
    wanted = [
        (kinds.DAEMON_SET, names.node_configurator(key.name)),
        *((kind, account) for kind in of_account),
    ]
    return Seen(configurator, seen_children(world, key.namespace, *wanted))
