"""An API server that says no to some writes, for as long as nobody changes its mind; and how often it is asked."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.apiserver import ApiServer, Object, copied, refused
from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import ApiError
from slurm_operator.manifests import kinds

# What can be refused: all writes to one kind, by the verb that they begin with.
WRITES = (
    ("create", kinds.POD),
    ("patch", kinds.POD),
    ("delete", kinds.POD),
    ("create", kinds.CONTROLLER_REVISION),
    ("apply", kinds.DISRUPTION_BUDGET),
    ("apply", kinds.SERVICE),
    ("apply", kinds.CONFIG_MAP),
    ("apply", kinds.STATEFUL_SET),
    ("apply", kinds.DEPLOYMENT),
)
ANSWERS = (
    (403, "Forbidden", "is forbidden"),
    (422, "Invalid", "is invalid"),
    (400, "BadRequest", "is nonsense"),
)

# Watches are late: for so long the operator may act by what was so before.
UNSEEN_SECONDS = 6.0
LONGEST_SECONDS = 300.0

_MOMENTS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\" ]*|\"slinky.slurm.net/applied-digest\":\"\w*\"")


@dataclass
class Asked:
    """One write that was refused: what it depended on and since when, how often it came, and when last."""

    fingerprint: str
    since: float
    times: int = 0
    last: float = 0.0


@dataclass
class Refusing:
    """Looks at each write of the operator. `broken` hears when one is repeated too soon."""

    server: ApiServer
    clock: Callable[[], float]
    broken: Callable[[str], None]
    lives: int = 0  # How many operators there were: each may try everything once.
    refuses: dict[tuple[str, Kind], tuple[int, str, str]] = field(default_factory=dict)
    asked: dict[tuple[str, Kind, ObjectKey, str], Asked] = field(default_factory=dict)

    def look(
        self, verb: str, kind: Kind, key: ObjectKey, said: object, is_heard: bool = True
    ) -> ApiError | None:
        answer = self.refuses.get((verb, kind))
        if answer is None:
            return None
        if is_heard:  # Of a refusal that comes after it gave up the operator knows nothing.
            self._count(verb, kind, key, said)
        code, reason, words = answer
        return refused(code, reason, f"{verb} {kind.kind} {key.name} {words}")

    def _count(self, verb: str, kind: Kind, key: ObjectKey, said: object) -> None:
        now, fingerprint = self.clock(), self._fingerprint(kind, key, said)
        which = (verb, kind, key, _paths(said))
        found = self.asked.get(which)
        if found is None or found.fingerprint != fingerprint:
            found = self.asked[which] = Asked(fingerprint, now)
        if now - found.since < UNSEEN_SECONDS:
            return
        found.times += 1
        pause, due = now - found.last, min(LONGEST_SECONDS, 2.0 ** (found.times - 2)) / 2
        if found.times > 1 and pause < due * 0.99:
            self.broken(
                f"{verb} {kind.kind} {key.name} was refused {found.times - 1} times and is sent again after "
                f"{pause:.1f} s, not after {due:.1f}"
            )
        found.last = now

    def _fingerprint(self, kind: Kind, key: ObjectKey, said: object) -> str:
        """What the write says, the object as it is, every spec, and whether whom it belongs to is being deleted.

        No moments and statuses.
        """
        live = copied(self.server.objects[kind].get(key))
        owners = _owners(live) | _owners(said)
        specs = [
            (
                resource.KIND.kind,
                one["metadata"]["name"],
                one["metadata"]["generation"],
                one["metadata"]["uid"] in owners and "deletionTimestamp" in one["metadata"],
            )
            for resource in KINDS
            for one in self.server.all(resource.KIND)
        ]
        text = wire.encode_sorted([self.lives, said, _without_status(live), sorted(specs)]).decode()
        return _MOMENTS.sub("", text)


def _without_status(found: Object | None) -> Object | None:
    if found is None:
        return None
    meta = {key: value for key, value in found["metadata"].items() if key != "resourceVersion"}
    return {key: value for key, value in found.items() if key != "status"} | {"metadata": meta}


def _owners(found: object) -> set[str]:
    """The uids of those that an object belongs to."""
    meta = found.get("metadata") or {} if isinstance(found, dict) else {}
    return {one["uid"] for one in meta.get("ownerReferences") or ()}


def _paths(said: object) -> str:
    return " ".join(str(one["path"]) for one in said) if isinstance(said, list | tuple) else ""
