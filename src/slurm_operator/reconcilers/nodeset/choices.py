"""Who has to go and who has to come: what the spec asks for, against what is there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from slurm_operator.api import names
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.reconcilers.nodeset import failures, identity, placement, records
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.pins import bound_in_vain, pins, takes
from slurm_operator.reconcilers.nodeset.pod import Slot
from slurm_operator.reconcilers.nodeset.replacements import asked_for
from slurm_operator.reconcilers.nodeset.victims import victims_first
from slurm_operator.slurm.conf.merge import says_topology
from slurm_operator.slurm.topology import is_readable


@dataclass(frozen=True)
class Held:
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
    held: tuple[Held, ...] = ()
    misnamed: tuple[KubeNode, ...] = ()
    leaving: Mapping[str, Cause] = field(default_factory=dict)


def choose(seen: Seen, now: datetime, at_rest: frozenset[str] = frozenset()) -> Choices:
    """Everything but updates: those replace workers that would otherwise stay. Whoever is `at_rest` can."""
    if seen.nodeset.metadata.is_terminating:
        gone = Cause(Leaving.DELETION, "the NodeSet is being deleted")
        return Choices(desired=0, leaving={member.uid: gone for member in seen.members})
    chosen = _daemons(seen) if seen.is_daemon else _numbered(seen)
    of_single_ones = {**asked_for(seen, at_rest), **_beyond_help(seen, at_rest), **_ended(seen, now)}
    return replace(chosen, leaving={**of_single_ones, **chosen.leaving})


def desired(seen: Seen) -> int:
    """How many workers there should be."""
    if seen.nodeset.metadata.is_terminating:
        return 0
    return _daemons(seen).desired if seen.is_daemon else seen.nodeset.spec.replicas


def awaited(seen: Seen) -> set[str]:
    """Pods that may come without anybody wanting more workers: now, or when one is gone that is on its way.

    In DaemonSet mode one for each machine, also while that is no place for it.
    """
    nodeset = seen.nodeset
    if seen.is_daemon:
        return {identity.daemon_pod_name(name, nodeset) for name in seen.kube_nodes}
    own = (member for member in seen.members if member.mode is nodeset.spec.scaling_mode)
    missing = nodeset.spec.replicas - len(_staying(own))
    return {identity.pod_name(ordinal, nodeset) for ordinal in _free_ordinals(seen, missing)}


def _beyond_help(seen: Seen, at_rest: frozenset[str]) -> dict[str, Cause]:
    """Whoever can only go: retired before we were interrupted, deleted by somebody, or not what it claims."""
    others = (member for member in seen.members if member.uid not in at_rest)
    causes = {member.uid: _cannot_stay(member, seen) for member in others}
    unpinned = {uid: _unpinned(machine) for uid, machine in bound_in_vain(seen).items()}
    return {**unpinned, **{uid: cause for uid, cause in causes.items() if cause is not None}}


def _unpinned(machine: str) -> Cause:
    return Cause(
        Leaving.UNPINNED, f"Node {machine}, which it was made for, is gone, taken, or no place for it"
    )


def _cannot_stay(member: Member, seen: Seen) -> Cause | None:
    if member.is_retired:
        return Cause(Leaving.RETIRED, "it was retired before")
    if member.is_terminating:
        return Cause(Leaving.TERMINATING, "its pod was asked to end")
    if records.has_outdated_record(member, seen.reservation_name):
        return Cause(Leaving.RESOURCES, "Slurm knows it with the resources of the worker before it")
    if records.is_refused(member):
        return Cause(Leaving.RESOURCES, "Slurm refuses what it registered with")
    return None


def _ended(seen: Seen, now: datetime) -> dict[str, Cause]:
    """Pods whose containers ended for good make room for new ones, after a while.

    One of the mode before does not come back under its name, so its record in Slurm goes with it.
    """
    mode = seen.nodeset.spec.scaling_mode
    over = Cause(Leaving.ENDED, "its containers have ended")
    switched = _switched(seen)
    return {
        member.uid: over if member.mode is mode else switched
        for member in seen.members
        if member.pod.has_ended and failures.due_in(member, seen, now) <= timedelta(0)
    }


def _numbered(seen: Seen) -> Choices:
    nodeset, desired = seen.nodeset, seen.nodeset.spec.replicas
    own = [member for member in seen.members if member.mode is nodeset.spec.scaling_mode]
    staying = _staying(own)
    too_many = len(staying) - desired
    surplus = victims_first(staying)[:too_many] if too_many > 0 else []
    cause = Cause(Leaving.SCALE_IN, f"leaving NodeSet {nodeset.metadata.name}, which has {desired} workers")
    leaving = {member.uid: cause for member in surplus}
    machines = pins(seen)
    free = _free_ordinals(seen, desired - len(own))
    slots = [_slot(ordinal, machines.get(str(ordinal), ""), seen) for ordinal in free]
    create, held = _by_name(slots, seen)
    leaving |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, leaving=leaving)


def _staying(own: Iterable[Member]) -> list[Member]:
    return [
        member for member in own if not (member.is_terminating or member.is_retired or member.pod.has_ended)
    ]


def _by_name(slots: list[Slot], seen: Seen) -> tuple[tuple[Slot, ...], tuple[Held, ...]]:
    """Who can come now, and who cannot, because somebody has its name in Slurm.

    When a second slurmd registers under a name, slurmctld takes the first one for dead and requeues its jobs.
    """
    create: list[Slot] = []
    held: list[Held] = []
    given: dict[str, Slot] = {}
    for slot in slots:
        name = slot.slurm_node(seen.nodeset)
        by = next(iter(seen.holders.get(name, ())), None) or given.get(name)
        if by is not None:
            held.append(Held(slot, by))
            continue
        create.append(slot)
        if name:
            given[name] = slot
    return tuple(create), tuple(held)


def _free_ordinals(seen: Seen, count: int) -> list[int]:
    """The lowest numbers that no pod has."""
    taken = {member.ordinal for member in seen.members}
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
        kube_node=pinned_to if takes(pinned_to, seen) else "",
    )


def _other_mode(seen: Seen, own: list[Member], *, are_all_there: bool) -> dict[str, Cause]:
    """Workers of the mode before, once those of the new mode have come that can. Nobody is let go half-way.

    On their machines' network both have the same names: there the new ones come when the old ones are gone.
    """
    if len(own) == len(seen.members):
        return {}
    cause = _switched(seen)
    mine = {member.uid for member in own}
    others = [member for member in seen.members if member.uid not in mine]
    return {member.uid: cause for member in others if are_all_there or _drains_for_the_switch(member)}


def _switched(seen: Seen) -> Cause:
    return Cause(Leaving.MODE_SWITCH, f"the NodeSet is in {seen.nodeset.spec.scaling_mode} mode now")


def _drains_for_the_switch(member: Member) -> bool:
    """It was chosen in an earlier pass; the drain says so."""
    ours = member.drain
    return ours is not None and ours.cause == Leaving.MODE_SWITCH and member.is_drained_itself


def _daemons(seen: Seen) -> Choices:
    nodeset = seen.nodeset
    own = [member for member in seen.members if member.mode is nodeset.spec.scaling_mode]
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
            leaving |= {member.uid: unfit for member in there}
    vanished = Cause(Leaving.NODE_UNFIT, "its Kubernetes node is gone")
    leaving |= {member.uid: vanished for there in by_node.values() for member in there}
    create, held = _by_name(slots, seen)
    leaving |= _other_mode(seen, own, are_all_there=not create)
    return Choices(desired=desired, create=create, held=held, misnamed=tuple(misnamed), leaving=leaving)


def _by_machine(seen: Seen, own: list[Member]) -> defaultdict[str, list[Member]]:
    """Workers by the machine they run on, or are meant for while they are not scheduled."""
    meant = {identity.daemon_pod_name(name, seen.nodeset): name for name in seen.kube_nodes}
    found: defaultdict[str, list[Member]] = defaultdict(list)
    for member in own:
        found[member.pod.spec.node_name or meant.get(member.name, "")].append(member)
    return found


def _unwanted_on(kube_node: KubeNode, there: list[Member]) -> dict[str, Cause]:
    """All but the one worth keeping: the last that victims would be chosen from, with the right name.

    For a name that nobody can have, nobody goes.
    """
    hostname = identity.daemon_hostname(kube_node)
    leaving: dict[str, Cause] = {}
    for member in there if identity.override_problem(kube_node) is None else ():
        if member.pod.metadata.labels.get(names.LABEL_POD_HOSTNAME, hostname) != hostname:
            leaving[member.uid] = Cause(Leaving.HOSTNAME, f"its node is called {hostname} now")
    named = [member for member in there if member.uid not in leaving and not member.is_terminating]
    for member in victims_first(named)[:-1]:
        leaving[member.uid] = Cause(Leaving.DUPLICATE, f"Node {kube_node.metadata.name} has another worker")
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
