"""What is on its way when its sender is frozen, or dead: it arrives all the same."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

T = TypeVar("T")


async def arriving(seconds: float, effect: Callable[[], T]) -> T:
    """What the other side made of it, so many seconds later, by its own time."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def arrive() -> None:
        try:
            made = effect()
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(made)

    loop.call_later(seconds, arrive, context=Context())
    return await answer
