"""make mutants: a hundred small changes of what keeps the promise, and who notices each.

Stories of the simulated world are asked first, then unit tests. What came of each is kept in
`testing/mutation/results.json`, so a run that was cut short goes on where it stopped, and a change of the code means
that only what it touches is tried again. The table in the docs is made of that.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from slurm_operator import wire
from testing.mutation.chosen import AREAS, chosen
from testing.mutation.edits import ROOT, Mutant
from testing.mutation.equal import EQUAL

RESULTS: Final = ROOT / "testing/mutation/results.json"
PAGE: Final = ROOT / "docs/decisions/mutants.md"

# Where unit tests of an area stand; those who know it best come first.
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "gate": ("safety", "runtime", "reconcilers/nodeset"),
    "safety": ("safety", "runtime", "slurmrest", "reconcilers/nodeset"),
    "writer": ("slurmrest", "runtime"),
    "lease": ("kube/test_kube_lease.py", "runtime", "kube"),
    "client": ("http", "kube"),
}

# What the simulated world plays itself. No story passes there.
NOT_PLAYED: Final = ("client",)

# Far more than either takes; on a busy machine a long time passes with nothing done.
STORY_SECONDS, TEST_SECONDS = 1800, 1800

STORY, TEST, NOBODY = "story", "test", "nobody"


class Noticed(wire.Record):
    """By whom, and how: the name of a story and the promise that it breaks, or a test."""

    by: str
    what: str
    why: str = ""


def try_out(mutant: Mutant, before: Noticed | None = None) -> Noticed:
    """Whoever noticed it before is asked first."""
    if before is not None and before.by != NOBODY and (found := asked(mutant, before)) is not None:
        return found
    by_story = by_stories(mutant) if mutant.area not in NOT_PLAYED else None
    return by_story or by_tests(mutant, tests_of(mutant.area)) or Noticed(by=NOBODY, what="")


def asked(mutant: Mutant, before: Noticed) -> Noticed | None:
    if before.by == STORY:
        return by_stories(mutant, before.what)
    return by_tests(mutant, [before.what])


def by_stories(mutant: Mutant, *only: str) -> Noticed | None:
    done = _run([sys.executable, "-m", "simulation.mutated", *only], mutant, STORY_SECONDS)
    if done is None:
        return Noticed(by=STORY, what="all of them", why="they do not end")
    if done.returncode == 0:
        return None
    name, tab, why = done.stdout.strip().partition("\t")
    if not tab:
        return Noticed(by=STORY, what=only[0] if only else "", why=_last(done.stderr))
    return Noticed(by=STORY, what=name, why=why)


def by_tests(mutant: Mutant, where: Iterable[str]) -> Noticed | None:
    words = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "testing.mutation.applied"]
    words += ["--timeout", "120", "--rights", os.devnull, "--tb", "line"]
    done = _run([sys.executable, "-m", "pytest", *words, *where], mutant, TEST_SECONDS)
    if done is None:
        return Noticed(by=TEST, what=next(iter(where)), why="it does not end")
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failed:
        raise click.ClickException(f"{mutant.name}: no test ran:\n{done.stdout}{done.stderr}")
    return Noticed(by=TEST, what=failed[0].split(" ", 1)[1].split(" - ")[0])


def tests_of(area: str) -> list[str]:
    return [f"tests/unit/{where}" for where in TESTS[area]]


def _run(argv: list[str], mutant: Mutant, seconds: float) -> "subprocess.CompletedProcess[str] | None":
    paths = os.pathsep.join((str(ROOT / "tests"), str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "PYTHONPATH": paths, "MUTANT": mutant.name, "PYTHONHASHSEED": "0"}
    try:
        return subprocess.run(
            argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it ends"])[-1]


def read(path: Path = RESULTS) -> dict[str, Noticed]:
    return wire.decode(path.read_bytes(), dict[str, Noticed]) if path.exists() else {}


def write(found: Mapping[str, Noticed]) -> None:
    lines = (f'"{name}": {wire.encode(found[name]).decode()}' for name in sorted(found))
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text(page(found))


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


@click.command(help=__doc__)
@click.option("--again", is_flag=True, help="Try also those of which the result is known.")
@click.option("--only", default="", help="Only mutants whose names begin like this.")
@click.option("--minutes", default=0.0, help="Begin no more after so many minutes; 0 is no limit.")
@click.option("--page-only", is_flag=True, help="Write the page of what is known.")
def main(again: bool, only: str, minutes: float, page_only: bool) -> None:
    began, found = time.monotonic(), read()
    drawn = chosen()
    found = {one.name: found[one.name] for one in drawn if one.name in found}
    for mutant in [] if page_only else drawn:
        is_known = mutant.name in found and found[mutant.name].by != NOBODY
        if not mutant.name.startswith(only) or mutant.name in EQUAL or (is_known and not again):
            continue
        if minutes and time.monotonic() - began > 60 * minutes:
            break
        found[mutant.name] = noticed = try_out(mutant, found.get(mutant.name))
        click.echo(
            f"{mutant.name} {mutant.path}:{mutant.line}: {noticed.by} {noticed.what} {noticed.why}".rstrip()
        )
        write(found)
    write(found)
    unnoticed = [
        name for name, noticed in sorted(found.items()) if noticed.by == NOBODY and name not in EQUAL
    ]
    click.echo(
        f"{len(found)} of {len(drawn)} were tried; noticed by nobody: {', '.join(unnoticed) or 'none'}"
    )
    raise SystemExit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
