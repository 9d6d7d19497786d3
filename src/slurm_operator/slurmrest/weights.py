"""How much memory records take, by what is in them."""

from sys import getsizeof
from typing import Final

from slurm_operator import wire

# Of a record in a dictionary, and of one node that it names: there it stands in an index.
_RECORD_BYTES: Final = 160
_NAME_BYTES: Final = 16


class Weights:
    """Adds up what is kept. A tuple of names that many records share counts once."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._known: set[int] = set()

    def add(self, record: wire.Record) -> None:
        """`record` is kept as long as this: its parts are told apart by where they are."""
        total = _RECORD_BYTES + getsizeof(record)
        for name in record.__struct_fields__:
            value = getattr(record, name)
            kind = type(value)
            if kind is str:
                total += getsizeof(value) if value else 0
            elif kind in (tuple, frozenset):
                total += _NAME_BYTES * len(value)
                if value and id(value) not in self._known:
                    self._known.add(id(value))
                    total += sum(map(getsizeof, value))
            elif isinstance(value, wire.Record):
                self.add(value)
        self.total_bytes += total
