"""What became of a write: from what a call gave, or why it was not made."""

from collections.abc import Iterable

from slurm_operator.slurm.writes import Answer, Verdict
from slurm_operator.slurmrest.errors import (
    SlurmFailure,
    SlurmNotAllowed,
    SlurmRefused,
    UnknownJob,
    UnknownNode,
    UnknownReservation,
)


def for_all(names: Iterable[str], verdict: Verdict, message: str = "") -> dict[str, Answer]:
    return dict.fromkeys(names, Answer(verdict=verdict, message=message))


def answer_to(failure: SlurmFailure) -> Answer:
    """What a failed call means for the write it was."""
    return Answer(verdict=_verdict(failure), message=str(failure))


def answer_to_removal(failure: SlurmFailure) -> Answer:
    """The same for a record that nothing else hangs on: who is not known any more is as good as removed."""
    if isinstance(failure, UnknownNode):
        return Answer(verdict=Verdict.ALREADY)
    return answer_to(failure)


def is_about_some(failure: SlurmFailure | None) -> bool:
    """Whether it may be the fault of one of the nodes that a request names, and not of the request."""
    return isinstance(failure, SlurmRefused) and not isinstance(failure, SlurmNotAllowed)


def _verdict(failure: SlurmFailure) -> Verdict:
    if failure.may_have_happened:
        return Verdict.UNSURE
    if isinstance(failure, UnknownNode | UnknownJob | UnknownReservation):
        return Verdict.UNKNOWN
    return Verdict.REFUSED if isinstance(failure, SlurmRefused) else Verdict.NOT_SENT
