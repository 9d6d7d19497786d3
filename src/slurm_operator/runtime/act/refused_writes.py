"""Writes that were refused: not sent again before their time, unless something changed that they depend on.

A pass is woken by whatever happens, by Slurm every second, and plans the same write each time. The back-off
of the queue is about passes: it only says when to look again at the latest. So each refused write has one of
its own, by whom it is about and what it says.
"""

import asyncio
import random
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from slurm_operator import wire
from slurm_operator.api.shared.meta import HasMeta, ObjectKey
from slurm_operator.backoff import backoff_seconds, spread
from slurm_operator.kube.errors import (
    AlreadyExists,
    ApiError,
    BudgetRefused,
    Conflict,
    Gone,
    KubeError,
    NamespaceEnding,
    TooManyRequests,
    Unauthorised,
)
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0
# What may be taken at any moment, without a change that we would see: room in a quota, in etcd, in a queue.
LONGEST_PASSING_SECONDS = 30.0

# What is forgotten so long after it could have been tried again: nobody wants it any more.
FORGOTTEN_AFTER_SECONDS = 600.0

_REQUEST_TIMEOUT = 408

# What etcd says when its quota is used up. It takes reads and deletes until somebody makes room.
_FULL = "database space exceeded"

Owner = tuple[str, ObjectKey]  # A reconciler's name and the key it looks at.

_MOMENT = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\" ]*")


def is_refusal(error: KubeError) -> bool:
    """Whether the server said no, and will as long as nothing changes. Not a crossing write, not weather.

    Nor that there is no room: passes come every second, and each would send its writes into a server that has
    just asked for fewer.
    """
    if has_no_room(error):
        return True
    if not isinstance(error, ApiError) or not 400 <= error.code < 500 or error.code == _REQUEST_TIMEOUT:
        return False
    if isinstance(error, AlreadyExists):
        return True
    return not isinstance(error, Conflict | Gone | NamespaceEnding | TooManyRequests | Unauthorised)


def has_no_room(error: KubeError) -> bool:
    """The server has too much to do, or its etcd is full: the write was surely not taken.

    Of a Service for which it could not note an address it says that the address is invalid.
    """
    is_full = isinstance(error, ApiError) and _FULL in str(error)
    return is_full or (isinstance(error, TooManyRequests) and not isinstance(error, BudgetRefused))


def is_passing(error: KubeError) -> bool:
    """Whether it may end without a change that we would see."""
    return "exceeded quota" in str(error) or has_no_room(error)


class Asked(NamedTuple):
    """A write: whom it is about, and what it depends on: its content, the object and the spec behind it."""

    subject: Hashable
    content: Callable[[], str]


@dataclass(frozen=True)
class Refused:
    """What was said, how often in a row, and from when on it may be tried again."""

    error: str
    content: str
    times: int
    due_at: float


@dataclass
class Refusals:
    """Of all passes. A restarted operator knows of none, and tries each once more."""

    jitter: Callable[[], float] = random.random
    _by_owner: dict[Owner, dict[Hashable, Refused]] = field(default_factory=dict)

    def held(self, owner: Owner, asked: Asked) -> tuple[str, float] | None:
        """Why this write is not sent now, and for how many seconds; None when it may be."""
        found = self._by_owner.get(owner, {}).get(asked.subject)
        if found is None:
            return None
        left = found.due_at - _now()
        return (found.error, left) if left > 0 and found.content == asked.content() else None

    def note(self, owner: Owner, asked: Asked, error: str, *, passing: bool = False) -> float:
        """It was refused. Gives the seconds for which it is not sent again."""
        refused = self._by_owner.setdefault(owner, {})
        before, content = refused.get(asked.subject), asked.content()
        times = before.times + 1 if before is not None and before.content == content else 1
        longest = LONGEST_PASSING_SECONDS if passing else LONGEST_SECONDS
        pause = backoff_seconds(times - 1, first_seconds=FIRST_SECONDS, longest_seconds=longest)
        seconds = spread(pause, self.jitter())
        refused[asked.subject] = Refused(error, content, times, _now() + seconds)
        return seconds

    def taken(self, owner: Owner, asked: Asked) -> None:
        """It was taken this time."""
        if owner in self._by_owner:
            self._by_owner[owner].pop(asked.subject, None)

    def tidy(self, owner: Owner) -> None:
        """Without what nobody has asked for in a long time."""
        if owner in self._by_owner:
            latest = _now() - FORGOTTEN_AFTER_SECONDS
            kept = {subject: one for subject, one in self._by_owner[owner].items() if one.due_at > latest}
            self.forget(owner)
            if kept:
                self._by_owner[owner] = kept

    def forget(self, owner: Owner) -> None:
        self._by_owner.pop(owner, None)


def _now() -> float:
    return asyncio.get_running_loop().time()


def content(*parts: Any) -> str:
    """A digest that stays the same while only moments differ: they are those of the pass."""
    return digest(_MOMENT.sub(b"", wire.encode_sorted([_unstamped(part) for part in parts])).decode())


def _unstamped(part: Any) -> Any:
    """A manifest without the digest of itself, which has its moments in it."""
    notes = (part.get("metadata") or {}).get("annotations") if isinstance(part, dict) else None
    if not notes or APPLIED_DIGEST not in notes:
        return part
    kept = {key: value for key, value in notes.items() if key != APPLIED_DIGEST}
    return {**part, "metadata": {**part["metadata"], "annotations": kept}}


def state_of(thing: HasMeta | None) -> Any:
    """An object without what changes while it does its work: its status, and the version that counts that."""
    if thing is None:
        return None
    meta = thing.metadata
    if isinstance(thing, Child):
        kept = {key: value for key, value in thing.body.items() if key not in ("metadata", "status")}
    else:
        kept = {"generation": meta.generation}
    return [
        meta.uid,
        meta.labels,
        meta.annotations,
        list(meta.finalizers),
        meta.is_terminating,
        [owner.uid for owner in meta.owner_references],
        kept,
    ]
