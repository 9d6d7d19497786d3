"""Lines of slurm.conf for workers: a size that would cost jobs waits alone, and nothing else behind it.

slurmctld ends the jobs of a node whose CPUs change, or a GRES they hold (seen on 26.05.5). So while a worker
of a NodeSet may have a job, its line keeps the size that it has. Whatever else changes goes on.
"""

from collections.abc import Iterator, Sequence

from slurm_operator.api.slinky.controller import good_config
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import first_come
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.plan.step import NOTHING, Step, wait
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.node_lines import node_line
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.inventory import SLURM_CONF
from slurm_operator.slurm.conf.lines import Pair, Setting, parse, render
from slurm_operator.slurm.hostlist import expand
from slurm_operator.slurm.snapshot import Snapshot

# Options of a node's line that say what jobs may be given there. Memory and features may change under them.
GIVEN_TO_JOBS = (
    "CPUs",
    "Procs",
    "Boards",
    "Sockets",
    "SocketsPerBoard",
    "CoresPerSocket",
    "ThreadsPerCore",
    "CoreSpecCount",
    "CpuSpecList",
    "Gres",
)

# While jobs are in the way of a size.
_LOOK_SECONDS = 10.0
_JOBS_TOLD = 5

_SIZE = {key.lower() for key in GIVEN_TO_JOBS}


def line_of(nodeset: NodeSet, seen: Seen) -> str:
    """The line for the workers of a NodeSet; empty where it has none."""
    slurm_nodes = seen.static_nodes.get(nodeset.metadata.name)
    if not slurm_nodes:
        return ""
    wanted = node_line(nodeset, slurm_nodes)
    kept = _held(nodeset, seen)
    return wanted if kept is None else _with_size(wanted, kept)


def next_step(seen: Seen) -> Step:
    """Tells which sizes wait, and for which jobs."""
    for nodeset in first_come(seen.nodesets):
        if _held(nodeset, seen) is not None:
            name = nodeset.metadata.name
            message = (
                f"If the CPUs or GRES of NodeSet {name} change, slurmctld ends its jobs; "
                f"{_trouble(nodeset, seen)}. Its lines in slurm.conf keep their size until then; "
                "other changes go on."
            )
            return wait(
                f"size of NodeSet {name}",
                Reason.JOBS_AT_STAKE,
                message,
                seconds=_LOOK_SECONDS,
                asks_slurm=True,
            )
    return NOTHING


def _held(nodeset: NodeSet, seen: Seen) -> tuple[Pair, ...] | None:
    """The size that its workers have and keep for now; None where nothing is in the way of the wanted one."""
    slurm_nodes = seen.static_nodes.get(nodeset.metadata.name) or ()
    there = _sizes_there(slurm_nodes, seen)
    if not slurm_nodes or len(there) != 1 or there[0] == _size(_parsed(node_line(nodeset, slurm_nodes))):
        return None  # Without a line there is nothing to keep; several are not ours.
    return there[0] if _trouble(nodeset, seen) else None


def _sizes_there(slurm_nodes: Sequence[str], seen: Seen) -> list[tuple[Pair, ...]]:
    """The sizes that these workers have in the mounted file, each once."""
    found: list[tuple[Pair, ...]] = []
    for line in _mounted(seen):
        if not set(slurm_nodes).isdisjoint(_names(line)) and _size(line) not in found:
            found.append(_size(line))
    return found


def _mounted(seen: Seen) -> Iterator[Setting]:
    child = seen.children.get((kinds.CONFIG_MAP, seen.controller.child_names.config))
    texts = (child.body.get("data") or {}) if child is not None else {}
    if SLURM_CONF in texts:
        yield from load(texts, SLURM_CONF).all("NodeName")


def _trouble(nodeset: NodeSet, seen: Seen) -> str:
    """Why its size cannot change now; empty when no worker of it has a job."""
    is_first = seen.children.get((kinds.CONFIG_MAP, good_config(seen.controller))) is None
    if is_first and not seen.ready_pods and not seen.has_taken_over_workers:
        return ""  # slurmctld has not worked yet.
    if not isinstance(seen.slurm, Snapshot):
        return f"whether it has any cannot be seen: {seen.slurm.why}"
    slurm_nodes = seen.static_nodes.get(nodeset.metadata.name) or ()
    ids = sorted({job.job_id for name in slurm_nodes for job in seen.slurm.jobs_on(name)})
    return f"unfinished jobs: {first_few(ids, _JOBS_TOLD)}" if ids else ""


def _with_size(line: str, size: tuple[Pair, ...]) -> str:
    first, *others = _parsed(line).pairs
    rest = [pair for pair in others if pair.key.lower() not in _SIZE]
    return render([Setting((first, *size, *rest))]).rstrip("\n")


def _size(line: Setting) -> tuple[Pair, ...]:
    return tuple(pair for pair in line.pairs[1:] if pair.key.lower() in _SIZE)


def _parsed(line: str) -> Setting:
    [setting] = parse(line, "").settings
    return setting


def _names(line: Setting) -> list[str]:
    try:
        return expand(line.value)
    except ValueError:
        return []
