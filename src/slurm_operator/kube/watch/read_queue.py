"""Reads objects by name, a few at a time, each as often as it changes and no more."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import structlog

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.backoff import backoff_seconds
from slurm_operator.kube.errors import KubeError

_READERS = 4
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 60.0

log = structlog.get_logger(__name__)


class ReadQueue:
    """A queue of names without repeats, worked off by `read`; what fails comes back later and later."""

    def __init__(self, read: Callable[[ObjectKey], Awaitable[None]]) -> None:
        self._read = read
        self._queue: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._queued: set[ObjectKey] = set()
        self._failures: Counter[ObjectKey] = Counter()

    def soon(self, key: ObjectKey) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    def forget(self, key: ObjectKey) -> None:
        self._queued.discard(key)
        self._failures.pop(key, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_READERS):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            if key in self._queued:
                self._queued.discard(key)  # Before reading: what changes meanwhile is read once more.
                await self._attempt(key)

    async def _attempt(self, key: ObjectKey) -> None:
        try:
            await self._read(key)
            self._failures.pop(key, None)
        except (KubeError, wire.DecodeError) as error:
            pause = backoff_seconds(
                self._failures[key],
                first_seconds=_FIRST_PAUSE_SECONDS,
                longest_seconds=_LONGEST_PAUSE_SECONDS,
            )
            self._failures[key] += 1
            log.info("could not read by name; trying again", name=str(key), why=str(error))
            asyncio.get_running_loop().call_later(pause, self.soon, key)
