"""`make chaos RUNS=n SEED=s`: torment a cluster, count the jobs that were lost, one line of JSON per run.

A seed that has a line in --out already is not played again, so an interrupted series goes on where it was. To
replay one: `make chaos RUNS=1 SEED=s ARGS='--out build/replay.jsonl'`.
"""

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from chaos import record
from chaos.faults import FAULTS, faults_of
from chaos.operators import Operator
from chaos.record import Result
from chaos.run import run
from chaos.stage import stage
from chaos.subjects import COMPONENTS, PLAIN, SHARED_ROOT, Subject

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OURS = Operator()
_NO_GRACE = Path(__file__).with_name("no_grace.py")


@click.command(help=__doc__)
@click.option("--runs", default=20, show_default=True, help="How many, with the seeds that follow --seed.")
@click.option(
    "--seed", default=1, show_default=True, help="Of the first run. The same seed, the same faults."
)
@click.option("--only", multiple=True, type=click.Choice(sorted(FAULTS)), help="Draw from these alone.")
@click.option("--out", default="build/chaos.jsonl", show_default=True, type=click.Path(path_type=Path))
@click.option("--patch", type=_FILE, help="Python that our operator runs first, such as chaos/gateless.py.")
@click.option("--manifests", type=_FILE, help="Another operator's installation, in place of ours.")
@click.option("--archive", multiple=True, type=_FILE, help="An image that it needs, as docker saves it.")
@click.option("--process", default=_OURS.process, show_default=True, help="Words of its command line.")
@click.option("--deployment", default=_OURS.deployment, show_default=True)
@click.option("--namespace", default=_OURS.namespace, show_default=True)
@click.option(
    "--plain", is_flag=True, help="Ours, in the words that --manifests is asked in: to compare them."
)
@click.option("--slurmcluster", is_flag=True, help="A SlurmCluster with its NodeSet: slurm.nebius.ai.")
def main(
    runs: int,
    seed: int,
    only: tuple[str, ...],
    out: Path,
    patch: Path | None,
    manifests: Path | None,
    archive: tuple[Path, ...],
    process: str,
    deployment: str,
    namespace: str,
    plain: bool,
    slurmcluster: bool,
) -> None:
    is_plain = plain or manifests is not None
    if is_plain and slurmcluster:
        raise click.UsageError("--slurmcluster goes with neither --manifests nor --plain.")
    subject = SHARED_ROOT if slurmcluster else PLAIN if is_plain else COMPONENTS
    if strangers := sorted({*only} - {*faults_of(subject)}):
        raise click.UsageError(f"cannot happen to this cluster: {', '.join(strangers)}")
    # Told to end, it takes its cluster down first.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("told to end"))
    first = [*([patch] if patch else []), _NO_GRACE]  # A patch comes before whatever it changes is imported.
    words = "" if manifests else "\n\n".join(file.read_text() for file in first)
    operator = Operator(manifests, archive, process, deployment, namespace, words)
    played = {result.seed for result in record.read([out])}
    seeds = [number for number in range(seed, seed + runs) if number not in played]
    are_good = [_told(result, out) for result in _results(seeds, operator, subject, only, out)]
    sys.exit(not all(are_good))


def _results(
    seeds: list[int], operator: Operator, subject: Subject, only: tuple[str, ...], out: Path
) -> Iterator[Result]:
    """One after the other on one cluster; after trouble on a new one, since this one is broken."""
    waiting = iter(seeds)
    for number in itertools.count():
        first = next(waiting, None)
        if first is None:
            return
        with stage(f"chaos-{os.getpid()}-{number}", operator, subject) as made:
            for each in itertools.chain([first], waiting):
                result = run(made, each, only)
                yield result
                if not result.is_good:
                    out.with_suffix(f".{each}.txt").write_text(made.picture())
                if result.trouble:
                    break


def _told(result: Result, out: Path) -> bool:
    record.append(out, result)
    click.echo(line(result))
    return result.is_good


def line(result: Result) -> str:
    lost = f", LOST {', '.join(map(str, result.lost))}" if result.lost else ""
    missed = f" (missed: {', '.join(result.missed)})" if result.missed else ""
    return (
        f"seed {result.seed}: {', '.join(result.faults)}{missed}: {result.jobs} jobs, {result.opportunities} "
        f"opportunities{lost}; settled in {result.settled_s} s of {result.took_s} s {result.trouble}"
    )


if __name__ == "__main__":
    main()
