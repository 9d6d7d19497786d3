"""A list of slurmrestd while it arrives: only the records of its entries stay, and not too many of them."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from slurm_operator import wire
from slurm_operator.slurmrest.list_split import ListSplit
from slurm_operator.slurmrest.weights import Weights

T = TypeVar("T")
R = TypeVar("R", bound=wire.Record)

# What one list of one cluster may take of our memory. A job takes about 1 KiB.
MAX_LIST_BYTES: Final = 96 << 20


class Incoming(Generic[R]):
    """`take` its pieces, in any thread. Beyond `max_bytes` nothing is kept any more, only counted."""

    def __init__(self, name: str, read: Callable[[bytes], R], max_bytes: int) -> None:
        self.name = name
        self.max_bytes = max_bytes
        self.records: list[R] = []
        self.count = 0
        self.size_bytes = 0
        self.is_too_large = False
        self.spent_seconds = 0.0
        self._read = read
        self._split = ListSplit(name)
        self._weights = Weights()

    @property
    def rest(self) -> bytes:
        """What stands around the list, when all of it is here."""
        return self._split.rest

    def take(self, piece: bytes, *, is_last: bool = False) -> None:
        """Raises ValueError for what is no such list, and what reading an entry raises."""
        began = time.thread_time()
        try:
            self.size_bytes += len(piece)
            for entry in self._split.feed(piece, is_last=is_last):
                self.count += 1
                if not self.is_too_large:
                    self._keep(decoded(bytes(entry), self._read))
        finally:
            self.spent_seconds += time.thread_time() - began

    def _keep(self, record: R) -> None:
        self._weights.add(record)
        self.records.append(record)
        if self._weights.total_bytes > self.max_bytes:
            self.is_too_large = True
            self.records.clear()


def decoded(body: bytes, decode: Callable[[bytes], T]) -> T:
    """Slurm passes on whatever bytes people use in names and comments: one job must not hide all others."""
    try:
        return decode(body)
    except UnicodeDecodeError:
        return decode(body.decode(errors="replace").encode())
