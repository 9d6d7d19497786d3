"""make mutants: a hundred small changes of what keeps the promise, and who notices each.

Stories of the simulated world are asked first, then unit tests. What came of each is kept in
`testing/mutation/results.json`, so a run that was cut short goes on where it stopped, and a change of the code means
that only what it touches is tried again. The table in the docs is made of that.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NoReturn

import click
import pytest

from simulation.mutant_stories import stories
from simulation.mutation_run import Attempt, Runner
from testing.mutation.chosen import chosen
from testing.mutation.edits import ROOT, Mutant
from testing.mutation.equal import EQUAL
from testing.mutation.noticed import NOBODY, STORY, TEST, Noticed, read, write
from testing.mutation.page import PAGE, page

# Where unit tests of an area stand; those who know it best come first.
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "gate": (
        "safety",
        "runtime/test_perform",
        "runtime/test_step_watch",
        "reconcilers/nodeset/test_nodeset_d",
    ),
    "safety": ("safety", "runtime", "slurmrest/test_slurm_"),
    "writer": (
        "slurmrest/test_slurm_",
        "slurmrest/test_kubectl_drains",
        "slurmrest/test_job_ends",
        "runtime",
    ),
    "lease": (
        "kube/test_kube_lease",
        "kube/test_renewals",
        "runtime/test_claims",
        "runtime/test_other_operator",
    ),
    "client": (
        "http",
        "kube/test_kube_client",
        "kube/test_connections",
        "kube/test_torture",
        "kube/test_streams",
        "kube/test_kube_relay",
        "kube/test_kube_dry_run",
    ),
}

# What the simulated world plays itself: no story gets there.
NOT_PLAYED: Final = ("client",)


def tests_of(areas: Collection[str]) -> list[str]:
    """Files and folders."""
    starts = {start for area in areas for start in TESTS[area]}
    found = {file for start in starts for file in (ROOT / "tests/unit").glob(f"{start}*")}
    return sorted(str(file.relative_to(ROOT)) for file in found)


def attempts(due: Iterable[Mutant], known: Mapping[str, Noticed], ends: float) -> Iterator[Attempt]:
    """Whoever noticed it before is asked first."""
    for mutant in due:
        if time.monotonic() > ends:
            return
        before = known.get(mutant.name, UNKNOWN)
        played = [] if mutant.area in NOT_PLAYED else list(stories())
        tests = [f"tests/unit/{start}" for start in TESTS[mutant.area]]
        if before.by == STORY and before.what in played:
            played = [before.what, *played]
        yield mutant, played, [before.what, *tests] if before.by == TEST else tests


def once_more(due: Iterable[Mutant], known: Mapping[str, Noticed]) -> Iterator[Attempt]:
    """By whoever noticed it before, and nobody else."""
    for mutant in due:
        before = known[mutant.name]
        yield (mutant, [before.what], []) if before.by == STORY else (mutant, [], [before.what])


@click.command(help=__doc__)
@click.option("--again", is_flag=True, help="Try also those of which the result is known.")
@click.option("--only", multiple=True, help="Only mutants whose names begin like this.")
@click.option("--minutes", default=0.0, help="Begin no more after so many minutes; 0 is no limit.")
@click.option("--turn", type=int, help="Five of those that were noticed, once more: others with each number.")
@click.option("--page-only", is_flag=True, help="Write the page of what is known.")
def main(again: bool, only: tuple[str, ...], minutes: float, turn: int | None, page_only: bool) -> None:
    drawn, known = chosen(), read()
    found = {one.name: known[one.name] for one in drawn if one.name in known}

    def told(mutant: Mutant, noticed: Noticed) -> None:
        found[mutant.name] = noticed
        click.echo(f"\n{mutant.name} {mutant.path}:{mutant.line}: {noticed.by} {noticed.what} {noticed.why}")
        if turn is None:
            write(found)

    if turn is not None:
        due = five_of(drawn, known, turn)
        files = sorted({known[one.name].what.partition("::")[0] for one in due if known[one.name].by == TEST})
        _run(Runner(lambda: once_more(due, known), told), files or tests_of({"gate"}))
        _tell_of_unnoticed({one.name: found[one.name] for one in due})
    due = [
        one
        for one in drawn
        if one.name.startswith(only or "")
        and one.name not in EQUAL
        and (again or found.get(one.name, UNKNOWN).by == NOBODY)
    ]
    ends = time.monotonic() + 60 * minutes if minutes else float("inf")
    if due and not page_only:
        _run(Runner(lambda: attempts(due, known, ends), told), tests_of({one.area for one in due}))
    write(found)
    PAGE.write_text(page(found))
    click.echo(f"{len(found)} of {len(drawn)} have been tried.")
    _tell_of_unnoticed(found)


def five_of(drawn: list[Mutant], known: Mapping[str, Noticed], turn: int) -> list[Mutant]:
    noticed = [one for one in drawn if known.get(one.name, UNKNOWN).by != NOBODY]
    return [noticed[(5 * turn + step) % len(noticed)] for step in range(5)] if noticed else []


def _tell_of_unnoticed(found: Mapping[str, Noticed]) -> NoReturn:
    unnoticed = [name for name, one in sorted(found.items()) if one.by == NOBODY and name not in EQUAL]
    click.echo(f"Noticed by nobody: {', '.join(unnoticed) or 'none'}.")
    raise SystemExit(1 if unnoticed else 0)


UNKNOWN: Final = Noticed(by=NOBODY, what="")


def _run(runner: Runner, where: list[str]) -> None:
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", "120", "--rootdir", str(ROOT)]
    words += [f"--config-file={ROOT / 'pyproject.toml'}", f"--rights={os.devnull}"]
    code = pytest.main([*words, *(str(ROOT / file) for file in where)], plugins=[runner])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise click.ClickException("the tests could not be run")


if __name__ == "__main__":
    main()
