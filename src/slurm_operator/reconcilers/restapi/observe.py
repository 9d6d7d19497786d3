"""Choose the facts about one RestApi: its Controller's configuration and key, its pods, who needs it."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_operator.api import names
from slurm_operator.api.controller import Controller
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import ObjectKey
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.manifests.troubles import troubles
from slurm_operator.manifests.workloads import Rollout, rollout
from slurm_operator.plan import needs
from slurm_operator.plan.children import seen_children, seen_pods
from slurm_operator.plan.leaving import unread_nodesets
from slurm_operator.plan.needs import Need
from slurm_operator.plan.world import World
from slurm_operator.slurm.conf.rest import startup_settings
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

APP = "slurmrestd"


@dataclass(frozen=True)
class Seen:
    restapi: RestApi
    config: Mapping[str, tuple[str, ...]] | Need
    slurm_key: SecretHandle | Need
    children: Mapping[tuple[Kind, str], Child]
    rollout: Rollout | None
    troubles: list[str]
    slurm: Snapshot | Unreachable
    dependents: list[str]

    @property
    def needs(self) -> list[Need]:
        """What slurmrestd cannot start without."""
        return [fact for fact in (self.config, self.slurm_key) if isinstance(fact, Need)]


def observe(key: ObjectKey, world: World) -> Seen | None:
    restapi = world.get(RestApi, key.namespace, key.name)
    if restapi is None:
        return None
    controller = needs.controller(world, restapi.metadata, restapi.spec.controller_ref.name, "RestApi")
    name = names.restapi_workload(key.name)
    children = seen_children(world, key.namespace, (kinds.SERVICE, name), (kinds.DEPLOYMENT, name))
    progress = rollout(children.get((kinds.DEPLOYMENT, name)))
    return Seen(
        restapi=restapi,
        config=controller if isinstance(controller, Need) else config(controller, world),
        slurm_key=controller
        if isinstance(controller, Need)
        else needs.controllers_slurm_key(world, controller),
        children=children,
        rollout=progress,
        troubles=[]
        if progress is None or progress.works
        else troubles(seen_pods(world, key.namespace, APP, key.name)),
        slurm=world.slurm(key.namespace, restapi.spec.controller_ref.name),
        dependents=dependents(restapi, world),
    )


def config(controller: Controller, world: World) -> Mapping[str, tuple[str, ...]] | Need:
    """What slurmrestd takes from the slurm.conf that it finds in its pod."""
    meta = controller.metadata
    name = names.controller_config(meta.name)
    match world.config_map(meta.namespace, name):
        case ConfigMap(data=data) if "slurm.conf" in data:
            return startup_settings(data["slurm.conf"])
        case Unread(why=why):
            message = f"waiting for ConfigMap {name!r}, which cannot be read: {why}."
            return Need(subject=f"ConfigMap {name}", reason="ConfigUnread", message=message)
        case _:
            message = f"waiting for Controller {meta.name!r}: it has not written its slurm.conf yet."
            return Need(
                subject=f"ConfigMap {name}", reason="ConfigNotYetWritten", message=message, comes=True
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
    return [f"NodeSet {one.metadata.name}" for one in nodesets if one.spec.controller == served] + unread
