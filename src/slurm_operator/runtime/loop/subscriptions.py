"""What wakes a reconciler: its own objects, its children, what it refers to, its neighbours, and Slurm."""

from collections.abc import Callable
from typing import Any

from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.runtime.loop.queue import WorkQueue
from slurm_operator.runtime.loop.reconcile import Loop
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.slurm.snapshot import Changes
from slurm_operator.slurmsync.connections import SlurmClusters

Watcher = Callable[[HasMeta | None, HasMeta | None], None]


def subscribe(loop: Loop, known: Caches, slurms: SlurmClusters) -> None:
    """From now on, whatever the reconciler of this loop should look at becomes a key in its queue.

    A subscription begins with everything that is there. That is a start, not news, and need not be hurried.
    """
    reconciler, queue = loop.reconciler, loop.queue
    starting = True

    def wake_own(old: HasMeta | None, new: HasMeta | None) -> None:
        thing = new or old
        if old is not None and new is not None and reconciler.ignores(old, new):
            return
        if thing is not None:
            queue.add(key_of(thing), calm=starting)

    def wake_owner(old: HasMeta | None, new: HasMeta | None) -> None:
        for thing in (old, new):
            owner = _owner(thing, reconciler, known) if thing is not None else None
            if owner is not None:
                queue.add(owner, calm=starting)

    def wake_referrers(key: ObjectKey, _thing: HasMeta | None) -> None:
        for name, referrer in known.referrers(key):
            if name == reconciler.name:
                queue.add(referrer)

    known.records[reconciler.about].subscribe(wake_own)
    for kind in reconciler.children:
        known.children[kind].subscribe(wake_owner)
    for wake in reconciler.wakes:
        known.records[wake.type].subscribe(_neighbour(wake, queue, known))
    known.secrets.subscribe(wake_referrers)
    known.config_maps.subscribe(wake_referrers)
    known.revisions.subscribe(wake_referrers)
    if reconciler.slurm_wake is not None:
        slurms.subscribe(_slurm(reconciler.slurm_wake, loop, known))
    starting = False


def _owner(child: HasMeta, reconciler: Reconciler[Any], known: Caches) -> ObjectKey | None:
    """Whose it is, also where a child stands between the two: somebody starts a Job of a CronJob by hand."""
    namespace, owner = child.metadata.namespace, child.metadata.owner
    for kind in reconciler.children:
        if owner is not None and owner.is_a(kind):
            between = known.children[kind].get(ObjectKey(namespace, owner.name))
            owner = between.metadata.owner if between is not None else None
            break
    if owner is None or not owner.is_a(reconciler.kind):
        return None
    return ObjectKey(namespace, owner.name)


def _neighbour(wake: Wake[Any], queue: WorkQueue, known: Caches) -> Watcher:
    view = known.view()  # One for all events, which come by the thousand: only objects are looked up in it.

    def wake_mapped(old: HasMeta | None, new: HasMeta | None) -> None:
        for key in wake.woken(old, new, view):
            queue.add(key)

    return wake_mapped


def _slurm(wake: SlurmWake, loop: Loop, known: Caches) -> Callable[[ObjectKey, Changes], None]:
    """Look at what changed, and at whoever waits: a fresh answer alone may be what it needs."""

    def wake_mapped(controller: ObjectKey, changes: Changes) -> None:
        mapped = () if changes.is_empty else wake.keys(controller, changes, known.view())
        for key in sorted({*mapped, *loop.waiting_on(controller)}):
            loop.queue.add(key)

    return wake_mapped
