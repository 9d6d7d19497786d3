"""ActiveCheck: a check of the cluster that runs on a schedule, as a Kubernetes Job or as Slurm jobs."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar, Final, Self

from slurm_operator.api.nebius import names, schedules
from slurm_operator.api.nebius.containers import (
    AFFINITY,
    APP_ARMOR_PROFILE,
    HOST_USERS,
    NODE_SELECTOR,
    PULL_POLICY,
    PULL_SECRETS,
    TOLERATIONS,
    PullPolicy,
)
from slurm_operator.api.nebius.status import StatusMetadata
from slurm_operator.api.schema.crd import METADATA, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import EnvVar, Json, Named, VolumeMount

_OLDER_RESERVATION: Final = "of older releases; use drainSlurmNode, which needs no name"
_NO_NODES: Final = "is ignored: a check of type k8sJob runs on no Slurm node"
_OWN_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")


class CheckType(Choice):
    """What runs."""

    K8S_JOB = "k8sJob", "a Kubernetes Job; its result is that of the check."
    SLURM_JOB = "slurmJob", "a Kubernetes Job that submits Slurm jobs; their results are those of the check."


@model
class NamedVolume(Named):
    """A volume of the pod. Every source of Kubernetes is accepted."""

    OPEN: ClassVar[bool] = True

    name: str = prop("Name of the volume.", min_length=1)


@model
class CheckContainer:
    """A container of the check's pod."""

    image: str = prop("Image reference.", default="")
    command: list[str] = prop("Replaces the entry point of the image.", default=[])
    args: list[str] = prop("Replaces the arguments of the image.", default=[])
    working_dir: str = prop("Directory in which it starts.", default="")
    env: list[Json] = prop("Environment variables.", default=[], shape=EnvVar)
    volume_mounts: list[Json] = prop("Volumes to mount.", default=[], shape=VolumeMount)
    volumes: list[Json] = prop("Volumes of the pod.", default=[], shape=NamedVolume)
    app_armor_profile: str = APP_ARMOR_PROFILE
    image_pull_policy: PullPolicy = PULL_POLICY
    image_pull_secrets: list[Json] = PULL_SECRETS


@model
class K8sJobSpec:
    """The Kubernetes Job."""

    job_container: CheckContainer | None = prop("The container that checks.", default=None, nullable=True)
    munge_container: CheckContainer | None = prop(
        "A munge container beside it, for checks that call Slurm.", default=None, nullable=True
    )
    script_ref_name: str = prop("ConfigMap whose `script.sh` runs.", default="")


@model
class SlurmJobSpec:
    """The Slurm jobs."""

    job_container: CheckContainer | None = prop(
        "The container that submits them.", default=None, nullable=True
    )
    munge_container: CheckContainer | None = prop(
        "The munge container beside it.", default=None, nullable=True
    )
    sbatch_script_ref_name: str = prop("ConfigMap whose `sbatch.sh` is submitted.", default="")
    sbatch_script: str = prop("The script itself.", default="")
    each_worker_jobs: bool = prop("Whether each worker gets a job of its own.", default=False)
    max_number_of_jobs: int = prop(
        "At most this many of them, on workers chosen by chance; 0: all.", default=0, format="int64"
    )
    each_worker_job_array: bool = prop(
        "Whether each worker got a task of a job array, in older releases.",
        default=False,
        deprecated="use eachWorkerJobs; it is read as that",
    )

    @property
    def is_for_each_worker(self) -> bool:
        return self.each_worker_jobs or self.each_worker_job_array


@model
class DrainSlurmNode:
    """Drain the nodes of the job."""

    drain_reason_prefix: str = prop("How the reason in Slurm starts, such as [node_problem].", default="")


@model
class CommentSlurmNode:
    """Comment on the nodes of the job."""

    comment_prefix: str = prop("How the comment in Slurm starts.", default="")


@model
class ReservationPrefix:
    """A reservation for each node of the job."""

    prefix: str = prop(
        "How the name of the reservation starts; it ends with the name of the node. Empty: none.", default=""
    )


@model
class Reactions:
    """What is done with the Slurm nodes of a job."""

    drain_slurm_node: DrainSlurmNode | None = prop("Drain them.", default=None, nullable=True)
    comment_slurm_node: CommentSlurmNode | None = prop("Comment on them.", default=None, nullable=True)
    add_reservation: ReservationPrefix = prop(
        "Reserve them for checks: no other job starts there until the reservation is removed.",
        default=ReservationPrefix(),
        deprecated=_OLDER_RESERVATION,
    )
    remove_reservation: ReservationPrefix = prop(
        "Remove the reservations that addReservation made with this prefix.",
        default=ReservationPrefix(),
        deprecated=_OLDER_RESERVATION,
    )


@model
class OlderReactions:
    """What is done when the check fails, in older releases."""

    set_condition: bool = prop("Chose the words of the reason and the comment.", default=False)
    drain_slurm_node: bool = prop("Drain the nodes of the job.", default=False)
    comment_slurm_node: bool = prop("Comment on the nodes of the job.", default=False)


@model
class Brake:
    """How many workers a check may take out of service before it asks a person."""

    max_percent: int = prop(
        "Of the workers of a NodeSet, at most so many percent; one is always allowed, unless this is 0.",
        default=20,
        minimum=0,
        maximum=100,
    )
    window: timedelta = prop("Within this time.", default=timedelta(hours=1))


@model
class ActiveCheckSpec:
    """What is checked, and when."""

    name: str = prop("Name of the CronJob and of the Slurm jobs.")
    slurm_cluster_ref_name: str = prop("SlurmCluster in the same namespace that is checked.")
    check_type: CheckType = prop("What runs.", default=CheckType.K8S_JOB)
    depends_on: list[str] = prop("ActiveChecks that must have finished before this one runs.", default=[])
    schedule: str = prop("When it runs, as in crontab.", default="0 0 1 1 *")
    suspend: bool = prop("Whether scheduled runs are left out; the first run is not.", default=True)
    run_after_creation: bool = prop("Whether it runs once as soon as it is created.", default=True)
    active_deadline_seconds: int = prop("Seconds after which a run is ended.", default=1800, format="int64")
    successful_jobs_history_limit: int = prop("How many successful Jobs are kept.", default=3)
    failed_jobs_history_limit: int = prop("How many failed Jobs are kept.", default=16)
    node_selector: dict[str, str] = NODE_SELECTOR
    affinity: Json = AFFINITY
    tolerations: list[Json] = TOLERATIONS
    pod_template_name_ref: str = prop("PodTemplate that is merged into the pod of each run.", default="")
    host_users: bool | None = HOST_USERS
    k8s_job_spec: K8sJobSpec | None = prop("The Job, for checkType k8sJob.", default=None, nullable=True)
    slurm_job_spec: SlurmJobSpec | None = prop(
        "The Slurm jobs, for checkType slurmJob.", default=None, nullable=True
    )
    success_reactions: Reactions | None = prop("What is done when it succeeds.", default=None, nullable=True)
    failure_reactions: Reactions | None = prop("What is done when it fails.", default=None, nullable=True)
    brake: Brake = prop("When it stops and asks a person.", default=Brake())
    reactions: OlderReactions = prop(
        "What is done when it fails, in older releases.",
        default=OlderReactions(),
        deprecated="use failureReactions; it is read as that where that is left out",
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        older = self.reactions
        if older.set_condition and not older.drain_slurm_node and not older.comment_slurm_node:
            yield warning("reactions.setCondition", "has no equivalent and is ignored: it set no condition")
        if not _OWN_NAME.fullmatch(self.name):
            yield Problem(
                path="name",
                message="must be the name of a CronJob: at most 52 lower-case letters, digits and hyphens, "
                "with a letter or a digit at both ends",
            )
        if (trouble := schedules.trouble(self.schedule)) is not None:
            yield Problem(path="schedule", message=trouble)
        if self.brake.window <= timedelta(0):
            yield Problem(path="brake.window", message="must be longer than nothing, such as 1h")
        for name in ("success_reactions", "failure_reactions"):
            if self.check_type is CheckType.K8S_JOB and getattr(self, name) not in (None, Reactions()):
                yield warning(_camel(name), _NO_NODES)
        jobs = self.slurm_job_spec
        if jobs is not None and jobs.sbatch_script and jobs.sbatch_script_ref_name:
            yield warning(
                "slurmJobSpec.sbatchScript", "is ignored: sbatchScriptRefName says which script runs"
            )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


@model
class K8sJobsStatus:
    """The last Kubernetes Job."""

    last_transition_time: datetime | None = prop("When the status last changed.", default=None)
    last_job_schedule_time: datetime | None = prop("When a Job was last due.", default=None)
    last_job_successful_time: datetime | None = prop("When a Job last succeeded.", default=None)
    last_job_name: str = prop("Name of the last Job.", default="")
    last_job_status: str = prop(
        "Active, Pending, Complete, Failed, Suspended or Unknown; Skipped while a check that it depends on "
        "has failed.",
        default="",
    )


@model
class JobAndReason:
    """A Slurm job and what happened to it."""

    job_id: str = prop("Id of the job.", default="", name="jobID")
    reason: str = prop("What happened.", default="")


@model
class JobResult:
    """How one Slurm job of the last run ended, and on which nodes."""

    job_id: str = prop("Id of the job, or of the array.", default="", name="jobID")
    nodes: list[str] = prop("Slurm nodes that it ran on.", default=[])
    result: str = prop("Complete, Failed, Error or Cancelled.", default="")
    state: str = prop("The state in which Slurm ended it.", default="")
    reason: str = prop("What Slurm says about it.", default="")


@model
class DrainedNode:
    """A Slurm node that this check took out of service."""

    node: str = prop("Name of the Slurm node.", default="")
    time: datetime | None = prop("When.", default=None)


@model
class SlurmJobsStatus:
    """The last Slurm jobs."""

    last_transition_time: datetime | None = prop("When the status last changed.", default=None)
    last_run_id: str = prop("Id of the first job of the last run.", default="")
    last_run_name: str = prop("Name of the jobs of the last run.", default="")
    last_run_status: str = prop(
        "InProgress, Complete, Failed, Cancelled, Error or Skipped; in older releases also Degraded.",
        default="",
    )
    last_run_fail_jobs_and_reasons: list[JobAndReason] = prop("Jobs that failed, and why.", default=[])
    last_run_error_jobs_and_reasons: list[JobAndReason] = prop(
        "Jobs that could not be run or judged, and why.", default=[]
    )
    last_run_cancelled_jobs: list[str] = prop("Jobs that were cancelled.", default=[])
    last_run_submit_time: datetime | None = prop("When the last run was submitted.", default=None)
    last_run_job: str = prop("Kubernetes Job that submitted the last run.", default="")
    last_run_results: list[JobResult] = prop("How each job of the last run ended.", default=[])


@model
class ActiveCheckStatus(StatusMetadata):
    """How the check went."""

    k8s_jobs_status: K8sJobsStatus = prop("The last Kubernetes Job.", default=K8sJobsStatus())
    slurm_jobs_status: SlurmJobsStatus = prop("The last Slurm jobs.", default=SlurmJobsStatus())
    skipped_by: list[str] = prop("Checks because of which it does not run.", default=[])
    recent_drains: list[DrainedNode] = prop(
        "Nodes that it took out of service within `spec.brake.window`.", default=[]
    )


@model
class ActiveCheck:
    """A check of the cluster that runs on a schedule, as a Kubernetes Job or as Slurm jobs."""

    KIND: ClassVar[Kind] = Kind(
        group=names.GROUP, version="v1alpha1", kind="ActiveCheck", plural="activechecks"
    )
    CRD: ClassVar[Definition] = Definition(
        columns=(
            Column(name="Type", path=".spec.checkType", description="What runs."),
            Column(
                name="Init",
                path=".spec.runAfterCreation",
                type="boolean",
                description="Whether it runs once as soon as it is created.",
            ),
            Column(
                name="Suspend",
                path=".spec.suspend",
                type="boolean",
                description="Whether scheduled runs are left out.",
            ),
            Column(name="Schedule", path=".spec.schedule", description="When it runs."),
            Column(
                name="K8s Status",
                path=".status.k8sJobsStatus.lastJobStatus",
                description="How the last Kubernetes Job ended.",
            ),
            Column(
                name="Slurm Status",
                path=".status.slurmJobsStatus.lastRunStatus",
                description="How the last Slurm jobs ended.",
            ),
            Column(
                name="Slurm Submit Time",
                path=".status.slurmJobsStatus.lastRunSubmitTime",
                type="date",
                description="When they were submitted.",
            ),
            Column(
                name="Slurm ID",
                path=".status.slurmJobsStatus.lastRunId",
                description="The first of them.",
            ),
        ),
    )

    metadata: Meta = METADATA
    spec: ActiveCheckSpec | None = prop("What you want.", default=None, nullable=True)
    status: ActiveCheckStatus = prop("How it is; written by the operator.", default=ActiveCheckStatus())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        if self.spec is None:
            yield warning("spec", "is missing: nothing is checked until there is one")
        else:
            yield from spec_problems(self.spec, old.spec if old else None, refs)
