"""A second NodeSet, in an API group of its own, and everything that is told apart by the group."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api import registry
from slurm_operator.api.registry import Registered, Registry
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.crd import METADATA, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.schema.problems import Problem, References
from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import READY, Condition
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky import nodeset as first
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.conditions import true
from slurm_operator.plan.plan import plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.plan.world import World

GROUP = "testing.example.com"
GROUPS = (names.GROUP, GROUP)


@model
class Spec:
    """How large it is."""

    size: int = prop("How many.", default=1)


@model
class Status:
    """What became of it."""

    conditions: list[Condition] = prop("What it says about itself.", default=[])


@model
class NodeSet:
    """A kind of another group with a familiar name."""

    KIND: ClassVar[Kind] = Kind(group=GROUP, version="v1", kind="NodeSet", plural="nodesets")
    CRD: ClassVar[Definition] = Definition(short_names=("tns",), also_served=("v1alpha1",))

    metadata: Meta = METADATA
    spec: Spec = prop("What you want.")
    status: Status = prop("How it is.", default=Status())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        if self.spec.size > 9:
            yield Problem(path="spec.size", message="is too large for a test")


OTHER = NodeSet
OURS = first.NodeSet

TWO = Registry((*registry.DEFAULT, Registered(OTHER, reconciler="testing-nodeset")))


def manifest(type_: type[Any], name: str, spec: Manifest | None = None) -> Manifest:
    kind = type_.KIND
    uid = f"{name}-of-{kind.group}"
    meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": "1", "generation": 1}
    wanted = {"controllerRef": {"name": "slurm"}} if type_ is OURS else {"size": 1}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec or wanted}


def made(type_: type[Any], name: str) -> Any:
    return codec.read(type_, manifest(type_, name))


def owner(type_: type[Any], name: str) -> Manifest:
    kind, uid = type_.KIND, f"{name}-of-{type_.KIND.group}"
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": name,
        "uid": uid,
        "controller": True,
    }


FINE = true(READY, Reason.WORKING, "all is well")


def noting(
    name: str,
    type_: type[Any],
    note: Callable[[ObjectKey], None] = lambda key: None,
    says: Condition = FINE,
) -> Reconciler[Any]:
    """A reconciler that notes what it looks at, changes nothing, and says this of everything."""

    def observe(key: ObjectKey, world: World) -> Any:
        note(key)
        return world.get(type_, key.namespace, key.name)

    return Reconciler[Any](
        name=name,
        kind=type_.KIND,
        about=type_,
        observe=observe,
        decide=lambda seen, now: plan(),
        status=lambda seen, plan, outcome: StatusReport(conditions=[says]),
        children=(kinds.CONFIG_MAP,),
    )
