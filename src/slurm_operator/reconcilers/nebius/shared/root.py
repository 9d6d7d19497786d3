"""The root directory that all nodes of a cluster share: whether it is populated, and who runs on it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.slurmcluster import Maintenance, SlurmCluster, SlurmClusterSpec
from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout, rollout
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import ContainerStateTerminated, Pod
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.plan.world import OWNER, OWNER_NAME, World
from slurm_operator.reconcilers.nebius.shared.objects import match_labels

CONTAINER = "populate-jail"
COMPONENT = "populate-jail"
LOGIN, WORKER = "login", "nodeset"

# Sources that mean something else in each namespace, or in each pod.
_OF_ONE_NAMESPACE = {"persistentVolumeClaim", "emptyDir", "ephemeral", "configMap", "secret", "projected"}


class Purpose(StrEnum):
    """What a Job was made for. One that has overwritten the root is marked as done when that is over."""

    POPULATE = "populate"
    OVERWRITE = "overwrite"
    DONE = "overwritten"


@dataclass(frozen=True)
class Ending:
    """How the Job failed: a word, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True)
class Root:
    """What is known of one shared root."""

    mode: Maintenance = Maintenance.NONE
    job: Child | None = None
    pods: tuple[Pod, ...] = ()  # Of the Job.
    users: tuple[str, ...] = ()  # Pods that run on the root: those of login and workers.
    # Where the root is to be overwritten: what has, or may still make, pods that run on it.
    not_down: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()  # Without a Job: parts that want pods, so they have started before.
    writers: tuple[str, ...] = ()  # Pods that populate the root and have not ended, of whichever Job.
    other_jobs: tuple[str, ...] = ()  # Jobs of other SlurmClusters on this root that are not done.
    # An older SlurmCluster on this root, where one of the two keeps Slurm's files in it.
    taken_by: str = ""

    @property
    def purpose(self) -> Purpose | None:
        """What the Job is for; None without one."""
        if self.job is None:
            return None
        said = self.job.metadata.annotations.get(names.POPULATE_PURPOSE, "")
        return Purpose(said) if said in tuple(Purpose) else Purpose.POPULATE

    @property
    def is_populated_by_job(self) -> bool:
        """The Job has done what this mode asks for."""
        if self.job is None or self.job.metadata.is_terminating or not _status(self.job).get("succeeded"):
            return False
        return self.mode is not Maintenance.OVERWRITE_POPULATE_JAIL or self.purpose is Purpose.OVERWRITE

    @property
    def in_use(self) -> tuple[str, ...]:
        """Who keeps the root from being overwritten. Pods that are not seen yet are no pods that are gone."""
        return (*self.users, *self.not_down, *self.wanted)

    @property
    def is_finished(self) -> bool:
        """No pod of the Job will be made any more: it has succeeded, or given up."""
        return is_finished(self.job)

    @property
    def is_usable(self) -> bool:
        """Pods may start on it. Where pods run without a Job, it was populated before."""
        if self.taken_by:
            return False  # /etc/slurm is that of one cluster.
        if self.other_jobs or self.writers:
            return False  # Somebody writes there now, or may do so any moment.
        if self.mode is Maintenance.SKIP_POPULATE_JAIL:
            return self.is_finished
        if self.job is None and self.mode is not Maintenance.OVERWRITE_POPULATE_JAIL:
            return bool(self.users or self.wanted)
        return self.is_populated_by_job

    @property
    def failure(self) -> Ending | None:
        """Why the Job failed; None when it has not."""
        condition = _condition(self.job, "Failed")
        if condition is None:
            return None
        return _cause(self.pods) or Ending(
            str(condition.get("reason") or "Failed"), str(condition.get("message") or "the Job failed.")
        )

    @property
    def failed_at(self) -> datetime | None:
        condition = _condition(self.job, "Failed")
        said = condition.get("lastTransitionTime") if condition is not None else None
        return moment(str(said)) if said else None

    @property
    def failed_attempts(self) -> int:
        """How many pods of the Job have failed; Kubernetes makes the next one, each time later."""
        return int(_status(self.job).get("failed") or 0) if self.job is not None else 0

    @property
    def last_failure(self) -> Ending | None:
        """Why the last attempt failed, also while another one runs."""
        return _cause(self.pods)

    @property
    def is_working(self) -> bool:
        """A pod of the Job may be writing now."""
        return any(
            status.has_ever_started
            for pod in self.pods
            if not pod.has_ended
            for status in pod.status.container_statuses
        )

    @property
    def result(self) -> str:
        """What the program said when it was done: Populated, AlreadyPopulated or Adopted."""
        said = (_said(ended) for ended in _endings(self.pods) if ended.exit_code == 0)
        return next((str(one["result"]) for one in said if one.get("result")), "Populated")

    @property
    def progress(self) -> str:
        """How far the Job is, in words."""
        current = [pod for pod in self.pods if not pod.has_ended]
        if found := troubles(current):
            return found[0]
        if not current:
            return "its pod is being created"
        return "its pod is running" if self.is_working else "its pod is starting"


def observe_root(cluster: SlurmCluster, world: World) -> Root:
    meta, spec = cluster.metadata, cluster.spec
    if spec is None:
        return Root()
    job = world.child(kinds.JOB, meta.namespace, names.populate_jail(meta.name))
    # Thousands of pods are looked through only where that decides something.
    is_overwriting = spec.maintenance is Maintenance.OVERWRITE_POPULATE_JAIL
    sharing = list(sharing_root(cluster, world))
    return Root(
        mode=spec.maintenance,
        job=job,
        pods=tuple(world.find(Pod, OWNER, job.metadata.uid)) if job is not None else (),
        users=tuple(_users(sharing, world)) if job is None or is_overwriting else (),
        not_down=tuple(_not_down(sharing, world)) if is_overwriting else (),
        wanted=tuple(_wanted(sharing, world)) if job is None and not is_overwriting else (),
        writers=tuple(_writers(sharing, world)),
        other_jobs=tuple(_other_jobs(cluster, sharing, world)),
        taken_by=_taken_by(cluster, sharing),
    )


def _taken_by(cluster: SlurmCluster, sharing: list[SlurmCluster]) -> str:
    """Without files in the root every pod asks its own slurmctld for them, and clusters can share it."""
    older = sorted((other for other in sharing if _age(other) < _age(cluster)), key=_age)
    taking = (other for other in older if _has_files(other) or _has_files(cluster))
    return next((str(key_of(other)) for other in taking), "")


def _age(cluster: SlurmCluster) -> tuple[float, str, str]:
    meta = cluster.metadata
    made = meta.creation_timestamp
    return (made.timestamp() if made is not None else 0.0, meta.namespace, meta.name)


def _has_files(cluster: SlurmCluster) -> bool:
    return cluster.spec is not None and cluster.spec.s_config_controller is not None


def _users(sharing: list[SlurmCluster], world: World) -> Iterator[str]:
    for namespace in dict.fromkeys(one.metadata.namespace for one in sharing):
        clusters = [one.metadata.name for one in sharing if one.metadata.namespace == namespace]
        for pod in world.all(Pod, namespace):
            is_on_root = any(_is_of(pod, name, part) for name in clusters for part in (LOGIN, WORKER))
            if is_on_root and not pod.has_ended:
                yield pod.metadata.name


def _not_down(sharing: list[SlurmCluster], world: World) -> Iterator[str]:
    """Parts that are not known to have no pods: they were scaled a moment ago, or make some now."""
    for cluster in sharing:
        namespace, name = cluster.metadata.namespace, cluster.metadata.name
        login = world.get(LoginSet, namespace, names.login(name))
        workload = rollout(world.child(kinds.STATEFUL_SET, namespace, names.login(name)))
        if login is not None and not (_is_down(login) and _is_empty(workload)):
            yield f"LoginSet {login.metadata.name}"
        for workers in world.all(WorkerPart, namespace):
            if workers.spec.controller == name and not _is_down(workers):
                yield f"NodeSet {workers.metadata.name}"


def _wanted(sharing: list[SlurmCluster], world: World) -> Iterator[str]:
    """Parts that make pods again when theirs have ended: nothing starts before the root is populated."""
    for cluster in sharing:
        namespace, name = cluster.metadata.namespace, cluster.metadata.name
        login = world.get(LoginSet, namespace, names.login(name))
        if login is not None and login.spec.replicas:
            yield f"LoginSet {login.metadata.name}"
        for workers in world.all(WorkerPart, namespace):
            if workers.spec.controller == name and workers.spec.replicas:
                yield f"NodeSet {workers.metadata.name}"


def _is_down(part: LoginSet | WorkerPart) -> bool:
    """Its reconciler knows that no pod is wanted, and has found none."""
    is_read = part.status.observed_generation >= part.metadata.generation
    return is_read and part.spec.replicas == 0 and part.status.replicas == 0


def _is_empty(workload: Rollout | None) -> bool:
    return workload is None or (workload.is_observed and workload.wanted == 0 and workload.replicas == 0)


def _writers(sharing: list[SlurmCluster], world: World) -> Iterator[str]:
    """Also those of a Job that is deleted already: its pods go after it."""
    for cluster in sharing:
        job = ObjectKey(cluster.metadata.namespace, names.populate_jail(cluster.metadata.name))
        yield from (pod.metadata.name for pod in world.find(Pod, OWNER_NAME, str(job)) if not pod.has_ended)


def _other_jobs(cluster: SlurmCluster, sharing: list[SlurmCluster], world: World) -> Iterator[str]:
    for other in sharing:
        if key_of(other) == key_of(cluster):
            continue
        name = names.populate_jail(other.metadata.name)
        job = world.child(kinds.JOB, other.metadata.namespace, name)
        if job is not None and not is_finished(job):
            yield f"Job {name} of SlurmCluster {other.metadata.name}"


def is_finished(job: Child | None) -> bool:
    """No pod of the Job will be made any more; so it is without a Job."""
    if job is None:
        return True
    return bool(_status(job).get("succeeded")) or _condition(job, "Failed") is not None


def jail_source(spec: SlurmClusterSpec) -> Manifest | None:
    """The volume of the shared root: the one called `jail`, or that of slurmctld; None without."""
    sources = spec.sources
    by_controller = spec.slurm_nodes.controller.volumes.jail.volume_source_name
    found = sources.get(names.JAIL) or sources.get(by_controller)
    if found is None:
        return None
    return {key: value for key, value in given(found).items() if key != "name"}


def sharing_root(cluster: SlurmCluster, world: World) -> Iterator[SlurmCluster]:
    """Every cluster on the same root, this one included. A claim elsewhere is another root."""
    own = jail_source(cluster.spec) if cluster.spec is not None else None
    is_everywhere = own is not None and not _OF_ONE_NAMESPACE & own.keys()
    for other in world.all(SlurmCluster, "" if is_everywhere else cluster.metadata.namespace):
        is_same = own is not None and other.spec is not None and jail_source(other.spec) == own
        if key_of(other) == key_of(cluster) or is_same:
            yield other


def _is_of(pod: Pod, cluster: str, component: str) -> bool:
    return match_labels(cluster, component).items() <= pod.metadata.labels.items()


def _status(job: Child) -> Manifest:
    return job.body.get("status") or {}


def _condition(job: Child | None, type_: str) -> Manifest | None:
    found = _status(job).get("conditions") or () if job is not None else ()
    return next((one for one in found if (one.get("type"), one.get("status")) == (type_, "True")), None)


def _endings(pods: tuple[Pod, ...]) -> list[ContainerStateTerminated]:
    """How containers of the Job ended, the last one first."""
    found = [
        ended
        for pod in pods
        for status in pod.status.container_statuses
        if status.name == CONTAINER and (ended := status.state.terminated) is not None
    ]
    return sorted(
        found, key=lambda one: one.finished_at.timestamp() if one.finished_at else 0.0, reverse=True
    )


def _cause(pods: tuple[Pod, ...]) -> Ending | None:
    """What the program itself said, or the kubelet."""
    for ended in _endings(pods):
        if ended.exit_code == 0:
            continue
        said = _said(ended)
        if said.get("message"):
            return Ending(str(said.get("reason") or "Failed"), str(said["message"]))
        lines = ended.message.strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return Ending(ended.reason or "Failed", f"it ended with exit code {ended.exit_code}{last}")
    for pod in pods:
        if pod.status.phase == "Failed":
            return Ending(pod.status.reason or "Failed", pod.status.message or "its pod failed")
    return None


def _said(ended: ContainerStateTerminated) -> Manifest:
    try:
        found = json.loads(ended.message)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
