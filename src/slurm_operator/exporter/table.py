"""Metric families as plain data, their caps, and the text that Prometheus reads.

prometheus_client makes the same text from objects of its own, one for each series, in five times the CPU
(`bench exporter` measures both). There are tens of thousands of series here, so they stay tuples.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

# Slurm takes reasons, comments and paths of any length. A label longer than this helps nobody.
LONGEST_LABEL: Final = 256

Kind = Literal["gauge", "counter", "histogram"]
Row = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many observations fell below each bound, and what they came to."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...] = ()  # One for each bound, and one for what is above all of them.
    total: float = 0.0

    def observed(self, value: float) -> "Histogram":
        """With one more observation."""
        counts = list(self.counts or (0,) * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        return Histogram(self.bounds, tuple(counts), self.total + value)

    @property
    def size(self) -> int:
        """How many series it is."""
        return len(self.bounds) + 3


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its series are rows of label values, in the order of `labels`. Empty is no label."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    histograms: Sequence[tuple[tuple[str, ...], Histogram]] = ()

    @property
    def size(self) -> int:
        """How many series it has."""
        return len(self.rows) + sum(histogram.size for _, histogram in self.histograms)


def gauge(name: str, about: str, labels: Iterable[str], rows: Iterable[Row]) -> Family:
    return Family(name, "gauge", about, tuple(labels), list(rows))


def counter(name: str, about: str, labels: Iterable[str], rows: Iterable[Row]) -> Family:
    return Family(name, "counter", about, tuple(labels), list(rows))


def histogram(
    name: str, about: str, labels: Iterable[str], found: Iterable[tuple[tuple[str, ...], Histogram]]
) -> Family:
    return Family(name, "histogram", about, tuple(labels), histograms=list(found))


@dataclass(frozen=True, slots=True)
class Table:
    """Families within their cap, and how many series of each were left out."""

    families: Sequence[Family] = ()
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(family.size for family in self.families)


def capped(families: Iterable[Family], most: int) -> Table:
    """At most so many series of each family: the first ones, so builders put what matters most first."""
    kept, dropped = [], {}
    for family in families:
        if family.size > most:
            dropped[family.name] = family.size
            family = _cut(family, most)
            dropped[family.name] -= family.size
        kept.append(family)
    return Table(kept, dropped)


def _cut(family: Family, most: int) -> Family:
    histograms, left = [], most
    for labels, found in family.histograms:
        if found.size > left:
            break
        histograms.append((labels, found))
        left -= found.size
    return Family(family.name, family.kind, family.help, family.labels, family.rows[:most], histograms)


def text(families: Iterable[Family], cluster: str) -> bytes:
    """Prometheus' text format, with the label `cluster` on every series."""
    lines: list[str] = []
    always = f'cluster="{value(cluster)}"'
    for family in families:
        if family.rows or family.histograms:
            lines.append(f"# HELP {family.name} {_help(family.help)}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            lines.extend(_series(family, always))
    lines.append("")
    return "\n".join(lines).encode()


def _series(family: Family, always: str) -> Iterator[str]:
    name, label_text = family.name, _writer(family.labels, always)
    for values, found in family.rows:
        yield f"{name}{{{label_text(values)}}} {_number(found)}"
    for values, histogram in family.histograms:
        yield from _buckets(name, label_text(values), histogram)


def _buckets(name: str, labels: str, found: Histogram) -> Iterator[str]:
    below, counts = 0, found.counts or (0,) * (len(found.bounds) + 1)
    for bound, count in zip((*found.bounds, float("inf")), counts, strict=True):
        below += count
        # As programs in Go write it, so that series go on where one of those was before.
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f'{name}_bucket{{{labels},le="{edge}"}} {below}'
    yield f"{name}_sum{{{labels}}} {_number(found.total)}"
    yield f"{name}_count{{{labels}}} {below}"


def _writer(labels: tuple[str, ...], always: str) -> Callable[[tuple[str, ...]], str]:
    heads = [f',{label}="' for label in labels]

    def label_text(values: tuple[str, ...]) -> str:
        parts = [f'{head}{value(given)}"' for head, given in zip(heads, values, strict=True) if given]
        return always + "".join(parts)

    return label_text


def _number(found: float) -> str:
    if found == int(found) if abs(found) < 1e15 else False:
        return str(int(found))
    return repr(float(found))


@lru_cache(maxsize=65536)
def value(given: str) -> str:
    """A label value as it is written: on one line, not too long, without control characters.

    Prometheus takes a zero byte for the end of the page, and one job name must not hide all others.
    """
    return clean(given).replace("\\", "\\\\").replace('"', '\\"')


def clean(given: str) -> str:
    """What is left of a text in a label. Texts that become the same here are the same series."""
    if len(given) > LONGEST_LABEL:
        given = given[: LONGEST_LABEL - 1] + "…"
    if given.isprintable():
        return given
    return "".join(char if char.isprintable() else _plain(char) for char in given)


def _plain(char: str) -> str:
    """Spaces of every kind stay spaces; halves of characters cannot be written at all."""
    return " " if char.isspace() else "�"


def _help(about: str) -> str:
    return about.replace("\\", "\\\\").replace("\n", "\\n")
