"""What one run came to, one line of JSON each, so that an interruption loses nothing and batches add up."""

from collections.abc import Iterable
from pathlib import Path

from slurm_operator import wire


class Result(wire.Record):
    """`opportunities`: nodes that a fault was about while a job ran there.

    `in_the_dark`: nodes with a job when something broke that is not about them, such as slurmctld.
    `missed`: faults that were drawn but found nothing to hit, as when their pod was away.
    """

    seed: int
    faults: tuple[str, ...]
    missed: tuple[str, ...]
    jobs: int
    opportunities: int
    in_the_dark: int
    lost: tuple[int, ...]
    excused: int
    never_started: int
    settled_s: float
    took_s: float
    trouble: str = ""

    @property
    def is_good(self) -> bool:
        return not self.lost and not self.trouble


def append(file: Path, result: Result) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lines:
        lines.write(wire.encode(result) + b"\n")


def read(files: Iterable[Path]) -> list[Result]:
    """Results by seed. Where a seed was played again, the last one counts."""
    found: dict[int, Result] = {}
    for file in files:
        if file.exists():
            found.update(
                (result.seed, result)
                for line in file.read_bytes().splitlines()
                for result in [wire.decode(line, Result)]
            )
    return [found[seed] for seed in sorted(found)]
