"""Accounting: slurmdbd, and a MariaDB of its own if the manifest asks for one."""

from collections.abc import Iterator

from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.reconciler import Reconciler, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.accounting import database
from slurm_operator.reconcilers.accounting.decide import decide
from slurm_operator.reconcilers.accounting.observe import APP, OWNED, Seen, observe
from slurm_operator.reconcilers.accounting.status import status


def of_controller(controller: Controller, world: World) -> Iterator[ObjectKey]:
    """The Accounting that a Controller depends on."""
    if controller.spec.accounting:
        yield ObjectKey(controller.metadata.namespace, controller.spec.accounting)


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    labels = pod.metadata.labels
    if belonging.daemon_of(labels) in (APP, database.APP):
        yield ObjectKey(pod.metadata.namespace, belonging.owner_of(labels))


def of_complaint(event: Event, world: World) -> Iterator[ObjectKey]:
    """Pods of slurmdbd or of its database were refused."""
    for accounting in world.all(Accounting, event.metadata.namespace):
        name = accounting.metadata.name
        if event.regarding.name in (accounting.child_names.workload, names.database_workload(name)):
            yield key_of(accounting)


# Keys, the password and the configuration are asked for by name, so their changes wake us too.
RECONCILER = Reconciler[Seen](
    name="accounting",
    kind=Accounting.KIND,
    about=Accounting,
    observe=observe,
    decide=decide,
    status=status,
    wakes=(Wake(Controller, of_controller), Wake(Pod, of_pod), Wake(Event, of_complaint)),
    children=OWNED,
    urgent_status_fields=("slurmVersion",),
)
