"""The code of another commit beside ours, so that both can be measured in one run."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def checked_out(ref: str) -> Iterator[Path]:
    """A directory with the sources and benchmarks of that commit. Raises SystemExit if there is none."""
    with tempfile.TemporaryDirectory() as place:
        packed = subprocess.run(
            [
                "git",
                "-C",
                str(ROOT),
                "archive",
                ref,
                "src",
                "bench",
                "testing",
                "tests/slurm/recorded",
                "images",
            ],
            capture_output=True,
            check=False,
        )
        if packed.returncode != 0:
            raise SystemExit(f"git has no {ref}: {packed.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)
        yield Path(place)
