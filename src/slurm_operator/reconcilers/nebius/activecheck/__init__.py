"""ActiveCheck: a check of a SlurmCluster, as a Kubernetes Job or as Slurm jobs, and what follows from it."""

from collections.abc import Iterator

from slurm_operator.api.nebius.activecheck import ActiveCheck, CheckType
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.manifests import kinds
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.activecheck.decide import decide
from slurm_operator.reconcilers.nebius.activecheck.observe import Seen, observe
from slurm_operator.reconcilers.nebius.activecheck.status import status
from slurm_operator.slurm.snapshot import Changes


def of_cluster(cluster: SlurmCluster, world: World) -> Iterator[ObjectKey]:
    """All in the namespace: those that name another one say which there are."""
    for check in world.all(ActiveCheck, cluster.metadata.namespace):
        yield key_of(check)


def is_no_news(old: SlurmCluster, new: SlurmCluster) -> bool:
    """Whether nothing changed that checks wait for."""
    return (
        old.metadata.generation == new.metadata.generation
        and old.metadata.is_terminating == new.metadata.is_terminating
        and old.metadata.annotations == new.metadata.annotations
        and old.status.phase == new.status.phase
    )


def of_dependency(check: ActiveCheck, world: World) -> Iterator[ObjectKey]:
    """The checks that depend on it."""
    meta = check.metadata
    names = {meta.name, *([check.spec.name] if check.spec is not None else [])}
    for other in world.all(ActiveCheck, meta.namespace):
        if other.spec is not None and not names.isdisjoint(other.spec.depends_on):
            yield key_of(other)


def in_slurm(slurm: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    """Checks whose jobs may have ended."""
    if not (changes.jobs or changes.everything):
        return
    for check in world.all(ActiveCheck, slurm.namespace):
        spec = check.spec
        if spec is None or spec.slurm_cluster_ref_name != slurm.name:
            continue
        is_waiting = check.status.slurm_jobs_status.last_run_status == "InProgress"
        if spec.check_type is CheckType.SLURM_JOB and is_waiting:
            yield key_of(check)


RECONCILER = Reconciler[Seen](
    name="activecheck",
    kind=ActiveCheck.KIND,
    about=ActiveCheck,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    wakes=(Wake(SlurmCluster, of_cluster, is_no_news), Wake(ActiveCheck, of_dependency)),
    slurm_wake=SlurmWake(in_slurm),
    children=(kinds.CRON_JOB, kinds.JOB, kinds.CONFIG_MAP),
    urgent_status_fields=("k8sJobsStatus", "slurmJobsStatus", "recentDrains"),
)
