"""Slurm in a picture: what slurmctld would answer after our writes, when slurmds register and jobs end."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.kubectl.picture import Picture
from slurm_operator.kubectl.planning.kubernetes import NEW
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.gate import Worker, is_record_of
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.mismatches import Declared
from slurm_operator.slurm.conf.lines import Conf, parse
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reasons import is_our_reason
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import BUSY, JobState, NodeBase, NodeFlag, NodeState
from slurm_operator.slurm.writes import (
    CancelJob,
    DeleteNodes,
    DrainNodes,
    Reconfigure,
    RequeueJob,
    Reserve,
    ResumeNodes,
    SlurmWrite,
    Unreserve,
    UpdateJob,
    UpdateNodes,
)

# The newest that we know: a slurmctld that does not exist yet is taken for one that can do everything.
_API_VERSION = "v0.0.45"


class Slurm:
    """The Slurm clusters of a picture. Those that could not be seen stay out of sight."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.changes = 0
        self.ended: dict[int, str] = {}  # Jobs that a drain policy ended, and how.
        self._heads: dict[ObjectKey, str] = {}
        for controller in picture.all(Controller):
            self._heads[key_of(controller)] = self._head(key_of(controller))

    def write(self, key: ObjectKey, write: SlurmWrite) -> None:
        snapshot = self.picture.slurms.get(key)
        if not isinstance(snapshot, Snapshot):
            return
        match write:
            case DrainNodes(nodes=nodes, reason=reason):
                self._nodes(
                    key, snapshot, [_drained(node, reason, self.picture.now) for node in _of(snapshot, nodes)]
                )
            case ResumeNodes(nodes=nodes, over=over):
                ours = [
                    node for node in _of(snapshot, nodes) if is_our_reason(node.reason) or node.reason in over
                ]
                self._nodes(key, snapshot, [_resumed(node) for node in ours])
            case UpdateNodes(nodes=nodes):
                self._nodes(key, snapshot, [_updated(node, write) for node in _of(snapshot, nodes)])
            case DeleteNodes(nodes=nodes):
                left = {name: node for name, node in snapshot.nodes.items() if name not in nodes}
                self._put(key, wire.replace(snapshot, nodes=left))
            case Reconfigure():
                self._put(key, self._configured(key, snapshot))
            case RequeueJob(job_id=job_id) | CancelJob(job_id=job_id) if job_id in snapshot.jobs:
                self._end_by_policy(key, snapshot, job_id, is_kept=isinstance(write, RequeueJob))
            case UpdateJob(job_id=job_id) if job_id in snapshot.jobs:
                self._tell_owner(key, snapshot, write)
            case Reserve() | Unreserve():
                self._put(key, _reserved(snapshot, write))
            case _:
                pass

    def pass_time(self) -> None:
        """slurmctlds start and read their files, slurmds register, jobs end when their time is over."""
        self._forget()
        for controller in self.picture.all(Controller):
            key = key_of(controller)
            self._start(controller, key)
            snapshot = self.picture.slurms.get(key)
            if isinstance(snapshot, Snapshot):
                now = self.picture.now
                self.picture.slurms[key] = wire.replace(snapshot, nodes_asked_at=now, jobs_asked_at=now)
                self._register(key)
                self._end_jobs(key)

    def _forget(self) -> None:
        """With its Controller a cluster goes."""
        for key in [key for key in self._heads if self.picture.get(Controller, *key) is None]:
            del self._heads[key]
            self.changes += 1
            self.picture.slurms.pop(key, None)

    def _start(self, controller: Controller, key: ObjectKey) -> None:
        head = self._head(key)
        if controller.spec.external or not head:
            return
        is_new = self._heads.get(key) != head
        self._heads[key] = head
        snapshot = self.picture.slurms.get(key)
        if isinstance(snapshot, Snapshot) and is_new:
            self._put(key, self._configured(key, snapshot))
        elif not isinstance(snapshot, Snapshot) and self._is_served(controller):
            empty = Snapshot(
                nodes={}, jobs={}, nodes_asked_at=self.picture.now, jobs_asked_at=self.picture.now
            )
            self._put(key, self._configured(key, wire.replace(empty, api_version=_API_VERSION)))

    def _head(self, key: ObjectKey) -> str:
        """The pod in charge, by uid; empty when there is none."""
        pod = self.picture.get(Pod, key.namespace, names.controller_pod(key.name, 0))
        return pod.metadata.uid if pod is not None and pod.is_ready else ""

    def _is_served(self, controller: Controller) -> bool:
        """A slurmrestd will answer for it. What exists already and cannot be seen stays unseen."""
        return controller.metadata.uid.startswith(NEW) and any(
            restapi.spec.controller_ref.name == controller.metadata.name and restapi.spec.replicas > 0
            for restapi in self.picture.all(RestApi, controller.metadata.namespace)
        )

    def _configured(self, key: ObjectKey, snapshot: Snapshot) -> Snapshot:
        """After slurmctld has read the files that it mounts."""
        conf = self._conf(key)
        if conf is None:
            return snapshot
        pings = snapshot.pings or (
            ControllerPing(hostname=names.controller_pod(key.name, 0), is_primary=True, is_responding=True),
        )
        return wire.replace(
            snapshot,
            slurmctld_parameters=tuple((conf.last("SlurmctldParameters") or "").split(",")),
            partitions=_partitions(conf, snapshot),
            pings=pings,
        )

    def _conf(self, key: ObjectKey) -> Conf | None:
        child = self.picture.child(kinds.CONFIG_MAP, key.namespace, names.controller_config(key.name))
        text = (child.body.get("data") or {}).get("slurm.conf") if child is not None else None
        return parse(text, "slurm.conf") if text is not None else None

    def _register(self, key: ObjectKey) -> None:
        snapshot = self.picture.slurms[key]
        assert isinstance(snapshot, Snapshot)
        new = []
        for nodeset in self.picture.all(NodeSet, key.namespace):
            if nodeset.spec.controller != key.name:
                continue
            declared = Declared.by(nodeset)
            for pod in self.picture.find(Pod, "owner", nodeset.metadata.uid):
                name = identity.slurm_node_name(pod)
                record = snapshot.nodes.get(name)
                if not pod.metadata.uid.startswith(NEW) or not pod.is_ready:
                    continue
                if record is None or not is_record_of(record, Worker(pod, name, snapshot)):
                    new.append(_registered(name, pod, record, nodeset, declared))
        self._nodes(key, snapshot, new)

    def _end_jobs(self, key: ObjectKey) -> None:
        snapshot = self.picture.slurms[key]
        assert isinstance(snapshot, Snapshot)
        over = [
            job for job in snapshot.jobs.values() if job.state.holds_node and is_over(job, self.picture.now)
        ]
        if over:
            self._put(key, without_jobs(snapshot, [job.job_id for job in over]))

    def _end_by_policy(self, key: ObjectKey, snapshot: Snapshot, job_id: int, *, is_kept: bool) -> None:
        self.ended[job_id] = "requeued" if is_kept else "cancelled"
        job = snapshot.jobs[job_id]
        left = without_jobs(snapshot, [job_id])
        if is_kept:
            queued = wire.replace(job, state=JobState.of("PENDING"), nodes=(), batch_host="", start_time=None)
            left = wire.replace(left, jobs={**left.jobs, job_id: queued})
        self._put(key, left)

    def _tell_owner(self, key: ObjectKey, snapshot: Snapshot, write: UpdateJob) -> None:
        given = {"admin_comment": write.admin_comment, "comment": write.comment, "extra": write.extra}
        job = wire.replace(
            snapshot.jobs[write.job_id], **{name: value for name, value in given.items() if value is not None}
        )
        self._put(key, wire.replace(snapshot, jobs={**snapshot.jobs, write.job_id: job}))

    def _nodes(self, key: ObjectKey, snapshot: Snapshot, nodes: Iterable[SlurmNode]) -> None:
        self._put(
            key, wire.replace(snapshot, nodes={**snapshot.nodes, **{node.name: node for node in nodes}})
        )

    def _put(self, key: ObjectKey, snapshot: Snapshot) -> None:
        if self.picture.slurms.get(key) != snapshot:
            self.changes += 1
            self.picture.slurms[key] = snapshot


def is_over(job: SlurmJob, now: datetime) -> bool:
    """Its time limit has passed; one that is completing is taken to be done soon."""
    return job.state.is_completing or (job.deadline is not None and job.deadline <= now)


def without_jobs(snapshot: Snapshot, job_ids: Iterable[int]) -> Snapshot:
    """The same cluster after these jobs are done."""
    gone = set(job_ids)
    jobs = {job_id: job for job_id, job in snapshot.jobs.items() if job_id not in gone}
    by_node = jobs_by_node(jobs.values())
    held = {name for job in jobs.values() if job.state.holds_node for name in job.named_nodes}
    touched = {
        name for job_id in gone if job_id in snapshot.jobs for name in snapshot.jobs[job_id].named_nodes
    }
    nodes = {
        name: wire.replace(node, state=_idle(node.state)) if name in touched - held else node
        for name, node in snapshot.nodes.items()
    }
    return wire.replace(snapshot, jobs=jobs, jobs_by_node=by_node, nodes=nodes)


def _idle(state: NodeState) -> NodeState:
    words = state.words - BUSY
    return NodeState(words | {NodeBase.IDLE} if state.words & BUSY else words)


def _of(snapshot: Snapshot, nodes: Iterable[str]) -> list[SlurmNode]:
    return [snapshot.nodes[name] for name in nodes if name in snapshot.nodes]


def _drained(node: SlurmNode, reason: str, now: datetime) -> SlurmNode:
    if node.state.is_drain:
        return node
    state = NodeState(node.state.words | {NodeFlag.DRAIN})
    return wire.replace(node, state=state, reason=reason, reason_changed_at=now, reason_set_by="slurm")


def _resumed(node: SlurmNode) -> SlurmNode:
    return wire.replace(node, state=NodeState(node.state.words - {NodeFlag.DRAIN}), reason="")


def _updated(node: SlurmNode, write: UpdateNodes) -> SlurmNode:
    fields = ("comment", "extra", "features", "active_features", "topology", "weight", "gres")
    given = {name: getattr(write, name) for name in fields if getattr(write, name) is not None}
    return wire.replace(node, **given)


def _registered(
    name: str, pod: Pod, record: SlurmNode | None, nodeset: NodeSet, declared: Declared
) -> SlurmNode:
    """A slurmd tells where it is; what else its record says is kept from before, a drain included."""
    running = next(
        one for one in pod.status.container_statuses if one.state.running is not None
    ).state.running
    assert running is not None
    if record is not None:
        return wire.replace(record, address=pod.status.pod_ip, slurmd_start_time=running.started_at)
    return SlurmNode(
        name=name,
        state=NodeState.of("IDLE", "DYNAMIC_NORM"),
        address=pod.status.pod_ip,
        slurmd_start_time=running.started_at,
        features=(nodeset.slurm_name,),
        active_features=(nodeset.slurm_name,),
        cpus=_number(declared.conf.get("cpus", "")) or declared.cpus or 1,
        effective_cpus=declared.cpus or 1,
        real_memory_mb=_number(declared.conf.get("realmemory", "")) or declared.memory_mb or 1,
        gres=declared.conf.get("gres", "") or (f"gpu:{declared.gpus}" if declared.gpus else ""),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _partitions(conf: Conf, snapshot: Snapshot) -> dict[str, Partition]:
    """Those in the file; of one that was there before, what slurmctld said about it is kept."""
    found: dict[str, Partition] = {}
    for line in conf.all("PartitionName"):
        for name in line.value.split(","):
            if name != "DEFAULT":
                before = snapshot.partitions.get(name, Partition(name=name))
                state = (line.option("State") or "UP").upper()
                found[name] = wire.replace(before, state=frozenset({state}))
    return found


def _reserved(snapshot: Snapshot, write: Reserve | Unreserve) -> Snapshot:
    others = {name: one for name, one in snapshot.reservations.items() if name != write.name}
    if isinstance(write, Unreserve):
        return wire.replace(snapshot, reservations=others)
    before = snapshot.reservations.get(write.name, Reservation(name=write.name))
    start = write.start_time or before.start_time
    end = start + (write.duration or timedelta(days=365)) if start is not None else before.end_time
    made = wire.replace(
        before,
        nodes=write.nodes,
        start_time=start,
        end_time=end,
        users=write.users,
        accounts=write.accounts,
        flags=frozenset(write.flags),
    )
    return wire.replace(snapshot, reservations={**others, write.name: made})
