"""Pictures of whole Slurm clusters, made by the operator's own decisions, and what can go wrong in them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import NodeSetPowerState
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.insight.explain.chain import Case, Explanation
from slurm_operator.insight.explain.lookup import explain
from slurm_operator.insight.forecast.kubernetes import NEW
from slurm_operator.insight.forecast.simulate import Play
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    KubeNode,
    KubeNodeStatus,
    Pod,
    PodCondition,
    Secret,
)
from slurm_operator.manifests.platform import StorageClass
from slurm_operator.operator import reconcilers
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.runtime.report.reporter import full_status
from slurm_operator.runtime.settings import Settings
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from testing.slurmclusters import read

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NS = "ns"
SLURM = ObjectKey(NS, "demo")
RECONCILERS = reconcilers(Settings())
OF_BOTH_GROUPS = reconcilers(Settings(groups=registry.GROUPS))

SPEC = {
    "nodeSets": [{"name": "cpu", "replicas": 2}],
    "accounting": {"external": {"host": "db.example", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}},
    "logins": [{"name": "login"}],
}  # fmt: skip


def empty() -> Picture:
    """A Kubernetes with three machines, a default StorageClass and a Secret for a database."""
    made = Picture(now=NOON, is_whole=True, served={kinds.STORAGE_CLASS})
    made.put(
        StorageClass(
            metadata=Meta(name="disk", annotations={"storageclass.kubernetes.io/is-default-class": "true"})
        )
    )
    for name in ("node-1", "node-2", "node-3"):
        ready = PodCondition(type="Ready", status="True")
        made.put(KubeNode(metadata=Meta(name=name, uid=name), status=KubeNodeStatus(conditions=(ready,))))
    password = Secret(metadata=Meta(name="db", namespace=NS), digests={"password": "d1"})
    made.secrets[ObjectKey(NS, "db")] = password
    return made


def cluster(spec: dict[str, Any] | None = None, name: str = "demo") -> Cluster:
    meta = {"name": name, "namespace": NS, "uid": f"uid-of-{name}", "generation": 1, "resourceVersion": "1"}
    return codec.read(Cluster, {"metadata": meta, "spec": spec or SPEC})


def working(spec: dict[str, Any] | None = None) -> Picture:
    """The picture some seconds after somebody made this Cluster."""
    made = empty()
    made.put(cluster(spec))
    Play(made, RECONCILERS).run()
    snapshot = made.slurms[SLURM]
    assert isinstance(snapshot, Snapshot)
    partitioned = {
        name: wire.replace(node, partitions=("all",), cpus=4, effective_cpus=4, version="26.05.5")
        for name, node in snapshot.nodes.items()
    }
    made.slurms[SLURM] = wire.replace(snapshot, nodes=partitioned, release="26.05.5", cluster="ns_demo")
    return retold(made)


def empty_of_both_groups() -> Picture:
    made = empty()
    made.served |= {kinds.JOB, NodeSetPowerState.KIND}
    return made


def working_slurmcluster(nodeset: Manifest, cluster: Manifest, *, is_populated: bool = True) -> Picture:
    """The picture some seconds after somebody made these of the second API, and its Job has populated the root."""
    made = empty_of_both_groups()
    for body in (cluster, nodeset):
        made.put(read(body))
    play = Play(made, OF_BOTH_GROUPS)
    play.kubernetes.populates = is_populated
    play.run()
    return retold(made, reconcilers_=OF_BOTH_GROUPS)


def existing(made: Picture, reconcilers_: Sequence[Reconciler[Any]] = RECONCILERS) -> Picture:
    """The same when its pods and objects exist already, as the API server would have them."""
    for type_, things in made.records.items():
        for key, thing in list(things.items()):
            if thing.metadata.uid.startswith(NEW):
                things[key] = wire.replace(thing, metadata=_born(thing.metadata))
        made.records[type_] = things
    for children in made.parts.values():
        for key, child in list(children.items()):
            meta = _born(child.metadata)
            body = {**child.body, "metadata": {**child.body["metadata"], "uid": meta.uid}}
            children[key] = wire.replace(child, metadata=meta, body=body)
    return retold(made, reconcilers_=reconcilers_)


def _born(meta: Meta) -> Meta:
    owners = tuple(wire.replace(owner, uid=owner.uid.replace(NEW, "old-")) for owner in meta.owner_references)
    return wire.replace(meta, uid=meta.uid.replace(NEW, "old-"), owner_references=owners)


def retold(
    made: Picture,
    refused: dict[tuple[str, str], str] | None = None,
    reconcilers_: Sequence[Reconciler[Any]] = RECONCILERS,
) -> Picture:
    """After the operator has looked at everything twice. What it tried is done, unless `refused` says why not."""
    for _ in range(2):
        for reconciler in reconcilers_:
            for thing in made.all(reconciler.about):
                seen = reconciler.observe(key_of(thing), made)
                plan = reconciler.decide(seen, made.now)
                error = (refused or {}).get((reconciler.kind.kind, thing.metadata.name))
                tried = [action for action in plan.actions() if type(action).__name__ in ("Apply", "Create")]
                failed = (Failure(action=tried[0], error=error),) if error and tried else ()
                report = reconciler.status(seen, plan, Outcome(failed=failed))
                body = codec.plain(thing)
                generation = thing.metadata.generation
                status = full_status(report, body.get("status") or {}, generation=generation, now=made.now)
                made.put(codec.read(reconciler.about, {**body, "status": status}))
    return made


def explanation(
    made: Picture,
    what: str,
    jobs: tuple[JobDetail, ...] = (),
    reconcilers_: Sequence[Reconciler[Any]] = RECONCILERS,
) -> Explanation:
    """With `jobs`, all that Slurm says of jobs when somebody asks for one."""
    kind, _, name = what.partition("/")
    return explain(kind, name, Case(made, reconcilers_, NS, jobs={SLURM: jobs} if jobs else {}))


# ---- What goes wrong


def pod(made: Picture, name: str) -> Pod:
    found = made.get(Pod, NS, name)
    assert found is not None, [one.metadata.name for one in made.all(Pod)]
    return found


def one_of(made: Picture, prefix: str) -> str:
    return next(one.metadata.name for one in made.all(Pod) if one.metadata.name.startswith(prefix))


def unready(made: Picture, name: str, **status: Any) -> None:
    """A pod that is not ready; its workload counts one less."""
    old = pod(made, name)
    ready = PodCondition(type="Ready", status="False", last_transition_time=made.now)
    changed = wire.replace(old.status, **{"conditions": (ready,), **status})
    made.put(wire.replace(old, status=changed))
    for kind in (kinds.STATEFUL_SET, kinds.DEPLOYMENT):
        for child in list(made.parts[kind].values()):
            if name.startswith(f"{child.metadata.name}-"):
                count = {**child.body["status"], "readyReplicas": 0, "availableReplicas": 0}
                made.put_child(kind, wire.replace(child, body={**child.body, "status": count}))


def unscheduled(made: Picture, name: str, why: str) -> None:
    scheduled = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=why)
    unready(made, name, phase="Pending", container_statuses=(), conditions=(scheduled,), pod_ip="")


def waiting(
    made: Picture,
    name: str,
    container: str,
    reason: str,
    message: str = "",
    last: str = "",
    init: bool = False,
) -> None:
    """A container that does not start, with what it said the last time."""
    old = pod(made, name)
    field = "init_container_statuses" if init else "container_statuses"
    ended = (
        ContainerState(terminated=ContainerStateTerminated(exit_code=1, message=last))
        if last
        else ContainerState()
    )
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    statuses = tuple(
        wire.replace(one, ready=False, state=state, last_state=ended) if one.name == container else one
        for one in getattr(old.status, field)
    )
    assert any(one.name == container for one in statuses), [one.name for one in statuses]
    unready(made, name, **{field: statuses, "phase": "Running" if not init else "Pending"})


def slurm(
    made: Picture,
    *,
    nodes: dict[str, dict[str, Any] | None] | None = None,
    jobs: tuple[SlurmJob, ...] = (),
    **fields: Any,
) -> None:
    """Change what Slurm says: fields of nodes by name (None drops one), and these jobs."""
    snapshot = made.slurms[SLURM]
    assert isinstance(snapshot, Snapshot)
    changed = dict(snapshot.nodes)
    for name, given in (nodes or {}).items():
        if given is None:
            changed.pop(name)
        else:
            changed[name] = wire.replace(changed[name], **given)
    made.slurms[SLURM] = wire.replace(
        snapshot, nodes=changed, jobs={job.job_id: job for job in jobs}, jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=made.now, jobs_asked_at=made.now, **fields,
    )  # fmt: skip


def state(*words: str) -> NodeState:
    return NodeState.of(*words, "DYNAMIC_NORM")


def job(
    job_id: int, *nodes: str, words: Sequence[str] = ("RUNNING",), minutes: int | None = 60, **fields: Any
) -> SlurmJob:
    """A job of ada in partition all, that began at noon."""
    limit = timedelta(minutes=minutes) if minutes is not None else None
    begun = NOON if nodes else None
    return SlurmJob(
        job_id=job_id, state=JobState.of(*words), user="ada", partition="all", nodes=nodes, start_time=begun,
        time_limit=limit, **fields,
    )  # fmt: skip
