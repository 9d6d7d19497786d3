"""How workers are replaced when what they are made from changes."""

from datetime import datetime, timedelta
from typing import ClassVar

from slurm_operator.api.schema.cel import as_duration
from slurm_operator.api.schema.model import Choice, Rule, model, prop


class UpdateType(Choice):
    """When workers are replaced."""

    ROLLING_UPDATE = "RollingUpdate", "a few at a time, each as soon as its jobs are done."
    ON_DELETE = "OnDelete", "when somebody annotates their pod with nodeset.slinky.slurm.net/replace=true."
    SCHEDULED_UPDATE = "ScheduledUpdate", "in a maintenance window that Slurm keeps free of jobs."


@model
class RollingUpdate:
    """How fast."""

    max_unavailable: int | str = prop(
        "How many workers, or which share of them, may be away at once, whatever the cause; "
        "a share is rounded up.",
        default="25%",
        max_length=64,
        rules=[
            Rule(
                expression="type(self) == int ? self >= 1 : !(self in ['0%'])",
                message="with 0 no worker could ever be replaced; use 1 or more, or a percentage",
                holds=lambda share, old: share >= 1 if isinstance(share, int) else share != "0%",
            )
        ],
    )
    paused: bool = prop(
        "Stopped updates in v1alpha1.", default=False, deprecated="use type: OnDelete; it is read as that"
    )
    partition: int = prop(
        "Kept some workers old in v1alpha1.",
        default=0,
        minimum=0,
        deprecated="is ignored; to update workers by hand use type: OnDelete",
    )


@model
class ScheduledUpdate:
    """A maintenance reservation in Slurm."""

    start_time: datetime | None = prop("When it starts, such as 2030-01-31T22:00:00Z.", default=None)
    duration: timedelta = prop(
        "How long it lasts, such as 2h.",
        default=timedelta(minutes=30),
        rules=[
            Rule(
                expression=as_duration(
                    "duration(self) == duration('0s') || duration(self) >= duration('1m')"
                ),
                message="Slurm counts reservations in minutes; use 1m or more",
                holds=lambda lasts, old: not lasts or lasts >= timedelta(minutes=1),
            )
        ],
    )
    flags: list[str] = prop("More flags of the reservation, such as WEEKLY.", default=[], nullable=True)


@model
class UpdateStrategy:
    """How workers are replaced when what they are made from changes."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="self.type != 'ScheduledUpdate' || self.?scheduledUpdate.startTime.hasValue()",
            message="ScheduledUpdate needs scheduledUpdate.startTime",
            path=".scheduledUpdate",
        ),
    )

    type: UpdateType = prop("When workers are replaced.", default=UpdateType.ROLLING_UPDATE)
    rolling_update: RollingUpdate = prop("How fast, for RollingUpdate.", default=RollingUpdate())
    scheduled_update: ScheduledUpdate | None = prop("When, for ScheduledUpdate.", default=None)

    @property
    def effective_type(self) -> UpdateType:
        """The type that counts: a paused update of v1alpha1 waits for people, like OnDelete."""
        return UpdateType.ON_DELETE if self.rolling_update.paused else self.type
