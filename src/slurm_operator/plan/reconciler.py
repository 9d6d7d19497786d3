"""How a reconciler is plugged in: what it is about, what wakes it, and its three functions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.conditions import Condition
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.world import World
from slurm_operator.slurm.snapshot import Changes

Seen = TypeVar("Seen")
T = TypeVar("T", bound=HasMeta)


@dataclass(frozen=True)
class Wake(Generic[T]):
    """When an object of this type changes, look again at these keys. Asked of the old and the new one.

    A change that it `ignores` wakes nobody: a heartbeat of a thousand machines must cost nothing.
    """

    type: type[T]
    keys: Callable[[T, World], Iterable[ObjectKey]]
    ignores: Callable[[T, T], bool] = lambda old, new: False

    def woken(self, old: T | None, new: T | None, world: World) -> Iterator[ObjectKey]:
        if old is not None and new is not None and self.ignores(old, new):
            return
        for thing in (old, new):
            if thing is not None:
                yield from self.keys(thing, world)


@dataclass(frozen=True)
class SlurmWake:
    """When this much changed in the Slurm cluster of a Controller, look again at these keys."""

    keys: Callable[[ObjectKey, Changes, World], Iterable[ObjectKey]]


@dataclass(frozen=True)
class SlurmServer:
    """Where the slurmrestds of one Slurm cluster answer, and the key that opens them.

    With `is_only_watched` the key is a token that somebody else signed, and nothing is ever written there.
    A slurmctld that does not take `key` may still have one of the `former` ones. Without a `key` every Secret
    with it is gone: whoever is connected has it in memory and goes on.
    """

    urls: tuple[str, ...]
    key: SecretHandle | None
    is_only_watched: bool = False
    former: tuple[SecretHandle, ...] = ()
    authorities: str = ""  # Certificates that vouch for an https address; else those of the machine.
    user: str = "slurm"  # Whom our tokens are for: Slurm's own user, who may do everything.


@dataclass(frozen=True)
class StatusReport:
    """What to write into `.status`, and the conditions that go with it."""

    conditions: Sequence[Condition]
    fields: Manifest = field(default_factory=dict)


@dataclass(frozen=True)
class Reconciler(Generic[Seen]):
    """One subject: observe the facts, decide, tell people. None of the functions awaits.

    An object whose spec has problems is not decided about, unless its reconciler `validates_itself` and
    goes on with what can be done.

    `urgent_status_fields` are those that somebody decides by, this reconciler in its next pass or another
    one: they are written at once, also while the object is on its way.

    One that `tells_protection` is looked at again when that of workers changes.

    One that sees something of an object that is `gone` gives what is left to be told of it.

    Objects of Kubernetes itself are looked at `on_behalf_of` an API group of ours: whoever acts on that acts
    on them. Their status is others' to write, so one `writes_no_status`: what it says there is in its plan.
    A change of its own object that it `ignores` wakes nobody.
    """

    name: str
    kind: Kind
    about: type[HasMeta]
    observe: Callable[[ObjectKey, World], Seen | None]
    decide: Callable[[Seen, datetime], Plan]
    status: Callable[[Seen, Plan, Outcome], StatusReport]
    wakes: tuple[Wake[Any], ...] = ()
    slurm_wake: SlurmWake | None = None
    children: tuple[Kind, ...] = ()
    validates_itself: bool = False
    urgent_status_fields: tuple[str, ...] = ()
    tells_protection: bool = False
    gone: Callable[[Seen], HasMeta] | None = None
    on_behalf_of: str = ""
    writes_no_status: bool = False
    ignores: Callable[[Any, Any], bool] = lambda old, new: False
