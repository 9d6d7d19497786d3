"""New workers: what has to be there before them, and their pods."""

from collections.abc import Iterable
from datetime import timedelta

from slurm_operator.api.shared import names
from slurm_operator.conditions import Reason
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.plan.actions import Action, Create, Wait
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import ssh
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.creation.volumes import missing_claims
from slurm_operator.reconcilers.nodeset.departures.replica_plan import Choices, NameConflict
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records.created_records import before_pod, is_created
from slurm_operator.reconcilers.nodeset.records.outdated import FRESH_RECORD, forget, is_outdated
from slurm_operator.reconcilers.nodeset.records.registration_check import declares_otherwise
from slurm_operator.reconcilers.shared.dependencies import listed_controllers
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.snapshot import Snapshot

NEW = "new workers"
NAME_TAKEN = Reason.NAME_TAKEN
MISNAMED = Reason.HOSTNAME_INVALID
AUTH_CHANGING = Reason.AUTH_CHANGING

NO_MACHINES = Wait(
    subject=NEW,
    reason=Reason.MACHINES_NOT_SEEN,
    message="The operator has no right to look at the machines of this cluster, so it cannot tell where "
    "workers belong. All stay as they are. Give it list and watch on nodes, or use StatefulSet mode.",
)


# How soon a name in Slurm is asked for again that somebody has: its pod wakes its own NodeSet alone.
NAMES_FREE_AFTER = timedelta(seconds=10)

# How soon it is looked at again whether slurm.conf has the other authentication.
AUTH_CHANGED_AFTER = timedelta(seconds=2)


def look_again(seen: Seen, choices: Choices, coming: Iterable[Lane]) -> Step:
    """Pods come as soon as Slurm has taken their records, or their name is free."""
    waits = (action.reason for one in coming for action in one.actions() if isinstance(action, Wait))
    return look(
        [
            NAMES_FREE_AFTER if choices.held else None,
            AUTH_CHANGED_AFTER if AUTH_CHANGING in waits else None,
        ],
        asks_slurm=is_created(seen.nodeset) and bool(choices.create),
    )


def arrivals(seen: Seen, choices: Choices, revision: Revision) -> list[Lane]:
    """Workers that need nothing come together; one that needs something first has a lane of its own.

    Where that is something to wait for, its pod does not come yet.
    """
    if seen.is_daemon and not seen.sees_machines and not seen.nodeset.metadata.is_terminating:
        return [lane("ssh", ssh.config_writes(seen, revision)), lane(NEW, [NO_MACHINES])]
    misnamed = [lane(kube_node.metadata.name, [_misnamed(kube_node)]) for kube_node in choices.misnamed]
    if not choices.create and not choices.held:
        return [lane("ssh", ssh.config_writes(seen, revision)), *misnamed]
    if seen.controller is None:
        return [lane(NEW, [_no_controller(seen)])]
    if seen.awaits_keys_of:
        return [lane(NEW, [_no_accounting(seen)])]
    if seen.awaits_auth:
        return [lane(NEW, [_other_auth(seen)])]
    cordoned = frozenset(seen.nodeset.status.cordoned)
    pods = WorkerPods(seen.nodeset, seen.controller, revision, ssh.notes(seen))
    together: list[Action] = []
    alone: list[Lane] = []
    for slot in choices.create:
        first = _first(slot, seen)
        pod = _creation(slot, pods, seen, is_cordoned=slot.pod_name in cordoned)
        is_held_up = any(isinstance(action, Wait) for stage in first for action in stage)
        if first:
            alone.append(lane(slot.hostname, *first, [] if is_held_up else [pod]))
        else:
            together.append(pod)
    held = [lane(one.slot.pod_name, [_name_taken(one, seen)]) for one in choices.held]
    return [lane(NEW, ssh.config_writes(seen, revision), together), *alone, *held, *misnamed]


def _first(slot: Slot, seen: Seen) -> list[list[Action]]:
    """Stages before the pod: a record that would not fit goes, volumes come.

    Nobody waits for Slurm, unless records are made before the pods.
    """
    stages: list[list[Action]] = []
    name, is_renewed = slot.slurm_node(seen.nodeset), _needs_new_record(slot, seen)
    if is_renewed:
        why = "the new worker is not what its record says"
        stages.append([forget(name, seen.controller_key, Reason.OUTDATED, why)])
    if made := before_pod(name, seen, is_renewed=is_renewed):
        stages.append(made)
    claims = missing_claims(seen.nodeset, slot.whose(seen.nodeset), slot.pod_name, seen.claims)
    return [*stages, [*claims]] if claims else stages


def _needs_new_record(slot: Slot, seen: Seen) -> bool:
    """Also when the worker before it ended on its own, and nobody noted that its resources had changed."""
    name = slot.slurm_node(seen.nodeset)
    if is_outdated(name, seen.slurm, seen.reservation_name):
        return True
    record = seen.slurm.nodes.get(name) if isinstance(seen.slurm, Snapshot) else None
    is_other = record is not None and declares_otherwise(record, seen.nodeset)
    return is_other and may_delete_record(name, seen.slurm, seen.reservation_name)


def _creation(slot: Slot, pods: WorkerPods, seen: Seen, *, is_cordoned: bool) -> Create:
    manifest = pods.pod(slot)
    if _needs_new_record(slot, seen) or _is_first_of_record(slot, seen):
        manifest["metadata"]["annotations"][FRESH_RECORD] = "true"
    if is_cordoned:
        manifest["metadata"]["annotations"][names.POD_CORDON] = "true"  # They said so of this worker.
    return Create(manifest=manifest, reason=Reason.SCALING_UP, message=f"created worker {slot.pod_name}")


def _is_first_of_record(slot: Slot, seen: Seen) -> bool:
    """Its record is made right before it. If Slurm refuses the worker all the same, a new one is no help."""
    return bool(before_pod(slot.slurm_node(seen.nodeset), seen, is_renewed=False))


def _misnamed(kube_node: KubeNode) -> Wait:
    message = f"no worker can be created: {identity.override_problem(kube_node)}"
    return Wait(subject=kube_node.metadata.name, reason=MISNAMED, message=message)


def _name_taken(held: NameConflict, seen: Seen) -> Wait:
    """Who has the name, and how both could be there."""
    slot, name = held.slot, held.slot.slurm_node(seen.nodeset)
    message = (
        f"Slurm would call it {name!r}, as it calls {_holder_text(held.by, seen)}, and take "
        "that one's jobs away. "
        f"It is created when that one is gone. For both to run, {_remedy(held)}."
    )
    return Wait(subject=slot.pod_name, reason=NAME_TAKEN, message=message)


def _holder_text(holder: Pod | Slot, seen: Seen) -> str:
    if isinstance(holder, Slot):
        return f"Pod {holder.pod_name}, which is created first"
    owner = holder.metadata.owner
    if owner is None or owner.uid == seen.nodeset.metadata.uid:
        return f"Pod {holder.metadata.name}"
    return f"Pod {holder.metadata.name} of NodeSet {owner.name}"


def _remedy(held: NameConflict) -> str:
    slot, by = held.slot, held.by
    machine = by.kube_node if isinstance(by, Slot) else by.spec.node_name
    if not slot.is_daemon:
        return "give one of them another hostname in spec.template.spec"
    if machine == slot.kube_node:
        return "keep one of them from this machine with spec.template.spec.nodeSelector"
    return f"give Node {slot.kube_node} another name in its annotation {names.HOSTNAME_OVERRIDE}"


def _other_auth(seen: Seen) -> Wait:
    name = seen.controller_key.name
    message = (
        f"Controller {name!r} changes spec.auth, and its slurm.conf does not have that yet. Workers start "
        "when it has; the Controller's conditions say what is in the way."
    )
    return Wait(subject=NEW, reason=AUTH_CHANGING, message=message)


def _no_accounting(seen: Seen) -> Wait:
    """The pod of a worker names a Secret, and no pod can be told of another one later."""
    message = (
        f"No Accounting {seen.awaits_keys_of!r} in namespace {seen.controller_key.namespace!r}. Controller "
        f"{seen.controller_key.name!r} names it, and it decides which Slurm key workers have; they start as "
        "soon as there is one."
    )
    return Wait(subject=NEW, reason=Reason.ACCOUNTING_NOT_FOUND, message=message)


def _no_controller(seen: Seen) -> Wait:
    message = (
        f"No Controller {seen.controller_key.name!r} in namespace {seen.controller_key.namespace!r}; "
        f"{listed_controllers(seen.other_controllers)} "
        "Workers start as soon as there is one; if the name is a typo, make a new NodeSet."
    )
    return Wait(subject=NEW, reason=Reason.CONTROLLER_NOT_FOUND, message=message)
