"""What one run came to, one line of JSON each, so that an interruption loses nothing and batches add up."""

from collections.abc import Iterable, Iterator
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
    last = {result.seed: result for result in _lines(files)}
    return [last[seed] for seed in sorted(last)]


def failed(files: Iterable[Path]) -> list[Result]:
    """What went wrong with seeds that have been played again since, or not."""
    return sorted((result for result in _lines(files) if not result.is_good), key=lambda result: result.seed)


def _lines(files: Iterable[Path]) -> Iterator[Result]:
    for file in files:
        if file.exists():
            yield from (wire.decode(line, Result) for line in file.read_bytes().splitlines())
