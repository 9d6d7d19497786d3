"""What a NodeSet says about its workers."""

from datetime import datetime

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.shared.conditions import Condition


@model
class DrainStatus:
    """A worker that should take no more jobs: it leaves, or has a cordon."""

    slurm_node: str = prop("Name of the Slurm node.")
    pod: str = prop("Its pod.", default="")
    reason: str = prop(
        "Why: it leaves (ScaleIn, Update, Resources, Deletion, ModeSwitch, NodeUnfit, PodTerminating and "
        "others), or stays until that is over (NodeCordon, NodeTaint, PodCordon, Unresponsive).",
        default="",
    )
    since: datetime | None = prop("Since when it takes no new jobs.", default=None)
    deadline: datetime | None = prop("When the drain policy ends its jobs, if it does.", default=None)
    forecast: datetime | None = prop(
        "When its last job ends at the latest, by the jobs' time limits; empty without a job, or a limit.",
        default=None,
    )
    jobs: list[str] = prop("Jobs that hold it up, by id.", default=[])
    message: str = prop(
        "The reason in words, as it stands in Slurm; of one that others drained, also theirs.", default=""
    )


@model
class ReservationStatus:
    """The maintenance reservation in Slurm."""

    name: str = prop("Its name.", default="")
    requested_start: datetime | None = prop(
        "The start that the spec asked for when it was made.", default=None
    )
    start_time: datetime | None = prop("When it starts next.", default=None)
    end_time: datetime | None = prop("When it ends next.", default=None)
    active: bool = prop("Whether it is under way.", default=False)


@model
class RegistrationStatus:
    """A worker whose Slurm node is not what the pod promises."""

    slurm_node: str = prop("Name of the Slurm node.")
    message: str = prop("What differs: declared, seen by slurmd, registered with Slurm.", default="")


@model
class NodeSetStatus:
    """What the workers are like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop(
        "Ready, Progressing, Degraded; Protected: whether a policy keeps workers from being deleted by hand; "
        "ReservationCreated with ScheduledUpdate.",
        default=[],
        keys=["type"],
    )
    desired: int = prop("Workers that should run.", default=0)
    replicas: int = prop("Worker pods.", default=0)
    updated_replicas: int = prop("Worker pods of the newest revision.", default=0)
    ready_replicas: int = prop("Worker pods that are ready.", default=0)
    available_replicas: int = prop("Worker pods that have been ready for minReadySeconds.", default=0)
    unavailable_replicas: int = prop("Workers that are missing or not available.", default=0)
    registered_replicas: int = prop(
        "Workers that Slurm knows. What comes from Slurm is as last known while it cannot be asked.",
        default=0,
    )
    slurm_idle: int = prop("Slurm nodes without a job.", default=0)
    slurm_allocated: int = prop("Slurm nodes with jobs.", default=0)
    slurm_down: int = prop("Slurm nodes that are down.", default=0)
    slurm_drain: int = prop("Slurm nodes that take no new jobs.", default=0)
    node_set_hash: str = prop("Newest revision.", default="")
    collision_count: int | None = prop("How often two revisions had the same hash.", default=None)
    ordinal_to_node: dict[str, str] = prop(
        "Kubernetes node of each ordinal, with pinToNode.", default={}, nullable=True
    )
    failures: dict[str, int] = prop(
        "How often in a row the pod of this name failed; each time the next one is created later.",
        default={},
    )
    cordoned: list[str] = prop(
        "Workers that a user cordoned, by the names of their pods; the next pod of that name is, too.",
        default=[],
    )
    selector: str = prop("Finds the worker pods; for autoscalers.", default="")
    slurm_name: str = prop("What slurm.conf calls this NodeSet.", default="")
    slurm_version: str = prop("Version of slurmd.", default="")
    drains: list[DrainStatus] = prop(
        "Workers that should take no more jobs, those that are free soonest first; at most 32.",
        default=[],
        keys=["slurmNode"],
    )
    draining: int = prop("How many workers should take no more jobs.", default=0)
    drained_by: datetime | None = prop(
        "When the last of their jobs ends at the latest; empty when there is none, or one has no limit.",
        default=None,
    )
    mismatches: list[RegistrationStatus] = prop(
        "Workers whose Slurm node is not what the pod promises; at most 32.", default=[], keys=["slurmNode"]
    )
    reservation: ReservationStatus | None = prop("The maintenance reservation.", default=None)
