"""`status`: a Slurm cluster on one screen, as data. What waits, and why, are the operator's own words."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.conditions import DEGRADED, PROGRESSING, READY, Condition, Truth
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.cluster_status import JobCounts
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.nodeset_status import NodeSetStatus
from slurm_operator.conditions import Reason
from slurm_operator.insight.clusters import DAEMONS, Part, SlurmCluster, Whole, controller_of
from slurm_operator.insight.collect import Limited, Unseen
from slurm_operator.insight.drain.decide import SLURM_USER, reason_text
from slurm_operator.insight.evaluation import Verdict
from slurm_operator.insight.older_pods import less_confined
from slurm_operator.insight.slurm.unusable import Unusable, all_unusable, counted_unusable, nodes_of
from slurm_operator.insight.status.waiting_jobs import Pending, pending
from slurm_operator.insight.text.output import counted, node_state
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.cluster import counts
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING
from slurm_operator.reconcilers.shared.dependencies import known_controllers, listed_controllers
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

# How much of a long list fits on one screen; -o json has all of it.
SHOWN_JOBS = 5

# Everything is ready, and no job could start.
TAKES_NO_JOBS = "TakesNoJobs"

# Why a rollout stands still, in the words of Progressing.
_HALTED = (Reason.AWAITS_DELETION, Reason.AWAITS_WINDOW, Reason.AWAITS_WORKERS)

# Their status says which Slurm it is.
_VERSIONED = (Cluster, Controller)

# It names a Controller that is not there.
NO_CONTROLLER = "NoController"

_STATES = ("allocated", "mixed", "idle", "draining", "drained", "down", "other")


class Health(wire.Record):
    """How something stands: Ready, Starting, Degraded … and why."""

    state: str
    message: str = ""

    @property
    def is_good(self) -> bool:
        return self.state == READY


class Daemon(wire.Record):
    """The pods of one daemon of one object."""

    daemon: str
    kind: str
    name: str
    pods: int
    ready: int
    restarts: int
    health: Health
    is_seen: bool = True  # Whether the reader may see pods at all.


class Workers(wire.Record):
    """One NodeSet."""

    name: str
    wanted: int
    pods: int
    ready: int
    registered: int
    busy: int
    draining: int
    health: Health


class Nodes(wire.Record):
    """Slurm nodes in one state for one reason."""

    state: str
    count: int
    nodes: str
    why: str = ""
    since: datetime | None = None


class Waiting(wire.Record):
    """Something that the operator holds back, in its own words."""

    subject: str
    reason: str
    message: str


class Status(wire.Record):
    """One Slurm cluster."""

    kind: str
    namespace: str
    name: str
    health: Health
    created: datetime | None = None
    slurm_version: str = ""
    unreachable: str = ""
    last_counted: str = ""
    is_hidden: bool = False  # Slurm is there, and the reader may not ask it.
    asked_as: str = ""
    private: tuple[str, ...] = ()  # What PrivateData keeps from that user.
    daemons: tuple[Daemon, ...] = ()
    node_sets: tuple[Workers, ...] = ()
    nodes: tuple[Nodes, ...] = ()
    running: int = 0
    pending: int = 0
    other_jobs: int = 0
    waiting_jobs: tuple[Pending, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    older_pods: int = 0  # Made by an earlier version, which confined daemons less.


def status(
    cluster: SlurmCluster,
    verdicts: Iterable[Verdict],
    unseen: Sequence[Unseen] = (),
    limited: Limited | None = None,
) -> Status:
    """Everything that is worth a line about one Slurm cluster.

    Where we have not seen all that the operator sees, its plans cannot be told from here, and what it has
    said itself is taken instead. `limited` is as whom Slurm was asked, if not as its own user.
    """
    rights = [one.right for one in unseen if one.right]
    has_pods = not any(right.startswith("list pods") for right in rights)
    is_hidden = any(right.startswith(("get secrets", "get services/proxy")) for right in rights)
    meta = cluster.about.metadata
    slurm = cluster.slurm
    jobs = counts.jobs(slurm) if isinstance(slurm, Snapshot) else JobCounts()
    return Status(
        kind=type(cluster.about).__name__,
        namespace=meta.namespace,
        name=meta.name,
        health=_with_unusable(health(cluster.about), _unusable(cluster)),
        created=meta.creation_timestamp,
        slurm_version=slurm.release if isinstance(slurm, Snapshot) else _last_version(cluster),
        unreachable=slurm.why if isinstance(slurm, Unreachable) else "",
        last_counted=_last_counted(cluster) if isinstance(slurm, Unreachable) or limited else "",
        is_hidden=is_hidden and isinstance(slurm, Unreachable),
        asked_as=limited.user if limited is not None else "",
        private=limited.private if limited is not None else (),
        daemons=tuple(_daemons(cluster, has_pods=has_pods)),
        node_sets=tuple(_workers(cluster, node_set, has_pods=has_pods) for node_set in cluster.node_sets),
        nodes=tuple(_nodes(slurm)) if isinstance(slurm, Snapshot) else (),
        running=jobs.running,
        pending=jobs.pending,
        other_jobs=jobs.suspended + jobs.other,
        waiting_jobs=tuple(pending(slurm.jobs.values())) if isinstance(slurm, Snapshot) else (),
        waiting=tuple(_said_to_wait(cluster) if rights else _waiting(cluster, verdicts)),
        older_pods=len(less_confined(cluster.pods)),
    )


def stray_status(part: Part, world: World) -> Status:
    """A part that belongs to no Slurm cluster, in a line of its own."""
    meta, own = part.metadata, health(part)
    found = Health(state=own.state, message="No Controller in this namespace names it in accountingRef.")
    if not isinstance(part, Accounting | Controller):
        there = listed_controllers(known_controllers(world, meta.namespace))
        missing = (
            f"spec.controllerRef names Controller {controller_of(part)!r}, which does not exist; {there}"
        )
        found = Health(state=NO_CONTROLLER, message=missing)
    return Status(
        kind=type(part).__name__,
        namespace=meta.namespace,
        name=meta.name,
        health=found,
        created=meta.creation_timestamp,
    )


def _last_version(cluster: SlurmCluster) -> str:
    """As the operator has written it down; of a SlurmCluster it stands in its Controller."""
    told = (
        one.status.slurm_version for one in (cluster.about, *cluster.parts) if isinstance(one, _VERSIONED)
    )
    return next(told, "")


def health(about: Whole | Part) -> Health:
    """What an object says about itself, its trouble before all else."""
    told: dict[str, Condition] = {one.type: one for one in about.status.conditions}
    ready = told.get(READY)
    if about.metadata.is_terminating:
        return Health(state="Leaving", message=_message(told.get(PROGRESSING)))
    if ready is None:
        return Health(state="Unknown", message="No operator has looked at it yet.")
    if about.status.observed_generation < about.metadata.generation:
        return Health(state="Changing", message="The operator has not looked at the latest change yet.")
    if _holds(told.get(DEGRADED)):
        return Health(state=DEGRADED, message=_message(told[DEGRADED]))
    if not _holds(ready):
        return Health(state="NotReady", message=_message(ready))
    if _holds(told.get(PROGRESSING)):
        return Health(state=PROGRESSING, message=_message(told[PROGRESSING]))
    return Health(state=READY, message=_message(ready))


def _holds(condition: Condition | None) -> bool:
    return condition is not None and condition.status is Truth.TRUE


def _message(condition: Condition | None) -> str:
    return condition.message or condition.reason if condition is not None else ""


def _daemons(cluster: SlurmCluster, *, has_pods: bool) -> Iterator[Daemon]:
    for part in cluster.parts:
        if isinstance(part, NodeSet):
            continue
        by_daemon = _by_daemon(cluster.pods_of(part), DAEMONS[type(part)])
        for daemon, pods in by_daemon.items():
            yield Daemon(
                daemon=daemon,
                kind=type(part).__name__,
                name=part.metadata.name,
                pods=len(pods),
                ready=sum(1 for pod in pods if pod.is_ready),
                restarts=sum(map(_restarts, pods)),
                health=_with_troubles(health(part), pods),
                is_seen=has_pods,
            )


def _by_daemon(pods: Sequence[Pod], daemons: Sequence[str]) -> dict[str, list[Pod]]:
    """The pods of each daemon; the first daemon always has a line, others when they have pods."""
    found = {
        daemon: [pod for pod in pods if belonging.daemon_of(pod.metadata.labels) == daemon]
        for daemon in daemons
    }
    return {daemon: there for daemon, there in found.items() if there or daemon == daemons[0]}


def _with_troubles(health: Health, pods: Sequence[Pod]) -> Health:
    """A trouble of a pod says more than that pods are not ready."""
    found = troubles(pods)
    if not found or health.state == DEGRADED:
        return health
    state = "NotReady" if health.is_good else health.state
    return Health(state=state, message="; ".join(found))


def _unusable(cluster: SlurmCluster) -> Unusable | None:
    """Why none of its nodes takes jobs, as Slurm says, or as the operator has counted."""
    slurm = cluster.slurm
    if isinstance(slurm, Snapshot):
        return all_unusable(slurm.nodes.values())
    return counted_unusable(cluster.about)


def _unusable_workers(
    node_set: NodeSet, pods: Sequence[Pod], slurm: Snapshot | Unreachable
) -> Unusable | None:
    if isinstance(slurm, Snapshot):
        return all_unusable(nodes_of(node_set, pods, slurm))
    return counted_unusable(node_set)


def _with_unusable(health: Health, found: Unusable | None) -> Health:
    """Ready pods whose nodes take no jobs are of no use to anybody."""
    if found is None or health.state not in (READY, PROGRESSING):
        return health
    progress = f" {health.message}" if health.state == PROGRESSING else ""
    return Health(state=TAKES_NO_JOBS, message=f"Ready, but {found.says}.{progress}")


def _restarts(pod: Pod) -> int:
    return sum(container.restart_count for container in pod.status.container_statuses)


def _workers(cluster: SlurmCluster, node_set: NodeSet, *, has_pods: bool) -> Workers:
    told, pods = node_set.status, cluster.pods_of(node_set)
    return Workers(
        name=node_set.metadata.name,
        wanted=told.desired,
        pods=len(pods) if has_pods else told.replicas,
        ready=sum(1 for pod in pods if pod.is_ready) if has_pods else told.ready_replicas,
        registered=told.registered_replicas,
        busy=told.slurm_allocated,
        draining=_leaving(told),
        health=_with_unusable(
            _with_troubles(health(node_set), pods), _unusable_workers(node_set, pods, cluster.slurm)
        ),
    )


def _leaving(told: NodeSetStatus) -> int:
    """Workers that are being removed; one that is only cordoned stays."""
    return max(0, told.draining - sum(1 for drain in told.drains if drain.reason not in LEAVING))


def _nodes(slurm: Snapshot) -> Iterator[Nodes]:
    groups: defaultdict[tuple[str, str], list[SlurmNode]] = defaultdict(list)
    for node in slurm.nodes.values():
        groups[counts.node_word(node.state), _why(node)].append(node)
    for (state, why), nodes in sorted(
        groups.items(), key=lambda item: (_STATES.index(item[0][0]), item[0][1])
    ):
        times = [node.reason_changed_at for node in nodes if why and node.reason_changed_at is not None]
        yield Nodes(
            state=state,
            count=len(nodes),
            nodes=compress(node.name for node in nodes),
            why=why,
            since=min(times, default=None),
        )


def _why(node: SlurmNode) -> str:
    """Why a node takes no jobs."""
    if node.state.is_drain:
        who = f" (by {node.reason_set_by})" if node.reason_set_by not in ("", SLURM_USER) else ""
        return f"{reason_text(node) or 'no reason given'}{who}"
    word = counts.node_word(node.state)
    if word == "down":
        return node.reason or node_state(node.state)
    return node_state(node.state) if word == "other" else ""


def _last_counted(cluster: SlurmCluster) -> str:
    """Nodes and jobs as the operator has written them down; without a Cluster the nodes of its NodeSets."""
    about = cluster.about
    if not isinstance(about, Cluster):
        return _counted_workers(cluster.node_sets)
    if about.status.nodes is None or about.status.jobs is None:
        return ""
    nodes, jobs = about.status.nodes, about.status.jobs
    states = ", ".join(f"{number} {state}" for state in _STATES if (number := getattr(nodes, state)))
    kinds = f" ({states})" if states else ""
    return f"{counted(nodes.total, 'node')}{kinds}, {jobs.running} running and {jobs.pending} pending jobs"


def _counted_workers(node_sets: Sequence[NodeSet]) -> str:
    told = [node_set.status for node_set in node_sets]
    if not told:
        return ""
    counts_ = {
        "with jobs": sum(one.slurm_allocated for one in told),
        "without": sum(one.slurm_idle for one in told),
        "drained": sum(one.slurm_drain for one in told),
        "down": sum(one.slurm_down for one in told),
    }
    states = ", ".join(f"{number} {state}" for state, number in counts_.items() if number)
    nodes = counted(sum(one.registered_replicas for one in told), "node")
    return f"{nodes} ({states})" if states else nodes


def _said_to_wait(cluster: SlurmCluster) -> Iterator[Waiting]:
    """What the objects themselves say that they are waiting for."""
    for about in (cluster.about, *(part for part in cluster.parts if part is not cluster.about)):
        for one in about.status.conditions:
            if one.type == PROGRESSING and _holds(one):
                subject = f"{type(about).__name__} {about.metadata.name}"
                yield Waiting(subject=subject, reason=one.reason, message=one.message)
        if isinstance(about, NodeSet):
            yield from _cordoned(about)


def _waiting(cluster: SlurmCluster, verdicts: Iterable[Verdict]) -> Iterator[Waiting]:
    """What the operator's own plans for this cluster's objects hold back right now."""
    parts = [part.metadata for part in cluster.parts]
    makers = [meta.owner.uid for meta in parts if meta.owner is not None]
    ours = {cluster.about.metadata.uid, *(meta.uid for meta in parts), *makers}
    for verdict in verdicts:
        if verdict.about.metadata.uid not in ours:
            continue
        for wait in verdict.plan.waits:
            subject = f"{verdict.name}: {wait.subject}" if wait.subject not in verdict.name else verdict.name
            yield Waiting(subject=subject, reason=wait.reason, message=wait.message)
        yield from _halted(verdict)
        if isinstance(verdict.about, NodeSet):
            yield from _cordoned(verdict.about)


def _halted(verdict: Verdict) -> Iterator[Waiting]:
    """A rollout that goes on only when somebody else does something: no plan waits for that."""
    said = verdict.condition(PROGRESSING)
    if said is not None and said.reason in _HALTED:
        yield Waiting(subject=verdict.name, reason=said.reason, message=said.message)


def _cordoned(node_set: NodeSet) -> Iterator[Waiting]:
    """Workers that somebody took out of service, and whose jobs go on."""
    for drain in node_set.status.drains:
        if drain.reason and drain.reason not in LEAVING and drain.jobs:
            jobs = "job " + drain.jobs[0] if len(drain.jobs) == 1 else "jobs " + ", ".join(drain.jobs)
            yield Waiting(
                subject=f"NodeSet {node_set.metadata.name}: {drain.slurm_node}",
                reason=drain.reason,
                message=f"{drain.message}; waiting for {jobs}",
            )
