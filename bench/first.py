"""From nothing to the first job. It takes a whole cluster, so a test does it and leaves its notes here."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.rows import Row
from slurm_operator import wire

TEST = Path("tests") / "e2e" / "test_first_job.py"

# Where the test leaves what it measured.
NOTES = "BENCH_NOTES"


class Notes(wire.Record):
    """The middle one of its rounds, and the most requests in any."""

    seconds: float
    seconds_by_hand: float
    requests: int


def measure() -> list[Row]:
    """What the operator adds to the same pods, applied by hand with everything known beforehand."""
    with tempfile.TemporaryDirectory() as place:
        notes = Path(place) / "notes.json"
        command = [sys.executable, "-m", "pytest", "-q", str(TEST), "--rights", str(Path(place) / "rights")]
        subprocess.run(command, env={**os.environ, NOTES: str(notes)}, check=True)
        return rows(wire.decode(notes.read_bytes(), Notes))


def rows(notes: Notes) -> list[Row]:
    ratio = notes.seconds / notes.seconds_by_hand
    return [
        Row("kubectl apply to the first srun -N2", notes.seconds, "s", "the same pods by hand", ratio),
        Row("the same: Kubernetes requests", notes.requests, "requests"),
    ]
