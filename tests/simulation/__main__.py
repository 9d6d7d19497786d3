"""python -m simulation --seeds N [--first S] [--length L] [--scene NAME]: many stories, and a report of what became of them."""

import gc
import time

import click

from simulation import runs
from simulation.runs import Story, as_test, play, shrunk


@click.command()
@click.option("--seeds", default=100, help="How many stories.")
@click.option("--first", default=1, help="The first seed.")
@click.option(
    "--length", default=0, help="How many things happen in each; 0 draws that for each seed, from 3 to 20."
)
@click.option(
    "--scene",
    default="",
    help="workers, parts, cluster, slurmcluster or wide; empty draws one of the first three.",
)
@click.option("--late", default=0.0, help="The share of writes that are carried out late, from 0 to 1.")
@click.option("--steps", is_flag=True, help="The operator's clock is set by seconds all the time.")
@click.option("--set-back", is_flag=True, help="Only the story of a clock that makes old answers look new.")
@click.option("--most-steps", default=0, help="Stop after so many steps; 0 is no limit.")
@click.option(
    "--shrink/--no-shrink", default=True, help="Make a story that broke a promise as short as can be."
)
def main(
    seeds: int,
    first: int,
    length: int,
    scene: str,
    late: float,
    steps: bool,
    set_back: bool,
    most_steps: int,
    shrink: bool,
) -> None:
    gc.freeze()
    gc.set_threshold(50_000)
    began, taken, broken, virtual, told = time.process_time(), 0, 0, 0.0, 0
    for told, seed in enumerate(range(first, first + seeds), 1):
        story = runs.set_back(seed) if set_back else Story.of(seed, length, scene, late, steps)
        ending = play(story)
        taken, virtual = taken + ending.steps, virtual + ending.seconds
        if ending.broken is not None:
            broken += 1
            click.echo(f"seed {seed}: {ending.broken}")
        if ending.broken is not None and shrink:
            short = shrunk(
                story, lambda found, like=ending.broken[:40]: (found.broken or "").startswith(like)
            )
            click.echo(as_test(short, play(short)))
        if told % 100 == 0:
            click.echo(f"{told} seeds, {taken} steps, {broken} broken", err=True)
        if most_steps and taken >= most_steps:
            break
    seconds = time.process_time() - began
    click.echo(
        f"{told} seeds, {taken} steps, {virtual / 3600:.1f} h of simulated time, {broken} broken promises; "
        f"{seconds:.0f} s of CPU, {taken / max(seconds, 0.001):.0f} steps a second"
    )
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
