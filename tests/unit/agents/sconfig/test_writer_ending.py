"""A writer that is told to end while it writes."""

import asyncio
import threading

import pytest

from slurm_operator.agents.sconfig.writer import _in_thread


async def test_a_write_that_has_begun_is_carried_through_before_the_lease_is_given_back():
    begun, may_end, done = threading.Event(), threading.Event(), []

    def slow(argument: int) -> None:
        begun.set()
        may_end.wait(30)
        done.append(argument)

    task = asyncio.create_task(_in_thread(slow, 1))
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done == [1]
