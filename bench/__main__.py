"""`make bench`: run every benchmark, print a table, write build/bench.json."""

import importlib
import json
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.rows import Row

SUITES = ("kube", "slurmrest", "kernel", "passes", "workers")


def main(chosen: list[str]) -> None:
    unknown = set(chosen) - set(SUITES)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    console = Console()
    results: dict[str, list[Row]] = {}
    for suite in chosen or SUITES:
        console.print(f"[dim]measuring {suite} …")
        results[suite] = list(importlib.import_module(f"bench.{suite}").measure())
        console.print(table(suite, results[suite]))
    out = Path("build") / "bench.json"
    out.parent.mkdir(exist_ok=True)
    rows = {suite: [row._asdict() for row in rows] for suite, rows in results.items()}
    out.write_text(json.dumps({"machine": machine(), "results": rows}, indent=2) + "\n")
    console.print(f"written to {out}")


def table(title: str, rows: list[Row]) -> Table:
    made = Table("what", "value", "unit", "ratio", "to", title=title, title_justify="left")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        made.add_row(
            row.name,
            f"{row.value:,.4g}" if row.value < 100 else f"{row.value:,.0f}",
            row.unit,
            ratio,
            row.ratio_to,
        )
    return made


def machine() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.machine(),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
