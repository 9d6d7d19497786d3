"""How many Kubernetes nodes are out of service at once: a list on a Lease that all agents share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slurm_operator import wire

HOLDERS: Final = "slurm.nebius.ai/rebooter-nodes"


class Holder(wire.CamelRecord):
    """A node that is out of service. `uid` is of its Node: one that was made again has another."""

    uid: str
    since: str = ""


Holders = Mapping[str, Holder]


@dataclass(frozen=True)
class Slots:
    """Who is out of service, by name, as one version of the Lease has it."""

    holders: Holders
    limit: int

    def is_held_by(self, name: str, uid: str) -> bool:
        return name in self.holders and self.holders[name].uid == uid

    def others(self, name: str) -> list[str]:
        return sorted(one for one in self.holders if one != name)

    def is_free_for(self, name: str) -> bool:
        return len(self.others(name)) < self.limit


def read(annotations: Mapping[str, str]) -> dict[str, Holder]:
    """Raises wire.DecodeError: what cannot be read may hold a slot."""
    return wire.decode(annotations.get(HOLDERS, "{}"), dict[str, Holder])


def annotation_text(holders: Holders) -> str:
    return wire.encode_sorted(holders).decode()
