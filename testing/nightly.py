"""Everything that takes long, a night at a time: `make nightly HOURS=2.5`.

Each test file that has `full` or `minutes` tests is a piece, and so are series of simulation and chaos, and each
benchmark. What was never played comes first, then what was played longest ago: so a night goes on where the last
one stopped. A piece that time cuts off has no result. What came of each is kept in `testing/nightly.json`, and the
page in the docs is made of that.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from slurm_operator import wire

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "testing/nightly.json"
PAGE: Final = ROOT / "docs/decisions/nightly.md"
LOGS: Final = ROOT / "build/nightly"

FOLDERS: Final = (
    "tests/e2e",
    "tests/integration",
    "tests/slurm",
    "tests/simulation",
    "tests/net",
    "tests/unit",
)
BENCHMARKS: Final = ("kube", "slurmrest", "exporter", "passes", "light", "workers", "first")
SEEDS, RUNS = 300, 6
TWO_OPERATORS: Final = "simulation of two operators"

# How long a program that was told to end may take to clean up.
_FAREWELL_SECONDS: Final = 120


class Piece(wire.Record):
    """One thing to run. What it ran before says which seeds are next."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}


class Known(wire.Record):
    """What is known of a piece: its last result, and when it last passed."""

    at: str = ""
    commit: str = ""
    result: str = ""
    seconds: int = 0
    passed_at: str = ""
    passed_on: str = ""
    times: int = 0


def pieces(files: Iterable[str], known: Mapping[str, Known], python: str = sys.executable) -> list[Piece]:
    """All of them, in the order in which they are due."""
    pytest = (python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "full or minutes")
    series = {name: known.get(name, Known()).times for name in ("simulation", TWO_OPERATORS, "chaos")}
    simulated = ("--seeds", str(SEEDS), "--first", str(100_001 + SEEDS * series["simulation"]))
    wide = ("--seeds", str(SEEDS), "--first", str(500_001 + SEEDS * series[TWO_OPERATORS]))
    two_operators = (*wide, "--scene", "wide")
    tormented = ("--runs", str(RUNS), "--seed", str(10_001 + RUNS * series["chaos"]))
    bench = str(ROOT / ".venv-bench/bin/python")
    found = [
        *(Piece(name=file, command=(*pytest, file)) for file in files),
        Piece(
            name="simulation",
            command=(python, "-m", "simulation", *simulated),
            environment={"PYTHONPATH": "tests"},
        ),
        Piece(
            name=TWO_OPERATORS,
            command=(python, "-m", "simulation", *two_operators),
            environment={"PYTHONPATH": "tests"},
        ),
        Piece(
            name="mutants",
            command=(python, "-m", "simulation.mutation", "--again"),
            environment={"PYTHONPATH": "tests:."},
        ),
        Piece(name="fuzz", command=("make", "fuzz", "MINUTES=2")),
        Piece(
            name="chaos",
            command=(python, "-m", "chaos", *tormented, "--out", "build/nightly/chaos.jsonl"),
            environment={"PYTHONPATH": "tests/e2e"},
        ),
        *(Piece(name=f"bench {name}", command=(bench, "-m", "bench", name)) for name in BENCHMARKS),
    ]
    return sorted(found, key=lambda piece: known.get(piece.name, Known()).at)


def play(
    due: Iterable[Piece],
    known: Mapping[str, Known],
    commit: str,
    until: float,
    run: Callable[[Piece, float], str | None],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, Known]]:
    """Runs what fits before `until`, as far as can be told. `run` gives a result, None if it was cut off."""
    for piece in due:
        before = known.get(piece.name, Known())
        left = until - clock()
        if left <= before.seconds:
            continue
        began = clock()
        result = run(piece, left)
        if result is None:
            continue
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        passed = (now, commit) if result == "passed" else (before.passed_at, before.passed_on)
        yield piece.name, Known(
            at=now, commit=commit, result=result, seconds=round(clock() - began),
            passed_at=passed[0], passed_on=passed[1], times=before.times + 1,
        )  # fmt: skip


def page(known: Mapping[str, Known], names: Iterable[str]) -> str:
    """What the docs say."""
    rows = [_row(name, known.get(name, Known())) for name in sorted({*names, *known})]
    return "\n".join(
        [
            "# What takes long, and when it last passed",
            "",
            "`make nightly HOURS=2.5` runs what `make test` has no time for: every test marked `full` or `minutes`, "
            "series of simulation and",
            "chaos with new seeds, and the benchmarks. What was never played comes first, then what was played "
            "longest ago, so each night goes on",
            "where the last one stopped. It writes this page.",
            "",
            "| What | Last passed (UTC) | On commit | Seconds | Last result |",
            "|---|---|---|---:|---|",
            *rows,
            "",
        ]
    )


def _row(name: str, found: Known) -> str:
    last = found.result if found.result in ("", "passed") else f"{found.result} {found.at} on {found.commit}"
    cells = (f"`{name}`", found.passed_at or "never", found.passed_on, str(found.seconds or ""), last)
    return f"| {' | '.join(cells)} |"


def read(path: Path = RESULTS) -> dict[str, Known]:
    return wire.decode(path.read_bytes(), dict[str, Known]) if path.exists() else {}


def write(known: Mapping[str, Known], names: Iterable[str]) -> None:
    lines = (f'"{name}": {wire.encode(known[name]).decode()}' for name in sorted(known))
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text(page(known, names))


def run_piece(piece: Piece, seconds: float) -> str | None:
    """`passed` or `failed`, with its output in a file; None when time was over first."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{piece.name.replace('/', '.').replace(' ', '-')}.log").open("wb") as log:
        process = subprocess.Popen(
            piece.command, cwd=ROOT, env={**os.environ, **piece.environment}, stdin=subprocess.DEVNULL,
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as cause:
            _end(process)
            if isinstance(cause, KeyboardInterrupt):
                raise
            return None
    return "passed" if code == 0 else "failed"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Programs and tests take down what they started when they are interrupted."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_FAREWELL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def long_files() -> list[str]:
    """Test files with tests that `make test` leaves out. Each folder is a collection of its own."""
    return sorted({file for folder in FOLDERS for file in _long_files_of(folder)})


def _long_files_of(folder: str) -> Iterator[str]:
    asked = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "full or minutes", folder)
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        raise click.ClickException(f"The tests of {folder} cannot be collected:\n{done.stdout}{done.stderr}")
    yield from (line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line)


@click.command(help=__doc__)
@click.option("--hours", default=2.5, show_default=True, help="What has not ended by then is cut off.")
@click.option("--only", default="", help="Only pieces with this in their names.")
def main(hours: float, only: str) -> None:
    until = time.monotonic() + hours * 3600
    commit = subprocess.run(
        ("git", "rev-parse", "--short", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    known = read()
    due = pieces(long_files(), known)
    names = [piece.name for piece in due]
    wanted = [piece for piece in due if only in piece.name]
    failed = 0
    for name, found in play(wanted, known, commit, until, run_piece):
        known[name] = found
        write(known, names)
        click.echo(f"{found.result:7} {found.seconds:6} s  {name}")
        failed += found.result != "passed"
    click.echo(page(known, names))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
