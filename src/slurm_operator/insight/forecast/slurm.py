"""Slurm in a picture: what slurmctld would answer after our writes, when slurmds register and jobs end."""

from collections.abc import Collection, Iterable, Sequence

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.insight.forecast.kubernetes import NEW
from slurm_operator.insight.forecast.slurm_records import (
    added,
    drained,
    is_over,
    nodes_of,
    partitions,
    registered,
    reserved,
    resumed,
    updated,
    without_jobs,
)
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.world import OWNER
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.records.registration_check import Declared
from slurm_operator.safety.gate import is_record_of
from slurm_operator.slurm.conf.lines import Conf, parse
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import is_our_reason
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState
from slurm_operator.slurm.writes import (
    AddNodes,
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
                now = self.picture.now
                self._nodes(key, snapshot, [drained(one, reason, now) for one in nodes_of(snapshot, nodes)])
            case ResumeNodes(nodes=nodes, over=over, from_down=from_down):
                there = nodes_of(snapshot, nodes)
                ours = [node for node in there if is_our_reason(node.reason) or node.reason in over]
                self._nodes(key, snapshot, [resumed(node, from_down=from_down) for node in ours])
            case UpdateNodes(nodes=nodes):
                self._nodes(key, snapshot, [updated(node, write) for node in nodes_of(snapshot, nodes)])
            case DeleteNodes(nodes=nodes):
                left = {name: node for name, node in snapshot.nodes.items() if name not in nodes}
                self._put(key, wire.replace(snapshot, nodes=left))
            case AddNodes(nodes=nodes, conf=conf):
                self._nodes(
                    key, snapshot, [added(name, conf) for name in nodes if name not in snapshot.nodes]
                )
            case Reconfigure():
                self._put(key, self._configured(key, snapshot))
            case RequeueJob(address=address, job_id=job_id) if job_id in snapshot.jobs:
                self._requeue(
                    key, snapshot, [it for it in snapshot.jobs.values() if it.requeue_address == address]
                )
            case CancelJob(job_id=job_id) if job_id in snapshot.jobs:
                self.ended[job_id] = "cancelled"
                self._put(key, without_jobs(snapshot, [job_id]))
            case UpdateJob(job_id=job_id) if job_id in snapshot.jobs:
                self._tell_owner(key, snapshot, write)
            case Reserve() | Unreserve():
                self._put(key, reserved(snapshot, write))
            case _:
                pass

    def pass_time(self, awaited: Collection[tuple[ObjectKey, int]]) -> None:
        """slurmctlds start and read their files, slurmds register, awaited jobs end at their time limit."""
        self._forget()
        for controller in self.picture.all(Controller):
            key = key_of(controller)
            self._start(controller, key)
            snapshot = self.picture.slurms.get(key)
            if isinstance(snapshot, Snapshot):
                now = self.picture.now
                self.picture.slurms[key] = wire.replace(snapshot, nodes_asked_at=now, jobs_asked_at=now)
                self._register(key)
                self._end_jobs(key, awaited)

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
        pod = self.picture.get(Pod, key.namespace, self._first(key))
        return pod.metadata.uid if pod is not None and pod.is_ready else ""

    def _first(self, key: ObjectKey) -> str:
        controller = self.picture.get(Controller, *key)
        return controller_pod(controller, 0) if controller is not None else names.controller_pod(key.name, 0)

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
            ControllerPing(hostname=self._first(key), is_primary=True, is_responding=True),
        )
        return wire.replace(
            snapshot,
            slurmctld_parameters=tuple((conf.last("SlurmctldParameters") or "").split(",")),
            partitions=partitions(conf, snapshot),
            pings=pings,
        )

    def _conf(self, key: ObjectKey) -> Conf | None:
        controller = self.picture.get(Controller, *key)
        config = (
            controller.child_names.config if controller is not None else names.controller_config(key.name)
        )
        child = self.picture.child(kinds.CONFIG_MAP, key.namespace, config)
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
            for pod in self.picture.find(Pod, OWNER, nodeset.metadata.uid):
                name = identity.slurm_node_name(pod)
                record = snapshot.nodes.get(name)
                if not pod.metadata.uid.startswith(NEW) or not pod.is_ready:
                    continue
                if record is None or not is_record_of(record, pod):
                    new.append(registered(name, pod, record, nodeset, declared))
        self._nodes(key, snapshot, new)

    def end(self, key: ObjectKey, jobs: Iterable[SlurmJob]) -> None:
        """These that hold a node are done."""
        snapshot = self.picture.slurms[key]
        assert isinstance(snapshot, Snapshot)
        held = [job.job_id for job in jobs if job.state.holds_node]
        if held:
            self._put(key, without_jobs(snapshot, held))

    def _end_jobs(self, key: ObjectKey, awaited: Collection[tuple[ObjectKey, int]]) -> None:
        """A job that nobody waits for runs on, also beyond its limit.

        Most jobs end sooner than their limit says. If all ended with the first that is waited for, those on
        workers whose turn comes later would be missing from the plan, and really they are waited for too.
        """
        snapshot = self.picture.slurms[key]
        assert isinstance(snapshot, Snapshot)
        wanted = (
            job for job in snapshot.jobs.values() if job.state.is_completing or (key, job.job_id) in awaited
        )
        self.end(key, [job for job in wanted if is_over(job, self.picture.now)])

    def _requeue(self, key: ObjectKey, snapshot: Snapshot, jobs: Sequence[SlurmJob]) -> None:
        """All parts of a pack, or the one job that it is."""
        self.ended |= dict.fromkeys((job.job_id for job in jobs), "requeued")
        waits = {"state": JobState.of("PENDING"), "nodes": (), "batch_host": "", "start_time": None}
        left = without_jobs(snapshot, [job.job_id for job in jobs])
        queued = {job.job_id: wire.replace(job, **waits) for job in jobs}
        self._put(key, wire.replace(left, jobs={**left.jobs, **queued}))

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
