"""What tests of node controllers share: Kubernetes nodes with workers, conditions, and what Slurm says of them.

`World` plays a day: what was decided is done in it. The rebooter, the provider and people are played by tests.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet as NebiusNodeSet
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey, OwnerReference
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    KubeNode,
    KubeNodeSpec,
    KubeNodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Taint,
)
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.actions import Action, DeleteKubeNode, PatchObject, Wait, WriteSlurm
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nebius import kubenode
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen
from slurm_operator.reconcilers.nebius.kubenode.options import DEFAULTS, NodeOptions
from slurm_operator.safety.write_screening import screen
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from slurm_operator.slurm.writes import DrainNodes, ResumeNodes
from testing.slurmclusters import manifest, read
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = "smallest"
SLURM = ObjectKey("ns", CLUSTER)
LONG_AGO = NOW - timedelta(days=1)


def condition(
    type_: str, status: str = "True", reason: str = "", since: datetime | None = LONG_AGO
) -> PodCondition:
    return PodCondition(type=type_, status=status, reason=reason, last_transition_time=since)


def kube_node(
    name: str = "n0", *conditions: PodCondition, made_at: datetime = LONG_AGO, **meta: Any
) -> KubeNode:
    ready = () if any(one.type == "Ready" for one in conditions) else (condition("Ready"),)
    return KubeNode(
        metadata=Meta(
            name=name,
            uid=f"uid-of-{name}-{made_at:%H%M}",
            resource_version="1",
            creation_timestamp=made_at,
            **meta,
        ),
        status=KubeNodeStatus(conditions=(*ready, *conditions)),
    )


def pod(name: str, on: str, *, placed_at: datetime = LONG_AGO, nodeset: str = "cpu") -> Pod:
    """A worker's pod, with a slurmd that runs."""
    running = ContainerState(running=ContainerStateRunning(started_at=placed_at))
    owner = OwnerReference(
        api_version=WorkerPart.KIND.api_version,
        kind="NodeSet",
        name=nodeset,
        uid=f"part-{nodeset}",
        controller=True,
    )
    return Pod(
        metadata=Meta(
            name=name,
            namespace="ns",
            uid=f"uid-of-{name}-on-{on}",
            resource_version="1",
            creation_timestamp=placed_at,
            labels={"app.kubernetes.io/name": "slurmd"},
            owner_references=(owner,),
        ),
        spec=PodSpec(node_name=on, hostname=name),
        status=PodStatus(
            phase="Running",
            pod_ip=f"10.0.0.{sum(map(ord, name + on)) % 250}",
            conditions=(condition("PodScheduled", since=placed_at), condition("Ready", since=placed_at)),
            container_statuses=(ContainerStatus(name="slurmd", ready=True, started=True, state=running),),
        ),
    )


def slurm_node(
    worker: Pod, *words: str, reason: str = "", at: datetime | None = NOW, **fields: Any
) -> SlurmNode:
    """The record by which this pod registered. `root` gave its reason, as checks and slurmd do."""
    return SlurmNode(
        name=worker.metadata.name,
        state=NodeState.of(*(words or ("IDLE",))),
        address=worker.status.pod_ip,
        reason=reason,
        reason_changed_at=at if reason else None,
        slurmd_start_time=worker.metadata.creation_timestamp,
        **{"reason_set_by": "root" if reason else "", **fields},
    )


@cache
def _nodeset() -> tuple[NebiusNodeSet, WorkerPart]:
    """The NodeSet, and the part that it became."""
    nodeset = read(manifest("NodeSet", "cpu", spec__clusterName=CLUSTER))
    assert isinstance(nodeset, NebiusNodeSet)
    owner = {"apiVersion": NebiusNodeSet.KIND.api_version, "kind": "NodeSet", "name": "cpu", "uid": "u"}
    meta = {"name": "cpu", "namespace": "ns", "uid": "part-cpu", "ownerReferences": [owner]}
    return nodeset, codec.read(WorkerPart, {"metadata": meta, "spec": {"controllerRef": {"name": CLUSTER}}})


@dataclass
class World:
    """One SlurmCluster with the NodeSet `cpu`, one worker on each Kubernetes node, unless told otherwise."""

    nodes: dict[str, KubeNode] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    records: dict[str, SlurmNode] = field(default_factory=dict)
    jobs: dict[int, SlurmJob] = field(default_factory=dict)
    options: NodeOptions = DEFAULTS
    now: datetime = NOW
    unreachable: str = ""
    asked_at: datetime | None = None
    more: list[Any] = field(default_factory=list)
    storage: dict[str, float] = field(default_factory=dict)  # Percent of its limit, by worker.
    storage_read_at: datetime | None = None
    deleted: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    # ---- What there is

    def add(self, node: KubeNode, *workers: str) -> "World":
        self.nodes[node.metadata.name] = node
        for name in workers:
            self.place(name, node.metadata.name, placed_at=LONG_AGO)
        return self

    def place(self, name: str, on: str, placed_at: datetime | None = None) -> None:
        """A pod of this name starts there and registers; Slurm keeps its record, with state and reason."""
        self.pods[name] = made = pod(name, on, placed_at=placed_at or self.now)
        before = self.records.get(name)
        fresh = slurm_node(made)
        if before is not None:
            fresh = wire.replace(
                before, address=made.status.pod_ip, slurmd_start_time=made.metadata.creation_timestamp
            )
        self.records[name] = fresh

    def drained(
        self, name: str, reason: str, at: datetime | None = None, *words: str, **fields: Any
    ) -> "World":
        """Somebody drained it."""
        said = slurm_node(
            self.pods[name], *(words or ("IDLE", "DRAIN")), reason=reason, at=at or self.now, **fields
        )
        self.records[name] = said
        return self

    def runs(self, name: str, job_id: int = 7) -> None:
        """A job runs there."""
        job = SlurmJob(job_id=job_id, state=JobState.of("RUNNING"), user="ada", nodes=(name,))
        self.jobs[job_id] = job
        words = set(self.records[name].state.words) - {"IDLE"} | {"MIXED"}
        self.records[name] = wire.replace(self.records[name], state=NodeState.of(*words))

    def ends(self, job_id: int = 7) -> None:
        for name in self.jobs.pop(job_id).nodes:
            words = set(self.records[name].state.words) - {"MIXED"} | {"IDLE"}
            self.records[name] = wire.replace(self.records[name], state=NodeState.of(*words))

    def resume(self, name: str) -> None:
        """A person does."""
        words = set(self.records[name].state.words) - {"DRAIN"}
        self.records[name] = wire.replace(
            self.records[name],
            state=NodeState.of(*words),
            reason="",
            reason_set_by="",
            reason_changed_at=None,
        )

    def says(self, node: str, type_: str, status: str = "True", reason: str = "", message: str = "") -> None:
        """Somebody sets a condition of a Kubernetes node."""
        there = self.nodes[node].status.conditions
        before = next((one for one in there if one.type == type_), None)
        since = before.last_transition_time if before is not None and before.status == status else self.now
        made = PodCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since
        )
        self._set_conditions(node, [*(one for one in there if one.type != type_), made])

    def unsays(self, node: str, type_: str) -> None:
        self._set_conditions(node, [one for one in self.nodes[node].status.conditions if one.type != type_])

    def _set_conditions(self, node: str, conditions: Iterable[PodCondition]) -> None:
        self.nodes[node] = wire.replace(self.nodes[node], status=KubeNodeStatus(conditions=tuple(conditions)))

    def taint(self, node: str, *, on: bool = True) -> None:
        """The rebooter empties the Kubernetes node, or has done with it."""
        taints = (Taint(key=names.DRAIN_TAINT, value="true", effect="NoExecute"),) if on else ()
        self.nodes[node] = wire.replace(self.nodes[node], spec=KubeNodeSpec(unschedulable=on, taints=taints))

    def annotate(self, node: str, **notes: str) -> None:
        said = {f"slurm.nebius.ai/{key.replace('_', '-')}": value for key, value in notes.items()}
        meta = wire.replace(self.nodes[node].metadata, annotations=said)
        self.nodes[node] = wire.replace(self.nodes[node], metadata=meta)

    def mark(self, node: str, type_: str) -> tuple[str, str] | None:
        """Status and reason."""
        found = (one for one in self.nodes[node].status.conditions if one.type == type_)
        return next(((one.status, one.reason) for one in found), None)

    # ---- What is decided, and done

    def world(self) -> HandmadeWorld:
        asked_at = self.asked_at or self.now
        slurm = Snapshot(
            nodes=dict(self.records),
            jobs=dict(self.jobs),
            jobs_by_node=jobs_by_node(self.jobs.values()),
            nodes_asked_at=asked_at,
            jobs_asked_at=asked_at,
        )
        there = Unreachable(since=self.now, why=self.unreachable) if self.unreachable else slurm
        things = [*_nodeset(), *self.nodes.values(), *self.pods.values(), *self.more]
        read_at = self.storage_read_at or self.now
        uses = {
            self.pods[name].metadata.uid: StorageUse(
                used_bytes=int(10 * used), limit_bytes=1000, read_at=read_at
            )
            for name, used in self.storage.items()
        }
        return HandmadeWorld(things=things, slurms={SLURM: there}, now=self.now, storage_uses=uses)

    def decide(self, node: str = "n0") -> tuple[Seen, Plan]:
        seen = kubenode.reconciler(self.options).observe(ObjectKey("", node), self.world())
        assert seen is not None
        return seen, kubenode.reconciler(self.options).decide(seen, self.now)

    def passes(self, *nodes: str) -> "World":
        """Until nothing more is decided about any Kubernetes node; a minute passes with each round."""
        for _ in range(10):
            plans = [self.decide(node)[1] for node in nodes or sorted(self.nodes)]
            deeds = [one for plan in plans for one in plan.actions() if not isinstance(one, Wait)]
            for deed in deeds:
                self.told.append(f"{type(deed).__name__} {deed.reason}: {deed.message}")
                self.perform(deed)
            if not deeds:
                return self
            self.now += timedelta(minutes=1)
        raise AssertionError(f"it never comes to rest: {self.told[-4:]}")

    def perform(self, action: Action) -> None:
        match action:
            case WriteSlurm(write=DrainNodes() | ResumeNodes() as write):
                self._write(write)
            case PatchObject(key=key, operations=operations, subresource="status"):
                self._patch(key[1], operations)
            case DeleteKubeNode(name=name, workers=workers):
                assert set(self._pods_on(name)) == {worker.key[1] for worker in workers}
                self.deleted.append(name)
                self.vanish(name)
            case _:
                raise AssertionError(f"nobody expected {action}")

    def vanish(self, node: str) -> None:
        """The Kubernetes node and the pods on it are gone."""
        del self.nodes[node]
        for name in self._pods_on(node):
            del self.pods[name]

    def _pods_on(self, node: str) -> list[str]:
        return [name for name, one in self.pods.items() if one.spec.node_name == node]

    def _write(self, write: DrainNodes | ResumeNodes) -> None:
        send, answers = screen(write, self.records)
        assert all(answer.is_good for answer in answers.values()), answers
        for name in send:
            if isinstance(write, DrainNodes):
                words = {*self.records[name].state.words, "DRAIN"}
                self.records[name] = wire.replace(
                    self.records[name],
                    state=NodeState.of(*words),
                    reason=write.reason,
                    reason_set_by="slurm",
                    reason_changed_at=self.now,
                )
            else:
                self.resume(name)

    def _patch(self, node: str, operations: Iterable[dict[str, Any]]) -> None:
        version = self.nodes[node].metadata.resource_version
        conditions = list(self.nodes[node].status.conditions)
        for one in operations:
            path, value = one["path"], one["value"]
            if one["op"] == "test":
                assert (path, value) == ("/metadata/resourceVersion", version)
            elif path == "/status/conditions/-":
                conditions.append(_read(value))
            else:
                conditions[int(path.rpartition("/")[2])] = _read(value)
        types = [one.type for one in conditions]
        assert len(types) == len(set(types)), f"a condition stands there twice: {types}"
        self._set_conditions(node, conditions)


def _read(value: dict[str, Any]) -> PodCondition:
    return wire.decode(wire.encode(value), PodCondition)


def writes(plan: Plan) -> list[Any]:
    return [action.write for action in plan.actions() if isinstance(action, WriteSlurm)]


def wanted(plan: Plan) -> dict[str, tuple[str, str]]:
    """The conditions that a plan sets, with status and reason."""
    return {
        operation["value"]["type"]: (operation["value"]["status"], operation["value"]["reason"])
        for action in plan.actions()
        if isinstance(action, PatchObject)
        for operation in action.operations
        if isinstance(operation["value"], dict)
    }


def waits(plan: Plan) -> dict[str, str]:
    return {wait.reason: wait.message for wait in plan.waits}


def deletions(plan: Plan) -> list[str]:
    return [action.name for action in plan.actions() if isinstance(action, DeleteKubeNode)]
