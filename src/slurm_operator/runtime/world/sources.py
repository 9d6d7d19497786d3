"""What the operator watches: one line per kind, with the record it becomes and how it is looked up."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey
from slurm_operator.manifests.meta import Child, decode_child
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.world import KUBE_NODE_NAME as KUBE_NODE_NAME
from slurm_operator.plan.world import NOBODY
from slurm_operator.plan.world import OWNER as OWNER
from slurm_operator.plan.world import OWNER_NAME as OWNER_NAME

T = TypeVar("T", bound=HasMeta)


@dataclass(frozen=True)
class Source(Generic[T]):
    """Objects that reconcilers read as typed records: our own kinds, pods, Kubernetes nodes."""

    type: type[T]
    kind: Kind
    decode: Callable[[bytes | bytearray | memoryview], T]
    label_selector: str = ""
    field_selector: str = ""
    is_optional: bool = False  # Without the right to read it, or without its CRD, the rest goes on.
    indexes: Mapping[str, Callable[[T], Iterable[Hashable]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChildSource:
    """How children of one kind are found and read."""

    label_selector: str
    decode: Callable[[bytes | bytearray | memoryview], Child] = decode_child


@dataclass(frozen=True)
class Sources:
    """Everything one operator watches."""

    records: tuple[Source[Any], ...]
    children: tuple[Kind, ...]
    child_selector: str
    optional_children: tuple[Kind, ...] = ()  # Those of `children` that a server may lack, or keep from us.
    other_children: Mapping[Kind, ChildSource] = field(default_factory=dict)

    def child_source(self, kind: Kind) -> ChildSource:
        return self.other_children.get(kind) or ChildSource(self.child_selector)


def owner_uids(thing: HasMeta) -> Iterable[str]:
    """The uids of its owners. What nobody owns is found under the empty one."""
    return [owner.uid for owner in thing.metadata.owner_references] or [NOBODY]


def owner_names(thing: HasMeta) -> Iterable[str]:
    """What its owners are called, in its namespace."""
    namespace = thing.metadata.namespace
    return [str(ObjectKey(namespace, owner.name)) for owner in thing.metadata.owner_references]


def kube_node_names(pod: Pod) -> Iterable[str]:
    """The Kubernetes node that has it; none while it waits for one."""
    return [pod.spec.node_name] if pod.spec.node_name else []


# How pods are looked up besides by name.
POD_INDEXES: Mapping[str, Callable[[Any], Iterable[str]]] = {
    OWNER: owner_uids,
    OWNER_NAME: owner_names,
    KUBE_NODE_NAME: kube_node_names,
}


def child_indexes() -> Mapping[str, Callable[[Child], Iterable[Hashable]]]:
    return {OWNER: owner_uids}
