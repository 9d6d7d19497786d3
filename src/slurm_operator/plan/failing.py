"""What could not be done, all of it, and beside it what else is wrong."""

from slurm_operator.api.shared.conditions import Truth
from slurm_operator.listing import first_few
from slurm_operator.plan.conditions import DEGRADED, Condition, true
from slurm_operator.plan.plan import Failure, Outcome

FAILURES_TOLD = 3


def failures_text(outcome: Outcome) -> str:
    """Every failed action with what was said about it, in an order that stays while they do."""
    return _listed(sorted({_sentence(failure) for failure in outcome.failed}))


def errors(outcome: Outcome) -> str:
    """The same without what was attempted."""
    return _listed(sorted({failure.error for failure in outcome.failed}))


def retried(outcome: Outcome) -> str:
    """The errors, and that all of it is tried again."""
    return f"{_sentence_of(errors(outcome))} It is tried again."


def degraded(
    outcome: Outcome, otherwise: Condition, reason: str = "WriteFailed", more: str = ""
) -> Condition:
    """What could not be done. It does not hide what would be said otherwise, nor the other way round."""
    if not outcome.failed:
        return otherwise
    beside = f" Besides: {otherwise.message}" if otherwise.status is Truth.TRUE else ""
    told = failures_text(outcome)
    return true(DEGRADED, reason, f"{_sentence_of(told) if more or beside else told}{more}{beside}")


def _sentence_of(text: str) -> str:
    """With its full stop, as something follows: the API server's own words have none."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _sentence(failure: Failure) -> str:
    return f"{failure.action.message}: {failure.error}"


def _listed(sentences: list[str]) -> str:
    return first_few(sentences, FAILURES_TOLD, separator="; ")
