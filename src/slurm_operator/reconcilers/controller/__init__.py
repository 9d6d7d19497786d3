"""Controller: slurmctld and everything that belongs to it."""

from collections.abc import Iterator

from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.controller.annotations import REHEARSAL_APP
from slurm_operator.reconcilers.controller.decide import decide
from slurm_operator.reconcilers.controller.observe import Seen, observe
from slurm_operator.reconcilers.controller.status import status
from slurm_operator.reconcilers.shared.strays import cluster_of, is_stray
from slurm_operator.slurm.snapshot import Changes, Snapshot


def keeping_records_in(accounting: Accounting, world: World) -> Iterator[ObjectKey]:
    """Controllers that name this Accounting."""
    for controller in world.all(Controller, accounting.metadata.namespace):
        if controller.spec.accounting == accounting.metadata.name:
            yield key_of(controller)


def beside(controller: Controller, world: World) -> Iterator[ObjectKey]:
    """Others on the same Accounting: a name that was taken may be free now."""
    own, accounting = key_of(controller), controller.spec.accounting
    for other in world.all(Controller, own.namespace) if accounting else ():
        if key_of(other) != own and other.spec.accounting == accounting:
            yield key_of(other)


def is_still_known_the_same(old: Controller, new: Controller) -> bool:
    return (old.cluster_name, old.spec.accounting) == (new.cluster_name, new.spec.accounting)


def of_workers(nodeset: NodeSet, world: World) -> Iterator[ObjectKey]:
    yield ObjectKey(nodeset.metadata.namespace, nodeset.spec.controller)


def of_clients(client: RestApi | LoginSet, world: World) -> Iterator[ObjectKey]:
    yield ObjectKey(client.metadata.namespace, client.spec.controller_ref.name)


def behind(pod: Pod, world: World) -> Iterator[ObjectKey]:
    """The Controller of a slurmctld, of a rehearsal of one, or of a worker whose NodeSet is gone."""
    labels = pod.metadata.labels
    if belonging.daemon_of(labels) in ("slurmctld", REHEARSAL_APP):
        yield ObjectKey(pod.metadata.namespace, belonging.owner_of(labels))
    elif is_stray(pod, world):
        yield cluster_of(pod)


def sharing_volume(claim: VolumeClaim, world: World) -> Iterator[ObjectKey]:
    """Controllers whose slurmctlds keep their state together on this volume."""
    for controller in world.all(Controller, claim.metadata.namespace):
        spec = controller.spec
        if spec.ha.enabled and spec.persistence.existing_claim == claim.metadata.name:
            yield key_of(controller)


def of_complaint(event: Event, world: World) -> Iterator[ObjectKey]:
    """Pods of slurmctld were refused."""
    for controller in world.all(Controller, event.metadata.namespace):
        if event.regarding.name == controller.child_names.workload:
            yield key_of(controller)


def in_slurm(controller: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    """What slurmctld says about itself. Nodes and jobs come and go without us, unless it forgets them."""
    if changes.everything or (changes.nodes and _may_have_forgotten(controller, changes, world)):
        yield controller


def _may_have_forgotten(key: ObjectKey, changes: Changes, world: World) -> bool:
    """A record is gone, or its return is waited for, or these are the first there are."""
    found, slurm = world.get(Controller, key.namespace, key.name), world.slurm(*key)
    if found is None or not isinstance(slurm, Snapshot):
        return False
    if found.status.state_lost_since is not None or found.status.workers_known_since is None:
        return True
    return not changes.nodes <= slurm.nodes.keys()


# Keys and referenced ConfigMaps are asked for by name, so their changes wake us too.
RECONCILER = Reconciler[Seen](
    name="controller",
    kind=Controller.KIND,
    about=Controller,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    wakes=(
        Wake(Accounting, keeping_records_in),
        Wake(Controller, beside, ignores=is_still_known_the_same),
        Wake(NodeSet, of_workers),
        Wake(RestApi, of_clients),
        Wake(LoginSet, of_clients),
        Wake(Pod, behind),
        Wake(Event, of_complaint),
        Wake(VolumeClaim, sharing_volume),
    ),
    slurm_wake=SlurmWake(in_slurm),
    children=(
        kinds.CONFIG_MAP,
        kinds.DISRUPTION_BUDGET,
        kinds.SERVICE,
        kinds.SERVICE_MONITOR,
        kinds.STATEFUL_SET,
    ),
    urgent_status_fields=("clusterName", "slurmVersion", "stateLostSince", "workersKnownSince"),
)
