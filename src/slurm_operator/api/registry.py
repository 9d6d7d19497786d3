"""Every kind of ours once, by group and kind: its model, and the name of the reconciler that decides on it.

Whoever needs a list of kinds reads this one. Two groups may have kinds of the same name. Those of the first
group are called by their own name, as they always were; those of any other group by their full one, such as
`nodesets.slurm.nebius.ai`.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slurm_operator.api import nebius
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.schema.crd import Resource
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token

# Groups whose CRDs hold clusters.
GROUPS: Final = (names.GROUP, nebius_names.GROUP)

# Groups that are on without anybody asking for them.
DEFAULT_GROUPS: Final = (names.GROUP,)

# Groups of others with kinds that have the names of Kubernetes' own: Kruise has StatefulSets, too.
_NAMESAKES: Final = ("apps.kruise.io",)


class Use(StrEnum):
    """What the operator does with objects of a kind, besides watching them and writing their status."""

    READ = "read"  # Nothing: people make them.
    HOLD = "hold"  # Keeps a finalizer on them.
    MAKE = "make"  # Makes and deletes them too, as parts of something larger.


@dataclass(frozen=True)
class Registered:
    """One kind. An optional one may be missing in a Kubernetes cluster, and the rest goes on.

    One without a reconciler is served, validated and watched; the manager does nothing with its objects.
    """

    model: type[Resource]
    reconciler: str = ""
    use: Use = Use.MAKE
    is_optional: bool = False

    @property
    def kind(self) -> Kind:
        return self.model.KIND

    @property
    def group(self) -> str:
        return self.kind.group

    @property
    def plural(self) -> str:
        return self.kind.plural

    @property
    def short_names(self) -> tuple[str, ...]:
        return self.model.CRD.short_names

    @property
    def versions(self) -> tuple[str, ...]:
        """Every version that is served, the stored one first."""
        return (self.kind.version, *self.model.CRD.also_served)

    @property
    def name(self) -> str:
        """As people read it: `NodeSet`, or `NodeSet.slurm.nebius.ai`."""
        return name_of(self.kind)

    @property
    def resource(self) -> str:
        """As files, metrics and commands have it: `nodesets`, or `nodesets.slurm.nebius.ai`."""
        return self.plural if self.group == names.GROUP else f"{self.plural}.{self.group}"


def name_of(kind: Kind) -> str:
    """What people read of a kind of ours."""
    return kind.kind if kind.group == names.GROUP else str(kind)


@dataclass(frozen=True)
class Registry:
    """Kinds in the order in which people meet them. Nothing about two of them can be mixed up."""

    kinds: tuple[Registered, ...] = ()

    def __post_init__(self) -> None:
        _unique("kind", ((one.group, one.kind.kind) for one in self.kinds))
        _unique("plural", ((one.group, one.plural) for one in self.kinds))
        _unique("reconciler", self.reconcilers)

    def __iter__(self) -> Iterator[Registered]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.group for one in self.kinds))

    @property
    def models(self) -> tuple[type[Resource], ...]:
        return tuple(one.model for one in self.kinds)

    @property
    def reconcilers(self) -> tuple[str, ...]:
        """Their names; not every kind has one."""
        return tuple(one.reconciler for one in self.kinds if one.reconciler)

    def on(self, groups: Iterable[str]) -> "Registry":
        """Only the kinds of these groups. Raises ValueError for a group that has none."""
        wanted = set(groups)
        if unknown := sorted(wanted - set(self.groups)):
            raise ValueError(f"There is no API group {unknown[0]!r}. There are: {', '.join(self.groups)}.")
        return Registry(tuple(one for one in self.kinds if one.group in wanted))

    def find(self, group: str, kind: str) -> Registered | None:
        return next((one for one in self.kinds if (one.group, one.kind.kind) == (group, kind)), None)

    def resource(self, group: str, plural: str) -> str:
        """What metrics call a resource, ours or not, with or without a subresource.

        Only a group of ours that is not the first one is named, and one whose kinds are called like those of
        Kubernetes: other series keep the labels that they have.
        """
        if group == names.GROUP or group not in (*self.groups, *_NAMESAKES):
            return plural
        resource, slash, subresource = plural.partition("/")
        return f"{resource}.{group}{slash}{subresource}"


def _unique(what: str, values: Iterable[Hashable]) -> None:
    twice = [value for value, times in Counter(values).items() if times > 1]
    if twice:
        raise ValueError(f"Two kinds are registered with the {what} {twice[0]}.")


ALL: Final = Registry(
    (
        Registered(Cluster, reconciler="cluster", use=Use.HOLD, is_optional=True),
        Registered(Controller, reconciler="controller"),
        Registered(NodeSet, reconciler="nodeset"),
        Registered(LoginSet, reconciler="loginset"),
        Registered(Accounting, reconciler="accounting"),
        Registered(RestApi, reconciler="restapi"),
        Registered(Token, reconciler="token", use=Use.READ),
        Registered(nebius.SlurmCluster, reconciler="slurmcluster", use=Use.HOLD),
        Registered(nebius.NodeSet, reconciler="slurmcluster-nodeset"),
        # Older releases of this API lack some of these; its clusters run without them.
        Registered(nebius.NodeSetPowerState, reconciler="nodesetpowerstate", is_optional=True),
        Registered(nebius.NodeConfigurator, reconciler="nodeconfigurator", use=Use.READ, is_optional=True),
        Registered(nebius.JailedConfig, is_optional=True),  # The sconfigcontroller of its cluster acts on it.
        Registered(nebius.ActiveCheck, reconciler="activecheck", use=Use.HOLD, is_optional=True),
    )
)

DEFAULT: Final = ALL.on(DEFAULT_GROUPS)


def with_parts(kinds: Registry) -> Registry:
    """Also those of the first group: clusters of any other are made of its objects."""
    return kinds if names.GROUP in kinds.groups else Registry((*DEFAULT, *kinds))
