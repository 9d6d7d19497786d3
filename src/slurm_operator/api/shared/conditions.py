"""What a kind says about itself: conditions that `kubectl wait` can use."""

from datetime import datetime
from typing import Final

from slurm_operator.api.schema.model import Choice, model, prop

READY: Final = "Ready"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
PROTECTED: Final = "Protected"  # on NodeSets

# In a message; the API server takes no status with a longer one.
MOST_CHARACTERS: Final = 32768


class Truth(Choice):
    """Whether a condition holds."""

    TRUE = "True", "it holds."
    FALSE = "False", "it does not hold."
    UNKNOWN = "Unknown", "nobody can tell right now."


@model
class Condition:
    """One statement about an object, in the shape Kubernetes has for it."""

    type: str = prop(
        "What the statement is about. Ready: it does its job. Progressing: it is on the way to what the spec "
        "asks for. Degraded: something needs attention.",
        min_length=1,
        max_length=316,
    )
    status: Truth = prop("Whether it holds.")
    reason: str = prop("One word on why, for programs.", min_length=1, max_length=1024)
    message: str = prop("Why, and what to do about it, for people.", default="", max_length=MOST_CHARACTERS)
    last_transition_time: datetime | None = prop("When the status last changed.", default=None)
    observed_generation: int | None = prop(
        "Which generation of the spec this is about.", default=None, minimum=0, format="int64"
    )
