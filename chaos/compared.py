"""Two operators that met the same faults: ours, and another one that serves the same API."""

from collections.abc import Iterator, Sequence
from itertools import chain

from chaos.figures import came_to, table
from chaos.record import Result

# A person's own deed, and Kubernetes carries it out unless an operator stands in its way.
_DELETIONS = {"worker pod deleted by hand", "all worker pods deleted by hand", "NodeSet deleted"}


def compared(ours: Sequence[Result], other: Sequence[Result], name: str) -> str:
    """Their sums side by side, and then each run; only of seeds that both have played."""
    seeds = {result.seed for result in ours} & {result.seed for result in other}
    if not seeds:
        return "Nobody has been compared yet."
    columns = {
        "ours": [result for result in ours if result.seed in seeds],
        name: [result for result in other if result.seed in seeds],
    }
    return "\n".join(chain(table(columns), _without_deletions(columns), [""], _runs(columns)))


def _without_deletions(columns: dict[str, list[Result]]) -> Iterator[str]:
    lost = [
        sum(len(result.lost) for result in results if not _DELETIONS.intersection(result.faults))
        for results in columns.values()
    ]
    yield f"| jobs lost in runs where nobody deleted a worker or the NodeSet | {' | '.join(map(str, lost))} |"


def _runs(columns: dict[str, list[Result]]) -> Iterator[str]:
    yield f"| seed | faults | {' | '.join(columns)} |"
    yield f"|---:|---|{'---|' * len(columns)}"
    for played in zip(*columns.values(), strict=True):
        drawn = sorted({*played[0].faults, *played[0].missed})
        yield f"| {played[0].seed} | {', '.join(drawn)} | {' | '.join(map(_told, played))} |"


def _told(result: Result) -> str:
    missed = f"; not hit by: {', '.join(result.missed)}" if result.missed else ""
    return f"{came_to(result)}{missed}"
