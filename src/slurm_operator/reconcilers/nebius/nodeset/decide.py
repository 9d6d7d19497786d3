"""What is missing of a NodeSet's part, what it waits for, and how its workers leave."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.schema.problems import Problem, References, Severity
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.plan.actions import Action, Create, Wait
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.reconcilers.nebius.nodeset import desired
from slurm_operator.reconcilers.nebius.nodeset.observe import Seen
from slurm_operator.reconcilers.nebius.shared import soperator_pods, takeover
from slurm_operator.reconcilers.nebius.shared.inherited import INHERITED_SOON, without_owner
from slurm_operator.reconcilers.shared.children import missing_among, missing_secret
from slurm_operator.reconcilers.shared.composed import ORPHAN, deletion, next_removal_step, part_name, said_by
from slurm_operator.reconcilers.shared.deletion_hold import holding
from slurm_operator.reconcilers.shared.parts import is_owned, missing_part

SPEC_REFUSED: Final = "SpecRefused"
CLUSTER_NOT_FOUND: Final = "ClusterNotFound"
CLUSTER_CHANGED: Final = "ClusterNameChanged"
WAITING_FOR_ROOT: Final = "WaitingForRoot"
WAITING_FOR_MOUNT_POINTS: Final = "WaitingForMountPoints"
WAITING_FOR_FILES: Final = "WaitingForFiles"
MAINTENANCE: Final = "Maintenance"
# Its SlurmCluster is told when the AppArmor profile is loaded, and nobody else.
_PROFILE_SOON: Final = timedelta(seconds=15)


def decide(seen: Seen, now: datetime) -> Plan:
    held = lane("holding", _held(seen))
    if seen.meta.is_terminating:
        return plan(held, lane("farewell", _farewell(seen)))
    if refused := problems(seen):
        waits = [Wait(subject=one.path, reason=SPEC_REFUSED, message=f"{one}.") for one in refused]
        return plan(held, lane("spec", waits))
    if (absent := _without_cluster(seen)) is not None:
        return plan(held, lane("cluster", [absent]))
    assert seen.cluster is not None
    if seen.cluster.metadata.is_terminating:
        return plan(held, lane("farewell", _farewell(seen)))
    if taken := takeover.next_steps(seen.nodeset, seen.handover, seen.family):
        return plan(held, lane("takeover", taken), look_again=takeover.SOON)
    if seen.soperator.are_there and not seen.handover.is_wanted:
        waiting = soperator_pods.held(seen.nodeset.cluster, seen.soperator)
        return plan(held, lane("soperator", [waiting]), look_again=soperator_pods.LOOK_AGAIN)
    if seen.inherited:
        found = ((kind, meta) for (kind, _), meta in seen.inherited.items())
        return plan(held, lane("soperator", [*without_owner(seen.meta, found)]), look_again=INHERITED_SOON)
    return plan(
        held,
        lane("files", missing_among([desired.limits_map(seen)], seen.children), _sssd(seen)),
        lane("power state", _power_state(seen)),
        lane("workers", _workers(seen)),
        lane("waiting", _waits(seen)),
        waits_on=(ObjectKey(seen.meta.namespace, seen.nodeset.cluster),) if seen.is_down else (),
        look_again=_PROFILE_SOON if desired.waits_for_profile(seen) else None,
    )


def problems(seen: Seen) -> list[Problem]:
    """What is wrong with the spec and has no remedy here."""
    if seen.nodeset.spec is None:
        return [Problem(path="spec", message="is missing: nothing is made until there is one")]
    found = seen.nodeset.problems(None, References())
    return [one for one in found if one.severity is Severity.ERROR]


def _without_cluster(seen: Seen) -> Wait | None:
    """What to do about a SlurmCluster that is not named, not there, or another one than before."""
    named, there = seen.nodeset.cluster, ", ".join(seen.clusters) or "none"
    if seen.own is not None and named != seen.own.spec.controller:
        before = seen.own.spec.controller
        message = (
            f"spec.clusterName changed from {before!r} to {named!r}. Running jobs belong to {before!r}, so "
            "its workers stay as they are. Set it back, or delete this NodeSet and make another one. In "
            f"namespace {seen.meta.namespace!r} there are: {there}."
        )
        return Wait(subject="spec.clusterName", reason=CLUSTER_CHANGED, message=message)
    if not named:
        message = f"spec.clusterName is empty. In namespace {seen.meta.namespace!r} there are: {there}."
        return Wait(subject="spec.clusterName", reason=CLUSTER_NOT_FOUND, message=message)
    if seen.cluster is None or seen.cluster.spec is None:
        then = "Workers start as soon as there is one." if seen.own is None else "Workers stay as they are."
        where = f"in namespace {seen.meta.namespace!r}"
        message = f"There is no SlurmCluster {named!r} {where}, which has: {there}. {then}"
        return Wait(subject="spec.clusterName", reason=CLUSTER_NOT_FOUND, message=message)
    return None


def _held(seen: Seen) -> list[Action]:
    """Keeps the NodeSet while it has workers: what they mount belongs to it."""
    is_kept = ORPHAN in seen.meta.finalizers
    dependents = [part_name(seen.own)] if seen.own is not None and not is_kept else []
    return [step for step in holding(NodeSet.KIND, seen.meta, dependents) if not isinstance(step, Wait)]


def _farewell(seen: Seen) -> list[Action]:
    """The engine lets workers go one by one, each when its jobs are done."""
    if seen.own is None or ORPHAN in seen.meta.finalizers:
        return []
    return [next_removal_step(seen.own, NodeSet.KIND)]


def _sssd(seen: Seen) -> list[Action]:
    wanted = desired.sssd_secret(seen)
    step = missing_secret(wanted, seen.sssd_secret) if wanted is not None else None
    return [step] if step is not None else []


def _workers(seen: Seen) -> list[Action]:
    """Workers that are there follow the spec, also while a file of theirs is away."""
    waits = [*_absent_files(seen), *_absent_directories(seen)]
    if waits and seen.own is None and not seen.handover.has_taken_over:
        return [*waits]
    step = missing_part(desired.part(seen, replicas(seen), running(seen)), seen.part, seen.meta)
    return [*waits, *([step] if step is not None else [])]


def _absent_files(seen: Seen) -> Iterator[Wait]:
    """ConfigMaps of the user's that are not there; those of the cluster are on their way."""
    wanted = (
        ("configMapRefSupervisord", seen.spec.config_map_ref_supervisord),
        ("configMapRefSshd", seen.spec.config_map_ref_sshd),
    )
    for field, name in wanted:
        found = seen.config_maps.get(name)
        if not name or isinstance(found, ConfigMap):
            continue
        is_unread = isinstance(found, Unread)
        why = f"which cannot be read: {found.why}" if isinstance(found, Unread) else "which is not there yet"
        yield Wait(
            subject=f"ConfigMap {name}",
            reason="ConfigMapUnread" if is_unread else "ConfigMapNotFound",
            message=f"waiting for ConfigMap {name}, which spec.{field} names, {why}.",
        )


def _absent_directories(seen: Seen) -> Iterator[Wait]:
    """Sub mounts that workers do not have yet."""
    if not (missing := desired.missing_mount_points(seen)):
        return
    many = "directories" if len(missing) > 1 else "directory"
    told = f" It says: {seen.mount_points.trouble}" if seen.mount_points.trouble else ""
    yield Wait(
        subject="spec.slurmd.volumes.jailSubMounts",
        reason=WAITING_FOR_MOUNT_POINTS,
        message=f"waiting for the {many} {', '.join(missing)} in the shared root. The sconfigcontroller "
        f"makes what JailedConfig {names.mount_points(seen.nodeset.cluster)} asks for.{told}",
    )


def replicas(seen: Seen) -> int:
    """How many workers to run: none in maintenance, and none before the root is whole.

    Once workers run, only maintenance and the spec take them away.
    """
    has_started = seen.own is not None and seen.own.spec.replicas > 0
    has_workers = has_started or seen.handover.has_taken_over
    is_wanted = not seen.is_down and (has_workers or may_start(seen))
    return seen.spec.replicas if is_wanted else 0


def running(seen: Seen) -> list[int]:
    """The numbers of the workers that should run: where Slurm decides, those that its power state names.

    Numbers from `replicas` on are nobody's. While there is no power state, or none has been read yet, nothing
    changes.
    """
    most = replicas(seen)
    if not seen.is_ephemeral:
        return [*range(most)]
    if seen.power is not None and seen.power.spec is not None:
        active: Iterable[int] = seen.power.spec.active_nodes
    else:
        active = seen.own.spec.numbers if seen.own is not None else range(desired.first_active(seen))
    return sorted({number for number in active if 0 <= number < most})


def _power_state(seen: Seen) -> list[Action]:
    """Made once. What it says afterwards is Slurm's, by power-manager, and the user's."""
    name, found = f"NodeSetPowerState {seen.name}", seen.power
    if seen.is_ephemeral and seen.has_power_states and found is None:
        message = f"made {name}: from now on Slurm says which workers run"
        return [Create(manifest=desired.power_state(seen), reason="Created", message=message, may_exist=True)]
    if found is not None and not seen.is_ephemeral and is_owned(found, seen.meta):
        return (
            [] if found.metadata.is_terminating else [deletion(NodeSetPowerState.KIND, found, NodeSet.KIND)]
        )
    return []


def may_start(seen: Seen) -> bool:
    """Whether the root is whole and has Slurm's files, and the files that workers mount are known."""
    return seen.root.is_usable and (seen.has_files or not seen.reads_files) and seen.knows_files


def _waits(seen: Seen) -> Iterator[Wait]:
    """Why there are fewer workers than wanted, or more than maintenance allows."""
    if seen.is_down:
        yield from _down(seen)
    elif seen.spec.replicas and not replicas(seen):
        yield _not_started(seen)


def _not_started(seen: Seen) -> Wait:
    subject, cluster = f"NodeSet {seen.name}", f"SlurmCluster {seen.nodeset.cluster!r}"
    is_whole = seen.root.is_usable and (seen.has_files or not seen.reads_files)
    if is_whole:
        missing = ", ".join(seen.unknown_files)
        message = f"Workers start when these ConfigMaps are there and can be read: {missing}."
        return Wait(subject=subject, reason=WAITING_FOR_FILES, message=message)
    if seen.root.taken_by:
        message = f"Workers start when {cluster} has a root of its own: it is that of {seen.root.taken_by}."
        return Wait(subject=subject, reason=WAITING_FOR_ROOT, message=message)
    what = "populated" if not seen.root.is_usable else "given Slurm's files"
    message = f"Workers start when the shared root of {cluster} is {what}."
    return Wait(subject=subject, reason=WAITING_FOR_ROOT, message=message)


def _down(seen: Seen) -> Iterator[Wait]:
    part = seen.own
    if part is not None and part.status.replicas > 0:
        jobs = sorted({int(job) for drain in part.status.drains for job in drain.jobs if job.isdecimal()})
        message = (
            f"Maintenance {seen.of.maintenance}: {part.status.replicas} workers are still there. "
            f"{said_by(part)}".rstrip()
        )
        yield Wait(subject=f"NodeSet {seen.name}", reason=MAINTENANCE, message=message, jobs=tuple(jobs))
