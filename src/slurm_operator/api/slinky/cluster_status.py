"""What a Cluster says about itself."""

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.shared.conditions import Condition


@model
class NodeCounts:
    """Slurm nodes by state."""

    total: int = prop("All of them.", default=0)
    idle: int = prop("Without a job.", default=0)
    mixed: int = prop("Partly taken.", default=0)
    allocated: int = prop("Fully taken.", default=0)
    draining: int = prop("Taking no new jobs, some still running.", default=0)
    drained: int = prop("Taking no new jobs, none running.", default=0)
    down: int = prop("Down or not responding.", default=0)
    other: int = prop("In any other state.", default=0)


@model
class JobCounts:
    """Jobs by state."""

    running: int = prop("Running.", default=0)
    pending: int = prop("Waiting.", default=0)
    suspended: int = prop("Suspended.", default=0)
    other: int = prop("Starting or finishing.", default=0)


@model
class ComponentStatus:
    """One part of the cluster."""

    kind: str = prop("Controller, Accounting, RestApi, LoginSet, NodeSet.")
    name: str = prop("Name of the object.")
    ready: bool = prop("Whether it is ready.", default=False)
    reason: str = prop("Why, in a word.", default="")
    message: str = prop("Why, and what to do about it.", default="")


@model
class ClusterStatus:
    """What the cluster is like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    is_ready: bool = prop("Whether everything works, as in v1alpha1.", default=False)
    cluster_name: str = prop("Slurm's ClusterName.", default="")
    slurm_version: str = prop("Version that slurmctld reports.", default="")
    isolation: str = prop("How jobs are kept apart: process or cgroup.", default="")
    nodes: NodeCounts | None = prop("Slurm nodes by state.", default=None)
    jobs: JobCounts | None = prop("Jobs by state.", default=None)
    components: list[ComponentStatus] = prop("Its parts.", default=[], keys=["kind", "name"])
    rest_url: str = prop("Where slurmrestd answers.", default="")
    login: str = prop("Where to point ssh.", default="")
