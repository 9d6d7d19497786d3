"""How long to wait before trying again: twice as long each time, up to a limit."""

import random

# Enough for any limit; a count that nobody resets must not end in an infinite number.
_MOST_DOUBLINGS = 20


def backoff_seconds(doublings: int, *, first_seconds: float, longest_seconds: float) -> float:
    """The pause after as many failures in a row, and one more."""
    return min(longest_seconds, first_seconds * 2.0 ** min(doublings, _MOST_DOUBLINGS))


def spread(seconds: float, jitter: float) -> float:
    """Between half the pause and all of it, so that many who failed together do not return together.

    `jitter` is between 0 and 1.
    """
    return seconds * (0.5 + jitter / 2)


class Backoff:
    """Counts the failures in a row of one thing that is tried again and again."""

    def __init__(self, first_seconds: float = 0.05, longest_seconds: float = 30.0) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def next_seconds(self) -> float:
        pause = backoff_seconds(self._failures, first_seconds=self._first, longest_seconds=self._longest)
        self._failures += 1
        return spread(pause, random.random())  # noqa: S311  No secret in it.
