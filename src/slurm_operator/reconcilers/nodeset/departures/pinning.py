"""With `pinToNode`: which machine each number belongs to. A pin never moves who is there."""

from collections.abc import Mapping

from slurm_operator.reconcilers.nodeset.creation import placement
from slurm_operator.reconcilers.nodeset.observe import Seen


def pins(seen: Seen) -> dict[str, str]:
    """Number to machine, for the status: kept while that machine is there, and nobody else is on it."""
    if not seen.nodeset.spec.pin_to_node or seen.is_daemon:
        return {}
    now = _placed(seen)
    return {**_kept(seen, now), **now}


def _placed(seen: Seen) -> dict[str, str]:
    """Who is where now, and is not about to leave."""
    return {
        str(worker.ordinal): worker.pod.spec.node_name
        for worker in seen.workers
        if worker.ordinal is not None and worker.pod.spec.node_name and not worker.is_terminating
    }


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


def pinned_but_unschedulable(seen: Seen) -> dict[str, str]:
    """Workers without a machine, by uid, with the one that they were made for and will not get: it is gone,
    no place for them any more, or another number is there. No pod can be told of another one.
    """
    nodeset = seen.nodeset
    unplaced = [m for m in seen.workers if not m.pod.spec.node_name and m.mode is nodeset.spec.scaling_mode]
    waiting = {worker.uid: worker.pod.spec.bound_to for worker in unplaced}
    if seen.is_daemon or not any(waiting.values()) or placement.names_machines(nodeset):
        return {}
    taken = set() if nodeset.spec.oversubscribe_node else set(_placed(seen).values())
    is_pinned = nodeset.spec.pin_to_node
    return {
        uid: name
        for uid, name in waiting.items()
        if name and not (is_pinned and name not in taken and node_accepts(name, seen))
    }


def node_accepts(name: str, seen: Seen) -> bool:
    """Whether a worker that comes would ever be scheduled there. Where machines are not seen, it may be."""
    if not seen.sees_machines:
        return True
    kube_node = seen.kube_nodes.get(name)
    return kube_node is not None and placement.fits(kube_node, seen.nodeset)
