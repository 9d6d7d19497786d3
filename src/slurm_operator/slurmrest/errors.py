"""What can go wrong with slurmrestd, in our words. Slurm's own text is always kept.

`may_have_happened` matters for writes: a call that got no answer may still be carried out, even minutes later
when a hung slurmctld wakes up, so it is read before it is repeated.
"""

# ruff: noqa: N818 - the names say what is the case; "Error" behind each would say it twice.

from typing import ClassVar


class SlurmFailure(Exception):
    """A call that did not work. `attempt` is what was tried ("drain gpu-3"), `said` is Slurm's own text."""

    may_have_happened: ClassVar[bool] = False
    phrase: ClassVar[str] = "Slurm failed to"

    def __init__(self, attempt: str, said: str) -> None:
        super().__init__(f"{self.phrase} {attempt}: {said}")
        self.attempt = attempt
        self.said = said
        self.cost_seconds = 0.0  # Of our CPU, for what arrived before it failed.


class SlurmUnreachable(SlurmFailure):
    """Nobody there: no connection to slurmrestd, or from there to slurmctld. Nothing was done for sure."""

    phrase = "cannot reach Slurm to"


class SlurmCutOff(SlurmFailure):
    """The connection broke before the whole answer was here, or before slurmrestd had that of slurmctld."""

    phrase = "the connection broke on the way to"
    may_have_happened = True


class SlurmTimedOut(SlurmFailure):
    """No answer in time, from slurmrestd or from the slurmctld behind it."""

    phrase = "no answer in time from Slurm to"
    may_have_happened = True


class SlurmAnswerUnreadable(SlurmFailure):
    """An answer came that is not what any version we know sends, or is too large to take in."""

    phrase = "cannot make sense of Slurm's answer to"
    may_have_happened = True


class SlurmListTooLarge(SlurmFailure):
    """More than may be kept of one cluster."""

    phrase = "too much came from Slurm to"


class SlurmUnauthorised(SlurmFailure):
    """The token was not accepted, freshly signed ones included: wrong key, or clocks too far apart."""

    phrase = "Slurm did not accept our token to"


class SlurmRefused(SlurmFailure):
    """Slurm understood and said no."""

    phrase = "Slurm refused to"


class SlurmNotAllowed(SlurmRefused):
    """Our user may not do this."""


class NodesBusy(SlurmRefused):
    """A job is on the node."""


class UnknownNode(SlurmRefused):
    """No node of that name, or of one of those names: then no node at all was changed."""


class UnknownJob(SlurmRefused):
    """No such job, or it is forgotten already."""


class JobFinished(SlurmRefused):
    """The job has ended, or is about to."""


class JobPending(SlurmRefused):
    """The job waits in the queue, and cannot go back into it."""


class UnknownReservation(SlurmRefused):
    """No such reservation."""


class VersionUnknown(SlurmFailure):
    """slurmrestd speaks no API version that we know."""

    phrase = "no API version in common with slurmrestd to"


class NotServed(SlurmFailure):
    """The API version in use has no such call, or this slurmrestd was started without that part."""

    phrase = "this slurmrestd cannot"


# error_number of Slurm (slurm/slurm_errno.h), each seen on a real daemon.
BY_NUMBER: dict[int, type[SlurmFailure]] = {
    1007: SlurmUnauthorised,
    1800: SlurmUnreachable,
    2010: SlurmNotAllowed,
    2016: NodesBusy,
    2017: UnknownJob,
    2018: UnknownNode,
    2021: JobFinished,
    2024: JobPending,
    2053: UnknownReservation,
    2084: JobFinished,
    5004: SlurmTimedOut,
    7000: SlurmUnreachable,
}

# The numbers by which slurmctld answers a request, and those by which slurmrestd passes none on: whoever says
# one has understood, and said no. Others are about the way in between (1802: no answer was received).
REFUSALS = (range(2000, 3000), range(9000, 10000))

BY_STATUS: dict[int, type[SlurmFailure]] = {
    401: SlurmUnauthorised,
    504: SlurmTimedOut,
    511: SlurmUnauthorised,
}
