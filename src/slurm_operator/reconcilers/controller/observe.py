"""Choose the facts about one Controller: what its spec names, what we made for it, what slurmctld reports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurm_operator.api import keys, names, shared_keys
from slurm_operator.api.accounting import Accounting
from slurm_operator.api.controller import Controller
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.references import cluster_names, older
from slurm_operator.api.refs import SecretKey
from slurm_operator.api.restapi import RestApi
from slurm_operator.manifests import key_ring, kinds
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.kinds import Kind
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.manifests.troubles import refusals
from slurm_operator.plan.leaving import goes_as_a_whole, may_leave_config, unread_nodesets
from slurm_operator.plan.needs import with_shared_keys
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.controller.marks import MEMBER, SERVICE_ROLE, is_rehearsal
from slurm_operator.reconcilers.controller.sharing import Sharing, sharing, worker_pods
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass(frozen=True)
class Key:
    """A key that the daemons share. Without a digest it cannot be used, and `trouble` says why."""

    ref: SecretKey
    digest: str
    trouble: str
    is_ours_to_make: bool = False
    is_gone: bool = False  # There is no such Secret; that one cannot be read says nothing about it.
    made_at: datetime | None = None  # When its Secret was.


@dataclass(frozen=True)
class Seen:
    controller: Controller
    slurm_key: Key
    signing_key: Key
    accounting: Accounting | None = None
    nodesets: tuple[NodeSet, ...] = ()
    unread_nodesets: tuple[str, ...] = ()  # They may be ours; nobody can tell what they ask for.
    dependents: tuple[str, ...] = ()
    has_restapi: bool = False
    references: Mapping[str, ConfigMap | Unread | None] = field(default_factory=dict)
    taken_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Of older Controllers.
    children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)
    rehearsals: tuple[Child, ...] = ()
    rehearsal_pods: Mapping[str, Pod] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    refused_pods: tuple[str, ...] = ()
    workers: Mapping[str, Pod] = field(default_factory=dict)  # By their names in Slurm.
    slurm: Snapshot | Unreachable = field(kw_only=True)
    has_service_monitors: bool = False
    claim: VolumeClaim | None = None
    ring: Secret | Unread | None = None
    signing_copies: Secret | Unread | None = None
    is_last_with_key: bool = True  # Nobody else needs the ring any more.
    is_going: bool = False  # It is being deleted, or the Cluster is that it belongs to.
    sharing: Sharing | None = None  # Only for the one Controller that looks after the ring.

    @property
    def name(self) -> str:
        return self.controller.metadata.name

    @property
    def namespace(self) -> str:
        return self.controller.metadata.namespace

    def live(self, kind: Kind, _namespace: str, name: str) -> Child | None:
        """One of our children, as `missing_writes` asks for it."""
        return self.children.get((kind, name))

    @property
    def members(self) -> list[Child]:
        """The Services of single slurmctlds that there are."""
        services = [child for (kind, _), child in self.children.items() if kind == kinds.SERVICE]
        return [one for one in services if one.metadata.labels.get(SERVICE_ROLE) == MEMBER]

    @property
    def keeps_keys(self) -> bool:
        """Whether we keep copies of its keys, which have to be deleted with it."""
        return self.has_restapi or not self.controller.spec.external

    @property
    def has_inherited_pods(self) -> bool:
        """A slurmctld is in a pod of the operator before us: ready while it lives, also when it stands by."""
        return any(names.KEY_RING not in pod.metadata.annotations for pod in self.pods)

    @property
    def workload(self) -> Child | None:
        return self.children.get((kinds.STATEFUL_SET, names.controller_workload(self.name)))


def observe(key: ObjectKey, world: World) -> Seen | None:
    found = world.get(Controller, key.namespace, key.name)
    if found is None:
        return None
    controller = with_shared_keys(found, world)
    spec = controller.spec
    nodesets = tuple(n for n in world.all(NodeSet, key.namespace) if n.spec.controller == key.name)
    rehearsals = tuple(
        child for child in world.children(kinds.CONFIG_MAP, controller.metadata.uid) if is_rehearsal(child)
    )
    children = dict(_children(controller, world))
    workload = children.get((kinds.STATEFUL_SET, names.controller_workload(key.name)))
    shared = sharing(controller, world)
    return Seen(
        controller=controller,
        slurm_key=_key(controller, shared_keys.slurm_key(controller), spec.slurm_key_ref, workload, world),
        signing_key=_key(
            controller, shared_keys.signing_key(controller), keys.signing_key(spec), workload, world
        ),
        accounting=_accounting(controller, world),
        nodesets=tuple(nodeset for nodeset in nodesets if may_leave_config(nodeset, world) is not None),
        unread_nodesets=unread_nodesets(key.namespace, world),
        dependents=tuple(_dependents(key, nodesets, world)),
        has_restapi=any(_is_of(key, restapi) for restapi in world.all(RestApi, key.namespace)),
        references={name: world.config_map(key.namespace, name) for name in referenced(controller)},
        taken_names=cluster_names(controller, older(controller, world.all(Controller, key.namespace))),
        children=children,
        rehearsals=rehearsals,
        rehearsal_pods={
            child.metadata.name: pod
            for child in rehearsals
            if (pod := world.get(Pod, key.namespace, child.metadata.name)) is not None
        },
        pods=tuple(_pods(controller, children, world)),
        refused_pods=tuple(refusals(workload, world.all(Event, key.namespace))),
        workers=shared.heads[0].workers if shared is not None else dict(worker_pods(controller, world)),
        slurm=world.slurm(key.namespace, key.name),
        has_service_monitors=world.serves(kinds.SERVICE_MONITOR),
        claim=_claim(controller, world),
        ring=world.secret(key.namespace, key_ring.name_of(shared_keys.slurm_key(controller).name)),
        signing_copies=world.secret(key.namespace, names.signing_copies(key.name)),
        is_last_with_key=_is_last_with_key(controller, world),
        is_going=goes_as_a_whole(controller, world),
        sharing=shared,
    )


def replicas(controller: Controller) -> int:
    """How many slurmctlds: the first, and its backups."""
    ha = controller.spec.ha
    return 1 + ha.backups if ha.enabled else 1


def referenced(controller: Controller) -> list[str]:
    """Every ConfigMap that the spec names, each once, sorted."""
    spec = controller.spec
    if spec.external:
        return []
    lists = (
        spec.config_file_refs,
        spec.prolog_script_refs,
        spec.epilog_script_refs,
        spec.prolog_slurmctld_script_refs,
        spec.epilog_slurmctld_script_refs,
    )
    found = {ref.name for refs in lists for ref in refs}
    if spec.jwks_key_ref is not None:
        found.add(spec.jwks_key_ref.name)
    return sorted(found - {""})


def _children(controller: Controller, world: World) -> Iterator[tuple[tuple[Kind, str], Child]]:
    name, namespace = controller.metadata.name, controller.metadata.namespace
    wanted = (
        (kinds.SERVICE, names.controller_service(name)),
        (kinds.SERVICE, names.controller_internal_service(name)),
        (kinds.SERVICE, names.worker_service(name)),
        (kinds.DISRUPTION_BUDGET, names.worker_budget(name)),
        (kinds.CONFIG_MAP, names.controller_config(name)),
        (kinds.CONFIG_MAP, names.good_config(name)),
        (kinds.STATEFUL_SET, names.controller_workload(name)),
        (kinds.SERVICE_MONITOR, names.controller_workload(name)),
    )
    for kind, child_name in wanted:
        child = world.child(kind, namespace, child_name)
        if child is not None:
            yield (kind, child_name), child
    for child in world.children(kinds.SERVICE, controller.metadata.uid):
        if child.metadata.labels.get(SERVICE_ROLE) == MEMBER:
            yield (kinds.SERVICE, child.metadata.name), child


def _pods(controller: Controller, children: Mapping[tuple[Kind, str], Child], world: World) -> Iterator[Pod]:
    """The slurmctld pods that there are, those included that a smaller spec no longer wants."""
    name, namespace = controller.metadata.name, controller.metadata.namespace
    workload = children.get((kinds.STATEFUL_SET, names.controller_workload(name)))
    made = workload.body.get("spec", {}).get("replicas", 0) if workload is not None else 0
    for index in range(max(replicas(controller), made)):
        pod = world.get(Pod, namespace, names.controller_pod(name, index))
        if pod is not None:
            yield pod


def _claim(controller: Controller, world: World) -> VolumeClaim | None:
    """The volume that the user gave for the state, as far as it matters: several slurmctlds share it."""
    name = controller.spec.persistence.existing_claim
    if not name or not controller.spec.ha.enabled:
        return None
    return world.get(VolumeClaim, controller.metadata.namespace, name)


def _dependents(key: ObjectKey, nodesets: tuple[NodeSet, ...], world: World) -> Iterator[str]:
    """Who would be left without a head."""
    yield from (f"NodeSet {nodeset.metadata.name}" for nodeset in nodesets)
    yield from (f"NodeSet {name} (cannot be read)" for name in unread_nodesets(key.namespace, world))
    for loginset in world.all(LoginSet, key.namespace):
        if loginset.spec.controller_ref.name == key.name:
            yield f"LoginSet {loginset.metadata.name}"
    for restapi in world.all(RestApi, key.namespace):
        if _is_of(key, restapi):
            yield f"RestApi {restapi.metadata.name}"


def _is_last_with_key(controller: Controller, world: World) -> bool:
    """Of several that go at the same time each takes itself for the last."""
    meta, secret = controller.metadata, shared_keys.slurm_key(controller).name
    return not any(
        shared_keys.slurm_key(with_shared_keys(other, world)).name == secret and _stays(other, world)
        for other in world.all(Controller, meta.namespace)
        if other.metadata.name != meta.name and not other.spec.external
    )


def _stays(controller: Controller, world: World) -> bool:
    key, meta = key_of(controller), controller.metadata
    nodesets = tuple(n for n in world.all(NodeSet, key.namespace) if n.spec.controller == key.name)
    return not meta.is_terminating or any(_dependents(key, nodesets, world))


def _is_of(key: ObjectKey, restapi: RestApi) -> bool:
    return restapi.spec.controller_ref.name == key.name


def _accounting(controller: Controller, world: World) -> Accounting | None:
    name = controller.spec.accounting
    return world.get(Accounting, controller.metadata.namespace, name) if name else None


def _key(
    controller: Controller, ref: SecretKey, given: SecretKey | None, workload: Child | None, world: World
) -> Key:
    """The digest of a key, or what is wrong with it, in words for the Controller's owner."""
    namespace = controller.metadata.namespace
    where = f"Secret {ref.name!r} in namespace {namespace!r}"
    match world.secret(namespace, ref.name):
        case None if given is None and workload is not None:
            return Key(ref, "", _lost(where, workload), is_gone=True)
        case None:
            is_ours = given is None and _may_make(ref, controller, world)
            why = f"There is no {where}; slurmctld starts as soon as there is one."
            return Key(ref, "", why, is_ours, is_gone=True)
        case Unread(why=why):
            return Key(ref, "", f"{where} could not be read: {why}.")
        case Secret(digests=digests) if ref.key not in digests:
            entries = ", ".join(sorted(digests)) or "none"
            return Key(ref, "", f"{where} has no entry {ref.key!r} (it has: {entries}).")
        case Secret(digests=digests, metadata=meta):
            return Key(ref, digests[ref.key], "", made_at=meta.creation_timestamp)


def _may_make(ref: SecretKey, controller: Controller, world: World) -> bool:
    """Whether a key of our making opens anything.

    A slurmctld or slurmdbd elsewhere has one already, and an Accounting that comes may bring its own.
    """
    accounting = _accounting(controller, world)
    if controller.spec.external or (controller.spec.accounting and accounting is None):
        return False
    is_theirs = accounting is not None and accounting.spec.external
    return not (is_theirs and ref == shared_keys.slurm_key(controller))


def _lost(where: str, workload: Child) -> str:
    """A new key would lock out every daemon that still has the old one, so none is made by itself."""
    return (
        f"{where} is gone, and running daemons go on with the key that was in it. Put it back from a copy; "
        f"to begin anew with another key, delete StatefulSet {workload.metadata.name!r}."
    )
