"""What is live: the files in use, the files known to be good, and what slurmctld says it has read."""

from collections.abc import Iterable
from datetime import UTC, datetime

from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.controller import good_config
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import ContainerStatus, Pod
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.controller.annotations import FILES_SENT, RECONFIGURE_ASKED, WRITTEN_AT
from slurm_operator.reconcilers.controller.configuration.files import Files, digest_in, files_of, with_mounted
from slurm_operator.reconcilers.controller.daemon.readiness import CONTAINER
from slurm_operator.reconcilers.controller.observe import Seen, once
from slurm_operator.slurm.conf.changes import Change, changes, restarts
from slurm_operator.slurm.conf.costs import Daemon
from slurm_operator.slurm.conf.grammar import TABLES
from slurm_operator.slurm.snapshot import Snapshot

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def config_child(seen: Seen) -> Child | None:
    return seen.children.get((kinds.CONFIG_MAP, seen.controller.child_names.config))


@once
def held(seen: Seen) -> Files | None:
    """The files that slurmctld mounts, and would read if it started now."""
    files = files_of(config_child(seen))
    return with_mounted(files, seen) if files is not None else None


@once
def good(seen: Seen) -> Files | None:
    """The last files that slurmctld reported to have read."""
    return files_of(seen.children.get((kinds.CONFIG_MAP, good_config(seen.controller))))


def is_of_ours(seen: Seen) -> bool:
    """Whether we have written the mounted files, and not another operator."""
    child = config_child(seen)
    return child is not None and WRITTEN_AT in child.metadata.annotations


def held_since(seen: Seen) -> datetime:
    child = config_child(seen)
    return _time(child.metadata.annotations.get(WRITTEN_AT, "")) if child is not None else _LONG_AGO


@once
def is_proven(seen: Seen) -> bool:
    """slurmctld has once reported exactly the files that it mounts."""
    proven, now = good(seen), held(seen)
    return proven is not None and now is not None and proven.digest == now.digest


@once
def applied(seen: Seen) -> str | None:
    """The digest of the files that slurmctld has read; empty if it tells none, None if it did not answer."""
    if not isinstance(seen.slurm, Snapshot) or not seen.slurm.is_config_known:
        return None
    if seen.slurm.slurmctld_parameters is not None:
        return digest_in(seen.slurm.slurmctld_parameters)
    # An API version before v0.0.45 does not show the configuration. Then what was asked for counts as done.
    digest, times, _ = asked(seen)
    if times:
        return digest
    files = held(seen)
    return files.digest if files is not None and not any(sent(pod)[0] for pod in seen.pods) else ""


def needs_restart(seen: Seen, old: Files, new: Files) -> list[Change]:
    """The changes that a running slurmctld cannot take."""
    if seen.controller.spec.inplace_reconfigure:
        return []
    found = changes(old.texts, new.texts, TABLES)
    return [change for change in found if Daemon.SLURMCTLD in restarts([change])]


def slurmctld_of(pod: Pod) -> ContainerStatus | None:
    return next((one for one in pod.status.container_statuses if one.name == CONTAINER), None)


def started_at(pod: Pod) -> datetime | None:
    """Since when slurmctld has been running; None while it does not."""
    status = slurmctld_of(pod)
    running = status.state.running if status is not None else None
    return running.started_at if running is not None else None


def started_with_files(seen: Seen, pod: Pod) -> datetime | None:
    """When slurmctld in this pod started, if the files that it mounts were there already."""
    started = started_at(pod)
    return started if started is not None and started > held_since(seen) else None


def is_behind(seen: Seen, pod: Pod) -> bool:
    """slurmctld in this pod has been running since before the files came."""
    return started_at(pod) is not None and started_with_files(seen, pod) is None


def has_begun_with_files(seen: Seen) -> bool:
    """Every slurmctld that runs found the mounted files when it started."""
    running = [pod for pod in seen.pods if started_at(pod) is not None]
    return bool(running) and not any(is_behind(seen, pod) for pod in running)


@once
def restarts_due(seen: Seen) -> list[Pod]:
    """Pods whose slurmctld has to restart, because it cannot take the new files while it runs."""
    former, files = good(seen), held(seen)
    if former is None or files is None or former.digest == files.digest:
        return []
    if not needs_restart(seen, former, files):
        return []
    return [pod for pod in seen.pods if is_behind(seen, pod)]


def sent(pod: Pod) -> tuple[str, datetime]:
    """Which files were last sent to a pod, and when."""
    digest, _, when = pod.metadata.annotations.get(FILES_SENT, "").partition(" ")
    return digest, _time(when)


def asked(seen: Seen) -> tuple[str, int, datetime]:
    """Which files slurmctld was last asked to read, how often, and when."""
    for pod in seen.pods[:1]:
        words = pod.metadata.annotations.get(RECONFIGURE_ASKED, "").split(" ")
        if len(words) == 3 and words[1].isdecimal() and len(words[1]) < 9:
            return words[0], int(words[1]), _time(words[2])
    return "", 0, _LONG_AGO


def send_files(pods: Iterable[Pod], digest: str, now: datetime) -> list[PatchObject]:
    """Have the kubelet look at the pods, which puts changed files into place in a second."""
    message = "had the kubelet bring the new files to {}"
    return [
        note(
            pod,
            FILES_SENT,
            f"{digest} {now.isoformat()}",
            Reason.FILES_SENT,
            message.format(pod.metadata.name),
        )
        for pod in pods
        if not pod.metadata.is_terminating
    ]


def note(pod: Pod, key: str, value: str, reason: Reason, message: str) -> PatchObject:
    path = f"/metadata/annotations/{key.replace('/', '~1')}"
    return patch(pod, {"op": "add", "path": path, "value": value}, reason, message)


def patch(pod: Pod, operation: dict[str, object], reason: Reason, message: str) -> PatchObject:
    return PatchObject(
        kind=kinds.POD,
        key=key_of(pod),
        uid=pod.metadata.uid,
        operations=(operation,),
        reason=reason,
        message=message,
    )


def _time(text: str) -> datetime:
    return moment(text) or _LONG_AGO
