"""Choose the facts about one Controller: what its spec names, what we made for it, what slurmctld reports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.auth import AuthType, type_of, with_munge
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller, controller_pod, good_config
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import cluster_names, older
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import key_ring, munge
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.kinds import Kind
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.manifests.pod_troubles import refusals
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.plan.world import OWNER, World
from slurm_operator.reconcilers.controller.annotations import MEMBER, SERVICE_ROLE, STATE, is_rehearsal
from slurm_operator.reconcilers.controller.daemon.readiness import is_ready
from slurm_operator.reconcilers.controller.keys.key_users import Sharing, sharing, worker_pods
from slurm_operator.reconcilers.shared import strays
from slurm_operator.reconcilers.shared.dependencies import is_auth_held, with_shared_keys
from slurm_operator.reconcilers.shared.partition_removal import (
    goes_as_a_whole,
    may_leave_config,
    unread_nodesets,
)
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

T = TypeVar("T")


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
    munge_key: Key | None = None  # Only of a cluster that uses munge.
    held_auth: AuthType | None = None  # What the spec asks for, and workers stand in the way of.
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
    static_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # By NodeSet, if it has lines.
    slurm: Snapshot | Unreachable = field(kw_only=True)
    has_service_monitors: bool = False
    claim: VolumeClaim | None = None
    may_have_state: bool = False  # Of an earlier slurmctld; also where nobody may look.
    ring: Secret | Unread | None = None
    signing_copies: Secret | Unread | None = None
    munge_copy: Secret | Unread | None = None
    is_last_with_key: bool = True  # Nobody else needs the ring any more.
    is_going: bool = False  # It is being deleted, or the Cluster is that it belongs to.
    sharing: Sharing | None = None  # Only for the one Controller that looks after the ring.
    # What has been worked out from all this. A copy with other facts begins without.
    known: dict[Callable[["Seen"], object], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
        """A slurmctld is in a pod of the Slinky operator: ready while it lives, also when it stands by."""
        return any(names.KEY_RING not in pod.metadata.annotations for pod in self.pods)

    @property
    def has_taken_over_workers(self) -> bool:
        """Another operator made some of its workers, and jobs may have been in them all the time."""
        return any(names.POD_TAKEN_OVER in pod.metadata.annotations for pod in self.workers.values())

    @property
    def ready_pods(self) -> list[Pod]:
        """Those with a slurmctld that answers; of several only the one in charge does."""
        return [pod for pod in self.pods if is_ready(self.controller, pod)]

    @property
    def workload(self) -> Child | None:
        return self.children.get((kinds.STATEFUL_SET, self.controller.child_names.workload))


def once(work: Callable[[Seen], T]) -> Callable[[Seen], T]:
    """Worked out when first asked for, and the same for all who ask in this pass; nobody may change it."""

    @wraps(work)
    def found(seen: Seen) -> T:
        if work not in seen.known:
            seen.known[work] = work(seen)
        result: T = seen.known[work]
        return result

    return found


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
    workload = children.get((kinds.STATEFUL_SET, controller.child_names.workload))
    shared = sharing(controller, world)
    return Seen(
        controller=controller,
        slurm_key=_key(controller, key_secrets.slurm_key(controller), spec.slurm_key_ref, workload, world),
        signing_key=_key(
            controller, key_secrets.signing_key(controller), keys.signing_key(spec), workload, world
        ),
        munge_key=_munge_key(controller, workload, world),
        held_auth=type_of(found.spec.auth) if is_auth_held(found, world) else None,
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
        static_nodes={
            nodeset.metadata.name: _static_nodes(nodeset, world)
            for nodeset in nodesets
            if nodeset.spec.records is Records.STATIC
        },
        slurm=world.slurm(key.namespace, key.name),
        has_service_monitors=world.serves(kinds.SERVICE_MONITOR),
        claim=_claim(controller, world),
        may_have_state=_may_have_state(controller, world),
        ring=world.secret(key.namespace, key_ring.name_of(key_secrets.slurm_key(controller).name)),
        signing_copies=world.secret(key.namespace, names.signing_copies(key.name)),
        munge_copy=_munge_copy(controller, world),
        is_last_with_key=_is_last_with_key(controller, world),
        is_going=goes_as_a_whole(controller, world),
        sharing=shared,
    )


def _static_nodes(nodeset: NodeSet, world: World) -> tuple[str, ...]:
    """Workers with a line in slurm.conf: those that may be wanted, and whoever has not gone yet."""
    wanted = () if nodeset.metadata.is_terminating else nodeset.spec.known_numbers
    there = (slurm_node_name(pod) for pod in world.find(Pod, OWNER, nodeset.metadata.uid))
    return tuple(sorted({*there, *(nodeset.host_name(ordinal) for ordinal in wanted)}))


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
    called, namespace = controller.child_names, controller.metadata.namespace
    wanted = (
        (kinds.SERVICE, called.service),
        (kinds.SERVICE, called.internal_service),
        (kinds.SERVICE, called.workers),
        (kinds.DISRUPTION_BUDGET, called.budget),
        (kinds.CONFIG_MAP, called.config),
        (kinds.CONFIG_MAP, good_config(controller)),
        (kinds.STATEFUL_SET, called.workload),
        (kinds.SERVICE_MONITOR, called.workload),
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
    namespace = controller.metadata.namespace
    workload = children.get((kinds.STATEFUL_SET, controller.child_names.workload))
    made = workload.body.get("spec", {}).get("replicas", 0) if workload is not None else 0
    for index in range(max(replicas(controller), made)):
        pod = world.get(Pod, namespace, controller_pod(controller, index))
        if pod is not None:
            yield pod


def _claim(controller: Controller, world: World) -> VolumeClaim | None:
    """The volume that the user gave for the state, as far as it matters: several slurmctlds share it."""
    name = controller.spec.persistence.existing_claim
    if not name or not controller.spec.ha.enabled:
        return None
    return world.get(VolumeClaim, controller.metadata.namespace, name)


def _may_have_state(controller: Controller, world: World) -> bool:
    """Whether there is a volume in which an earlier slurmctld may have left its state."""
    persistence, namespace = controller.spec.persistence, controller.metadata.namespace
    if not persistence.enabled:
        return False
    if persistence.existing_claim or not world.serves(kinds.PERSISTENT_VOLUME_CLAIM):
        return True
    return world.get(VolumeClaim, namespace, f"{STATE}-{controller_pod(controller, 0)}") is not None


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
    found = world.get(Controller, key.namespace, key.name)
    if found is not None and found.metadata.is_terminating:
        yield from strays.needing(key, world)


def _is_last_with_key(controller: Controller, world: World) -> bool:
    """Of several that go at the same time each takes itself for the last."""
    meta, secret = controller.metadata, key_secrets.slurm_key(controller).name
    return not any(
        key_secrets.slurm_key(with_shared_keys(other, world)).name == secret and _stays(other, world)
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


def _munge_key(controller: Controller, workload: Child | None, world: World) -> Key | None:
    auth = with_munge(controller.spec.auth)
    if auth is None:
        return None
    # A slurmctld without munge has no key that could be lost.
    notes = workload.body["spec"]["template"]["spec"] if workload is not None else {}
    has_it = any(one["name"] == munge.NAME for one in notes.get("initContainers") or ())
    ref = key_secrets.munge_key(controller)
    return _key(controller, ref, auth.munge_key_ref, workload if has_it else None, world)


def _munge_copy(controller: Controller, world: World) -> Secret | Unread | None:
    if with_munge(controller.spec.auth) is None:
        return None
    name = names.munge_copy(key_secrets.munge_key(controller).name)
    return world.secret(controller.metadata.namespace, name)


def _may_make(ref: SecretKey, controller: Controller, world: World) -> bool:
    """Whether a key of our making opens anything.

    A slurmctld or slurmdbd elsewhere has one already, and an Accounting that comes may bring its own.
    """
    accounting = _accounting(controller, world)
    if controller.spec.external or (controller.spec.accounting and accounting is None):
        return False
    is_theirs = accounting is not None and accounting.spec.external
    return not (is_theirs and ref == key_secrets.slurm_key(controller))


def _lost(where: str, workload: Child) -> str:
    """A new key would lock out every daemon that still has the old one, so none is made automatically."""
    return (
        f"{where} is gone, and running daemons go on with the key that was in it. Put it back from a copy; "
        f"to start over with another key, delete StatefulSet {workload.metadata.name!r}."
    )
