"""What a Controller says about slurmctld."""

from datetime import datetime

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.shared.conditions import Condition


@model
class SlurmctldStatus:
    """One slurmctld as Slurm sees it."""

    pod: str = prop("Its pod, or the host of an external one.")
    role: str = prop("primary or backup.", default="")
    responding: bool = prop("Whether it answers.", default=False)
    active: bool = prop("Whether it is the one in charge.", default=False)


@model
class RefusedConfig:
    """A change of configuration that was not applied."""

    file: str = prop("Which file.", default="")
    line: int = prop("Which line of it; 0 if unknown.", default=0)
    message: str = prop("What is wrong with it.", default="")
    digest: str = prop("Digest over all files of the refused configuration.", default="")


@model
class ConfigStatus:
    """Which configuration slurmctld has, and which it should have."""

    wanted: str = prop("Digest over all files that the spec asks for.", default="")
    applied: str = prop("Digest over all files that slurmctld reports to run with.", default="")
    applied_at: datetime | None = prop("Since when.", default=None)
    owed: str = prop("What the rest takes: reconfigure, restart or nothing.", default="")
    refused: RefusedConfig | None = prop("Why the last change was not applied.", default=None)


@model
class SlurmKeyStatus:
    """At which step a change of the Slurm key is. Keys are named by digest."""

    signing: str = prop("The key that daemons sign with.", default="")
    accepted: list[str] = prop("The keys that they accept.", default=[])
    step: str = prop("What is under way; empty when nothing is.", default="")
    since: datetime | None = prop("Since when.", default=None)


@model
class ControllerStatus:
    """What slurmctld is like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    cluster_name: str = prop("Slurm's ClusterName in use.", default="")
    slurm_version: str = prop("Version that slurmctld reports.", default="")
    endpoint: str = prop("host:port for clients and workers.", default="")
    active: str = prop("Pod of the slurmctld in charge.", default="")
    replicas: int = prop("slurmctld pods.", default=0)
    ready_replicas: int = prop("slurmctld pods that are ready.", default=0)
    controllers: list[SlurmctldStatus] = prop("Every slurmctld.", default=[], keys=["pod"])
    config: ConfigStatus | None = prop(
        "Which configuration is in use, and why it is not the wanted one.", default=None
    )
    slurm_key_secret: str = prop("Secret with the Slurm key in use.", default="")
    slurm_key: SlurmKeyStatus | None = prop("At which step a change of the Slurm key is.", default=None)
    jwt_key_secret: str = prop("Secret with the signing key in use.", default="")
    node_sets: int = prop("NodeSets that register here.", default=0)
    state_lost_since: datetime | None = prop(
        "Since when slurmctld has been without its previous state; removals stop until workers are back.",
        default=None,
    )
    workers_known_since: datetime | None = prop(
        "Since when slurmctld has known workers. If it knows none of them any more, it has lost its state.",
        default=None,
    )
