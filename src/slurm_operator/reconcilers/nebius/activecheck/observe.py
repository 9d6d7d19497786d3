"""Choose the facts about one ActiveCheck: its cluster, the checks it depends on, its Jobs and Slurm jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.activecheck import ActiveCheck, ActiveCheckSpec, CheckContainer, CheckType
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import Maintenance, SlurmCluster
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.platform import PodTemplate
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.activecheck.results import remembered
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.reconcilers.nebius.shared.families import Family, family
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

_AVAILABLE = "Available"


@dataclass(frozen=True)
class Seen:
    check: ActiveCheck
    cluster: SlurmCluster | None = None
    clusters: tuple[str, ...] = ()  # Every SlurmCluster in the namespace.
    others: Mapping[str, ActiveCheck] = field(default_factory=dict)  # Those of the same cluster, by name.
    cron: Child | None = None
    runs: tuple[Run, ...] = ()  # The oldest first.
    children: Mapping[tuple[Kind, str], Child] = field(default_factory=dict)
    template: PodTemplate | None = None
    ends: Mapping[int, Sequence[EndedJob] | Unread] = field(default_factory=dict)
    slurm: Snapshot | Unreachable | None = None  # None while nothing is asked of it.
    nodesets: frozenset[str] = frozenset()
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    @property
    def meta(self) -> Meta:
        return self.check.metadata

    @property
    def name(self) -> str:
        return self.check.metadata.name

    @property
    def spec(self) -> ActiveCheckSpec:
        assert self.check.spec is not None
        return self.check.spec

    @property
    def is_slurm(self) -> bool:
        return self.spec.check_type is CheckType.SLURM_JOB

    @property
    def controller(self) -> ObjectKey:
        """Slurm's part of the SlurmCluster has its name."""
        return ObjectKey(self.meta.namespace, self.spec.slurm_cluster_ref_name)

    @property
    def container(self) -> CheckContainer | None:
        """The one that checks, or submits."""
        wished = self.spec.slurm_job_spec if self.is_slurm else self.spec.k8s_job_spec
        return wished.job_container if wished is not None else None

    @property
    def munge(self) -> CheckContainer | None:
        wished = self.spec.slurm_job_spec if self.is_slurm else self.spec.k8s_job_spec
        return wished.munge_container if wished is not None else None

    @property
    def family(self) -> Family:
        """Whose image checks."""
        notes = self.cluster.metadata.annotations if self.cluster is not None else {}
        image = self.container.image if self.container is not None else ""
        return family(image, {**notes, **self.meta.annotations})

    @property
    def is_in_maintenance(self) -> bool:
        """Whether the cluster is taken down, or deleted, by a person's wish."""
        cluster = self.cluster
        if cluster is None or cluster.spec is None or cluster.metadata.is_terminating:
            return True
        return cluster.spec.maintenance not in (Maintenance.NONE, Maintenance.SKIP_POPULATE_JAIL)

    @property
    def is_cluster_up(self) -> bool:
        is_available = self.cluster is not None and self.cluster.status.phase == _AVAILABLE
        return is_available and not self.is_in_maintenance

    @property
    def has_run(self) -> bool:
        """Whether it ran once, also when its Jobs are deleted by now."""
        told = self.check.status
        slurm, k8s = told.slurm_jobs_status, told.k8s_jobs_status
        return bool(self.runs or k8s.last_job_name or slurm.last_run_name or slurm.last_run_id)

    @property
    def open_runs(self) -> tuple[Run, ...]:
        """Runs whose Slurm jobs are still to be judged, or to be acted on."""
        return tuple(run for run in self.runs if not run.is_closed) if self.is_slurm else ()


def observe(key: ObjectKey, world: World) -> Seen | None:
    check = world.get(ActiveCheck, key.namespace, key.name)
    if check is None:
        return None
    clusters = tuple(one.metadata.name for one in world.all(SlurmCluster, key.namespace))
    if check.spec is None:
        return Seen(check, clusters=clusters)
    cluster_name = check.spec.slurm_cluster_ref_name
    cron = world.child(kinds.CRON_JOB, key.namespace, check.spec.name)
    seen = Seen(
        check,
        world.get(SlurmCluster, key.namespace, cluster_name),
        clusters,
        others=_others(check, world),
        cron=cron,
        runs=_runs(check, cron, world),
        children=_children(check, world),
        template=_template(check, world),
        nodesets=frozenset(
            one.metadata.name for one in world.all(NodeSet, key.namespace) if one.cluster == cluster_name
        ),
        now=world.now,
    )
    return _with_slurm(seen, world)


def _others(check: ActiveCheck, world: World) -> dict[str, ActiveCheck]:
    assert check.spec is not None
    cluster = check.spec.slurm_cluster_ref_name
    return {
        other.metadata.name: other
        for other in world.all(ActiveCheck, check.metadata.namespace)
        if other.spec is not None and other.spec.slurm_cluster_ref_name == cluster
    }


def _runs(check: ActiveCheck, cron: Child | None, world: World) -> tuple[Run, ...]:
    """Those of the CronJob, started by hand or by the clock, and the first one, which is ours."""
    owners = [check.metadata.uid, *([cron.metadata.uid] if cron is not None else [])]
    found = {job.metadata.uid: job for uid in owners for job in world.children(kinds.JOB, uid)}
    runs = (Run(job) for job in found.values() if not job.metadata.is_terminating)
    return tuple(sorted(runs, key=lambda run: (run.made_at.timestamp() if run.made_at else 0.0, run.name)))


def _children(check: ActiveCheck, world: World) -> dict[tuple[Kind, str], Child]:
    assert check.spec is not None
    cluster, namespace = check.spec.slurm_cluster_ref_name, check.metadata.namespace
    wanted = (
        (kinds.CRON_JOB, check.spec.name),
        (kinds.CONFIG_MAP, names.sbatch_script(check.spec.name)),
        (kinds.SERVICE_ACCOUNT, names.check_account(cluster)),
        (kinds.ROLE, names.check_role(cluster)),
        (kinds.ROLE_BINDING, names.check_role(cluster)),
    )
    found = {(kind, name): world.child(kind, namespace, name) for kind, name in wanted}
    return {key: child for key, child in found.items() if child is not None}


def _template(check: ActiveCheck, world: World) -> PodTemplate | None:
    assert check.spec is not None
    name = check.spec.pod_template_name_ref
    if not name or not world.serves(kinds.POD_TEMPLATE):
        return None
    return world.get(PodTemplate, check.metadata.namespace, name)


def _with_slurm(seen: Seen, world: World) -> Seen:
    """What Slurm says, where a run waits for it."""
    asked = [
        job_id for run in seen.open_runs for job_id in run.ids if job_id not in remembered(seen.check, run)
    ]
    if not seen.open_runs:
        return seen
    namespace, controller = seen.controller
    return replace(
        seen,
        ends={job_id: world.job_end(namespace, controller, job_id) for job_id in asked},
        slurm=world.slurm(namespace, controller),
    )
