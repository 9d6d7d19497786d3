"""What several kinds of this group have in their status."""

from datetime import datetime

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.shared.conditions import Condition


@model
class DatedCondition(Condition):
    """A condition that also says when it was last looked at."""

    last_update_time: datetime | None = prop("When it was last written.", default=None)


@model
class StatusMetadata:
    """How far the operator is with the object."""

    update_status: str = prop("updating, failed or succeeded.", default="")
    reason: str = prop("Why, in words, when it failed.", default="")
    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[DatedCondition] = prop(
        "Statements about the object, by type.", default=[], keys=["type"]
    )
