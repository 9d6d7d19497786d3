"""Slurm clusters as people name them: Clusters, SlurmClusters, and Controllers of neither, with all parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slurm_operator import wire
from slurm_operator.api import nebius
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.insight.typed_names import cluster_name, did_you_mean
from slurm_operator.manifests.objects import Pod, Unread
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared.parts import is_owned
from slurm_operator.reconcilers.shared.slurm_servers import slurm_of
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

Part = Controller | Accounting | RestApi | LoginSet | NodeSet
Whole = Cluster | nebius.SlurmCluster | Controller

# Which daemons a kind runs, by the name that its pods carry.
DAEMONS: dict[type[Part], tuple[str, ...]] = {
    Controller: ("slurmctld",),
    Accounting: ("slurmdbd", "mariadb"),
    RestApi: ("slurmrestd",),
    LoginSet: ("login",),
    NodeSet: ("slurmd",),
}


class NotFound(Exception):  # noqa: N818 - it says what is the case
    """There is no such Slurm cluster, or it is not clear which."""


@dataclass(frozen=True)
class SlurmCluster:
    """One Slurm cluster: what was asked for, its parts, and what Slurm says."""

    key: ObjectKey
    about: Whole
    parts: tuple[Part, ...]
    pods: tuple[Pod, ...]
    slurm_key: ObjectKey
    slurm: Snapshot | Unreachable

    @property
    def node_sets(self) -> list[NodeSet]:
        return [part for part in self.parts if isinstance(part, NodeSet)]

    @property
    def is_elsewhere(self) -> bool:
        """Whether this Slurm is only watched: nothing is ever written to it."""
        return isinstance(self.about, Cluster) and self.about.spec.is_adopted

    def pods_of(self, part: Part) -> list[Pod]:
        return [pod for pod in self.pods if _is_of(pod, part)]


def clusters(world: World) -> list[SlurmCluster]:
    """Every Slurm cluster there is, by namespace and name."""
    composed = {key_of(cluster): _composed(cluster, world) for cluster in world.all(Cluster)}
    others = {key_of(cluster): _of_parts(cluster, world) for cluster in world.all(nebius.SlurmCluster)}
    alone = {
        key_of(controller): _whole(controller, controller, world)
        for controller in world.all(Controller)
        if (key_of(controller) not in composed or composed[key_of(controller)].is_elsewhere)
        and not (key_of(controller) in others and others[key_of(controller)].parts)
    }
    every = [*composed.values(), *others.values(), *alone.values()]
    return sorted(every, key=lambda one: (one.key, type(one.about).__name__))


def strays(world: World) -> Iterator[Part]:
    """Parts of no Slurm cluster: they name a Controller that is not there, or nobody names them."""
    controllers = world.all(Controller)
    known = {key_of(one) for one in controllers}
    used = {ObjectKey(one.metadata.namespace, one.spec.accounting) for one in controllers}
    there: list[RestApi | LoginSet | NodeSet] = [
        *world.all(RestApi),
        *world.all(LoginSet),
        *world.all(NodeSet),
    ]
    found: list[Part] = [one for one in world.all(Accounting) if key_of(one) not in used]
    found += [one for one in there if ObjectKey(one.metadata.namespace, controller_of(one)) not in known]
    yield from (one for one in found if not one.metadata.is_terminating)


def controller_of(part: RestApi | LoginSet | NodeSet) -> str:
    """The name of the Controller that a part names."""
    return part.spec.controller if isinstance(part, NodeSet) else part.spec.controller_ref.name


def clusters_named(found: Sequence[SlurmCluster], name: str) -> list[SlurmCluster]:
    """Those of this name, or all without one. Raises NotFound."""
    meant = cluster_name(name)
    chosen = [one for one in found if meant in ("", one.key.name, str(one.key))]
    if chosen:
        return chosen
    if not found:
        raise NotFound("There is no Slurm cluster here. Look in every namespace with -A.")
    question = did_you_mean(meant, [one.key.name for one in found])
    raise NotFound(f"There is no Slurm cluster {name!r} here. There are: {_listed(found)}.{question}")


def only(found: Sequence[SlurmCluster], name: str) -> SlurmCluster:
    """The one that is meant. Raises NotFound when there are several."""
    chosen = clusters_named(found, name)
    if len(chosen) > 1:
        raise NotFound(f"There are several Slurm clusters here; say which with --cluster: {_listed(chosen)}.")
    return chosen[0]


def _listed(found: Sequence[SlurmCluster]) -> str:
    return ", ".join(str(one.key) for one in found)


def _composed(cluster: Cluster, world: World) -> SlurmCluster:
    controller = None
    if not cluster.spec.is_adopted:
        controller = world.get(Controller, cluster.metadata.namespace, cluster.metadata.name)
    return _whole(cluster, controller, world)


def _of_parts(cluster: nebius.SlurmCluster, world: World) -> SlurmCluster:
    """A Controller of its name that somebody else made is none of its parts."""
    controller = world.get(Controller, cluster.metadata.namespace, cluster.metadata.name)
    is_own = controller is not None and is_owned(controller, cluster.metadata)
    return _whole(cluster, controller if is_own else None, world)


def _whole(about: Whole, controller: Controller | None, world: World) -> SlurmCluster:
    key = key_of(about)
    slurm_key = slurm_of(about) if isinstance(about, Cluster) else key
    parts = tuple(_parts(controller, world)) if controller is not None else ()
    pods = tuple(pod for pod in world.all(Pod, key.namespace) if any(_is_of(pod, part) for part in parts))
    return SlurmCluster(key, about, parts, pods, slurm_key, _slurm(slurm_key, controller, world))


def _slurm(key: ObjectKey, controller: Controller | None, world: World) -> Snapshot | Unreachable:
    """What Slurm says; where nobody could ask it for want of its key, that is the reason."""
    facts = world.slurm(key.namespace, key.name)
    if isinstance(facts, Snapshot) or controller is None:
        return facts
    ref = key_secrets.signing_key(controller)
    secret = world.secret(key.namespace, ref.name)
    if not isinstance(secret, Unread):
        return facts
    hindrance = "you may not read" if "forbidden" in secret.why else "could not read"
    return wire.replace(facts, why=f"{hindrance} Secret {ref.name}, which holds the key for its tokens")


def _parts(controller: Controller, world: World) -> Iterator[Part]:
    """In the order in which the trouble of one becomes that of the next."""
    namespace, name = key_of(controller)
    accounting = world.get(Accounting, namespace, controller.spec.accounting)
    if accounting is not None:
        yield accounting
    yield controller
    yield from (one for one in world.all(RestApi, namespace) if one.spec.controller_ref.name == name)
    yield from (one for one in world.all(LoginSet, namespace) if one.spec.controller_ref.name == name)
    yield from (one for one in world.all(NodeSet, namespace) if one.spec.controller == name)


def _is_of(pod: Pod, part: Part) -> bool:
    labels = pod.metadata.labels
    return (
        pod.metadata.namespace == part.metadata.namespace
        and belonging.owner_of(labels) == part.metadata.name
        and belonging.daemon_of(labels) in DAEMONS[type(part)]
    )
