"""The work queue of one reconciler: a schedule, a bounded number of workers, and backoff."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.backoff import backoff_seconds, spread
from slurm_operator.runtime.loop.schedule import Schedule

FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 60.0


def retry_seconds(failures: int, jitter: float) -> float:
    """How long to leave a key alone after so many failures in a row; `jitter` is between 0 and 1."""
    pause = backoff_seconds(
        failures - 1, first_seconds=FIRST_BACKOFF_SECONDS, longest_seconds=LONGEST_BACKOFF_SECONDS
    )
    return spread(pause, jitter)


class WorkQueue:
    """Keys in, one worker per key, at most `workers` at once."""

    def __init__(self, workers: int, *, jitter: Callable[[], float] = random.random) -> None:
        self._workers = workers
        self._jitter = jitter
        self._schedule = Schedule()
        self._failures: dict[ObjectKey, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: ObjectKey, after: float = 0.0, *, calm: bool = False) -> None:
        """Look at `key` after so many seconds; an earlier wish for it stands."""
        if self._schedule.add(key, asyncio.get_running_loop().time() + after, calm=calm):
            self._changed.set()  # Changes to an object that rests, by the thousand, wake nobody.

    def hold_off(self, key: ObjectKey, seconds: float) -> None:
        """Leave `key` alone for so long, whatever happens to it: looking at it is expensive."""
        self._schedule.hold_off(key, asyncio.get_running_loop().time() + seconds)

    def retry(self, key: ObjectKey, at_least: float = 0.0) -> float:
        """Look at `key` again after a failure, later each time. Gives the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, retry_seconds(self._failures[key], self._jitter()))
        self.add(key, delay)
        return delay

    def reset_backoff(self, key: ObjectKey) -> None:
        """Forget the failures of `key`: it has gone well."""
        self._failures.pop(key, None)

    def forget(self, key: ObjectKey) -> None:
        """There is no such object any more."""
        self.reset_backoff(key)
        self._schedule.forget(key)

    def failures(self, key: ObjectKey) -> int:
        return self._failures.get(key, 0)

    @property
    def depth(self) -> int:
        return self._schedule.depth

    @property
    def running(self) -> int:
        return self._schedule.running

    async def run(self, work: Callable[[ObjectKey], Awaitable[None]]) -> None:
        """Hand out keys until cancelled; then the passes under way are cancelled too, and awaited."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                while self._schedule.running < self._workers:
                    key = self._schedule.take(asyncio.get_running_loop().time())
                    if key is None:
                        break
                    group.create_task(self._one(key, work))
                await self._wait()

    async def _one(self, key: ObjectKey, work: Callable[[ObjectKey], Awaitable[None]]) -> None:
        try:
            await work(key)
        finally:
            self._schedule.done(key)
            self._changed.set()

    async def _wait(self) -> None:
        """Until something changed or the next delayed key is due."""
        due = self._schedule.next_due()
        seconds = None if due is None else max(0.0, due - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
