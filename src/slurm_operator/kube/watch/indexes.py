"""Finding objects by something other than their name, without looking at all of them."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from slurm_operator.api.shared.meta import ObjectKey

T = TypeVar("T")

# The values under which an object can be found, such as its owner's uid. A pure function of the object.
Index = Callable[[T], Iterable[Hashable]]


class Indexes(Generic[T]):
    """For every index the keys of the objects under each value."""

    def __init__(self, functions: Mapping[str, Index[T]]) -> None:
        self._functions = dict(functions)
        self._entries: dict[str, dict[Hashable, dict[ObjectKey, None]]] = {name: {} for name in functions}

    def keys(self, index: str, value: Hashable) -> Iterable[ObjectKey]:
        return self._entries[index].get(value, {}).keys()

    def change(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        """Follow one object from its old to its new state; None is not there."""
        for name, function in self._functions.items():
            before = frozenset(function(old)) if old is not None else frozenset()
            after = frozenset(function(new)) if new is not None else frozenset()
            entries = self._entries[name]
            for value in before - after:
                del entries[value][key]
                if not entries[value]:
                    del entries[value]
            for value in after - before:
                entries.setdefault(value, {})[key] = None
