"""make fuzz: feeds each target for some minutes, whoever was fed least first.

How long each was fed, and what was found, stands in `testing/fuzz/results.json`; inputs that took a new way are kept
in `testing/fuzz/corpus`, and the next run begins with them. An input that is a finding is left in `build/fuzz`.
"""

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from slurm_operator import wire
from testing.fuzz.corpus import keep, kept, unpack
from testing.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "testing/fuzz/results.json"
PAGE: Final = ROOT / "docs/decisions/fuzzing.md"
WORK: Final = ROOT / "build/fuzz"

_RUNS: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


class Fed(wire.Record):
    """In all runs so far, and what the last one came to."""

    seconds: int = 0
    inputs: int = 0
    kept: int = 0
    result: str = ""


def feed(target: str, seconds: int, before: Fed) -> Fed:
    corpus, findings = WORK / target / "corpus", WORK / target / "findings"
    unpack(target, corpus)
    findings.mkdir(parents=True, exist_ok=True)
    words = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=1500"]
    words += ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={findings}/"]
    began = time.monotonic()
    done = _run(target, [str(corpus), *words])
    passed = round(time.monotonic() - began)
    (WORK / target / "log").write_text(done.stderr + done.stdout)
    keep(target, (file.read_bytes() for file in corpus.iterdir()))
    found = _RUNS.search(done.stderr)
    return Fed(
        seconds=before.seconds + passed,
        inputs=before.inputs + (int(found[1]) if found else 0),
        kept=len(kept(target)),
        result="nothing" if done.returncode == 0 else f"see build/fuzz/{target}",
    )


def _run(target: str, words: list[str]) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "testing.fuzz.one", target, *words]
    return subprocess.run(
        argv,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def read() -> dict[str, Fed]:
    return wire.decode(RESULTS.read_bytes(), dict[str, Fed]) if RESULTS.exists() else {}


def write(found: Mapping[str, Fed]) -> None:
    lines = (f'"{name}": {wire.encode(found[name]).decode()}' for name in sorted(found))
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text(page(found))


def page(found: Mapping[str, Fed]) -> str:
    rows = [_row(name, found.get(name, Fed())) for name in sorted(TARGETS)]
    return "\n".join([*_INTRODUCTION, *rows, ""])


_INTRODUCTION: Final = """\
# Fuzzing

`make fuzz MINUTES=20` feeds what reads from outside with bytes that nobody wrote. atheris, which is libFuzzer for Python, watches which lines
of ours an input reaches, and changes those that reach new ones. Whoever was fed least comes first, so each run goes on where the last one
stopped. What was worth keeping is in `testing/fuzz/corpus`; the unit tests replay all of it. Parsers in C (httptools, msgspec, libyaml) are
not watched inside: for them the corpus is a replay.

| Target | Fed for | Inputs | Kept | Found last time |
|---|---:|---:|---:|---|
""".splitlines()


def _row(name: str, fed: Fed) -> str:
    cells = (f"{fed.seconds // 60} min", f"{fed.inputs:,}", str(fed.kept), fed.result or "never fed")
    return f"| `{name}` | {' | '.join(cells)} |"


@click.command(help=__doc__)
@click.option("--minutes", default=20.0, show_default=True, help="For each target.")
@click.option("--only", multiple=True, type=click.Choice(sorted(TARGETS)), help="These alone.")
def main(minutes: float, only: tuple[str, ...]) -> None:
    found = read()
    is_good = True
    for target in sorted(only or TARGETS, key=lambda name: found.get(name, Fed()).seconds):
        found[target] = fed = feed(target, round(60 * minutes), found.get(target, Fed()))
        write(found)
        is_good = is_good and fed.result == "nothing"
        click.echo(f"{target}: {fed.inputs} inputs in {fed.seconds} s, {fed.kept} kept; found: {fed.result}")
    raise SystemExit(0 if is_good else 1)


if __name__ == "__main__":
    main()
