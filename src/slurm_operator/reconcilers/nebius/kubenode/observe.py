"""Choose the facts about one Kubernetes node: its conditions, and its workers as Slurm knows them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from slurm_operator.api.nebius import names, node_conditions
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.manifests.worker_names import registers_from, slurm_node_name
from slurm_operator.plan.world import KUBE_NODE_NAME, World
from slurm_operator.reconcilers.nebius.kubenode.options import DEFAULTS, NodeOptions
from slurm_operator.reconcilers.nebius.kubenode.troubles import Trouble, trouble
from slurm_operator.safety.gate import SLURMD, Candidate, Shut, ShutFor, gate
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

# Kubelets are asked once a minute.
_READ_WITHIN: Final = timedelta(minutes=3)


class Tells(StrEnum):
    """What a condition says. None that is there says the same as False."""

    YES = "True"
    NO = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class Mark:
    """One condition of a Kubernetes node."""

    tells: Tells = Tells.NO
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    is_there: bool = False

    @property
    def is_on(self) -> bool:
        return self.tells is Tells.YES

    @property
    def is_off(self) -> bool:
        """Known not to be so."""
        return self.tells is Tells.NO


@dataclass(frozen=True)
class Worker:
    """A worker's pod on the Kubernetes node, and its record in Slurm."""

    pod: Pod
    slurm_node: str
    nodeset: str
    controller: ObjectKey
    slurm: Snapshot | Unreachable
    state_lost_since: datetime | None = None
    storage: StorageUse | None = None

    @property
    def record(self) -> SlurmNode | None:
        """Slurm's record, if this very pod has registered by it."""
        found = self.slurm.nodes.get(self.slurm_node) if isinstance(self.slurm, Snapshot) else None
        return found if found is not None and registers_from(found.address, self.pod) else None

    @property
    def is_known(self) -> bool:
        """Slurm was read since our last write to it, and has a record of it."""
        is_current = isinstance(self.slurm, Snapshot) and self.slurm.is_current(self.slurm_node)
        return is_current and self.record is not None

    @property
    def takes_jobs(self) -> bool:
        return self.record is not None and not self.record.state.is_drain

    @property
    def trouble(self) -> Trouble | None:
        return trouble(self.record) if self.record is not None else None

    @property
    def drained_at(self) -> datetime | None:
        """By our clock; slurmctld dates by its own."""
        if self.record is None or self.record.reason_changed_at is None:
            return None
        assert isinstance(self.slurm, Snapshot)
        return self.record.reason_changed_at + self.slurm.clock_behind

    @property
    def has_moved(self) -> bool:
        """The drain was about an earlier pod of its name."""
        placed, at = self.pod.status.condition("PodScheduled"), self.drained_at
        since = placed.last_transition_time if placed is not None and placed.status == "True" else None
        return since is not None and at is not None and since > at

    def empties(self, now: datetime) -> Tells:
        """Whether nothing runs there and nothing will start: the gate would let it be removed."""
        verdict = gate(Candidate(self.pod, self.slurm_node, self.slurm, self.state_lost_since), now)
        if isinstance(verdict, Shut):
            cannot_tell = verdict.reason in (
                ShutFor.SLURM_UNREACHABLE,
                ShutFor.OLD_ANSWER,
                ShutFor.STATE_LOST,
            )
            return Tells.UNKNOWN if cannot_tell else Tells.NO
        return Tells.NO if self.takes_jobs else Tells.YES


@dataclass(frozen=True)
class Seen:
    kube_node: KubeNode
    options: NodeOptions = DEFAULTS
    workers: tuple[Worker, ...] = ()
    strangers: tuple[str, ...] = ()  # Pods with a slurmd that are no workers of this API.
    peers: tuple["Seen", ...] = ()  # Other Kubernetes nodes with workers of the same Slurm clusters.
    nodesets: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)  # By Slurm cluster.

    @property
    def meta(self) -> Meta:
        return self.kube_node.metadata

    @property
    def name(self) -> str:
        return self.kube_node.metadata.name

    def mark(self, type_: str) -> Mark:
        for one in self.kube_node.status.conditions:
            if one.type == type_:
                tells = Tells(one.status) if one.status in set(Tells) else Tells.UNKNOWN
                return Mark(tells, one.reason, one.message, one.last_transition_time, is_there=True)
        return Mark()

    @property
    def call(self) -> Tells:
        """Whether the Kubernetes node is to be emptied, for maintenance or for its hardware."""
        marks = [self.mark(self.options.maintenance_condition), self.mark(node_conditions.HARDWARE_SUSPECTED)]
        if any(mark.is_on for mark in marks):
            return Tells.YES
        return Tells.NO if all(mark.is_off for mark in marks) else Tells.UNKNOWN

    @property
    def is_ignored(self) -> bool:
        """Its pods are not drained, by its labels."""
        return any(self.meta.labels.get(key) == value for key, value in self.options.ignored_labels.items())

    @property
    def is_being_emptied(self) -> bool:
        """Whoever empties the Kubernetes node may still be at it, so no job should start there.

        Its cordon comes first and is lifted last. Workers where a person cordoned are drained anyway.
        """
        asked = (node_conditions.DRAIN, node_conditions.REBOOT, node_conditions.DEGRADED)
        has_taint = any(taint.key == node_conditions.DRAIN_TAINT for taint in self.kube_node.spec.taints)
        is_closed = has_taint or self.kube_node.spec.unschedulable
        return is_closed or any(not self.mark(type_).is_off for type_ in asked)

    def empties(self, now: datetime) -> Tells:
        """Whether all its workers are drained and idle; without workers nothing runs there.

        Of a slurmd of another API nobody can tell here, and it may have jobs.
        """
        if self.strangers:
            return Tells.NO
        found = {worker.empties(now) for worker in self.workers}
        return Tells.NO if Tells.NO in found else Tells.UNKNOWN if Tells.UNKNOWN in found else Tells.YES

    @property
    def has_unreachable(self) -> str:
        """Why Slurm does not answer, where it does not."""
        return next((one.slurm.why for one in self.workers if isinstance(one.slurm, Unreachable)), "")


def observe(key: ObjectKey, world: World, options: NodeOptions) -> Seen | None:
    kube_node = world.get(KubeNode, "", key.name)
    if kube_node is None:
        return None
    workers = tuple(_workers(kube_node, world))
    ours = {worker.pod.metadata.uid for worker in workers}
    clusters = {worker.controller for worker in workers}
    return Seen(
        kube_node,
        options,
        workers,
        tuple(pod.metadata.name for pod in _slurmds(kube_node, world) if pod.metadata.uid not in ours),
        nodesets={cluster: frozenset(_nodesets(cluster, world)) for cluster in sorted(clusters)},
    )


def with_peers(seen: Seen, world: World) -> Seen:
    """Also the other Kubernetes nodes of the same Slurm clusters: the brake counts them all."""
    found = []
    for kube_node in world.all(KubeNode):
        if kube_node.metadata.name == seen.name:
            continue
        workers = tuple(one for one in _workers(kube_node, world) if one.controller in seen.nodesets)
        if workers:
            found.append(Seen(kube_node, seen.options, workers))
    return replace(seen, peers=tuple(found))


def _nodesets(cluster: ObjectKey, world: World) -> Iterator[str]:
    for one in world.all(NodeSet, cluster.namespace):
        if one.cluster == cluster.name:
            yield one.metadata.name


def _workers(kube_node: KubeNode, world: World) -> Iterator[Worker]:
    for pod in _slurmds(kube_node, world):
        part = part_of(pod, world)
        if part is None:
            continue
        controller = ObjectKey(pod.metadata.namespace, part.spec.controller)
        served = world.get(Controller, *controller)
        yield Worker(
            pod,
            slurm_node_name(pod),
            part.metadata.name,
            controller,
            world.slurm(*controller),
            served.status.state_lost_since if served is not None else None,
            _recent(world.storage(pod.metadata.uid), world.now),
        )


def _recent(use: StorageUse | None, now: datetime) -> StorageUse | None:
    """An old reading says nothing about now."""
    return use if use is not None and now - use.read_at <= _READ_WITHIN else None


def _slurmds(kube_node: KubeNode, world: World) -> Iterator[Pod]:
    for pod in world.find(Pod, KUBE_NODE_NAME, kube_node.metadata.name):
        if belonging.daemon_of(pod.metadata.labels) == SLURMD and not pod.has_ended:
            yield pod


def part_of(pod: Pod, world: World) -> WorkerPart | None:
    """The part that a worker of this API belongs to; None for every other pod."""
    owner = pod.metadata.owner
    if owner is None or not owner.is_a(WorkerPart.KIND) or belonging.daemon_of(pod.metadata.labels) != SLURMD:
        return None
    part = world.get(WorkerPart, pod.metadata.namespace, owner.name)
    if part is None or not any(one.group == names.GROUP for one in part.metadata.owner_references):
        return None
    return part
