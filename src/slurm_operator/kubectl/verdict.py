"""What the operator would think of one object right now: its own observe, decide and status, nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.conditions import Truth
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.plan import refusal
from slurm_operator.plan.conditions import Condition
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.wiring import Reconciler, StatusReport
from slurm_operator.plan.world import World


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
        return f"{self.reconciler.kind.kind} {self.about.metadata.name}"

    def condition(self, type_: str) -> Condition | None:
        """What the operator would say now."""
        return next((one for one in self.report.conditions if one.type == type_), None)

    def is_true(self, type_: str) -> bool:
        found = self.condition(type_)
        return found is not None and found.status is Truth.TRUE

    def told(self, type_: str) -> Condition | None:
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
    plan = refusal.decide(reconciler, about, seen, world, world.now)
    report = refusal.status(reconciler, seen, plan, Outcome(done=tuple(plan.actions())))
    return Verdict(reconciler, about, seen, plan, report)


def verdicts(reconcilers: Sequence[Reconciler[Any]], world: World) -> Iterator[Verdict]:
    """Of every object there is, kind by kind."""
    for reconciler in reconcilers:
        for thing in world.all(reconciler.about):
            found = verdict(reconciler, key_of(thing), world)
            if found is not None:
                yield found


def kind_named(word: str, reconcilers: Sequence[Reconciler[Any]]) -> Reconciler[Any] | None:
    """The reconciler for what somebody typed: `nodeset`, `nodesets`, `NodeSet`."""
    for reconciler in reconcilers:
        if word.lower() in (reconciler.kind.kind.lower(), reconciler.kind.plural):
            return reconciler
    return None
