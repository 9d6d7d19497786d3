"""Everything that takes long, in pieces, for as long as there is time: `make nightly HOURS=2.5`.

What ran longest ago comes first, what never ran before that: a run that was cut off is continued by the next one.
`nightly.json` beside this file has what came of each piece; the page in docs/decisions is made from it.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KNOWN: Final = ROOT / "testing" / "nightly.json"
PAGE: Final = ROOT / "docs" / "decisions" / "nightly.md"
LOGS: Final = ROOT / "build" / "nightly"

_MARKS: Final = ("pytest.mark.full", "pytest.mark.minutes")
_FOLDERS: Final = (
    "tests/e2e",
    "tests/integration",
    "tests/net",
    "tests/simulation",
    "tests/slurm",
    "tests/unit",
)

# So many of these in one piece: a quarter of an hour or less.
_SEEDS: Final = 500
_CHAOS_RUNS: Final = 4

# What pytest says when no test was chosen.
_NOTHING_CHOSEN: Final = 5

# For what was begun to be taken down again.
_GRACE_SECONDS: Final = 120.0

# Of a piece that never ran, nobody knows how long it takes.
_USUAL_SECONDS: Final = 600.0

_HEAD: Final = """\
# What takes long, and when it last passed

`make nightly HOURS=2.5` runs what `make test` has no time for, the longest ago first, and continues where the last run stopped.
It writes this page; a piece that has not passed says so.

| piece | last run | came to | took | last passed | on commit |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Piece:
    """Something that runs alone. `{turn}` in its command counts its runs, so that each draws other seeds."""

    name: str
    command: tuple[str, ...]
    environment: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """What came of a piece the last time, and when it last passed."""

    turns: int = 0
    ran_at: str = ""
    outcome: str = "never ran"
    seconds: float = 0.0
    passed_at: str = ""
    passed_on: str = ""


Run = Callable[[Piece, int, float], tuple[int, float]]
Note = Callable[[dict[str, Known]], None]


def pieces(root: Path = ROOT) -> list[Piece]:
    """Every file with long tests, and the programs that draw seeds."""
    python = str(root / ".venv" / "bin" / "python")
    files = sorted(
        path for folder in _FOLDERS for path in (root / folder).rglob("test_*.py") if _is_long(path)
    )
    tests = [
        Piece(str(path.relative_to(root)), (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "full or minutes", str(path)))
        for path in files
    ]  # fmt: skip
    simulation = ("-m", "simulation", "--seeds", str(_SEEDS), "--first", "{first}")
    return [
        *tests,
        Piece("simulation", (python, *simulation), ("PYTHONPATH=tests",)),
        Piece("chaos", (python, "-m", "chaos", "--runs", str(_CHAOS_RUNS), "--seed", "{turn}"), ("PYTHONPATH=tests/e2e",)),
        Piece("benchmarks", ("make", "bench")),
    ]  # fmt: skip


def _is_long(path: Path) -> bool:
    text = path.read_text()
    return any(mark in text for mark in _MARKS)


def in_order(all_pieces: Sequence[Piece], known: dict[str, Known]) -> list[Piece]:
    """What never ran, then what ran longest ago."""
    return sorted(all_pieces, key=lambda piece: known.get(piece.name, Known()).ran_at)


def fitting(ordered: Sequence[Piece], known: dict[str, Known], left: Callable[[], float]) -> Iterator[Piece]:
    """Those for which there is time, asked before each; shorter ones may still fit where a longer one does not."""
    for piece in ordered:
        before = known.get(piece.name, Known())
        if (before.seconds if before.turns else _USUAL_SECONDS) <= left():
            yield piece


def noted(before: Known, code: int, seconds: float, at: str, commit: str) -> Known:
    """What is known of a piece after one more run."""
    said = {0: "passed", _NOTHING_CHOSEN: "chose nothing"}
    outcome = said.get(code, "ran out of time" if code < 0 else "failed")
    after = replace(before, turns=before.turns + 1, ran_at=at, outcome=outcome, seconds=round(seconds, 1))
    return replace(after, passed_at=at, passed_on=commit) if outcome == "passed" else after


def page(known: dict[str, Known]) -> str:
    """A line for each piece that ever ran."""
    lines = [
        f"| {name} | {one.ran_at} | {one.outcome} | {one.seconds:.0f} s | {one.passed_at or 'never'} | "
        f"{one.passed_on or '-'} |"
        for name, one in sorted(known.items())
    ]
    passed = sum(1 for one in known.values() if one.outcome == "passed")
    summary = (
        f"{passed} of {len(known)} pieces passed when they last ran. What is not listed has not run yet.\n"
    )
    return "\n".join([_HEAD + "\n".join(lines), "", summary])


def run(piece: Piece, turn: int, left: float) -> tuple[int, float]:
    """Runs it, at most for so many seconds; its exit code, negative when time ran out, and how long it took."""
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (LOGS / f"{piece.name.replace('/', '-')}.log").open("wb") as log:
        process = subprocess.Popen(
            command_of(piece, turn), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            _end(process)
            code = -1
    return code, time.monotonic() - began


def command_of(piece: Piece, turn: int) -> list[str]:
    """With the numbers of this run in it, and its environment."""
    words = {"{turn}": str(turn + 1), "{first}": str(1 + turn * _SEEDS)}
    return ["env", *piece.environment, *(words.get(word, word) for word in piece.command)]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """As Ctrl-C does, so that whatever it started is taken down again."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def read(path: Path = KNOWN) -> dict[str, Known]:
    return {name: Known(**one) for name, one in json.loads(path.read_text()).items()} if path.exists() else {}


def write(known: dict[str, Known], path: Path = KNOWN) -> None:
    path.write_text(json.dumps({name: asdict(one) for name, one in sorted(known.items())}, indent=1) + "\n")


def nightly(
    chosen: Sequence[Piece],
    hours: float,
    commit: str,
    known: dict[str, Known],
    *,
    perform: Run = run,
    note: Note = lambda known: None,
) -> list[str]:
    """Runs what fits, notes what came of each piece, and gives the names of those that did not pass."""
    ends = time.monotonic() + hours * 3600
    bad = []
    for piece in fitting(in_order(chosen, known), known, lambda: ends - time.monotonic()):
        before = known.get(piece.name, Known())
        code, seconds = perform(piece, before.turns, max(1.0, ends - time.monotonic()))
        after = known[piece.name] = noted(
            before, code, seconds, f"{datetime.now(UTC):%Y-%m-%d %H:%M}", commit
        )
        print(f"{after.outcome:<16} {seconds:>7.0f} s  {piece.name}", flush=True)
        note(known)
        if after.outcome != "passed":
            bad.append(piece.name)
    return bad


def keep(known: dict[str, Known]) -> None:
    """For the next run, and for readers of the docs."""
    write(known)
    PAGE.write_text(page(known))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.5)
    parser.add_argument("--only", default="", help="pieces with this in their name")
    chosen = parser.parse_args(arguments)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    known = read()
    wanted = [piece for piece in pieces() if chosen.only in piece.name]
    bad = nightly(wanted, chosen.hours, commit.stdout.strip(), known, note=keep)
    print(page(known))
    for name in bad:
        print(f"{name}: see {LOGS.relative_to(ROOT)}/{name.replace('/', '-')}.log")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
