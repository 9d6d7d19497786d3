"""`make bench`: run every benchmark, print tables, write build/bench.json and the tables for the docs.

A suite that is run alone replaces its own figures in these files and leaves the others. `light --against REF`
measures instead what a scale-out takes the operator of that commit and ours, by turns.
"""

import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import against
from bench.rows import Row

SUITES = ("kube", "slurmrest", "exporter", "kernel", "passes", "light", "many", "workers", "first")
OUT = Path("build") / "bench.json"


def main(chosen: list[str]) -> None:
    if chosen[:2] == ["light", "--against"] and len(chosen) == 3:
        Console().print(table("light", against.measure(chosen[2])))
        return
    unknown = set(chosen) - set(SUITES)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    console = Console()
    for suite in chosen or SUITES:
        console.print(f"[dim]measuring {suite} …")
        rows = list(importlib.import_module(f"bench.{suite}").measure())
        console.print(table(suite, rows))
        write(OUT, suite, rows)
    console.print(f"written to {OUT} and {OUT.with_suffix('.md')}")


def write(out: Path, suite: str, rows: list[Row]) -> None:
    """The figures of one suite beside those of the others that are there."""
    out.parent.mkdir(exist_ok=True)
    found = json.loads(out.read_text())["results"] if out.exists() else {}
    results = {**found, suite: [row._asdict() for row in rows]}
    kept = {name: [Row(**row) for row in results[name]] for name in SUITES if name in results}
    told = {name: [row._asdict() for row in rows] for name, rows in kept.items()}
    out.write_text(json.dumps({"machine": machine(), "results": told}, indent=2) + "\n")
    out.with_suffix(".md").write_text("\n".join(markdown(kept)) + "\n")


def table(title: str, rows: list[Row]) -> Table:
    made = Table("what", "value", "unit", "ratio", "to", title=title, title_justify="left")
    for row in rows:
        made.add_row(*cells(row))
    return made


def markdown(results: dict[str, list[Row]]) -> Iterator[str]:
    """The tables as they stand in docs/decisions/benchmarks.md."""
    for suite, rows in results.items():
        yield f"\n### {suite}\n\n| what | value | unit | ratio | to |\n|---|---:|---|---:|---|"
        yield from (f"| {' | '.join(cells(row))} |" for row in rows)


def cells(row: Row) -> tuple[str, str, str, str, str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    value = f"{row.value:,.4g}" if row.value < 100 else f"{row.value:,.0f}"
    return row.name, value, row.unit, ratio, row.ratio_to


def machine() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
