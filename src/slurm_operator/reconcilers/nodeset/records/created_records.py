"""Records that the operator makes itself: Slurm knows such a worker before it starts and after it ended."""

from collections import defaultdict
from collections.abc import Iterable

from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Action, Wait, WriteSlurm
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.shared.node_lines import record_conf
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import AddNodes, ResumeNodes, UpdateNodes

KNOWN = "records"

_NAMES_TOLD = 5


def is_created(nodeset: NodeSet) -> bool:
    return nodeset.spec.records is Records.CREATED


def before_pod(slurm_node: str, seen: Seen, *, is_renewed: bool) -> list[Action]:
    """What there is to do about the record of a worker before its pod comes; a Wait holds the pod up.

    A record that is there is used, whoever made it. Where Slurm cannot be told, slurmd makes its own.
    """
    if seen.nodeset.spec.records is Records.STATIC:
        return _before_its_line(slurm_node, seen)
    if not is_created(seen.nodeset):
        return []
    if not isinstance(seen.slurm, Snapshot):
        message = f"its record has to be made first, and Slurm cannot be asked for that: {seen.slurm.why}"
        return [Wait(subject=slurm_node, reason=Reason.RECORD_NOT_MADE, message=message)]
    if not seen.slurm.can_add_nodes or (slurm_node in seen.slurm.nodes and not is_renewed):
        return []
    return [*add((slurm_node,), seen)]


def _before_its_line(slurm_node: str, seen: Seen) -> list[Action]:
    """slurmd ends at once if its name is not in slurm.conf. While Slurm cannot be asked it may be."""
    if not isinstance(seen.slurm, Snapshot) or slurm_node in seen.slurm.nodes:
        return []
    message = (
        f"waiting for Controller {seen.controller_key.name} to bring {slurm_node} into slurm.conf; its "
        "conditions say what is in the way"
    )
    return [Wait(subject=slurm_node, reason=Reason.LINE_NOT_READ, message=message)]


def known_names(nodeset: NodeSet) -> set[str]:
    """Records that are to be there, with or without a pod.

    Without a list nobody says which numbers stay, and records follow the workers.
    """
    spec = nodeset.spec
    is_listed = spec.records is not Records.REGISTERED and spec.ordinals is not None
    if not is_listed or nodeset.metadata.is_terminating:
        return set()
    return {identity.hostname(ordinal, nodeset) for ordinal in spec.known_numbers}


def without_pods(seen: Seen, coming: set[str]) -> list[Lane]:
    """Makes the records of workers that are switched off, and takes our drain from those that we stopped.

    Not before Slurm itself has given such a node up: until then it would send jobs there.
    """
    slurm = seen.slurm
    if not isinstance(slurm, Snapshot):
        return []
    there = {worker.slurm_node for worker in seen.workers}
    absent = sorted(known_names(seen.nodeset) - there - coming)
    can_add = is_created(seen.nodeset) and slurm.can_add_nodes
    missing = tuple(name for name in absent if can_add and name not in slurm.nodes)
    off = tuple(name for name in absent if name in slurm.nodes and _is_stopped_by_us(name, slurm))
    made = [lane(KNOWN, add(missing, seen))] if missing else []
    moved = [lane("places of stopped workers", _moves(absent, seen, slurm))]
    return [*made, *moved, *([lane("records of stopped workers", [_back(off, seen)])] if off else [])]


def _is_stopped_by_us(name: str, slurm: Snapshot) -> bool:
    record = slurm.nodes[name]
    is_off = record.state.is_powered_off or record.state.is_down
    return record.is_drained_by_us and is_off and slurm.is_current(name) and not slurm.jobs_on(name)


def add(names: Iterable[str], seen: Seen) -> list[WriteSlurm]:
    """Makes these records, each at its place: slurmctld would find it only with its next configuration."""
    return [
        WriteSlurm(
            controller=seen.controller_key,
            write=AddNodes(nodes=together, conf=record_conf(seen.nodeset, place)),
            reason=Reason.RECORD_MADE,
            message=f"adding {_few(together)} to Slurm",
        )
        for place, together in _by_place(names, seen)
    ]


def _moves(names: Iterable[str], seen: Seen, slurm: Snapshot) -> list[Action]:
    """What has no worker now stands where its next one would."""
    away = [
        name
        for name in names
        if name in seen.places
        and name in slurm.nodes
        and slurm.is_current(name)
        and slurm.nodes[name].topology != seen.places[name]
    ]
    return [place_write(together, place, seen) for place, together in _by_place(away, seen)]


def place_write(names: tuple[str, ...], place: str, seen: Seen) -> WriteSlurm:
    """The write that puts records where topology.conf has them."""
    message = f"moving {_few(names)} to {place} in Slurm's topology, as topology.conf says"
    write = UpdateNodes(nodes=names, topology=place)
    return WriteSlurm(controller=seen.controller_key, write=write, reason=Reason.TOPOLOGY, message=message)


def _by_place(names: Iterable[str], seen: Seen) -> list[tuple[str, tuple[str, ...]]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        found[seen.places.get(name, "")].append(name)
    return [(place, tuple(together)) for place, together in sorted(found.items())]


def _back(names: tuple[str, ...], seen: Seen) -> WriteSlurm:
    message = f"{_few(names)}: not drained any more, as no worker is left there that could take a job"
    write = ResumeNodes(nodes=names)
    return WriteSlurm(controller=seen.controller_key, write=write, reason=Reason.RESUMED, message=message)


def _few(names: tuple[str, ...]) -> str:
    return first_few(names, _NAMES_TOLD)
