"""Who is too many and who has to come: what the spec asks for, against what is there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import placement
from slurm_operator.reconcilers.nodeset.creation.pod import Slot
from slurm_operator.reconcilers.nodeset.departures.pinning import node_accepts, pins
from slurm_operator.reconcilers.nodeset.departures.scale_in_order import victims_first
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.conf.merge import says_topology
from slurm_operator.slurm.topology import is_readable


@dataclass(frozen=True)
class NameConflict:
    """A worker that cannot come yet: its name in Slurm is that of a pod that is there, or comes first."""

    slot: Slot
    by: Pod | Slot


class Surplus(Enum):
    """Why a worker is not one of those that the spec asks for."""

    FORMER_MODE = auto()  # Those of the scaling mode now are there instead.
    TOO_MANY = auto()
    UNLISTED = auto()  # Nobody wants its number.
    LISTED_TWICE = auto()
    UNFIT_NODE = auto()
    LOST_NODE = auto()
    OTHER_HOSTNAME = auto()  # Its machine asks for another one.
    NOT_ALONE = auto()  # On its machine.


# By pod uid; with the machine or the name that it is about, or nothing.
Surpluses = Mapping[str, tuple[Surplus, str]]


@dataclass(frozen=True)
class Choices:
    """Who is in `surplus`, and who comes. Who is `held` is created later.

    On machines that are `misnamed` nobody comes: their annotation asks for a name that no worker can have.
    `leaving`, by pod uid, is everybody who leaves for any cause but an update, once that is known.
    """

    desired: int
    create: tuple[Slot, ...] = ()
    held: tuple[NameConflict, ...] = ()
    misnamed: tuple[KubeNode, ...] = ()
    surplus: Surpluses = field(default_factory=dict)
    leaving: Mapping[str, Cause] = field(default_factory=dict)


def choose(seen: Seen) -> Choices:
    """What the spec asks for, whoever leaves for another reason."""
    if seen.nodeset.metadata.is_terminating:
        return Choices(desired=0)
    return _daemons(seen) if seen.is_daemon else _numbered(seen)


def desired(seen: Seen) -> int:
    """How many workers there should be."""
    if seen.nodeset.metadata.is_terminating:
        return 0
    return _daemons(seen).desired if seen.is_daemon else len(seen.nodeset.spec.numbers)


def awaited(seen: Seen) -> set[str]:
    """Pods that may come without anybody wanting more workers: now, or when one is gone that is on its way.

    In DaemonSet mode one for each machine, also while that is no place for it.
    """
    nodeset = seen.nodeset
    if seen.is_daemon:
        return {identity.daemon_pod_name(name, nodeset) for name in seen.kube_nodes}
    own = (worker for worker in seen.workers if worker.mode is nodeset.spec.scaling_mode)
    if nodeset.spec.has_fixed_numbers:
        there = {worker.ordinal for worker in _staying(own)}
        return {identity.pod_name(one, nodeset) for one in nodeset.spec.numbers if one not in there}
    missing = nodeset.spec.replicas - len(_staying(own))
    return {identity.pod_name(ordinal, nodeset) for ordinal in _free_ordinals(seen, missing)}


def _numbered(seen: Seen) -> Choices:
    nodeset, desired = seen.nodeset, len(seen.nodeset.spec.numbers)
    own = [worker for worker in seen.workers if worker.mode is nodeset.spec.scaling_mode]
    is_listed = nodeset.spec.has_fixed_numbers
    surplus = _unlisted(own, seen) if is_listed else _beyond(own, seen)
    machines = pins(seen)
    free = _missing_ordinals(seen) if is_listed else _free_ordinals(seen, desired - len(own))
    slots = [_slot(ordinal, machines.get(str(ordinal), ""), seen) for ordinal in free]
    create, held = _by_name(slots, seen)
    surplus |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, surplus=surplus)


def _beyond(own: list[Worker], seen: Seen) -> dict[str, tuple[Surplus, str]]:
    """Those who go because there are more than `replicas`, whoever costs least."""
    desired, staying = seen.nodeset.spec.replicas, _staying(own)
    too_many = len(staying) - desired
    first = victims_first(staying)[:too_many] if too_many > 0 else []
    return {worker.uid: (Surplus.TOO_MANY, "") for worker in first}


def _unlisted(own: list[Worker], seen: Seen) -> dict[str, tuple[Surplus, str]]:
    """Those whose number is not wanted; of several with one number all but one.

    Nobody else goes, however many others come.
    """
    by_number: defaultdict[int | None, list[Worker]] = defaultdict(list)
    for worker in _staying(own):
        by_number[worker.ordinal].append(worker)
    wanted = set(seen.nodeset.spec.numbers)
    surplus: dict[str, tuple[Surplus, str]] = {}
    for number, there in by_number.items():
        if number not in wanted:
            surplus |= {worker.uid: (Surplus.UNLISTED, "") for worker in there}
        else:
            misnamed_first = sorted(victims_first(there), key=lambda worker: not worker.is_renamed)
            surplus |= {worker.uid: (Surplus.LISTED_TWICE, "") for worker in misnamed_first[:-1]}
    return surplus


def _missing_ordinals(seen: Seen) -> list[int]:
    """The numbers of the list that no pod has, also none that is about to end."""
    taken = {worker.ordinal for worker in seen.workers}
    return [ordinal for ordinal in seen.nodeset.spec.numbers if ordinal not in taken]


def _staying(own: Iterable[Worker]) -> list[Worker]:
    return [
        worker for worker in own if not (worker.is_terminating or worker.is_retired or worker.pod.has_ended)
    ]


def _by_name(slots: list[Slot], seen: Seen) -> tuple[tuple[Slot, ...], tuple[NameConflict, ...]]:
    """Who can come now, and who cannot, because somebody has its name in Slurm.

    When a second slurmd registers under a name, slurmctld takes the first one for dead and requeues its jobs.
    """
    create: list[Slot] = []
    held: list[NameConflict] = []
    given: dict[str, Slot] = {}
    for slot in slots:
        name = slot.slurm_node(seen.nodeset)
        by = next(iter(seen.holders.get(name, ())), None) or given.get(name)
        if by is not None:
            held.append(NameConflict(slot, by))
            continue
        create.append(slot)
        if name:
            given[name] = slot
    return tuple(create), tuple(held)


def _free_ordinals(seen: Seen, count: int) -> list[int]:
    """The lowest numbers that no pod has."""
    taken = {worker.ordinal for worker in seen.workers}
    free: list[int] = []
    ordinal = 0
    while len(free) < count:
        if ordinal not in taken:
            free.append(ordinal)
        ordinal += 1
    return free


def _slot(ordinal: int, pinned_to: str, seen: Seen) -> Slot:
    nodeset = seen.nodeset
    return Slot(
        pod_name=identity.pod_name(ordinal, nodeset),
        hostname=identity.hostname(ordinal, nodeset),
        ordinal=ordinal,
        kube_node=pinned_to if node_accepts(pinned_to, seen) else "",
    )


def _other_mode(seen: Seen, own: list[Worker], *, are_all_there: bool) -> dict[str, tuple[Surplus, str]]:
    """Workers of the mode before, once those of the new mode have come that can. Nobody is let go half-way.

    On their machines' network both have the same names: there the new ones come when the old ones are gone.
    """
    if len(own) == len(seen.workers):
        return {}
    mine = {worker.uid for worker in own}
    others = [worker for worker in seen.workers if worker.uid not in mine]
    return {
        worker.uid: (Surplus.FORMER_MODE, "")
        for worker in others
        if are_all_there or _drains_for_the_switch(worker)
    }


def _drains_for_the_switch(worker: Worker) -> bool:
    """It was chosen in an earlier pass; the drain says so."""
    ours = worker.drain
    return ours is not None and ours.cause == Leaving.MODE_SWITCH and worker.is_drained_itself


def _daemons(seen: Seen) -> Choices:
    nodeset = seen.nodeset
    own = [worker for worker in seen.workers if worker.mode is nodeset.spec.scaling_mode]
    if not seen.sees_machines:
        return Choices(desired=len(own))  # Not to see them is not the same as that there are none.
    by_node = _by_machine(seen, own)
    surplus: dict[str, tuple[Surplus, str]] = {}
    slots: list[Slot] = []
    misnamed: list[KubeNode] = []
    desired = 0
    for name, kube_node in seen.kube_nodes.items():
        there = by_node.pop(name, [])
        if placement.should_run(kube_node, nodeset) or (
            there and placement.should_continue(kube_node, nodeset)
        ):
            desired += 1
            surplus |= _unwanted_on(kube_node, there)
            if not there and identity.override_problem(kube_node) is not None:
                misnamed.append(kube_node)
            elif not there:
                slots.append(_daemon_slot(kube_node, seen))
        else:
            surplus |= {worker.uid: (Surplus.UNFIT_NODE, name) for worker in there}
    surplus |= {worker.uid: (Surplus.LOST_NODE, "") for there in by_node.values() for worker in there}
    create, held = _by_name(slots, seen)
    surplus |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, misnamed=tuple(misnamed), surplus=surplus)


def _by_machine(seen: Seen, own: list[Worker]) -> defaultdict[str, list[Worker]]:
    """Workers by the machine they run on, or are meant for while they are not scheduled."""
    meant = {identity.daemon_pod_name(name, seen.nodeset): name for name in seen.kube_nodes}
    found: defaultdict[str, list[Worker]] = defaultdict(list)
    for worker in own:
        found[worker.pod.spec.node_name or meant.get(worker.name, "")].append(worker)
    return found


def _unwanted_on(kube_node: KubeNode, there: list[Worker]) -> dict[str, tuple[Surplus, str]]:
    """All but the one worth keeping: the last that victims would be chosen from, with the right name.

    For a name that nobody can have, nobody goes.
    """
    hostname = identity.daemon_hostname(kube_node)
    surplus: dict[str, tuple[Surplus, str]] = {}
    for worker in there if identity.override_problem(kube_node) is None else ():
        if worker.pod.metadata.labels.get(names.LABEL_POD_HOSTNAME, hostname) != hostname:
            surplus[worker.uid] = Surplus.OTHER_HOSTNAME, hostname
    named = [worker for worker in there if worker.uid not in surplus and not worker.is_terminating]
    for worker in victims_first(named)[:-1]:
        surplus[worker.uid] = Surplus.NOT_ALONE, kube_node.metadata.name
    return surplus


def _daemon_slot(kube_node: KubeNode, seen: Seen) -> Slot:
    name = kube_node.metadata.name
    place = kube_node.metadata.annotations.get(names.TOPOLOGY, "")
    is_asked = is_readable(place) and not says_topology(seen.nodeset.spec.extra_conf)
    return Slot(
        pod_name=identity.daemon_pod_name(name, seen.nodeset),
        hostname=identity.daemon_hostname(kube_node),
        kube_node=name,
        topology=place if is_asked else "",  # What is wrong with it, the worker tells.
    )
