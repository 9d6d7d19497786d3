"""Choose the facts about one NodeSet: its workers, the machines they are on, and what Slurm says of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from slurm_operator.api import names
from slurm_operator.api.accounting import Accounting
from slurm_operator.api.conditions import READY, Truth
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import ObjectKey
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.shared_keys import slurm_key
from slurm_operator.api.workers import ScalingMode
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import KubeNode, Pod, Secret, Unread
from slurm_operator.plan.leaving import Stays, is_configured, may_leave_config
from slurm_operator.plan.needs import with_shared_keys
from slurm_operator.plan.world import NOBODY, OWNER, Protection, World
from slurm_operator.reconcilers.nodeset import identity, revisions
from slurm_operator.reconcilers.nodeset.abandoned import is_abandoned, is_cut_off
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.remains import Remains, neighbours, remains
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.their_hash import their_hash
from slurm_operator.reconcilers.nodeset.volumes import Claims, all_claim_names, claim_names, whose
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Seen:
    nodeset: NodeSet
    controller: Controller | None
    members: tuple[Member, ...]
    kube_nodes: Mapping[str, KubeNode]  # None of them when they may not be seen: ask `sees_machines`.
    revisions: tuple[Child, ...]
    revision: Revision  # What workers are to be made from.
    slurm: Snapshot | Unreachable
    now: datetime
    ssh_config: Child | None = None
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
    sees_machines: bool = True
    awaits_keys_of: str = ""  # An Accounting that is not there yet and may bring its own.

    @property
    def controller_key(self) -> ObjectKey:
        return ObjectKey(self.nodeset.metadata.namespace, self.nodeset.spec.controller)

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
    def former(self) -> list[Member]:
        """Workers that were made from something else, and are not about to end."""
        return [m for m in self.members if self.is_former(m) and not m.is_terminating]

    def is_former(self, member: Member) -> bool:
        """It was made from something else than is wanted now. Whoever cannot be told is none of these."""
        return member.revision != self.revision.hash and member.revision not in self.unread_revisions

    @cached_property
    def holders(self) -> Mapping[str, Sequence[Pod]]:
        """Who has which name in Slurm: every pod that has not ended, ours and our neighbours'."""
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for member in self.members:
            if not member.pod.has_ended:
                found[member.slurm_node].append(member.pod)
        for pod in self.neighbours:
            if not pod.has_ended:
                found[identity.slurm_node_name(pod)].append(pod)
        return found

    def has_twin(self, member: Member) -> bool:
        """Another pod has its name in Slurm, and so may be whom the record of that name is about."""
        return any(pod.metadata.uid != member.uid for pod in self.holders.get(member.slurm_node, ()))

    @property
    def is_daemon(self) -> bool:
        return self.nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET


def observe(key: ObjectKey, world: World, propagated: tuple[str, ...] = ()) -> Seen | None:
    """`propagated` are conditions of Nodes that people asked to see in the reason of a cordon's drain."""
    nodeset = world.get(NodeSet, key.namespace, key.name)
    if nodeset is None:
        return None
    slurm = world.slurm(key.namespace, nodeset.spec.controller)
    found = world.get(Controller, key.namespace, nodeset.spec.controller)
    controller = with_shared_keys(found, world) if found is not None else None
    lost_since = controller.status.state_lost_since if controller is not None else None
    pods = [*world.find(Pod, OWNER, nodeset.metadata.uid), *_orphans(nodeset, world)]
    kube_nodes = _kube_nodes(nodeset, pods, world)
    history, unread = _history(nodeset, pods, world)
    current = revisions.current(nodeset, history)
    members = tuple(_members(pods, nodeset, kube_nodes, slurm, lost_since, current))
    return Seen(
        nodeset=nodeset,
        controller=controller,
        members=members,
        kube_nodes=kube_nodes,
        revisions=history,
        revision=current,
        unread_revisions=unread,
        slurm=slurm,
        ssh_config=world.child(kinds.CONFIG_MAP, key.namespace, names.ssh_config(key.name)),
        sssd_conf=_sssd_conf(nodeset, world),
        claims=_claims(nodeset, pods, kube_nodes, world),
        followers=tuple(world.children(kinds.PERSISTENT_VOLUME_CLAIM, nodeset.metadata.uid)),
        remains=remains(nodeset, members, slurm, world),
        neighbours=_neighbours(nodeset, members, kube_nodes, world),
        now=world.now,
        propagated_conditions=propagated,
        sees_machines=world.serves(kinds.KUBE_NODE),
        in_config=may_leave_config(nodeset, world),
        is_configured=is_configured(nodeset, world),
        protection=world.protection,
        is_abandoned=is_abandoned(nodeset, world),
        is_cut_off=is_cut_off(nodeset, world),
        awaits_keys_of=_awaited(controller, world) if controller is not None else "",
    )


def _orphans(nodeset: NodeSet, world: World) -> Iterator[Pod]:
    """Workers of this name that nobody owns; one that is on its way out is left to go."""
    if nodeset.metadata.is_terminating:
        return
    for pod in world.find(Pod, OWNER, NOBODY):
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
    """Which revision the operator before us made a worker from; empty for one of ours."""
    labels = pod.metadata.labels
    return "" if names.LABEL_REVISION in labels else labels.get(names.LABEL_HASH, "")


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
    wanted = set(all_claim_names(nodeset, nodeset.spec.replicas + len(pods)))
    for pod in pods:
        wanted.update(claim_names(nodeset, whose(pod)).values())
    for kube_node in kube_nodes.values():
        wanted.update(claim_names(nodeset, identity.daemon_hostname(kube_node)).values())
    kind, namespace = kinds.PERSISTENT_VOLUME_CLAIM, nodeset.metadata.namespace
    found = ((name, world.child(kind, namespace, name)) for name in sorted(wanted))
    return {name: claim for name, claim in found if claim is not None}


def _neighbours(
    nodeset: NodeSet, members: Sequence[Member], kube_nodes: Mapping[str, KubeNode], world: World
) -> tuple[Pod, ...]:
    """Looked for when a worker may come, who needs a free name, or one has a record that may be another's."""
    mode = nodeset.spec.scaling_mode
    most = len(kube_nodes) if mode is ScalingMode.DAEMON_SET else nodeset.spec.replicas
    may_come = sum(1 for member in members if member.mode is mode) < most
    if not may_come and all(m.record is not None and not m.pod.has_ended for m in members):
        return ()
    mine = {member.uid for member in members}
    return tuple(pod for pod in neighbours(nodeset, world) if pod.metadata.uid not in mine)


def _kube_nodes(nodeset: NodeSet, pods: Sequence[Pod], world: World) -> dict[str, KubeNode]:
    """All machines in DaemonSet mode, else those that the workers are on or are bound to."""
    if nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET:
        return {kube_node.metadata.name: kube_node for kube_node in world.all(KubeNode)}
    wanted = {pod.spec.node_name or pod.spec.bound_to for pod in pods} - {""}
    if nodeset.spec.pin_to_node:
        wanted.update(nodeset.status.ordinal_to_node.values())
    found = ((name, world.get(KubeNode, "", name)) for name in sorted(wanted))
    return {name: kube_node for name, kube_node in found if kube_node is not None}


def _members(
    pods: Sequence[Pod],
    nodeset: NodeSet,
    kube_nodes: Mapping[str, KubeNode],
    slurm: Snapshot | Unreachable,
    lost_since: datetime | None,
    current: Revision,
) -> Iterator[Member]:
    made_at = (pod.metadata.creation_timestamp for pod in pods)
    newest = max((moment for moment in made_at if moment is not None), default=None)
    for pod in pods:
        kube_node = kube_nodes.get(pod.spec.node_name)
        yield Member.of(
            pod,
            nodeset,
            kube_node,
            slurm,
            state_lost_since=lost_since,
            newest_made_at=newest,
            revision=revisions.revision_of(pod, current),
        )
