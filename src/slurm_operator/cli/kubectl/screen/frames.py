"""`top`: nodes and jobs of one Slurm cluster, as a screen that is drawn again and again."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.text import Text

from slurm_operator import wire
from slurm_operator.insight.text.output import (
    BAD,
    BUSY,
    DIM,
    GOOD,
    HEAD,
    Cell,
    joined,
    node_state,
    paragraph,
    span,
    table,
    title,
)
from slurm_operator.reconcilers.cluster import counts
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

_NODE_COLUMNS = ("NODE", "STATE", "CPUS", "LOAD", "MEMORY", "GRES", "JOBS", "ON")
_JOB_COLUMNS = ("JOB", "USER", "PARTITION", "STATE", "RAN", "LEFT", "NODES", "NAME")

# What is no row of a node or a job: titles, column names, what was left out.
_FRAME_LINES = 10

_STYLES = {"idle": GOOD, "mixed": GOOD, "allocated": GOOD, "draining": BUSY, "drained": BUSY, "down": BAD}
# What somebody looks for first.
_URGENCY = ("down", "draining", "drained", "other", "allocated", "mixed", "idle")


class NodeRow(wire.Record):
    """One Slurm node."""

    name: str
    state: str
    word: str
    cpus: int
    allocated_cpus: int
    load: float | None
    memory_mb: int
    allocated_memory_mb: int
    gres: str
    jobs: tuple[int, ...]
    kube_node: str = ""


class JobRow(wire.Record):
    """One job that is not finished."""

    job_id: int
    user: str
    partition: str
    state: str
    word: str
    ran_s: int | None
    left_s: int | None
    nodes: str
    name: str
    why: str = ""


class Frame(wire.Record):
    """One moment."""

    cluster: str
    at: datetime
    slurm_version: str = ""
    unreachable: str = ""
    nodes: tuple[NodeRow, ...] = ()
    jobs: tuple[JobRow, ...] = ()


def frame(cluster: str, slurm: Snapshot | Unreachable, kube_nodes: dict[str, str], now: datetime) -> Frame:
    """What to show; `kube_nodes` says on which machine each Slurm node runs."""
    if isinstance(slurm, Unreachable):
        return Frame(cluster=cluster, at=now, unreachable=slurm.why)
    nodes = (_node(node, slurm, kube_nodes) for node in slurm.nodes.values())
    jobs = (_job(job, now) for job in slurm.jobs.values())
    return Frame(
        cluster=cluster,
        at=now,
        slurm_version=slurm.release,
        nodes=tuple(sorted(nodes, key=lambda row: (_URGENCY.index(row.word), row.name))),
        jobs=tuple(sorted(jobs, key=lambda row: (row.word != "running", row.word, row.job_id))),
    )


def _node(node: SlurmNode, slurm: Snapshot, kube_nodes: dict[str, str]) -> NodeRow:
    return NodeRow(
        name=node.name,
        state=node_state(node.state),
        word=counts.node_word(node.state),
        cpus=node.effective_cpus or node.cpus,
        allocated_cpus=node.allocated_cpus,
        load=node.vitals.cpu_load,
        memory_mb=node.real_memory_mb,
        allocated_memory_mb=node.allocated_memory_mb,
        gres=node.gres_used or node.gres,
        jobs=tuple(job.job_id for job in slurm.jobs_on(node.name)),
        kube_node=kube_nodes.get(node.name, ""),
    )


def _job(job: SlurmJob, now: datetime) -> JobRow:
    word = counts.job_word(job.state)
    has_begun = word != "pending" and job.start_time is not None
    left = job.deadline - now if has_begun and job.deadline is not None else None
    return JobRow(
        job_id=job.job_id,
        user=job.user or str(job.user_id),
        partition=job.partition,
        state=str(job.state),
        word=word,
        ran_s=int((now - job.start_time).total_seconds()) if has_begun and job.start_time else None,
        left_s=int(left.total_seconds()) if left is not None else None,
        nodes=compress(job.own_nodes),
        name=job.name,
        why=job.state_reason if word == "pending" else "",
    )


def screen(shown: Frame, height: int | None = None) -> Text:
    """The frame as people read it; with a height, as many lines of nodes and of jobs as fit."""
    head = f"{shown.cluster}   {shown.at:%H:%M:%S} UTC"
    version = f"   Slurm {shown.slurm_version}" if shown.slurm_version else ""
    parts = [paragraph(Cell(head, HEAD), version)]
    if shown.unreachable:
        return joined([*parts, paragraph(Cell(f"Slurm cannot be asked: {shown.unreachable}", BAD))])
    room = max(1, (height - _FRAME_LINES) // 2) if height is not None else None
    counted = [_counted("nodes", shown.nodes), _counted("jobs", shown.jobs)]
    rows = map(_node_cells, shown.nodes[:room])
    parts += [paragraph("   ".join(counted)), title("Nodes", apart=True)]
    parts += _cut(table(_NODE_COLUMNS, rows), shown.nodes, room)
    if shown.jobs:
        rows = map(_job_cells, shown.jobs[:room])
        parts += [title("Jobs", apart=True), *_cut(table(_JOB_COLUMNS, rows), shown.jobs, room)]
    else:
        parts.append(paragraph(Cell("No job is running or waiting.", DIM), apart=True))
    return joined(parts)


def _counted(noun: str, rows: Sequence[NodeRow] | Sequence[JobRow]) -> str:
    found = [row.word for row in rows]
    each = [f"{found.count(word)} {word}" for word in dict.fromkeys(sorted(found))]
    return f"{len(found)} {noun}" + (f" ({', '.join(each)})" if each else "")


def _cut(whole: Text, rows: Sequence[object], room: int | None) -> Iterator[Text]:
    yield whole
    if room is not None and len(rows) > room:
        yield paragraph(Cell(f"… and {len(rows) - room} more", DIM))


def _node_cells(row: NodeRow) -> list[str | Cell]:
    return [
        row.name,
        Cell(row.state, _STYLES.get(row.word, BUSY)),
        f"{row.allocated_cpus}/{row.cpus}",
        f"{row.load:.2f}" if row.load is not None else "",
        f"{_gib(row.allocated_memory_mb)}/{_gib(row.memory_mb)}",
        row.gres,
        ",".join(map(str, row.jobs)),
        row.kube_node,
    ]


def _job_cells(row: JobRow) -> list[str | Cell]:
    state: str | Cell = Cell(row.state, GOOD if row.word == "running" else BUSY)
    where = row.nodes or (f"({row.why})" if row.why else "")
    return [
        str(row.job_id),
        row.user,
        row.partition,
        state,
        _span(row.ran_s),
        _span(row.left_s) or ("no limit" if row.ran_s is not None else ""),
        where,
        row.name,
    ]


def _gib(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f}G"


def _span(seconds: int | None) -> str:
    return span(timedelta(seconds=seconds)) if seconds is not None else ""
