"""NodeSet: workers that are created, replaced and removed without ever losing a job."""

from collections.abc import Iterator
from functools import partial

from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nodeset.decide import decide
from slurm_operator.reconcilers.nodeset.observe import Seen, observe
from slurm_operator.reconcilers.nodeset.status import status
from slurm_operator.reconcilers.nodeset.unchanged_cache import Settled
from slurm_operator.slurm.snapshot import Changes


def owner_of(pod: Pod, world: World) -> Iterator[ObjectKey]:
    """Its NodeSet; of a worker that nobody owns, the one that it is called after."""
    meta = pod.metadata
    if meta.owner is not None and meta.owner.is_a(NodeSet.KIND):
        yield ObjectKey(meta.namespace, meta.owner.name)
    elif not meta.owner_references and belonging.daemon_of(meta.labels) == "slurmd":
        yield ObjectKey(meta.namespace, belonging.owner_of(meta.labels))


def sets_on(kube_node: KubeNode, world: World) -> Iterator[ObjectKey]:
    """NodeSets with a worker there, and all that might want one."""
    for nodeset in world.all(NodeSet):
        yield key_of(nodeset)


def is_only_a_heartbeat(old: KubeNode, new: KubeNode) -> bool:
    """Nothing changed that a worker's place or a drain depends on."""
    return _concerns(old) == _concerns(new)


def _concerns(kube_node: KubeNode) -> tuple[object, ...]:
    meta = kube_node.metadata
    return (meta.uid, meta.labels, meta.annotations, kube_node.spec, kube_node.status.conditions)


def sets_of(controller: Controller, world: World) -> Iterator[ObjectKey]:
    yield from _sets(key_of(controller), world)


def booked_in(accounting: Accounting, world: World) -> Iterator[ObjectKey]:
    """NodeSets of the Controllers that name it: which Slurm key their workers have is for it to say."""
    for controller in world.all(Controller, accounting.metadata.namespace):
        if controller.spec.accounting == accounting.metadata.name:
            yield from _sets(key_of(controller), world)


def brings_the_same_key(old: Accounting, new: Accounting) -> bool:
    return old.spec.slurm_key_ref == new.spec.slurm_key_ref


def siblings(nodeset: NodeSet, world: World) -> Iterator[ObjectKey]:
    """The other NodeSets of its Controller: a name that was taken may be free now."""
    own = key_of(nodeset)
    of_both = _sets(ObjectKey(own.namespace, nodeset.spec.controller), world)
    yield from (key for key in of_both if key != own)


def is_still_called_the_same(old: NodeSet, new: NodeSet) -> bool:
    return old.slurm_name == new.slurm_name


def sets_in_slurm(controller: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if changes.nodes or changes.jobs or changes.reservations or changes.everything:
        yield from _sets(controller, world)


def _sets(controller: ObjectKey, world: World) -> Iterator[ObjectKey]:
    for nodeset in world.all(NodeSet, controller.namespace):
        if nodeset.spec.controller == controller.name:
            yield key_of(nodeset)


def reconciler(propagated_conditions: tuple[str, ...] = ()) -> Reconciler[Seen]:
    """As the operator's settings want it."""
    return Reconciler[Seen](
        name="nodeset",
        kind=NodeSet.KIND,
        about=NodeSet,
        observe=partial(observe, propagated=propagated_conditions),
        decide=partial(decide, settled=Settled()),
        status=status,
        gone=lambda seen: seen.nodeset,
        wakes=(
            Wake(Pod, owner_of),
            Wake(KubeNode, sets_on, ignores=is_only_a_heartbeat),
            Wake(Controller, sets_of),
            Wake(Accounting, booked_in, ignores=brings_the_same_key),
            Wake(NodeSet, siblings, ignores=is_still_called_the_same),
        ),
        slurm_wake=SlurmWake(sets_in_slurm),
        children=(kinds.CONTROLLER_REVISION, kinds.CONFIG_MAP, kinds.PERSISTENT_VOLUME_CLAIM, kinds.SERVICE),
        tells_protection=True,
        urgent_status_fields=(
            "collisionCount",
            "cordoned",
            "failures",
            "ordinalToNode",
            "replicas",
            "reservation",
        ),
    )


RECONCILER = reconciler()
