"""Which key is next: the queue's rules, without a clock or a loop of its own.

A key is in the schedule at most once, and in one worker at a time. The earliest of several wishes wins. A key
that is wanted again while it runs comes back when it is done, and not before it has rested. Namespaces take
turns, so that one with ten thousand changes does not hold up another with one; and keys that merely appeared
in the first list after a start give way to live changes.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterator

from slurm_operator.api.shared.meta import ObjectKey

# After so many live keys in a row one calm key is taken, so that a steady stream of changes starves nothing.
LIVE_IN_A_ROW = 8


class Turns:
    """Keys that are ready, handed out namespace by namespace."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, deque[ObjectKey]] = OrderedDict()

    def add(self, key: ObjectKey) -> None:
        self._by_namespace.setdefault(key.namespace, deque()).append(key)

    def take(self) -> ObjectKey:
        namespace, keys = next(iter(self._by_namespace.items()))
        key = keys.popleft()
        if keys:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return key

    def remove(self, key: ObjectKey) -> None:
        keys = self._by_namespace[key.namespace]
        keys.remove(key)
        if not keys:
            del self._by_namespace[key.namespace]

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def __iter__(self) -> Iterator[ObjectKey]:
        for keys in self._by_namespace.values():
            yield from keys


class Schedule:
    """Every method takes the time it is called at; nothing here waits."""

    def __init__(self) -> None:
        self._live, self._calm = Turns(), Turns()
        self._ready: dict[ObjectKey, Turns] = {}
        self._due: dict[ObjectKey, float] = {}
        self._heap: list[tuple[float, ObjectKey]] = []
        self._running: set[ObjectKey] = set()
        self._again: dict[ObjectKey, float] = {}
        self._rests_until: dict[ObjectKey, float] = {}
        self._live_in_a_row = 0

    def add(self, key: ObjectKey, at: float, *, calm: bool = False) -> bool:
        """Look at `key` once `at` has come; an earlier wish for it stands. Whether it is due sooner now."""
        at = max(at, self._rests_until.get(key, at))
        if key in self._running:
            self._again[key] = min(at, self._again.get(key, at))
            return False
        if key in self._ready:
            if not calm and self._ready[key] is self._calm:
                self._calm.remove(key)
                self._make_ready(key, self._live)
            return False
        if calm:
            self._due.pop(key, None)
            self._make_ready(key, self._calm)
            return True
        is_sooner = at < self._due.get(key, float("inf"))
        if is_sooner:
            self._due[key] = at
            heapq.heappush(self._heap, (at, key))
        return is_sooner

    def take(self, now: float) -> ObjectKey | None:
        """The next key to work on, now running; None when nothing is due."""
        self._promote(now)
        calm_first = self._live_in_a_row >= LIVE_IN_A_ROW
        turns = self._calm if self._calm and (calm_first or not self._live) else self._live
        if not turns:
            return None
        self._live_in_a_row = self._live_in_a_row + 1 if turns is self._live else 0
        key = turns.take()
        del self._ready[key]
        self._rests_until.pop(key, None)
        self._running.add(key)
        return key

    def hold_off(self, key: ObjectKey, until: float) -> None:
        """Whatever happens, do not look at `key` again before."""
        self._rests_until[key] = until

    def done(self, key: ObjectKey) -> None:
        """The worker has finished with `key`; it comes back if somebody asked for it meanwhile."""
        self._running.remove(key)
        if key in self._again:
            self.add(key, self._again.pop(key))

    def forget(self, key: ObjectKey) -> None:
        """There is no such object any more."""
        self._rests_until.pop(key, None)

    def next_due(self) -> float | None:
        """When the next delayed key becomes ready; None when there is none."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    @property
    def depth(self) -> int:
        return len(self._ready)

    @property
    def waiting(self) -> int:
        return len(self._due)

    @property
    def running(self) -> int:
        return len(self._running)

    def _promote(self, now: float) -> None:
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            _, key = heapq.heappop(self._heap)
            del self._due[key]
            self._make_ready(key, self._live)
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Heap entries that an earlier wish has overtaken stay behind; they are dropped when they surface."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)

    def _make_ready(self, key: ObjectKey, turns: Turns) -> None:
        self._ready[key] = turns
        turns.add(key)
