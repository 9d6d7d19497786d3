"""Choose the facts about the power of a NodeSet's workers: who should run, who does, what Slurm says."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodePowerState, NodeSetPowerState
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.plan.world import OWNER, World
from slurm_operator.reconcilers.shared.parts import is_owned
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass(frozen=True)
class Worker:
    """One number of the NodeSet, with or without a pod. `said` is what its status says of it so far."""

    ordinal: int
    slurm_node: str
    is_active: bool = False
    pod: Pod | None = None
    record: SlurmNode | None = None  # Slurm's, of this name; None also where Slurm cannot be asked.
    said: NodePowerState | None = None
    ready_for: timedelta = timedelta(0)  # How long its slurmd has been ready.


@dataclass(frozen=True)
class Seen:
    power: NodeSetPowerState
    nodeset: NodeSet | None
    part: WorkerPart | None
    pods: tuple[Pod, ...]
    slurm: Snapshot | Unreachable
    now: datetime

    @property
    def meta(self) -> Meta:
        return self.power.metadata

    @property
    def name(self) -> str:
        return self.power.metadata.name

    @property
    def slurm_key(self) -> ObjectKey:
        """The Controller is called like the SlurmCluster."""
        return ObjectKey(self.meta.namespace, self.nodeset.cluster if self.nodeset is not None else "")

    @property
    def is_followed(self) -> bool:
        """Whether this object says which workers run."""
        return self.why_ignored == ""

    @property
    def why_ignored(self) -> str:
        """Why this object says nothing about any worker; empty when it does."""
        if self.power.spec is None:
            return "spec is missing."
        if self.power.spec.node_set_ref != self.name:
            return f"spec.nodeSetRef is {self.power.spec.node_set_ref!r}, and this object is {self.name!r}."
        if self.nodeset is None or self.nodeset.spec is None:
            return f"There is no NodeSet {self.name!r} in namespace {self.meta.namespace!r}."
        if not self.nodeset.spec.ephemeral_nodes:
            return f"NodeSet {self.name!r} has no ephemeral nodes: all of its workers run all the time."
        return ""

    @property
    def active(self) -> tuple[int, ...]:
        """The numbers that should run, as the object says it."""
        return tuple(self.power.spec.active_nodes) if self.power.spec is not None else ()

    @property
    def replicas(self) -> int:
        """How many workers there may be."""
        return self.nodeset.spec.replicas if self.nodeset is not None and self.nodeset.spec is not None else 0

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        """Every number that may have a worker, that is wanted, or that has a pod."""
        return tuple(_workers(self)) if self.is_followed and self.part is not None else ()


def observe(key: ObjectKey, world: World) -> Seen | None:
    power = world.get(NodeSetPowerState, key.namespace, key.name)
    if power is None:
        return None
    nodeset = world.get(NodeSet, key.namespace, key.name)
    part = world.get(WorkerPart, key.namespace, key.name)
    if part is not None and (nodeset is None or not is_owned(part, nodeset.metadata)):
        part = None  # It is somebody else's.
    pods = tuple(world.find(Pod, OWNER, part.metadata.uid)) if part is not None else ()
    cluster = nodeset.cluster if nodeset is not None else ""
    return Seen(power, nodeset, part, pods, world.slurm(key.namespace, cluster), world.now)


def _workers(seen: Seen) -> Iterator[Worker]:
    assert seen.part is not None
    pods = {slurm_node_name(pod): pod for pod in seen.pods}
    records = seen.slurm.nodes if isinstance(seen.slurm, Snapshot) else {}
    active, told = set(seen.active), seen.power.status.node_states
    numbers = {*range(seen.replicas), *(one for one in active if one >= 0), *_numbers_of(seen)}
    for ordinal in sorted(numbers):
        name = seen.part.host_name(ordinal)
        pod, record, said = pods.get(name), records.get(name), told.get(str(ordinal))
        yield Worker(ordinal, name, ordinal in active, pod, record, said, _ready_for(pod, seen.now))


def _ready_for(pod: Pod | None, now: datetime) -> timedelta:
    ready = pod.status.condition("Ready") if pod is not None and pod.is_ready else None
    since = ready.last_transition_time if ready is not None else None
    return now - since if since is not None else timedelta(0)


def _numbers_of(seen: Seen) -> Iterator[int]:
    """Of pods that are there, whatever is wanted."""
    for pod in seen.pods:
        base, _, number = pod.metadata.name.rpartition("-")
        if base == seen.name and number.isdecimal():
            yield int(number)
