"""The code in the documentation, so that tests can run what readers copy."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A command may go on in the next line, after a backslash or a pipe.
_GOES_ON = re.compile(r"(?:\\|\|)\s*$")


class Block(NamedTuple):
    page: Path
    line: int
    text: str
    shows: str = ""  # What the page says that it prints: a fenced block without a language, right below.

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str, pages: tuple[Path, ...] = PAGES) -> Iterator[Block]:
    """Every fenced block of that language, in reading order."""
    for page in pages:
        text = page.read_text()
        fences = [*FENCE.finditer(text)]
        for found, below in zip_longest(fences, fences[1:]):
            if found[1] == language:
                is_output = (
                    below is not None and not below[1] and not text[found.end() : below.start()].strip()
                )
                line = text.count("\n", 0, found.start()) + 1
                yield Block(page, line, found[2], below[2] if is_output else "")


def commands(page: Path) -> list[Block]:
    """What a reader of this page types, command by command: whole `sh` blocks, and what follows `$ ` in a `console`."""
    typed = [*blocks("sh", (page,)), *(_prompted(block) for block in blocks("console", (page,)))]
    return [each for block in sorted(typed, key=lambda block: block.line) for each in _split(block)]


def is_shown(shows: str, output: str) -> bool:
    """Whether every line that a page shows is printed, in that order. `...` stands for anything, blanks for blanks."""
    printed = iter(" ".join(line.split()) for line in output.splitlines())
    patterns = [
        re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("...")))
        for line in shows.splitlines()
        if line.strip()
    ]
    return all(any(pattern.fullmatch(line) for line in printed) for pattern in patterns)


def section(page: Path, title: str) -> list[Block]:
    """The commands between one heading and the next."""
    lines = page.read_text().splitlines()
    heads = {number: line.lstrip("# ") for number, line in enumerate(lines, 1) if re.match("##+ ", line)}
    [first] = [number for number in heads if heads[number] == title]
    last = min((number for number in heads if number > first), default=len(lines) + 1)
    return [command for command in commands(page) if first < command.line < last]


def _prompted(block: Block) -> Block:
    """The same block without what is printed. Where nothing has a prompt, nothing is printed."""
    if "$ " not in {line[:2] for line in block.text.splitlines()}:
        return block
    lines = [line.removeprefix("$ ") if line.startswith("$ ") else "" for line in block.text.splitlines()]
    return block._replace(text="\n".join(lines))


def _split(block: Block) -> Iterator[Block]:
    """Command by command; what is shown below is what the last one prints."""
    begun: list[str] = []
    lines = block.text.rstrip().splitlines()
    for number, line in enumerate(lines, 1):
        begun.append(line)
        if _GOES_ON.search(line):
            continue
        if line.strip():
            shows = block.shows if number == len(lines) else ""
            yield Block(block.page, block.line + number - len(begun) + 1, "\n".join(begun), shows)
        begun = []


class Terminal:
    """A shell as a reader has it: this program and its tools on PATH, and one cluster that kubectl is about."""

    def __init__(self, directory: Path, kubeconfig: Path, **tools: Path) -> None:
        programs = directory / "bin"
        (directory / ".local" / "bin").mkdir(parents=True)
        programs.mkdir()
        own = Path(sys.executable).parent
        found = {name: own / name for name in ("slurm-operator", "kubectl-slurm")}
        for name, program in {**found, **tools}.items():
            (programs / name).symlink_to(program)
        (directory / "charts").symlink_to(ROOT / "charts")
        self.directory = directory
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(directory),
        }

    def type(self, text: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """What came of it, at home if not told where. Nobody answers questions."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=cwd or self.directory, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
