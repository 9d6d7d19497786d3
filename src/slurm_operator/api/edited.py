"""Which object a person edits: edits of a part that the operator writes for a Cluster are reverted."""

from typing import NamedTuple

from slurm_operator.api import nebius
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi


class Edited(NamedTuple):
    """The owner, and the field of it that the part is made from; empty where nobody can say."""

    kind: str
    name: str
    field: str
    part: str

    @property
    def where(self) -> str:
        """spec.nodeSets of Cluster demo, entry cpu."""
        field, _, entry = self.field.partition(":")
        owner = f"{self.kind} {self.name}"
        place = f"{field} of {owner}" if field else owner
        return f"{place}, entry {entry}" if entry else place

    @property
    def advice(self) -> str:
        return f"Change it in {self.where}: edits of {self.part} are reverted."


# The field of a Cluster that each part is made from.
_FIELDS: dict[type[HasMeta], str] = {
    Accounting: "spec.accounting",
    Controller: "",
    RestApi: "spec.restApi",
    LoginSet: "spec.logins",
    NodeSet: "spec.nodeSets",
}


def edited_object(about: HasMeta) -> Edited | None:
    """The owner that somebody has to edit instead; None for an object that is nobody's part."""
    owner = about.metadata.owner
    if owner is None:
        return None
    part = f"{type(about).__name__} {about.metadata.name}"
    if owner.is_a(SlurmCluster.KIND):
        return Edited(SlurmCluster.KIND.kind, owner.name, "", part)
    if owner.is_a(nebius.NodeSet.KIND):  # Of two kinds with one name: this one by its full name.
        return Edited(str(nebius.NodeSet.KIND), owner.name, "", part)
    if not owner.is_a(Cluster.KIND):
        return None
    field = _FIELDS.get(type(about), "")
    entry = about.metadata.name.removeprefix(f"{owner.name}-")
    if isinstance(about, NodeSet | LoginSet):
        field = f"{field}:{entry}"
    return Edited(Cluster.KIND.kind, owner.name, field, part)
