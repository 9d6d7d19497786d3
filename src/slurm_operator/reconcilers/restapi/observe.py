"""Choose the facts about one RestApi: its Controller's configuration and key, its pods, who needs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout, rollout
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import dependencies, strays
from slurm_operator.reconcilers.shared.children import seen_children, seen_pods
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.reconcilers.shared.partition_removal import unread_nodesets
from slurm_operator.slurm.conf.rest import startup_settings
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

APP = "slurmrestd"

# What the exporter beside slurmrestd consists of.
EXPORTER_KINDS = (kinds.SERVICE, kinds.DEPLOYMENT, kinds.SERVICE_MONITOR)


@dataclass(frozen=True)
class Seen:
    restapi: RestApi
    config: Mapping[str, tuple[str, ...]] | Need
    config_map: str  # Where slurm.conf is.
    slurm_key: SecretHandle | Need
    children: Mapping[tuple[Kind, str], Child]
    rollout: Rollout | None
    troubles: list[str]
    slurm: Snapshot | Unreachable
    dependents: list[str]
    # Of the exporter; None where it is not wanted.
    jwt_key: SecretHandle | Need | None = None
    cluster_name: str = ""
    slurm_user: str = ""
    exporter_children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)
    has_service_monitors: bool = False

    @property
    def needs(self) -> list[Need]:
        """What slurmrestd cannot start without."""
        return [fact for fact in (self.config, self.slurm_key) if isinstance(fact, Need)]


def observe(key: ObjectKey, world: World) -> Seen | None:
    restapi = world.get(RestApi, key.namespace, key.name)
    if restapi is None:
        return None
    controller = dependencies.controller(world, restapi.metadata, restapi.spec.controller_ref.name, "RestApi")
    called = restapi.child_names
    children = seen_children(
        world, key.namespace, (kinds.SERVICE, called.service), (kinds.DEPLOYMENT, called.workload)
    )
    progress = rollout(children.get((kinds.DEPLOYMENT, called.workload)))
    return Seen(
        restapi=restapi,
        config=controller if isinstance(controller, Need) else config(controller, world),
        config_map="" if isinstance(controller, Need) else controller.child_names.config,
        slurm_key=controller
        if isinstance(controller, Need)
        else dependencies.controllers_slurm_key(world, controller),
        children=children,
        rollout=progress,
        troubles=[]
        if progress is None or progress.works
        else troubles(seen_pods(world, key.namespace, APP, key.name)),
        slurm=world.slurm(key.namespace, restapi.spec.controller_ref.name),
        dependents=dependents(restapi, world),
        jwt_key=jwt_key(restapi, controller, world),
        cluster_name="" if isinstance(controller, Need) else controller.cluster_name,
        slurm_user="" if isinstance(controller, Need) else controller.user.name,
        exporter_children=exporter_children(restapi, world),
        has_service_monitors=world.serves(kinds.SERVICE_MONITOR),
    )


def jwt_key(restapi: RestApi, controller: Controller | Need, world: World) -> SecretHandle | Need | None:
    """The key that the exporter signs its tokens with; None where there is to be no exporter."""
    if not restapi.spec.exporter.enabled or isinstance(controller, Need):
        return None
    whose, ref = f"Controller {controller.metadata.name!r}", key_secrets.signing_key(controller)
    return dependencies.generated_value(world, restapi.metadata.namespace, ref, whose)


def exporter_children(restapi: RestApi, world: World) -> dict[tuple[Kind, str], Child]:
    name = names.exporter_workload(restapi.metadata.name)
    there = [kind for kind in EXPORTER_KINDS if kind != kinds.SERVICE_MONITOR or world.serves(kind)]
    return seen_children(world, restapi.metadata.namespace, *((kind, name) for kind in there))


def config(controller: Controller, world: World) -> Mapping[str, tuple[str, ...]] | Need:
    """What slurmrestd takes from the slurm.conf that it finds in its pod."""
    meta = controller.metadata
    name = controller.child_names.config
    match world.config_map(meta.namespace, name):
        case ConfigMap(data=data) if "slurm.conf" in data:
            return startup_settings(data["slurm.conf"])
        case Unread(why=why):
            message = f"waiting for ConfigMap {name!r}, which cannot be read: {why}."
            return Need(subject=f"ConfigMap {name}", reason=Reason.CONFIG_UNREAD, message=message)
        case _:
            message = f"waiting for Controller {meta.name!r}: it has not written its slurm.conf yet."
            return Need(
                subject=f"ConfigMap {name}", reason=Reason.CONFIG_NOT_YET_WRITTEN, message=message, comes=True
            )


def dependents(restapi: RestApi, world: World) -> list[str]:
    """NodeSets that nobody could empty safely without this RestApi; none while there is another one."""
    namespace, served = restapi.metadata.namespace, restapi.spec.controller_ref.name
    for other in world.all(RestApi, namespace):
        is_another = other.metadata.name != restapi.metadata.name and not other.metadata.is_terminating
        if is_another and other.spec.controller_ref.name == served:
            return []
    nodesets = world.all(NodeSet, namespace)
    unread = [f"NodeSet {name} (cannot be read)" for name in unread_nodesets(namespace, world)]
    mine = [f"NodeSet {one.metadata.name}" for one in nodesets if one.spec.controller == served]
    is_going = restapi.metadata.is_terminating
    left = strays.needing(ObjectKey(namespace, served), world) if is_going else ()
    return [*mine, *unread, *left]
