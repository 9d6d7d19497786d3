"""Time, as an argument: what waits or measures gets a clock, so that tests need not sleep.

A machine's clock may be set at any moment, so no age that a decision rests on is measured with it. What Slurm
and Kubernetes date is compared with it all the same, and people read it. So each pass looks at it once, and
from then on uses the clock that nobody can set: what it learns of Slurm is dated by that, too.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol

from slurm_operator.kube.lease import clock_that_never_stops
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, dated


class Clock(Protocol):
    def now(self) -> datetime:
        """What people call the time."""
        ...

    def steady(self) -> datetime:
        """The time as it was once, and what has passed since, whatever is done to the machine's clock."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, also those in which the machine sleeps."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until `event` is set, or for so long."""
        ...


# All clocks of this process agree on what has passed since.
_STARTED_AT = datetime.now(UTC)
_STARTED = clock_that_never_stops()


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def steady(self) -> datetime:
        return _STARTED_AT + timedelta(seconds=clock_that_never_stops() - _STARTED)

    def monotonic(self) -> float:
        return clock_that_never_stops()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass


class PassClock:
    """The time of one pass: the machine's when it began, and what has passed since.

    What is known of Slurm is dated by the steady clock. `told` dates it by this one, so that its age is what
    it is, and times that Slurm itself gave are compared with the machine's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Clocks that nobody set differ by less than can be told.
        self._ahead = timedelta(seconds=round((clock.now() - clock.steady()).total_seconds(), 1))

    def now(self) -> datetime:
        return self.moment(self._clock.steady())

    def moment(self, steady: datetime) -> datetime:
        """A moment of the steady clock, by this one."""
        return steady + self._ahead

    def dated(self, facts: Snapshot | Unreachable) -> Snapshot | Unreachable:
        return dated(facts, self._ahead) if self._ahead else facts
