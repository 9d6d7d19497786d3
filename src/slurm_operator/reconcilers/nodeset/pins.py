"""With `pinToNode`: which machine each number belongs to. A pin never moves who is there."""

from collections.abc import Mapping

from slurm_operator.api import names
from slurm_operator.reconcilers.nodeset import placement
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen


def pins(seen: Seen) -> dict[str, str]:
    """Number to machine, for the status: kept while that machine is there, and nobody else is on it."""
    if not seen.nodeset.spec.pin_to_node or seen.is_daemon:
        return {}
    now = {
        str(member.ordinal): member.pod.spec.node_name
        for member in seen.members
        if member.ordinal is not None and member.pod.spec.node_name and not member.is_terminating
    }
    return {**_kept(seen, now), **now}


def _kept(seen: Seen, now: Mapping[str, str]) -> dict[str, str]:
    """Of two that had the same machine, who is there keeps it, else the lower number."""
    may_share, taken = seen.nodeset.spec.oversubscribe_node, set(now.values())
    kept: dict[str, str] = {}
    for ordinal, name in sorted(seen.nodeset.status.ordinal_to_node.items(), key=_number):
        if ordinal not in now and (may_share or name not in taken) and _is_selected(name, seen):
            kept[ordinal] = name
            taken.add(name)
    return kept


def _number(pin: tuple[str, str]) -> int:
    return int(pin[0]) if pin[0].isdecimal() else 0


def _is_selected(name: str, seen: Seen) -> bool:
    if not seen.sees_machines:
        return True
    kube_node = seen.kube_nodes.get(name)
    return kube_node is not None and placement.is_selected(kube_node, seen.nodeset)


def bound_in_vain(member: Member, seen: Seen) -> str:
    """The machine that a worker without one is bound to, if it can never be scheduled there; else nothing.

    Its pod was made for that machine, and no pod can be told of another one.
    """
    name = member.pod.metadata.annotations.get(names.POD_PINNED, "")
    if not name or member.pod.spec.node_name or seen.is_daemon:
        return ""
    return "" if seen.nodeset.spec.pin_to_node and takes(name, seen) else name


def takes(name: str, seen: Seen) -> bool:
    """Whether a worker that comes would ever be scheduled there. Where machines are not seen, it may be."""
    if not seen.sees_machines:
        return True
    kube_node = seen.kube_nodes.get(name)
    return kube_node is not None and placement.fits(kube_node, seen.nodeset)
