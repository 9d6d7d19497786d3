"""What the operator would think of one object right now: its own observe, decide and status, nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.registry import name_of
from slurm_operator.api.schema.crd import Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.plan.conditions import Condition
from slurm_operator.plan.plan import Outcome, Plan, plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import spec_refusal


@dataclass(frozen=True)
class Verdict:
    """One object, what its reconciler chose to look at, what it would do, and what it would say."""

    reconciler: Reconciler[Any]
    about: Any
    seen: Any
    plan: Plan
    report: StatusReport

    @property
    def key(self) -> ObjectKey:
        return key_of(self.about)

    @property
    def name(self) -> str:
        """As people call it: NodeSet demo-cpu."""
        return f"{name_of(self.reconciler.kind)} {self.about.metadata.name}"

    def condition(self, type_: str) -> Condition | None:
        """What the operator would say now."""
        return next((one for one in self.report.conditions if one.type == type_), None)

    def is_true(self, type_: str) -> bool:
        found = self.condition(type_)
        return found is not None and found.status is Truth.TRUE

    def reported(self, type_: str) -> Condition | None:
        """What the operator has said: it also knows which of its writes were refused."""
        status = getattr(self.about, "status", None)
        conditions = getattr(status, "conditions", None) or ()
        return next((one for one in conditions if one.type == type_), None)


def verdict(reconciler: Reconciler[Any], key: ObjectKey, world: World) -> Verdict | None:
    """None when there is no such object. As if everything in the plan had just been done, and worked."""
    about = world.get(reconciler.about, key.namespace, key.name)
    seen = reconciler.observe(key, world)
    if seen is None or about is None:
        return None
    decided = spec_refusal.decide(reconciler, about, seen, world, world.now)
    report = spec_refusal.status(reconciler, seen, decided, Outcome(done=tuple(decided.actions())))
    return Verdict(reconciler, about, seen, decided, report)


def reported(reconciler: Reconciler[Any], key: ObjectKey, world: World) -> Verdict | None:
    """What the operator itself has said of an object, for readers who see less than it does.

    What they cannot see may be well: a plan made without it would blame the operator for their own rights.
    """
    about = world.get(reconciler.about, key.namespace, key.name)
    seen = reconciler.observe(key, world)
    if seen is None or about is None:
        return None
    told: Any = getattr(about, "status", None)
    return Verdict(reconciler, about, seen, plan(), StatusReport(conditions=list(told.conditions)))


def verdicts(reconcilers: Sequence[Reconciler[Any]], world: World) -> Iterator[Verdict]:
    """Of every object there is, kind by kind."""
    for reconciler in reconcilers:
        for thing in world.all(reconciler.about):
            found = verdict(reconciler, key_of(thing), world)
            if found is not None:
                yield found


def kinds_named(word: str, reconcilers: Sequence[Reconciler[Any]]) -> list[Reconciler[Any]]:
    """The reconcilers for what somebody typed: `nodeset`, `nss`, `NodeSet`, `nodesets.slinky.slurm.net`.

    Without a group it may be several, those of the first group first.
    """
    name, _, group = word.lower().partition(".")
    return [
        reconciler
        for reconciler in reconcilers
        if name in (reconciler.kind.kind.lower(), reconciler.kind.plural, *_short_names(reconciler))
        and group in ("", reconciler.kind.group)
    ]


def _short_names(reconciler: Reconciler[Any]) -> tuple[str, ...]:
    """As `kubectl get` takes them."""
    definition: Definition | None = getattr(reconciler.about, "CRD", None)
    return definition.short_names if definition is not None else ()


def typed_name(kind: Kind) -> str:
    """What somebody has to type for this kind and no other: `nodeset.slurm.nebius.ai`."""
    return f"{kind.kind.lower()}.{kind.group}"
