"""LoginSet: sshd with Slurm's commands, behind one Service and one set of host keys."""

from collections.abc import Iterator

from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.reconciler import Reconciler, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.loginset.decide import decide
from slurm_operator.reconcilers.loginset.observe import APP, Seen, observe
from slurm_operator.reconcilers.loginset.status import status


def of_controller(controller: Controller, world: World) -> Iterator[ObjectKey]:
    for loginset in world.all(LoginSet, controller.metadata.namespace):
        if loginset.spec.controller_ref.name == controller.metadata.name:
            yield key_of(loginset)


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    labels = pod.metadata.labels
    if belonging.daemon_of(labels) == APP:
        yield ObjectKey(pod.metadata.namespace, belonging.owner_of(labels))


# Keys, host keys and sssd.conf are asked for by name, so their changes wake us too.
RECONCILER = Reconciler[Seen](
    name="loginset",
    kind=LoginSet.KIND,
    about=LoginSet,
    observe=observe,
    decide=decide,
    status=status,
    wakes=(Wake(Controller, of_controller), Wake(Pod, of_pod)),
    children=(kinds.SERVICE, kinds.DEPLOYMENT, kinds.STATEFUL_SET, kinds.CONFIG_MAP),
    urgent_status_fields=("endpoint",),
)
