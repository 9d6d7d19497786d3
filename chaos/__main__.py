"""`make chaos RUNS=n SEED=s`: torment a cluster, count the jobs that were lost, write a report."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import click

from chaos.faults import FAULTS
from chaos.run import Result, run
from chaos.stage import stage


@click.command(help=__doc__)
@click.option(
    "--runs", default=20, show_default=True, help="How many runs, with the seeds that follow --seed."
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="The seed of the first run; the same seed draws the same faults.",
)
@click.option(
    "--only", multiple=True, type=click.Choice(sorted(FAULTS)), help="Draw from these faults alone."
)
@click.option(
    "--patch",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python that the operator runs first: a broken one shows that jobs can be lost here.",
)
@click.option("--out", default="build/chaos.json", show_default=True, type=click.Path(path_type=Path))
def main(runs: int, seed: int, only: tuple[str, ...], patch: Path | None, out: Path) -> None:
    results: list[Result] = []
    with stage(f"chaos-{os.getpid()}", patch.read_text() if patch else "") as made:
        for number in range(seed, seed + runs):
            results.append(run(made, number, only))
            click.echo(line(results[-1]))
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps([result.as_dict() for result in results], indent=1) + "\n")
            if results[-1].trouble:
                out.with_suffix(".trouble.txt").write_text(made.picture())
                break  # The next run would start from a broken cluster.
    click.echo(summary(results))
    sys.exit(any(result.lost or result.trouble for result in results))


def line(result: Result) -> str:
    lost = f", LOST {', '.join(map(str, result.lost))}" if result.lost else ""
    return (
        f"seed {result.seed}: {', '.join(result.faults)}: {result.jobs} jobs, "
        f"{result.opportunities} opportunities{lost}; settled in {result.settled_s} s {result.trouble}"
    )


def summary(results: list[Result]) -> str:
    faults = Counter(name for result in results for name in result.faults)
    settled = sorted(result.settled_s for result in results if result.settled_s >= 0)
    rows = [
        f"runs {len(results)}, faults {faults.total()}, jobs {sum(result.jobs for result in results)}, "
        f"opportunities {sum(result.opportunities for result in results)}, "
        f"jobs lost {sum(len(result.lost) for result in results)}, "
        f"excused {sum(result.excused for result in results)}",
        *([f"settled: median {settled[len(settled) // 2]} s, longest {settled[-1]} s"] if settled else []),
        *(f"  {count:4} {name}" for name, count in faults.most_common()),
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    main()
