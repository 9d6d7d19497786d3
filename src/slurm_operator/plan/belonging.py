"""Which API an object belongs to, and whether it is acted on.

Clusters of the second API group are made of objects of the first one. Such a part belongs to the group in
front of it: to that of its owner.
"""

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from slurm_operator.api import registry
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta


def group_of(kind: Kind, meta: Meta) -> str:
    """The API group in front of an object of this kind; its own, if no other one of ours owns it."""
    owners = (owner.group for owner in meta.owner_references)
    return next((group for group in owners if group in registry.GROUPS and group != kind.group), kind.group)


@dataclass(frozen=True)
class Scope:
    """The groups whose objects are acted on. Objects of others are left alone, whatever their kind."""

    groups: Set[str]
    held: Set[str] = frozenset()  # Those of them that somebody else acts on right now, or may.

    def covers(self, kind: Kind, meta: Meta) -> bool:
        return self.covers_group(group_of(kind, meta))

    def covers_group(self, group: str) -> bool:
        return group in self.groups and group not in self.held


EVERYTHING: Final = Scope(frozenset(registry.GROUPS))
