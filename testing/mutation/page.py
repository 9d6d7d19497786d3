"""The table in the docs: which mutants there are, and who notices each."""

from collections.abc import Mapping
from typing import Final

from testing.mutation.chosen import AREAS, chosen
from testing.mutation.edits import ROOT, Mutant
from testing.mutation.equal import EQUAL
from testing.mutation.noticed import NOBODY, STORY, TEST, Noticed

PAGE: Final = ROOT / "docs/decisions/mutants.md"


def page(found: Mapping[str, Noticed]) -> str:
    drawn = chosen()
    rows = [row for area in AREAS for row in _rows(area, [one for one in drawn if one.area == area], found)]
    return "\n".join([*_INTRODUCTION, *_counts(drawn, found), *rows, ""])


_INTRODUCTION: Final = """\
# Mutants: who notices a small change

`make mutants` makes a hundred small changes of the code that keeps the promise, one at a time, by a rule: a comparison is turned round, a
condition left out, a call dropped, a value kept from being noted. They are drawn by the digest of what is changed, twenty from each of five
parts. Then stories of the [simulated world](../concepts/simulation.md) are played, and if all promises are kept, unit tests are run.
Somebody has to notice, or it is said why nobody can.

`make test` tries five of them with each commit, by whoever noticed them here. Others than these were written by hand, for
[the conditions that matter most](../concepts/simulation.md#when-a-promise-breaks).
""".splitlines()


def _counts(drawn: list[Mutant], found: Mapping[str, Noticed]) -> list[str]:
    def count(area: str, by: str) -> int:
        names = [one.name for one in drawn if area in ("", one.area) and one.name not in EQUAL]
        return sum(found[name].by == by for name in names if name in found)

    def row(title: str, area: str) -> str:
        mine = [one for one in drawn if area in ("", one.area)]
        equal = sum(one.name in EQUAL for one in mine)
        cells = (len(mine), count(area, STORY), count(area, TEST), equal, count(area, NOBODY))
        return f"| {title} | {' | '.join(str(cell) for cell in cells)} |"

    return [
        "",
        "| Part | Mutants | Noticed by a story | By a unit test alone | Equal | By nobody |",
        "|---|---:|---:|---:|---:|---:|",
        *(row(area, area) for area in AREAS),
        row("**all**", ""),
    ]


def _rows(area: str, drawn: list[Mutant], found: Mapping[str, Noticed]) -> list[str]:
    where = ", ".join(f"`{path}`" for path in AREAS[area])
    head = ["", f"## {area.capitalize()}", "", where, "", "| Where | Change | Noticed by |", "|---|---|---|"]
    return [*head, *(_row(one, found.get(one.name)) for one in drawn)]


def _row(mutant: Mutant, noticed: Noticed | None) -> str:
    if mutant.name in EQUAL:
        told = f"equal: {EQUAL[mutant.name]}"
    elif noticed is None:
        told = "not tried yet"
    elif noticed.by == STORY:
        told = f"story “{noticed.what}”: {_shortened(noticed.why, 110)}"
    elif noticed.by == TEST:
        told = f"`{noticed.what.rpartition('/')[2].partition('[')[0]}`"
    else:
        told = "**nobody**"
    change = f"`{_shortened(mutant.old, 60)}` → `{_shortened(mutant.new, 60)}`"
    return f"| `{mutant.function}` | {_in_table(change)} | {_in_table(told)} |"


def _shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")
