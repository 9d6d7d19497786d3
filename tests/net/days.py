"""Simulated days: the whole operator in the simulation, with every pass noted down."""

from dataclasses import replace
from typing import Any

from net.ledger import Ledger
from simulation.runs import Ending, Story, play
from simulation.scenes import CLUSTER, PARTS, WORKERS
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.runtime.manager import Program

HAPPENINGS = 40
SECONDS = 24 * 3600
# By the day's number, in turn.
SCENES = (WORKERS, CLUSTER, WORKERS, PARTS)


def lived(number: int, ledger: Ledger) -> Ending:
    """One day, from its number: as much happens as in a long story, with long pauses now and then."""
    drawn = Story.of(number, HAPPENINGS, SCENES[number % len(SCENES)])
    pauses = [happening.after for happening in drawn.happenings]
    longest = set(sorted(range(HAPPENINGS), key=pauses.__getitem__)[-HAPPENINGS // 4 :])
    rest = (SECONDS - sum(pauses)) / len(longest)
    happenings = tuple(
        replace(happening, after=round(happening.after + (rest if at in longest else 0.0), 1))
        for at, happening in enumerate(drawn.happenings)
    )
    return play(replace(drawn, happenings=happenings), lambda program: noted(program, ledger))


def noted(program: Program, ledger: Ledger) -> Program:
    return replace(program, reconcilers=tuple(_noted(one, ledger) for one in program.reconcilers))


def _noted(reconciler: Reconciler[Any], ledger: Ledger) -> Reconciler[Any]:
    def status(seen: Any, plan: Plan, outcome: Outcome) -> StatusReport:
        report = reconciler.status(seen, plan, outcome)
        ledger.note(reconciler.name, plan, report)
        return report

    return replace(reconciler, status=status)
