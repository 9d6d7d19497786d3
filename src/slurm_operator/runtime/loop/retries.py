"""Trying again at once what failed for no fault of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slurm_operator.kube.errors import KubeError, ServerError, TooManyRequests, Unreachable
from slurm_operator.runtime.act.stages import NotSentToSlurm


@dataclass(frozen=True)
class Retries:
    """So many more tries, so far apart. None by default: the next pass plans afresh, and backs off."""

    most: int = 0
    interval_seconds: float = 1.0

    async def of(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Do it; what may have happened already is never repeated."""
        for _ in range(self.most):
            try:
                return await attempt()
            except (KubeError, NotSentToSlurm) as error:
                if not is_worth_another_try(error):
                    raise
            await asyncio.sleep(self.interval_seconds)
        return await attempt()


NEXT_PASS = Retries()


def is_worth_another_try(error: KubeError | NotSentToSlurm) -> bool:
    """The server is busy, broken or away for the moment, and has surely not done it."""
    if isinstance(error, Unreachable | ServerError):
        return not error.may_have_happened
    return isinstance(error, TooManyRequests | NotSentToSlurm)
