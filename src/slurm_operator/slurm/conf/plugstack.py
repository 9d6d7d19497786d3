"""plugstack.conf: SPANK plugins, one a line: `required /usr/lib/chroot.so path=/jail`. See spank(7)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurm_operator.slurm.conf.lines import UnwritableError
from slurm_operator.slurm.conf.problems import LineProblem

_PLUGIN = re.compile(r"(required|optional)\s+(\S+)(?:\s+(.*))?", re.ASCII)
_INCLUDE = re.compile(r"include\s+(\S+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SpankPlugin:
    """One plugin: the shared object, whether jobs fail without it, and its arguments as they stand."""

    path: str
    required: bool = False
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class SpankInclude:
    """More lines from other files; the path may hold wildcards: `include plugstack.conf.d/*`."""

    path: str


SpankEntry = SpankPlugin | SpankInclude


def parse(text: str, file: str = "plugstack.conf") -> tuple[list[SpankEntry], list[LineProblem]]:
    """The entries in order, and the lines that are none."""
    entries: list[SpankEntry] = []
    faults: list[LineProblem] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.partition("#")[0].strip()
        if not stripped:
            continue
        if plugin := _PLUGIN.fullmatch(stripped):
            entries.append(SpankPlugin(plugin[2], plugin[1] == "required", plugin[3] or ""))
        elif include := _INCLUDE.fullmatch(stripped):
            entries.append(SpankInclude(include[1]))
        else:
            reason = f"cannot read {stripped[:60]!r}; write required or optional, a plugin and its arguments"
            faults.append(LineProblem(file, number, reason))
    return entries, faults


def render(entries: Iterable[SpankEntry]) -> str:
    """The file; `parse` gives the same entries back. Raises UnwritableError."""
    return "".join(f"{_entry_text(entry)}\n" for entry in entries)


def problems(text: str, file: str = "plugstack.conf") -> Iterator[LineProblem]:
    yield from parse(text, file)[1]


def _entry_text(entry: SpankEntry) -> str:
    line = _line(entry)
    if parse(line) != ([entry], []):
        raise UnwritableError(f"{line!r} would not be read back as it is meant")
    return line


def _line(entry: SpankEntry) -> str:
    match entry:
        case SpankPlugin(path, required, arguments):
            return f"{'required' if required else 'optional'} {path} {arguments}".rstrip()
        case SpankInclude(path):
            return f"include {path}"
