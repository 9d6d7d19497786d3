"""Workers, machines and a Slurm cluster in a few words, for tests of decisions."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta, OwnerReference
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
from slurm_operator.plan.actions import Action, Create, DeleteWorker, PatchObject, Wait, WriteSlurm
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from slurm_operator.slurm.writes import DeleteNodes, DrainNodes, ResumeNodes, subjects
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STARTED = NOW - timedelta(hours=1)
KEY = ObjectKey("ns", "gpu")
CONTROLLER = ObjectKey("ns", "slurm")
NOTES = ("facts of", "traits of")  # Lanes that change no worker, only what is written about it.


def nodeset(**spec: Any) -> NodeSet:
    meta: dict[str, Any] = {"name": "gpu", "namespace": "ns", "uid": "set-uid", "generation": 1, "resourceVersion": "1",
            "finalizers": [names.WORKERS_FINALIZER]}  # fmt: skip
    if spec.pop("deleted", False):
        meta["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    return codec.read(NodeSet, {"metadata": meta, "spec": {"controllerRef": {"name": "slurm"}, **spec}})


def controller() -> Controller:
    return codec.read(Controller, {"metadata": {"name": "slurm", "namespace": "ns", "uid": "c"}, "spec": {}})


def revision_of(nodeset_: NodeSet, *others: Child) -> Child:
    """The ControllerRevision that the NodeSet, as it is, would get."""
    body = revisions.manifest(nodeset_, revisions.current(nodeset_, others))
    meta = body["metadata"]
    return Child(
        metadata=Meta(
            name=meta["name"], namespace="ns", uid=meta["name"], labels=meta["labels"], annotations=meta["annotations"],
            owner_references=(_owner(),),
        ),
        body=body,
    )  # fmt: skip


def _owner() -> OwnerReference:
    return OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid="set-uid", controller=True
    )


def worker(ordinal: int | str, *, on: str = "n1", ready: bool = True, revision: str = "r1", phase: str = "Running",
           started: bool = True, age: timedelta = timedelta(hours=1), mode: str = "StatefulSet", name: str = "", hostname: str = "",
           annotations: dict[str, str] | None = None, protected: bool = True, terminating: bool = False, grace: int = 3600,
           ready_for: timedelta | None = None, unready_for: timedelta | None = None) -> Pod:  # fmt: skip
    name = name or f"gpu-{ordinal}"
    labels = {
        names.APP_NAME: "slurmd", names.LABEL_SCALING_MODE: mode, names.LABEL_REVISION: revision, names.LABEL_HASH: "theirs",
        names.LABEL_POD_HOSTNAME: hostname or name, **({names.LABEL_POD_PROTECT: "true"} if protected else {}),
    }  # fmt: skip
    running = ContainerState(running=ContainerStateRunning(started_at=STARTED))
    statuses = (ContainerStatus(name="slurmd", ready=ready, state=running),) if started else ()
    condition = PodCondition(
        type="Ready",
        status="True" if ready else "False",
        last_transition_time=NOW - (ready_for or unready_for or age),
    )
    return Pod(
        metadata=Meta(
            name=name, namespace="ns", uid=uid_of(name), resource_version="5", labels=labels,
            annotations={RESOURCES_DIGEST: resources_digest(nodeset())} | (annotations or {}), creation_timestamp=NOW - age, owner_references=(_owner(),),
            deletion_timestamp=NOW + timedelta(seconds=grace) if terminating else None,
            deletion_grace_period_seconds=grace if terminating else None,
        ),
        spec=PodSpec(node_name=on, hostname=hostname or name),
        status=PodStatus(phase=phase, pod_ip=ip_of(name), conditions=(condition,), container_statuses=statuses),
    )  # fmt: skip


def uid_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def ip_of(name: str) -> str:
    return f"10.0.0.{sum(name.encode()) % 250}"


def slurm_node(
    pod: Pod, *words: str, reason: str = "", changed_at: datetime | None = None, **fields: Any
) -> SlurmNode:
    return SlurmNode(
        name=pod.metadata.labels[names.LABEL_POD_HOSTNAME], state=NodeState.of(*words, "DYNAMIC_NORM"),
        address=pod.status.pod_ip, reason=reason, reason_changed_at=changed_at,
        **{"slurmd_start_time": STARTED, "features": ("gpu",), "active_features": ("gpu",), **fields},
    )  # fmt: skip


def job(
    job_id: int,
    *nodes: str,
    words: Sequence[str] = ("RUNNING",),
    minutes: int | None = 60,
    required: Iterable[str] = (),
    **fields: Any,
) -> SlurmJob:
    limit = timedelta(minutes=minutes) if minutes is not None else None
    return SlurmJob(
        job_id=job_id, state=JobState.of(*words), user="ada", nodes=nodes, start_time=NOW, time_limit=limit,
        required_nodes=tuple(required), **fields,
    )  # fmt: skip


def slurm(
    *nodes: SlurmNode, jobs: Sequence[SlurmJob] = (), reservations: Iterable[Reservation] = ()
) -> Snapshot:
    return Snapshot(
        nodes={node.name: node for node in nodes}, jobs={job.job_id: job for job in jobs},
        jobs_by_node=jobs_by_node(jobs), nodes_asked_at=NOW, jobs_asked_at=NOW,
        reservations={reservation.name: reservation for reservation in reservations},
    )  # fmt: skip


def machine(
    name: str,
    *,
    cordoned: bool = False,
    taints: Iterable[tuple[str, str]] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    conditions: Iterable[PodCondition] = (),
) -> KubeNode:
    return KubeNode(
        metadata=Meta(name=name, uid=name, labels=labels or {}, annotations=annotations or {}),
        spec=KubeNodeSpec(
            unschedulable=cordoned, taints=tuple(Taint(key=key, effect=effect) for key, effect in taints)
        ),
        status=KubeNodeStatus(conditions=tuple(conditions)),
    )


def world(
    *things: Any, slurm_: Snapshot | Unreachable | None = None, revisions_: Iterable[Child] = ()
) -> HandmadeWorld:
    made = HandmadeWorld(things=list(things), now=NOW)
    made.children_[kinds.CONTROLLER_REVISION] = list(revisions_)
    if slurm_ is not None:
        made.slurms[CONTROLLER] = slurm_
    return made


def planned(made: HandmadeWorld) -> Plan:
    seen = RECONCILER.observe(KEY, made)
    assert seen is not None
    return RECONCILER.decide(seen, NOW)


def told(made: HandmadeWorld) -> list[str]:
    """The plan as a short story: one line per action, stages in order. Without what is only noted somewhere."""
    lanes = (lane for lane in planned(made).lanes if not lane.name.startswith(NOTES))
    return [line(action) for lane in lanes for action in lane.actions()]


def line(action: Action) -> str:
    """One action in a few words."""
    match action:
        case Create(manifest=manifest):
            return f"create {manifest['kind']} {manifest['metadata']['name']}"
        case DeleteWorker(key=key, proof=proof):
            return f"delete {key.name} ({type(proof).__name__})"
        case WriteSlurm(write=DrainNodes(nodes=nodes, reason=reason)):
            said = OurReason.read(reason)
            return f"drain {','.join(nodes)} for {said.cause if said is not None else reason}"
        case WriteSlurm(write=ResumeNodes(nodes=nodes)):
            return f"resume {','.join(nodes)}"
        case WriteSlurm(write=DeleteNodes(nodes=nodes)):
            return f"forget {','.join(nodes)}"
        case WriteSlurm(write=write):
            return f"{type(write).__name__} {','.join(subjects(write))}"
        case PatchObject(reason=reason, key=key):
            return f"{reason} {key.name}"
        case Wait(subject=subject, reason=reason):
            return f"wait {subject}: {reason}"
        case _:
            return type(action).__name__


def ours(pod: Pod, cause: str) -> str:
    return str(OurReason(cause=cause, text="x", pod_uid=pod.metadata.uid))
