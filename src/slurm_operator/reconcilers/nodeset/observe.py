"""Choose the facts about one NodeSet: its workers, the machines they are on, and what Slurm says of them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import READY, Truth
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.shared.worker_parts import Records, ScalingMode
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller, good_config
from slurm_operator.api.slinky.key_secrets import slurm_key
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, KubeNode, Pod, Secret, Unread
from slurm_operator.plan.world import NOBODY, OWNER, Protection, World
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import their_hash
from slurm_operator.reconcilers.nodeset.creation.volumes import Claims, all_claim_names, claim_names, whose
from slurm_operator.reconcilers.nodeset.records.leftovers import Remains, neighbours, remains
from slurm_operator.reconcilers.nodeset.worker.left_behind import former_nodeset, has_nobody_to_ask
from slurm_operator.reconcilers.nodeset.worker.namespace_deletion import is_abandoned, is_cut_off
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.reconcilers.shared.dependencies import (
    is_auth_changing,
    known_controllers,
    with_shared_keys,
)
from slurm_operator.reconcilers.shared.partition_removal import Stays, is_configured, may_leave_config
from slurm_operator.reconcilers.shared.strays import cluster_of, strays_of
from slurm_operator.slurm.conf.merge import says_topology
from slurm_operator.slurm.conf.node_places import node_places
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Seen:
    nodeset: NodeSet
    controller: Controller | None
    workers: tuple[Worker, ...]
    kube_nodes: Mapping[str, KubeNode]  # None of them when they may not be seen: ask `sees_machines`.
    revisions: tuple[Child, ...]
    revision: Revision  # What workers are to be made from.
    slurm: Snapshot | Unreachable
    now: datetime
    ssh_config: Child | None = None
    own_service: Child | None = None
    sssd_conf: Secret | Unread | None = None
    claims: Claims = field(default_factory=dict)
    followers: tuple[Child, ...] = ()  # Claims that go with the NodeSet, also those that no worker has.
    remains: Remains = field(default_factory=Remains)
    neighbours: tuple[Pod, ...] = ()  # Of others in this Slurm cluster; none unless their names matter now.
    propagated_conditions: tuple[str, ...] = ()
    in_config: Stays | None = None
    is_configured: bool = False
    unread_revisions: frozenset[str] = frozenset()  # By hash: what some workers were made from.
    protection: Protection = Protection.NOT_LOOKED
    is_abandoned: bool = False
    is_cut_off: bool = False
    is_gone: bool = False  # The NodeSet is no more, and has left these workers.
    has_nobody_to_ask: bool = False  # Nor is its Controller there.
    # Workers that a previous NodeSet of this name has left in another Slurm cluster than this one's.
    left_elsewhere: "Seen | None" = None
    sees_machines: bool = True
    awaits_keys_of: str = ""  # An Accounting that is not there yet and may bring its own.
    awaits_auth: bool = False  # slurm.conf is about to get another authentication.
    # Where topology.conf puts nodes, as slurmctld runs with it; only for records that the operator makes.
    places: Mapping[str, str] = field(default_factory=dict)
    other_controllers: tuple[str, ...] = ()  # Those that there are, where its own is not.

    @property
    def controller_key(self) -> ObjectKey:
        return _controller_key(self.nodeset)

    @property
    def reservation_name(self) -> str:
        """What our maintenance reservation in Slurm is called, if there is one."""
        return names.reservation(self.nodeset.metadata.name)

    @cached_property
    def slurmctld_since(self) -> datetime | None:
        """Since when slurmctld has been in service, for all that is known; None while it is not."""
        if self.controller is None or not isinstance(self.slurm, Snapshot):
            return None
        ready = next((one for one in self.controller.status.conditions if one.type == READY), None)
        if ready is None or ready.last_transition_time is None:
            return _EVER
        return ready.last_transition_time if ready.status is Truth.TRUE else None

    @cached_property
    def former(self) -> list[Worker]:
        """Workers that were made from something else, and are not about to end."""
        return [m for m in self.workers if self.is_former(m) and not m.is_terminating]

    def is_former(self, worker: Worker) -> bool:
        """It was made from something else than is wanted now. Whoever cannot be told is none of these."""
        return worker.revision != self.revision.hash and worker.revision not in self.unread_revisions

    @cached_property
    def holders(self) -> Mapping[str, Sequence[Pod]]:
        """Who has which name in Slurm: every pod that has not ended, ours and our neighbours'."""
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for worker in self.workers:
            if not worker.pod.has_ended:
                found[worker.slurm_node].append(worker.pod)
        for pod in self.neighbours:
            if not pod.has_ended:
                found[identity.slurm_node_name(pod)].append(pod)
        return found

    def has_twin(self, worker: Worker) -> bool:
        """Another pod has its name in Slurm, and so may be whom the record of that name is about."""
        return any(pod.metadata.uid != worker.uid for pod in self.holders.get(worker.slurm_node, ()))

    @property
    def is_daemon(self) -> bool:
        return self.nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET


def observe(key: ObjectKey, world: World, propagated: tuple[str, ...] = ()) -> Seen | None:
    """`propagated` are conditions of Nodes that people asked to see in the reason of a cordon's drain."""
    nodeset = world.get(NodeSet, key.namespace, key.name)
    strays = strays_of(key, world)
    if nodeset is None:
        return _left_behind(key, strays, world)
    slurm = world.slurm(key.namespace, nodeset.spec.controller)
    found = world.get(Controller, key.namespace, nodeset.spec.controller)
    controller = with_shared_keys(found, world) if found is not None else None
    lost_since = controller.status.state_lost_since if controller is not None else None
    pods = [*world.find(Pod, OWNER, nodeset.metadata.uid), *_orphans(nodeset, world)]
    kube_nodes = _kube_nodes(nodeset, pods, world)
    history, unread = _history(nodeset, pods, world)
    current = revisions.current(nodeset, history)
    workers = tuple(_workers(pods, nodeset, kube_nodes, slurm, lost_since, current))
    return Seen(
        nodeset=nodeset,
        controller=controller,
        workers=workers,
        kube_nodes=kube_nodes,
        revisions=history,
        revision=current,
        unread_revisions=unread,
        slurm=slurm,
        ssh_config=world.child(kinds.CONFIG_MAP, key.namespace, names.ssh_config(key.name)),
        own_service=world.child(kinds.SERVICE, key.namespace, nodeset.service) if nodeset.service else None,
        sssd_conf=_sssd_conf(nodeset, world),
        claims=_claims(nodeset, pods, kube_nodes, world),
        followers=tuple(world.children(kinds.PERSISTENT_VOLUME_CLAIM, nodeset.metadata.uid)),
        remains=remains(nodeset, workers, slurm, world),
        neighbours=_neighbours(nodeset, workers, kube_nodes, world),
        now=world.now,
        propagated_conditions=propagated,
        sees_machines=world.serves(kinds.KUBE_NODE),
        in_config=may_leave_config(nodeset, world),
        is_configured=is_configured(nodeset, world),
        protection=world.protection,
        is_abandoned=is_abandoned(nodeset, world),
        is_cut_off=is_cut_off(nodeset, world),
        awaits_keys_of=_awaited(controller, world) if controller is not None else "",
        awaits_auth=found is not None and is_auth_changing(found, world),
        places=_places(nodeset, controller, world),
        other_controllers=known_controllers(world, key.namespace) if controller is None else (),
        left_elsewhere=_left_behind(key, [pod for pod in strays if _is_elsewhere(pod, nodeset)], world),
    )


def _places(nodeset: NodeSet, controller: Controller | None, world: World) -> Mapping[str, str]:
    is_ours = nodeset.spec.records is Records.CREATED and not says_topology(nodeset.spec.extra_conf)
    if controller is None or not is_ours:
        return {}
    tested = world.config_map(nodeset.metadata.namespace, good_config(controller))
    return node_places(tested.data) if isinstance(tested, ConfigMap) else {}


def _left_behind(key: ObjectKey, pods: Sequence[Pod], world: World) -> Seen | None:
    """Workers that a NodeSet of this name has left, as if it were being deleted; None where it left none."""
    if not pods:
        return None
    nodeset = former_nodeset(key, pods)
    slurm, current = world.slurm(*_controller_key(nodeset)), revisions.current(nodeset, ())
    found = [pod for pod in pods if cluster_of(pod) == _controller_key(nodeset)]
    controller = world.get(Controller, *_controller_key(nodeset))
    lost_since = controller.status.state_lost_since if controller is not None else None
    kube_nodes = _kube_nodes(nodeset, found, world)
    return Seen(
        nodeset=nodeset,
        controller=controller,
        workers=tuple(_workers(found, nodeset, kube_nodes, slurm, lost_since, current)),
        kube_nodes=kube_nodes,
        revisions=(),
        revision=current,
        slurm=slurm,
        neighbours=tuple(neighbours(nodeset, world)),
        now=world.now,
        protection=world.protection,
        is_abandoned=is_abandoned(nodeset, world),
        is_gone=True,
        has_nobody_to_ask=has_nobody_to_ask(nodeset, world),
    )


def _is_elsewhere(pod: Pod, nodeset: NodeSet) -> bool:
    """It was made for another Slurm cluster. One that does not say for which is taken over."""
    return names.LABEL_CLUSTER in pod.metadata.labels and cluster_of(pod) != _controller_key(nodeset)


def _controller_key(nodeset: NodeSet) -> ObjectKey:
    return ObjectKey(nodeset.metadata.namespace, nodeset.spec.controller)


def _orphans(nodeset: NodeSet, world: World) -> Iterator[Pod]:
    """Workers of this name whose owner is no more, or that have none; one on its way out is left to go."""
    if nodeset.metadata.is_terminating:
        return
    for pod in (*world.find(Pod, OWNER, NOBODY), *strays_of(key_of(nodeset), world)):
        meta = pod.metadata
        is_here = meta.namespace == nodeset.metadata.namespace and not meta.is_terminating
        if is_here and identity.is_called_like(pod, nodeset):
            yield pod


def _history(nodeset: NodeSet, pods: Sequence[Pod], world: World) -> tuple[tuple[Child, ...], frozenset[str]]:
    """What workers were made from, and the hashes of which that cannot be read."""
    own, uid = nodeset.metadata, nodeset.metadata.uid
    watched = (*world.children(kinds.CONTROLLER_REVISION, uid), *_orphaned_revisions(nodeset, world))
    inherited = {hash_ for pod in pods if (hash_ := _inherited_hash(pod))}
    if not inherited:
        return watched, frozenset()
    there = {child.metadata.name for child in watched}
    wanted = sorted({*inherited, their_hash(nodeset)})
    named = {
        hash_: world.revision(own.namespace, name)
        for hash_ in wanted
        if (name := f"{own.name}-{hash_}") not in there
    }
    found = [child for child in named.values() if isinstance(child, Child) and _is_ours(child, uid)]
    unread = {hash_ for hash_, child in named.items() if isinstance(child, Unread)}
    return (*watched, *found), frozenset(unread)


def _inherited_hash(pod: Pod) -> str:
    """Which revision the Slinky operator made a worker from; empty for one of ours."""
    labels = pod.metadata.labels
    is_known = names.LABEL_REVISION in labels or names.POD_TAKEN_OVER in pod.metadata.annotations
    return "" if is_known else labels.get(names.LABEL_HASH, "")


def _is_ours(child: Child, uid: str) -> bool:
    owners = child.metadata.owner_references
    return not child.metadata.is_terminating and (not owners or any(owner.uid == uid for owner in owners))


def _orphaned_revisions(nodeset: NodeSet, world: World) -> Iterator[Child]:
    """What workers of this name were made from, and nobody owns."""
    if nodeset.metadata.is_terminating:
        return
    for revision in world.children(kinds.CONTROLLER_REVISION, NOBODY):
        is_here = revision.metadata.namespace == nodeset.metadata.namespace
        if is_here and not revision.metadata.is_terminating and revisions.is_called_like(revision, nodeset):
            yield revision


def _awaited(controller: Controller, world: World) -> str:
    """The Accounting that decides which key workers need, while it is not there and no key of its name is."""
    spec, namespace = controller.spec, controller.metadata.namespace
    if not spec.accounting or spec.slurm_key_ref is not None or spec.external:
        return ""
    if world.get(Accounting, namespace, spec.accounting) is not None:
        return ""
    is_made = isinstance(world.secret(namespace, slurm_key(controller).name), Secret)
    return "" if is_made else spec.accounting


def _sssd_conf(nodeset: NodeSet, world: World) -> Secret | Unread | None:
    ref = nodeset.spec.ssh.sssd_conf_ref
    is_asked_for = nodeset.spec.ssh.enabled and ref is not None
    return world.secret(nodeset.metadata.namespace, ref.name) if is_asked_for and ref is not None else None


def _claims(
    nodeset: NodeSet, pods: Sequence[Pod], kube_nodes: Mapping[str, KubeNode], world: World
) -> dict[str, Child]:
    """The volume claims that there are, of workers that are there or may come."""
    if not nodeset.spec.volume_claim_templates:
        return {}
    wanted = set(all_claim_names(nodeset, _numbers(nodeset, len(pods))))
    for pod in pods:
        wanted.update(claim_names(nodeset, whose(pod)).values())
    for kube_node in kube_nodes.values():
        wanted.update(claim_names(nodeset, identity.daemon_hostname(kube_node)).values())
    kind, namespace = kinds.PERSISTENT_VOLUME_CLAIM, nodeset.metadata.namespace
    found = ((name, world.child(kind, namespace, name)) for name in sorted(wanted))
    return {name: claim for name, claim in found if claim is not None}


def _numbers(nodeset: NodeSet, others: int) -> Collection[int]:
    """Numbers that workers may come with. Without a list of them so many `others` may be in the way."""
    spec = nodeset.spec
    return spec.numbers if spec.has_fixed_numbers else range(spec.replicas + others)


def _neighbours(
    nodeset: NodeSet, workers: Sequence[Worker], kube_nodes: Mapping[str, KubeNode], world: World
) -> tuple[Pod, ...]:
    """Looked for when a worker may come, who needs a free name, or one has a record that may be another's."""
    mode = nodeset.spec.scaling_mode
    most = len(kube_nodes) if mode is ScalingMode.DAEMON_SET else len(nodeset.spec.numbers)
    own = [worker for worker in workers if worker.mode is mode]
    may_come = len(own) < most or _lacks_a_number(nodeset, own)
    if not may_come and all(m.record is not None and not m.pod.has_ended for m in workers):
        return ()
    mine = {worker.uid for worker in workers}
    return tuple(pod for pod in neighbours(nodeset, world) if pod.metadata.uid not in mine)


def _lacks_a_number(nodeset: NodeSet, own: Sequence[Worker]) -> bool:
    """One of the list has no worker yet, however many others are there."""
    spec = nodeset.spec
    return spec.has_fixed_numbers and not {worker.ordinal for worker in own}.issuperset(spec.numbers)


def _kube_nodes(nodeset: NodeSet, pods: Sequence[Pod], world: World) -> dict[str, KubeNode]:
    """All machines in DaemonSet mode, else those that the workers are on or are bound to."""
    if nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET:
        return {kube_node.metadata.name: kube_node for kube_node in world.all(KubeNode)}
    wanted = {pod.spec.node_name or pod.spec.bound_to for pod in pods} - {""}
    if nodeset.spec.pin_to_node:
        wanted.update(nodeset.status.ordinal_to_node.values())
    found = ((name, world.get(KubeNode, "", name)) for name in sorted(wanted))
    return {name: kube_node for name, kube_node in found if kube_node is not None}


def _workers(
    pods: Sequence[Pod],
    nodeset: NodeSet,
    kube_nodes: Mapping[str, KubeNode],
    slurm: Snapshot | Unreachable,
    lost_since: datetime | None,
    current: Revision,
) -> Iterator[Worker]:
    made_at = (pod.metadata.creation_timestamp for pod in pods)
    newest = max((moment for moment in made_at if moment is not None), default=None)
    kept = nodeset.metadata.annotations.get(names.KEEPS_TAKEN_OVER, "")
    for pod in pods:
        kube_node = kube_nodes.get(pod.spec.node_name)
        yield Worker.of(
            pod,
            nodeset,
            kube_node,
            slurm,
            state_lost_since=lost_since,
            newest_made_at=newest,
            revision=revisions.revision_of(pod, current, kept),
        )
