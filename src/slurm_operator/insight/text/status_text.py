"""`status` as people read it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.text import Text

from slurm_operator.insight.collect import Unseen, hidden
from slurm_operator.insight.status.cluster_status import SHOWN_JOBS, Daemon, Health, Nodes, Status, Workers
from slurm_operator.insight.status.waiting_jobs import Pending
from slurm_operator.insight.text.output import (
    BAD,
    BUSY,
    DIM,
    GOOD,
    HEAD,
    Cell,
    ago,
    counted,
    joined,
    paragraph,
    table,
    title,
)

_DAEMON_COLUMNS = ("DAEMON", "OF", "READY", "RESTARTS", "STATE")
_NODE_SET_COLUMNS = ("NODE SET", "WANTED", "READY", "IN SLURM", "BUSY", "LEAVING", "STATE")

_WHOLE = ("Cluster", "SlurmCluster", "Controller")

_GOOD_STATES = ("Ready", "idle", "allocated", "mixed")
_BUSY_STATES = ("Progressing", "Changing", "Leaving", "draining", "drained")


def screen(statuses: Sequence[Status], unseen: Sequence[Unseen], now: datetime, operator: str = "") -> Text:
    """Everything about these clusters, what could not be looked at, and what to know of the operator."""
    parts = [joined([*_cluster(one, now), Text("\n")]) for one in statuses]
    return joined([*parts, *([paragraph(Cell(operator, BUSY))] if operator else []), *_unseen(unseen)])


def styled(state: str) -> Cell:
    """A state in its colour."""
    if state in _GOOD_STATES:
        return Cell(state, GOOD)
    return Cell(state, BUSY if state in _BUSY_STATES else BAD)


def _cluster(status: Status, now: datetime) -> Iterator[Text]:
    version = f"   Slurm {status.slurm_version}" if status.slurm_version else ""
    age = f"   {ago(status.created, now)} old" if status.created else ""
    name = f"{status.kind} {status.namespace}/{status.name}"
    yield paragraph(Cell(name, HEAD), "   ", styled(status.health.state), f"{version}{age}")
    yield paragraph(status.health.message, indent=True)
    if status.kind not in _WHOLE:  # A part of no cluster has nothing else to tell.
        return
    if status.daemons:
        yield title("Daemons", apart=True)
        yield table(_DAEMON_COLUMNS, map(_daemon, status.daemons), indent=True)
        yield from _troubles([(f"{one.kind} {one.name}", one.health) for one in status.daemons])
    if status.node_sets:
        yield title("Node sets", apart=True)
        yield table(_NODE_SET_COLUMNS, map(_workers, status.node_sets), indent=True)
        yield from _troubles([(f"NodeSet {one.name}", one.health) for one in status.node_sets])
    if status.older_pods:
        yield paragraph(
            f"{counted(status.older_pods, 'pod')} made by an earlier version, with fewer limits; "
            "`kubectl slurm doctor` says how to have them made again.",
            apart=True,
        )
    yield from _slurm(status, now)
    yield title("Waiting", apart=True)
    if not status.waiting:
        yield paragraph("The operator waits for nothing.", indent=True)
    for wait in status.waiting:
        yield paragraph(Cell(wait.subject, BUSY), f"   {wait.reason}: {wait.message}", indent=True)


def _slurm(status: Status, now: datetime) -> Iterator[Text]:
    """What only Slurm itself knows."""
    yield title("Nodes", apart=True)
    if status.is_hidden:
        if status.last_counted:
            yield paragraph(f"The operator counts {status.last_counted}.", indent=True)
        yield paragraph(Cell(f"You may not ask Slurm itself: {status.unreachable}.", BUSY), indent=True)
        yield paragraph(
            "With --token-secret it is asked as the Slurm user whose token the Secret has.", indent=True
        )
        return
    if status.unreachable:
        yield paragraph(Cell(f"Slurm cannot be asked: {status.unreachable}", BAD), indent=True)
        if status.last_counted:
            yield paragraph(f"The operator last counted {status.last_counted}.", indent=True)
        return
    if status.nodes:
        rows = (_nodes(one, now) for one in status.nodes)
        yield table(("STATE", "NODES", "NAMES", "WHY"), rows, indent=True)
    else:
        yield paragraph("None is registered.", indent=True)
    yield title("Jobs", apart=True)
    yield paragraph(_jobs(status), indent=True)
    if "jobs" in status.private:
        who = status.asked_as or "the user of this token"
        total = f" The operator counts {status.last_counted}." if status.last_counted else ""
        told = f"PrivateData in slurm.conf hides jobs of others from {who}.{total}"
        yield paragraph(Cell(told, BUSY), indent=True)
    if status.waiting_jobs:
        yield table(("PENDING", "JOBS", "OF", "WHY"), map(_pending, status.waiting_jobs), indent=True)


def _daemon(one: Daemon) -> list[str | Cell]:
    ready = Cell(f"{one.ready}/{one.pods}", GOOD if one.ready == one.pods > 0 else BAD)
    if not one.is_seen:
        return [one.daemon, f"{one.kind} {one.name}", "?", "?", styled(one.health.state)]
    return [one.daemon, f"{one.kind} {one.name}", ready, str(one.restarts), styled(one.health.state)]


def _workers(one: Workers) -> list[str | Cell]:
    numbers = (one.wanted, one.ready, one.registered, one.busy, one.draining)
    return [one.name, *map(str, numbers), styled(one.health.state)]


def _troubles(found: Sequence[tuple[str, Health]]) -> Iterator[Text]:
    """Why something is not simply ready, once for each object."""
    for name, health in dict(found).items():
        if not health.is_good:
            yield paragraph(Cell(f"{name}: ", DIM), health.message, indent=True)


def _nodes(one: Nodes, now: datetime) -> list[str | Cell]:
    since = f" ({ago(one.since, now)})" if one.since is not None else ""
    return [styled(one.state), str(one.count), one.nodes, f"{one.why}{since}"]


def _jobs(status: Status) -> str:
    if not status.running + status.pending + status.other_jobs:
        return "None that you may see." if "jobs" in status.private else "None."
    other = f", {status.other_jobs} suspended, starting or ending" if status.other_jobs else ""
    return f"{status.running} running, {status.pending} pending{other}."


def _pending(one: Pending) -> list[str | Cell]:
    more = len(one.jobs) - SHOWN_JOBS
    jobs = ",".join(map(str, one.jobs[:SHOWN_JOBS])) + (f" and {more} more" if more > 0 else "")
    users = ",".join(one.users[:SHOWN_JOBS]) + (" …" if len(one.users) > SHOWN_JOBS else "")
    why = f"{one.reason}: {one.meaning}" if one.meaning else one.reason
    return [str(one.count), jobs, users, why]


def _unseen(unseen: Sequence[Unseen]) -> Iterator[Text]:
    """What is missing on the screen because the reader may not look; kinds that are not there are no news."""
    told = hidden(unseen)
    if told:
        yield paragraph(
            Cell("You do not see everything.", BUSY), " `kubectl slurm doctor` lists your rights."
        )
        yield from (paragraph(one, indent=True) for one in told)
