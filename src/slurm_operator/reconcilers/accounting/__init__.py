"""Accounting: slurmdbd, and a MariaDB of its own if the manifest asks for one."""

from collections.abc import Iterator

from slurm_operator.api import names
from slurm_operator.api.accounting import Accounting
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.wiring import Reconciler, Wake
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
    if labels.get(names.APP_NAME) in (APP, database.APP):
        yield ObjectKey(pod.metadata.namespace, labels.get(names.APP_INSTANCE, ""))


def of_complaint(event: Event, world: World) -> Iterator[ObjectKey]:
    """Pods of slurmdbd or of its database were refused."""
    for accounting in world.all(Accounting, event.metadata.namespace):
        name = accounting.metadata.name
        if event.regarding.name in (names.accounting_workload(name), names.database_workload(name)):
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
    decided_by=("slurmVersion",),
)
