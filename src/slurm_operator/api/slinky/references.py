"""Which other objects the problems of a manifest depend on: asked by the webhook and by reconcilers alike."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from slurm_operator import wire
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller, ControllerSettings
from slurm_operator.api.slinky.nodeset import NodeSet

T = TypeVar("T", bound=HasMeta)

_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)


class Questions(wire.Record):
    """What to look up in the namespace of a manifest: objects by name, and all of a kind."""

    config_maps: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    siblings: type[NodeSet] | type[Controller] | None = None


def questions(thing: Any) -> Questions:
    """What `References` should hold when this object is asked for its problems."""
    match thing:
        case Controller():
            return _about(thing.spec, Controller if thing.spec.accounting else None)
        case Cluster():
            return _about(thing.spec.controller, None)
        case NodeSet():
            return Questions(siblings=NodeSet)
        case _:
            return Questions()


def _about(settings: ControllerSettings, siblings: type[Controller] | None) -> Questions:
    claim = settings.persistence.existing_claim
    return Questions(
        config_maps=tuple(sorted({ref.name for ref in settings.config_file_refs} - {""})),
        claims=(claim,) if claim and settings.ha.enabled else (),
        siblings=siblings,
    )


def age(thing: HasMeta) -> tuple[datetime, str]:
    """Sorts the older first: of two objects that are in each other's way, it stays."""
    return thing.metadata.creation_timestamp or _ALWAYS, thing.metadata.name


def older(thing: T, others: Iterable[T]) -> list[T]:
    """Those that were there before it."""
    return [other for other in others if age(other) < age(thing)]


def first_come(nodesets: Iterable[NodeSet]) -> list[NodeSet]:
    """Of NodeSets that Slurm would know by the same name, only the oldest; in the order they came in."""
    listed = list(nodesets)
    oldest: dict[str, NodeSet] = {}
    for nodeset in sorted(listed, key=age):
        oldest.setdefault(nodeset.slurm_name, nodeset)
    return [nodeset for nodeset in listed if oldest[nodeset.slurm_name] is nodeset]


def node_set_names(nodeset: NodeSet, others: Iterable[NodeSet]) -> Mapping[str, tuple[str, ...]]:
    """The other NodeSets of the same Controller by the name that Slurm knows them by."""
    found: dict[str, tuple[str, ...]] = {}
    for other in others:
        if other.metadata.name != nodeset.metadata.name and other.spec.controller == nodeset.spec.controller:
            found[other.slurm_name] = (*found.get(other.slurm_name, ()), other.metadata.name)
    return found


def cluster_names(controller: Controller, others: Iterable[Controller]) -> Mapping[str, tuple[str, ...]]:
    """The other Controllers on the same Accounting by the name that it knows them by."""
    found: dict[str, tuple[str, ...]] = {}
    for other in others:
        is_sibling = other.metadata.name != controller.metadata.name
        if is_sibling and other.spec.accounting == controller.spec.accounting != "":
            found[other.cluster_name] = (*found.get(other.cluster_name, ()), other.metadata.name)
    return found
