"""How long to wait before trying again."""

import random


class Backoff:
    """Doubles from try to try, with jitter, so that many who failed together do not come back together."""

    def __init__(self, first_seconds: float = 0.05, longest_seconds: float = 30.0) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._next = first_seconds

    def reset(self) -> None:
        self._next = self._first

    def next_seconds(self) -> float:
        wait = self._next * random.uniform(0.5, 1.0)  # noqa: S311  No secret in it.
        self._next = min(self._next * 2, self._longest)
        return wait
