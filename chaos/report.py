"""`python -m chaos.report RESULTS.jsonl --control CONTROL.jsonl`: docs/decisions/chaos.md, with its figures.

Files add up. Where a seed was played again, the last one counts, and the page says what had happened before.
"""

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from chaos import record
from chaos.compared import compared
from chaos.faults import faults_of
from chaos.figures import came_to, table
from chaos.record import Result
from chaos.subjects import COMPONENTS, SHARED_ROOT

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_TEXT = Path(__file__).with_name("report.md")
_RUNS, _OPPORTUNITIES = 200, 500
_SLURMCLUSTER_RUNS = 50
_NOTES = Path(__file__).with_name("found.md")
_SLURMCLUSTER = Path(__file__).with_name("slurmcluster.md")
_RESULTS = Path(__file__).with_name("results")


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--control", multiple=True, type=_FILE, help="Results of an operator without its gate.")
def main(files: tuple[Path, ...], control: tuple[Path, ...]) -> None:
    results, failures, gateless = record.read(files), record.failed(files), record.read(control)
    click.echo(page(results, failures, gateless, machine(), comparison(), slurmcluster()), nl=False)


def comparison() -> str:
    """What chaos/results has of ours in plain words, and of another operator."""
    ours, other = (record.read([_RESULTS / name]) for name in ("plain.jsonl", "slinky-1.1.0.jsonl"))
    return compared(ours, other, "Slinky 1.1.0")


def slurmcluster() -> str:
    """What chaos/results has of SlurmClusters, and what came of it."""
    series = [_RESULTS / "slurmcluster.jsonl"]
    results = record.read(series)
    return _SLURMCLUSTER.read_text().format(
        figures="\n".join(table({f"seeds {ranges([result.seed for result in results])}": results})),
        hits=_hits(results),
        aim=_SLURMCLUSTER_RUNS,
        failed="\n".join(_failed(record.failed(series), results)) or "None.",
    )


def page(
    results: Sequence[Result],
    failed: Sequence[Result],
    control: Sequence[Result],
    described: str,
    comparison: str = "",
    slurmcluster: str = "",
) -> str:
    """The whole page: the words of report.md with the figures in their places."""
    seeds = {result.seed for result in control}
    columns = {
        "all seeds": results,
        "those seeds": [result for result in results if result.seed in seeds],
        "the same seeds without the gate": control,
    }
    return _TEXT.read_text().format(
        figures="\n".join(table(columns)),
        aim=_aim(results),
        faults="\n".join(_faults(results)),
        failed="\n".join(_failed(failed, results)) or "None.",
        notes=_NOTES.read_text().strip(),
        machine=described,
        comparison=comparison,
        slurmcluster=slurmcluster,
        seeds=ranges([result.seed for result in results]),
        control_seeds=ranges([result.seed for result in control]),
    )


def ranges(seeds: Sequence[int]) -> str:
    """1, 2, 3 and 7 are "1 to 3, 7"."""
    starts = [seed for seed in seeds if seed - 1 not in seeds]
    ends = [seed for seed in seeds if seed + 1 not in seeds]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(str(start) if start == end else f"{start} to {end}" for start, end in pairs) or "none"


def _aim(results: Sequence[Result]) -> str:
    """Whether enough was played, so that nobody takes a short series for the whole one."""
    runs, chances = len(results), sum(result.opportunities for result in results)
    is_met = runs >= _RUNS and chances >= _OPPORTUNITIES and all(result.is_good for result in results)
    return f"The aim is {_RUNS} runs with {_OPPORTUNITIES} opportunities and no job lost: " + (
        "met." if is_met else f"**not met yet**, with {runs} runs and {chances} opportunities so far."
    )


def _hits(results: Sequence[Result]) -> str:
    """How often each fault hit a SlurmCluster, in two sentences."""
    hit = Counter(name for result in results for name in result.faults)
    told = ", ".join(f"{name} {hit[name]}" for name in faults_of(SHARED_ROOT) if hit[name])
    rest = ", ".join(name for name in faults_of(SHARED_ROOT) if not hit[name])
    return f"How often each fault hit: {told or 'none yet'}. Not yet: {rest or 'none'}."


def _faults(results: Sequence[Result]) -> Iterator[str]:
    hit = Counter(name for result in results for name in result.faults)
    missed = Counter(name for result in results for name in result.missed)
    yield "| fault | sort | hit | found nothing to hit |"
    yield "|---|---|---:|---:|"
    for name, fault in faults_of(COMPONENTS).items():
        yield f"| {name} | {fault.sort.name.lower()} | {hit[name]} | {missed[name]} |"


def _failed(failed: Sequence[Result], results: Sequence[Result]) -> Iterator[str]:
    """What earlier plays of a seed came to, and its last."""
    last = {result.seed: result for result in results}
    if failed:
        yield "| seed | then | last time |"
        yield "|---:|---|---|"
    for result in failed:
        yield f"| {result.seed} | {came_to(result)} | {came_to(last[result.seed])} |"


def machine() -> str:
    """What this machine is, for people."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return (
        f"{len(models)} cores of {models[0] if models else platform.machine()}, {memory:.0f} GB, "
        f"Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
