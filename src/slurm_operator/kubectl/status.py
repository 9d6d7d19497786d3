"""`status`: a Slurm cluster on one screen, as data. What waits, and why, are the operator's own words."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.cluster import Cluster
from slurm_operator.api.cluster_status import JobCounts
from slurm_operator.api.conditions import DEGRADED, PROGRESSING, READY, Condition, Truth
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.kubectl.clusters import DAEMONS, Part, SlurmCluster
from slurm_operator.kubectl.drain import SLURM_USER, said
from slurm_operator.kubectl.show import counted, node_state
from slurm_operator.kubectl.status_jobs import Pending, pending
from slurm_operator.kubectl.verdict import Verdict
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.troubles import troubles
from slurm_operator.reconcilers.cluster import counts
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

# How much of a long list fits on one screen; -o json has all of it.
SHOWN_JOBS = 5

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
    daemons: tuple[Daemon, ...] = ()
    node_sets: tuple[Workers, ...] = ()
    nodes: tuple[Nodes, ...] = ()
    running: int = 0
    pending: int = 0
    other_jobs: int = 0
    waiting_jobs: tuple[Pending, ...] = ()
    waiting: tuple[Waiting, ...] = ()


def status(cluster: SlurmCluster, verdicts: Iterable[Verdict], *, is_whole: bool = True) -> Status:
    """Everything that is worth a line about one Slurm cluster.

    `is_whole` says that we have seen all that the operator sees: else its plans cannot be told from here, and
    what it has said itself is taken instead.
    """
    meta = cluster.about.metadata
    slurm = cluster.slurm
    jobs = counts.jobs(slurm) if isinstance(slurm, Snapshot) else JobCounts()
    return Status(
        kind=type(cluster.about).__name__,
        namespace=meta.namespace,
        name=meta.name,
        health=health(cluster.about),
        created=meta.creation_timestamp,
        slurm_version=slurm.release if isinstance(slurm, Snapshot) else cluster.about.status.slurm_version,
        unreachable=slurm.why if isinstance(slurm, Unreachable) else "",
        last_counted=_last_counted(cluster.about) if isinstance(slurm, Unreachable) else "",
        daemons=tuple(_daemons(cluster)),
        node_sets=tuple(_workers(cluster, node_set) for node_set in cluster.node_sets),
        nodes=tuple(_nodes(slurm)) if isinstance(slurm, Snapshot) else (),
        running=jobs.running,
        pending=jobs.pending,
        other_jobs=jobs.suspended + jobs.other,
        waiting_jobs=tuple(pending(slurm.jobs.values())) if isinstance(slurm, Snapshot) else (),
        waiting=tuple(_waiting(cluster, verdicts) if is_whole else _said_to_wait(cluster)),
    )


def health(about: Cluster | Part) -> Health:
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


def _daemons(cluster: SlurmCluster) -> Iterator[Daemon]:
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
            )


def _by_daemon(pods: Sequence[Pod], daemons: Sequence[str]) -> dict[str, list[Pod]]:
    """The pods of each daemon; the first daemon always has a line, others when they have pods."""
    found = {
        daemon: [pod for pod in pods if pod.metadata.labels["app.kubernetes.io/name"] == daemon]
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


def _restarts(pod: Pod) -> int:
    return sum(container.restart_count for container in pod.status.container_statuses)


def _workers(cluster: SlurmCluster, node_set: NodeSet) -> Workers:
    told, pods = node_set.status, cluster.pods_of(node_set)
    return Workers(
        name=node_set.metadata.name,
        wanted=told.desired,
        pods=len(pods),
        ready=sum(1 for pod in pods if pod.is_ready),
        registered=told.registered_replicas,
        busy=told.slurm_allocated,
        draining=told.draining,
        health=_with_troubles(health(node_set), pods),
    )


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
        return f"{said(node) or 'no reason given'}{who}"
    word = counts.node_word(node.state)
    if word == "down":
        return node.reason or node_state(node.state)
    return node_state(node.state) if word == "other" else ""


def _last_counted(about: Cluster | Part) -> str:
    """Nodes and jobs as the operator has written them down."""
    if not isinstance(about, Cluster) or about.status.nodes is None or about.status.jobs is None:
        return ""
    nodes, jobs = about.status.nodes, about.status.jobs
    states = ", ".join(f"{number} {state}" for state in _STATES if (number := getattr(nodes, state)))
    kinds = f" ({states})" if states else ""
    return f"{counted(nodes.total, 'node')}{kinds}, {jobs.running} running and {jobs.pending} pending jobs"


def _said_to_wait(cluster: SlurmCluster) -> Iterator[Waiting]:
    """What the objects themselves say that they are waiting for."""
    for about in (cluster.about, *(part for part in cluster.parts if part is not cluster.about)):
        for one in about.status.conditions:
            if one.type == PROGRESSING and _holds(one):
                subject = f"{type(about).__name__} {about.metadata.name}"
                yield Waiting(subject=subject, reason=one.reason, message=one.message)


def _waiting(cluster: SlurmCluster, verdicts: Iterable[Verdict]) -> Iterator[Waiting]:
    """What the operator's own plans for this cluster's objects hold back right now."""
    ours = {cluster.about.metadata.uid, *(part.metadata.uid for part in cluster.parts)}
    for verdict in verdicts:
        if verdict.about.metadata.uid not in ours:
            continue
        for wait in verdict.plan.waits:
            subject = f"{verdict.name}: {wait.subject}" if wait.subject not in verdict.name else verdict.name
            yield Waiting(subject=subject, reason=wait.reason, message=wait.message)
