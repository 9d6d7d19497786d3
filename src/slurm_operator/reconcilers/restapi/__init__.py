"""RestApi: slurmrestd in a Deployment, started when its Controller has a configuration."""

from collections.abc import Iterator

from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.restapi.decide import decide
from slurm_operator.reconcilers.restapi.observe import APP, Seen, observe
from slurm_operator.reconcilers.restapi.status import status
from slurm_operator.reconcilers.shared.strays import cluster_of, is_stray
from slurm_operator.slurm.snapshot import Changes


def restapis_of(controller: ObjectKey, world: World) -> Iterator[ObjectKey]:
    for restapi in world.all(RestApi, controller.namespace):
        if restapi.spec.controller_ref.name == controller.name:
            yield key_of(restapi)


def of_controller(controller: Controller, world: World) -> Iterator[ObjectKey]:
    return restapis_of(key_of(controller), world)


def beside(restapi: RestApi, world: World) -> Iterator[ObjectKey]:
    """The others of the same Controller: the last one of them is kept while there are NodeSets."""
    return restapis_of(ObjectKey(restapi.metadata.namespace, restapi.spec.controller_ref.name), world)


def of_nodeset(nodeset: NodeSet, world: World) -> Iterator[ObjectKey]:
    return restapis_of(ObjectKey(nodeset.metadata.namespace, nodeset.spec.controller), world)


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    labels = pod.metadata.labels
    if belonging.daemon_of(labels) == APP:
        yield ObjectKey(pod.metadata.namespace, belonging.owner_of(labels))
    elif is_stray(pod, world):
        yield from restapis_of(cluster_of(pod), world)


def of_slurm(controller: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if changes.everything:
        yield from restapis_of(controller, world)


RECONCILER = Reconciler[Seen](
    name="restapi",
    kind=RestApi.KIND,
    about=RestApi,
    observe=observe,
    decide=decide,
    status=status,
    wakes=(
        Wake(Controller, of_controller),
        Wake(RestApi, beside),
        Wake(NodeSet, of_nodeset),
        Wake(Pod, of_pod),
    ),
    slurm_wake=SlurmWake(of_slurm),
    children=(kinds.SERVICE, kinds.DEPLOYMENT, kinds.SERVICE_MONITOR),
    urgent_status_fields=("url",),
)
