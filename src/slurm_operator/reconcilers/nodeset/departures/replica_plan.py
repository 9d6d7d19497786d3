"""Who has to go and who has to come: what the spec asks for, against what is there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import placement
from slurm_operator.reconcilers.nodeset.creation.pod import Slot
from slurm_operator.reconcilers.nodeset.departures.pinning import node_accepts, pinned_but_unschedulable, pins
from slurm_operator.reconcilers.nodeset.departures.replacements import asked_for
from slurm_operator.reconcilers.nodeset.departures.scale_in_order import victims_first
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import outdated
from slurm_operator.reconcilers.nodeset.report import crash_backoff
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import has_no_steps
from slurm_operator.slurm.conf.merge import says_topology
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.topology import is_readable


@dataclass(frozen=True)
class NameConflict:
    """A worker that cannot come yet: its name in Slurm is that of a pod that is there, or comes first."""

    slot: Slot
    by: Pod | Slot


@dataclass(frozen=True)
class Choices:
    """`leaving` by pod uid; whoever is not named there stays. Who is `held` is created later.

    On machines that are `misnamed` nobody comes: their annotation asks for a name that no worker can have.
    """

    desired: int
    create: tuple[Slot, ...] = ()
    held: tuple[NameConflict, ...] = ()
    misnamed: tuple[KubeNode, ...] = ()
    leaving: Mapping[str, Cause] = field(default_factory=dict)


def choose(seen: Seen, now: datetime, at_rest: frozenset[str] = frozenset()) -> Choices:
    """Everything but updates: those replace workers that would otherwise stay. Whoever is `at_rest` can."""
    if seen.nodeset.metadata.is_terminating:
        text = "the NodeSet is gone" if seen.is_gone else "the NodeSet is being deleted"
        gone = Cause(Leaving.DELETION, text)
        return Choices(desired=0, leaving={worker.uid: gone for worker in seen.workers})
    chosen = _daemons(seen) if seen.is_daemon else _numbered(seen)
    of_single_ones = {**asked_for(seen, at_rest), **_beyond_help(seen, at_rest), **_ended(seen, now)}
    return replace(chosen, leaving={**of_single_ones, **chosen.leaving})


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


def _beyond_help(seen: Seen, at_rest: frozenset[str]) -> dict[str, Cause]:
    """Whoever can only go: retired before we were interrupted, deleted by somebody, or not what it claims."""
    others = (worker for worker in seen.workers if worker.uid not in at_rest)
    causes = {worker.uid: _cannot_stay(worker, seen) for worker in others}
    unpinned = {uid: _unpinned(machine) for uid, machine in pinned_but_unschedulable(seen).items()}
    return {**unpinned, **{uid: cause for uid, cause in causes.items() if cause is not None}}


def _unpinned(machine: str) -> Cause:
    return Cause(
        Leaving.UNPINNED, f"Node {machine}, which it was made for, is gone, taken, or no place for it"
    )


def _cannot_stay(worker: Worker, seen: Seen) -> Cause | None:
    if worker.is_retired:
        return Cause(Leaving.RETIRED, "it was retired before")
    if worker.is_terminating:
        return Cause(Leaving.TERMINATING, "its pod was asked to end")
    if outdated.has_outdated_record(worker, seen.reservation_name):
        return Cause(Leaving.RESOURCES, "Slurm knows it with the resources of the worker before it")
    if outdated.is_refused(worker):
        return Cause(Leaving.RESOURCES, "Slurm refuses what it registered with")
    if _is_forgotten(worker):
        return Cause(Leaving.FORGOTTEN, "Slurm has forgotten it, and it does not register again")
    return None


def _is_forgotten(worker: Worker) -> bool:
    """Slurm knows nothing of it, and somebody saw that no step runs there. One that is back again stays."""
    slurm = worker.slurm
    is_unknown = isinstance(slurm, Snapshot) and worker.slurm_node not in slurm.nodes
    return is_unknown and has_no_steps(worker.pod)


def _ended(seen: Seen, now: datetime) -> dict[str, Cause]:
    """Pods whose containers ended for good make room for new ones, after a while.

    One of the mode before does not come back under its name, so its record in Slurm goes with it.
    """
    mode = seen.nodeset.spec.scaling_mode
    over = Cause(Leaving.ENDED, "its containers have ended")
    switched = _switched(seen)
    return {
        worker.uid: over if worker.mode is mode else switched
        for worker in seen.workers
        if worker.pod.has_ended and crash_backoff.due_in(worker, seen, now) <= timedelta(0)
    }


def _numbered(seen: Seen) -> Choices:
    nodeset, desired = seen.nodeset, len(seen.nodeset.spec.numbers)
    own = [worker for worker in seen.workers if worker.mode is nodeset.spec.scaling_mode]
    is_listed = nodeset.spec.has_fixed_numbers
    leaving = _unlisted(own, seen) if is_listed else _beyond(own, seen)
    machines = pins(seen)
    free = _missing_ordinals(seen) if is_listed else _free_ordinals(seen, desired - len(own))
    slots = [_slot(ordinal, machines.get(str(ordinal), ""), seen) for ordinal in free]
    create, held = _by_name(slots, seen)
    leaving |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, leaving=leaving)


def _beyond(own: list[Worker], seen: Seen) -> dict[str, Cause]:
    """Those who go because there are more than `replicas`, whoever costs least."""
    desired, staying = seen.nodeset.spec.replicas, _staying(own)
    too_many = len(staying) - desired
    surplus = victims_first(staying)[:too_many] if too_many > 0 else []
    name = seen.nodeset.metadata.name
    cause = Cause(Leaving.SCALE_IN, f"leaving NodeSet {name}, which has {desired} workers")
    return {worker.uid: cause for worker in surplus}


def _unlisted(own: list[Worker], seen: Seen) -> dict[str, Cause]:
    """Those whose number is not wanted; of several with one number all but one.

    Nobody else goes, however many others come.
    """
    by_number: defaultdict[int | None, list[Worker]] = defaultdict(list)
    for worker in _staying(own):
        by_number[worker.ordinal].append(worker)
    name, wanted = seen.nodeset.metadata.name, set(seen.nodeset.spec.numbers)
    unlisted = Cause(Leaving.SCALE_IN, f"leaving NodeSet {name}, which has no worker of its number any more")
    twice = Cause(Leaving.SCALE_IN, f"leaving NodeSet {name}, where another worker has its number")
    leaving: dict[str, Cause] = {}
    for number, there in by_number.items():
        if number not in wanted:
            leaving |= {worker.uid: unlisted for worker in there}
        else:
            misnamed_first = sorted(victims_first(there), key=lambda worker: not worker.is_renamed)
            leaving |= {worker.uid: twice for worker in misnamed_first[:-1]}
    return leaving


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


def _other_mode(seen: Seen, own: list[Worker], *, are_all_there: bool) -> dict[str, Cause]:
    """Workers of the mode before, once those of the new mode have come that can. Nobody is let go half-way.

    On their machines' network both have the same names: there the new ones come when the old ones are gone.
    """
    if len(own) == len(seen.workers):
        return {}
    cause = _switched(seen)
    mine = {worker.uid for worker in own}
    others = [worker for worker in seen.workers if worker.uid not in mine]
    return {worker.uid: cause for worker in others if are_all_there or _drains_for_the_switch(worker)}


def _switched(seen: Seen) -> Cause:
    return Cause(Leaving.MODE_SWITCH, f"the NodeSet is in {seen.nodeset.spec.scaling_mode} mode now")


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
    leaving: dict[str, Cause] = {}
    slots: list[Slot] = []
    misnamed: list[KubeNode] = []
    desired = 0
    for name, kube_node in seen.kube_nodes.items():
        there = by_node.pop(name, [])
        if placement.should_run(kube_node, nodeset) or (
            there and placement.should_continue(kube_node, nodeset)
        ):
            desired += 1
            leaving |= _unwanted_on(kube_node, there)
            if not there and identity.override_problem(kube_node) is not None:
                misnamed.append(kube_node)
            elif not there:
                slots.append(_daemon_slot(kube_node, seen))
        else:
            unfit = Cause(Leaving.NODE_UNFIT, f"Node {name} is no longer one for this NodeSet")
            leaving |= {worker.uid: unfit for worker in there}
    vanished = Cause(Leaving.NODE_UNFIT, "its Kubernetes node is gone")
    leaving |= {worker.uid: vanished for there in by_node.values() for worker in there}
    create, held = _by_name(slots, seen)
    leaving |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, misnamed=tuple(misnamed), leaving=leaving)


def _by_machine(seen: Seen, own: list[Worker]) -> defaultdict[str, list[Worker]]:
    """Workers by the machine they run on, or are meant for while they are not scheduled."""
    meant = {identity.daemon_pod_name(name, seen.nodeset): name for name in seen.kube_nodes}
    found: defaultdict[str, list[Worker]] = defaultdict(list)
    for worker in own:
        found[worker.pod.spec.node_name or meant.get(worker.name, "")].append(worker)
    return found


def _unwanted_on(kube_node: KubeNode, there: list[Worker]) -> dict[str, Cause]:
    """All but the one worth keeping: the last that victims would be chosen from, with the right name.

    For a name that nobody can have, nobody goes.
    """
    hostname = identity.daemon_hostname(kube_node)
    leaving: dict[str, Cause] = {}
    for worker in there if identity.override_problem(kube_node) is None else ():
        if worker.pod.metadata.labels.get(names.LABEL_POD_HOSTNAME, hostname) != hostname:
            leaving[worker.uid] = Cause(Leaving.HOSTNAME, f"its node is called {hostname} now")
    named = [worker for worker in there if worker.uid not in leaving and not worker.is_terminating]
    for worker in victims_first(named)[:-1]:
        leaving[worker.uid] = Cause(Leaving.DUPLICATE, f"Node {kube_node.metadata.name} has another worker")
    return leaving


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
