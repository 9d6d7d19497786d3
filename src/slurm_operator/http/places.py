"""Places for so many at a time. Who is in a hurry goes before everybody who is not."""

import asyncio
from collections import deque


class Places:
    """In order of arrival otherwise. Whoever took a place gives it back."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._hurried: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    def take_free(self) -> bool:
        """Take one if nobody has to be waited for."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self, *, in_a_hurry: bool = False) -> None:
        if self.take_free():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._hurried if in_a_hurry else self._others).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()  # It was our turn in the very moment in which we stopped waiting.
            raise

    def give(self) -> None:
        for waiting in (self._hurried, self._others):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1
