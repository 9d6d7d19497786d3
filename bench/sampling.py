"""Where the operator spends its CPU: its stack, looked at every millisecond of work, without slowing it much.

`BENCH_SAMPLES=FILE` makes the operator of a benchmark write such a file when it ends: one line per stack, how
often it was met, and its functions from the outermost in, as flame graphs are made from. Run as a program,
`python -m bench.sampling FILE [LINES]` prints the functions most time went into, alone and with their calls.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

EVERY_SECONDS = 0.001


@contextmanager
def sampled(file: Path) -> Iterator[None]:
    """Looks during the block, and writes the file at its end."""
    stacks: Counter[str] = Counter()

    def look(_number: int, frame: FrameType | None) -> None:
        stacks[";".join(reversed([*_names(frame)]))] += 1

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        file.write_text("".join(f"{count} {stack}\n" for stack, count in stacks.most_common()))


def _names(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        place = Path(frame.f_code.co_filename)
        yield f"{place.parent.name}/{place.stem}.{frame.f_code.co_qualname}"
        frame = frame.f_back


def main(file: str, lines: str = "40") -> None:
    own: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for line in Path(file).read_text().splitlines():
        count, _, stack = line.partition(" ")
        functions = stack.split(";")
        own[functions[-1]] += int(count)
        inside.update(dict.fromkeys(functions, int(count)))
    whole = own.total()
    for title, found in (("alone", own), ("with what it calls", inside)):
        print(f"{title}, of {whole}:")
        for function, count in found.most_common(int(lines)):
            print(f"  {count / whole:6.1%} {count:6} {function}")


if __name__ == "__main__":
    main(*sys.argv[1:])
