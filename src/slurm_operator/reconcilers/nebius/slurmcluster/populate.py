"""The Job that populates the shared root: when it is made, made again, and what it waits for.

Nothing that needs the root starts before the Job has succeeded, and the Job never starts while pods run on
the root. A pod of the Job that failed is followed by another one, each time after a longer pause, which is
Kubernetes' own doing; a Job that has given up is made again.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.slurmcluster import Maintenance, SlurmCluster, SlurmClusterSpec
from slurm_operator.api.shared.meta import key_of
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.plan.actions import Create, DeleteObject, PatchObject
from slurm_operator.plan.step import NOTHING, Step, step, wait
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import Family, family
from slurm_operator.reconcilers.nebius.shared.mount_points import VARIABLE
from slurm_operator.reconcilers.nebius.shared.objects import Maker, labels
from slurm_operator.reconcilers.nebius.shared.root import COMPONENT, CONTAINER, Purpose, Root, jail_source

DEADLINE_SECONDS = 2 * 60 * 60
# The program ends by its own deadline first, and says what it was doing.
_LATER_SECONDS = 60

# From 10 s to 6 min apart.
_ATTEMPTS = 6
_PAUSE = timedelta(minutes=10)
_PODS_TOLD = 5
# Nothing tells us when another cluster on this root is done.
_LOOK_SECONDS = 15.0

SUBJECT = "shared root"
POPULATING, FAILED, IN_USE, TAKEN = "Populating", "PopulateFailed", "RootInUse", "RootTaken"


def next_step(root: Root, wanted: Manifest, now: datetime) -> Step:
    """What is done about the Job now; nothing when the root is as this mode wants it."""
    if root.taken_by:
        return _taken(root)
    if root.job is not None and root.job.metadata.is_terminating:
        return wait(SUBJECT, POPULATING, "The old Job that populated the shared root is being deleted.")
    if root.mode is Maintenance.SKIP_POPULATE_JAIL:
        return _skipped(root)
    if root.mode is Maintenance.DELETE_POPULATE_JAIL:
        return step([_deletion(root.job, "spec.maintenance asks for that")]) if root.job else NOTHING
    is_overwriting = root.mode is Maintenance.OVERWRITE_POPULATE_JAIL
    if root.job is None:
        return _creation(root, wanted, is_overwriting=is_overwriting)
    if is_overwriting and root.purpose is not Purpose.OVERWRITE:
        return (
            _in_use(root)
            if root.in_use
            else step([_deletion(root.job, "the shared root is populated again")])
        )
    if root.is_populated_by_job:
        return NOTHING if is_overwriting or root.purpose is not Purpose.OVERWRITE else step([_done(root.job)])
    return _unfinished(root, root.job, wanted, now)


def _taken(root: Root) -> Step:
    message = (
        f"The shared root is that of SlurmCluster {root.taken_by}, and two clusters would overwrite each "
        "other's files in its /etc/slurm. No pod starts on it here. Give this SlurmCluster a root "
        f"of its own in spec.volumeSources, or delete {root.taken_by}."
    )
    return wait(SUBJECT, TAKEN, message, seconds=_LOOK_SECONDS)


def _skipped(root: Root) -> Step:
    """Pods start when nothing writes to the root; a Job that has not begun does not begin any more."""
    if root.job is not None and not root.is_finished and not root.is_working:
        return step([_deletion(root.job, "spec.maintenance says that the shared root is populated")])
    if root.is_usable:
        return NOTHING
    message = (
        f"spec.maintenance says that the shared root is populated, but it is written to now by "
        f"{_listed((*root.writers, *root.other_jobs)) or 'a Job'}. Pods start when that is over."
    )
    return wait(SUBJECT, POPULATING, message, seconds=_LOOK_SECONDS)


def _creation(root: Root, wanted: Manifest, *, is_overwriting: bool) -> Step:
    if root.in_use:
        # Without a Job the root was populated before: pods run on it.
        return _in_use(root) if is_overwriting else NOTHING
    if others := (*root.other_jobs, *root.writers):
        message = f"The shared root is populated by somebody else at the moment: {_listed(others)}."
        return wait(SUBJECT, POPULATING, message, seconds=_LOOK_SECONDS)
    message = f"created Job {wanted['metadata']['name']}, which populates the shared root"
    return step([Create(manifest=wanted, reason="Created", message=message)])


def _in_use(root: Root) -> Step:
    users = _listed(root.in_use)
    message = f"The shared root is populated again when no pod runs on it. These do, or may: {users}."
    return wait(SUBJECT, IN_USE, message, seconds=_LOOK_SECONDS)


def _unfinished(root: Root, job: Child, wanted: Manifest, now: datetime) -> Step:
    name, failure = f"Job {job.metadata.name}", root.failure or root.last_failure
    if job.metadata.annotations.get(names.POPULATE_DIGEST) != _digest_of(wanted) and not root.is_working:
        return step([_deletion(job, "it was changed before it had populated the shared root")])
    if failure is None or (root.is_working and root.failure is None):
        before = f"; an attempt before it failed: {failure.message.rstrip('.')}" if failure else ""
        return wait(SUBJECT, POPULATING, f"{name} populates the shared root: {root.progress}{before}.")
    cause = f"{name} could not populate the shared root: {failure.message.rstrip('.')} ({failure.reason})."
    if root.failure is None:
        return wait(SUBJECT, FAILED, f"{cause} Attempt {root.failed_attempts + 1} follows.")
    left = (root.failed_at or now) + _PAUSE - now
    if left <= timedelta(0):
        return step([_deletion(job, "it has given up, and is made again")])
    message = f"{cause} It has given up, and is made again after {_PAUSE.total_seconds() / 60:.0f} minutes."
    return wait(SUBJECT, FAILED, message, seconds=max(1.0, left.total_seconds()))


def _deletion(job: Child, why: str) -> DeleteObject:
    return DeleteObject(
        kind=kinds.JOB,
        key=key_of(job),
        uid=job.metadata.uid,
        reason="Deleted",
        message=f"deleted Job {job.metadata.name}: {why}",
    )


def _done(job: Child) -> PatchObject:
    """So that the next time the mode is chosen counts as another one."""
    path = f"/metadata/annotations/{names.POPULATE_PURPOSE.replace('/', '~1')}"
    return PatchObject(
        kind=kinds.JOB,
        key=key_of(job),
        uid=job.metadata.uid,
        operations=({"op": "add", "path": path, "value": str(Purpose.DONE)},),
        reason="Overwritten",
        message=f"Job {job.metadata.name} has overwritten the shared root; that is over",
        is_housekeeping=True,
    )


def job(cluster: SlurmCluster, root: Root, mount_points: Iterable[str]) -> Manifest | None:
    """The Job that is wanted; None where the spec names no volume for the root."""
    spec = cluster.spec
    source = jail_source(spec) if spec is not None else None
    if spec is None or source is None:
        return None
    maker = Maker(SlurmCluster.KIND, cluster.metadata, cluster.metadata.name)
    manifest = maker.object(kinds.JOB, names.populate_jail(cluster.metadata.name), COMPONENT)
    pod = _pod(cluster, spec, source, mount_points)
    body = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": _ATTEMPTS,
        "template": {"metadata": {"labels": labels(cluster.metadata.name, COMPONENT)}, "spec": pod},
    }
    notes = _notes(root, digest(body))
    return manifest | {"metadata": {**manifest["metadata"], "annotations": notes}, "spec": body}


def deadline_seconds(cluster: SlurmCluster) -> int:
    said = cluster.metadata.annotations.get(names.POPULATE_DEADLINE, "")
    return int(said) if said.isascii() and said.isdecimal() and int(said) > 0 else DEADLINE_SECONDS


def _notes(root: Root, made_from: str) -> dict[str, str]:
    is_overwriting = root.mode is Maintenance.OVERWRITE_POPULATE_JAIL
    purpose = Purpose.OVERWRITE if is_overwriting else Purpose.POPULATE
    return {names.POPULATE_PURPOSE: str(purpose), names.POPULATE_DIGEST: made_from}


def _pod(
    cluster: SlurmCluster, spec: SlurmClusterSpec, source: Manifest, mount_points: Iterable[str]
) -> Manifest:
    wished = spec.populate_jail
    snapshot = wished.jail_snapshot_volume
    volumes = [{"name": names.JAIL, **source}]
    mounts = [pods.JAIL_MOUNT]
    if snapshot is not None:
        volumes.append(pods.volume("jail-snapshot", snapshot, spec.sources))
        mounts.append(pods.mount("jail-snapshot", "/jail", read_only=True))
    confined = pods.confinement(wished.app_armor_profile, None)
    is_ours = family(wished.image, cluster.metadata.annotations) is Family.OURS
    container: Manifest = {
        "name": CONTAINER,
        "image": wished.image,
        "imagePullPolicy": str(wished.image_pull_policy),
        **({"command": ["slurm-entry", "populate-root"]} if is_ours else {}),
        "env": _environment(cluster, spec, mount_points),
        "securityContext": confined | {"runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN", "SETFCAP"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": deadline_seconds(cluster) + _LATER_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": volumes,
        **pods.place(spec.filters.get(wished.k8s_node_filter_name)),
        **pods.filled(
            {
                "imagePullSecrets": wished.image_pull_secrets,
                "priorityClassName": wished.priority_class,
                "hostUsers": wished.host_users,
            }
        ),
    }


def _environment(
    cluster: SlurmCluster, spec: SlurmClusterSpec, mount_points: Iterable[str]
) -> list[Manifest]:
    overwrites = spec.populate_jail.overwrite or spec.maintenance is Maintenance.OVERWRITE_POPULATE_JAIL
    deletes = cluster.metadata.annotations.get(names.DELETE_OTHERS) == "true"
    values = {
        "OVERWRITE": "1" if overwrites else "0",
        "POPULATE_DELETE_OTHERS": "1" if deletes else "0",
        "POPULATE_DEADLINE_SECONDS": str(deadline_seconds(cluster)),
        VARIABLE: " ".join(sorted(set(mount_points))),
    }
    # A second pod of the same Job does not overwrite again what the first one has done.
    uid = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']"}}
    return [
        *({"name": name, "value": value} for name, value in values.items() if value),
        {"name": "POPULATE_REQUEST", "valueFrom": uid},
    ]


def _digest_of(wanted: Manifest) -> str:
    return str(wanted["metadata"]["annotations"][names.POPULATE_DIGEST])


def _listed(found: tuple[str, ...]) -> str:
    return first_few(found, _PODS_TOLD)
