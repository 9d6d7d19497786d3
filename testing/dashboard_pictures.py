"""A picture of a dashboard for the docs, drawn from what Prometheus answers: Grafana is not needed for it.

Places, titles, units and legends are those of the dashboard's JSON. Of curves with many points every one is
kept, so that a picture shows what was there and nothing else.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from testing import dashboards

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
NO_DATA: Final = "no data"

# Of one part of 24 of a dashboard's width, and of one part of its height.
_WIDE, _HIGH = 30, 30
_GAP, _HEAD = 8, 40
_IN_ROW: Final = 3
_MOST_LEGENDS: Final = 2 * _IN_ROW
_BIG: Final = 26
_COLOURS: Final = ("#3d71d9", "#e0712c", "#4a9c4a", "#c4405a", "#8f5cc4", "#b08d1c", "#2c9aa8", "#8a6f5c")
_STYLE: Final = (
    "text{font-family:sans-serif;font-size:12px;fill:#333}.title{font-weight:600}"
    ".small{font-size:10px;fill:#777}.card{fill:#fff;stroke:#ddd}.grid{stroke:#eee}"
)

Points = Sequence[tuple[float, float]]


class Curve(NamedTuple):
    """One series: what the legend calls it, and its values by time."""

    legend: str
    points: Points


class Box(NamedTuple):
    x: float
    y: float
    wide: float
    high: float


# (expression) -> (labels, points) of each series
Asked = Callable[[str], Iterable[tuple[dict[str, str], Points]]]


def name_of(path: Path) -> str:
    return "operator" if path.stem == "dashboard" else path.stem


def picture(path: Path, ask: Asked) -> str:
    """The dashboard in this file, with what `ask` gives for its expressions."""
    content = json.loads(path.read_text())
    panels = content["panels"]
    wide = 24 * _WIDE + _GAP
    high = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * _HIGH + _HEAD + _GAP
    drawn = "\n".join(_panel(panel, list(_curves(panel, ask))) for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">\n'
        f'<style>{_STYLE}</style>\n<rect width="100%" height="100%" fill="#f4f5f5"/>\n'
        f'<text x="{_GAP * 2}" y="26" style="font-size:18px">{escape(content["title"])}</text>\n{drawn}\n</svg>\n'
    )


def _curves(panel: dict[str, Any], ask: Asked) -> Iterator[Curve]:
    for target in panel["targets"]:
        for labels, points in ask(dashboards.with_every_cluster(target["expr"])):
            words = re.split(r"\{\{(\w+)\}\}", target["legendFormat"])
            legend = "".join(
                labels.get(word, "") if number % 2 else word for number, word in enumerate(words)
            )
            # A quotient of nothing by nothing is no number, and what was never read is infinitely old: no point.
            yield Curve(legend.strip(), [point for point in points if math.isfinite(point[1])])


def _panel(panel: dict[str, Any], curves: list[Curve]) -> str:
    place = panel["gridPos"]
    box = Box(
        place["x"] * _WIDE + _GAP,
        place["y"] * _HIGH + _HEAD,
        place["w"] * _WIDE - _GAP,
        place["h"] * _HIGH - _GAP,
    )
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    curves = sorted((curve for curve in curves if curve.points), key=lambda curve: curve.legend)
    inside = _stat(box, curves, unit) if panel["type"] == "stat" else _lines(box, curves, unit)
    return (
        f'<rect class="card" x="{box.x}" y="{box.y}" width="{box.wide}" height="{box.high}" rx="3"/>'
        f"{_text(box.x + 10, box.y + 20, panel['title'], 'title')}"
        f"{inside if curves else _text(box.x + 10, box.y + box.high / 2 + 10, NO_DATA, 'small')}"
    )


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _stat(box: Box, curves: list[Curve], unit: str) -> str:
    """The last value of each, beside each other, as large as there is room for."""
    step = (box.wide - 20) / max(1, len(curves))
    values = [shown(curve.points[-1][1], unit) for curve in curves]
    size = min(_BIG, *(step / (0.62 * (len(value) + 1)) for value in values)) if values else _BIG
    return "".join(
        f'<text x="{box.x + 10 + number * step:.0f}" y="{box.y + box.high / 2 + 16:.0f}" '
        f'style="font-size:{size:.0f}px">{escape(value)}</text>'
        f"{_text(box.x + 10 + number * step, box.y + box.high - 12, _cut(curve.legend, step), 'small')}"
        for number, (curve, value) in enumerate(zip(curves, values, strict=True))
    )


def _lines(box: Box, curves: list[Curve], unit: str) -> str:
    if not curves:
        return ""
    plot = Box(box.x + 64, box.y + 34, box.wide - 80, box.high - 92)
    times = [time for curve in curves for time, _ in curve.points]
    begin, end = min(times), max(times)
    top = _round_top(max(value for curve in curves for _, value in curve.points), unit)
    return (
        _grid(plot, top, unit, end - begin)
        + "".join(_line(plot, curve, (begin, end, top), number) for number, curve in enumerate(curves))
        + _legends(box, curves)
    )


def _round_top(most: float, unit: str) -> float:
    """Where the scale ends: a little above all, so that each of its four parts is a round number."""
    if most <= 0:
        return 1.0
    base = 1024 ** int(math.log(max(most, 1.0), 1024)) if unit == "bytes" else 1
    part = most * 1.04 / base / 4
    power = 10.0 ** math.floor(math.log10(part))
    return (
        base * 4 * power * next(step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if step * power >= part)
    )


def _grid(plot: Box, top: float, unit: str, seconds: float) -> str:
    rows = [plot.y + plot.high * part / 4 for part in range(5)]
    lines = "".join(
        f'<line class="grid" x1="{plot.x:.0f}" x2="{plot.x + plot.wide:.0f}" y1="{y:.0f}" y2="{y:.0f}"/>'
        for y in rows
    )
    marks = "".join(
        _text(plot.x - 6, y + 4, shown(top * (4 - part) / 4, unit), "small", "end")
        for part, y in enumerate(rows)
    )
    bottom, ago = plot.y + plot.high + 14, f"{shown(seconds, 's')} before"
    return (
        f"{lines}{marks}{_text(plot.x, bottom, ago, 'small')}"
        f"{_text(plot.x + plot.wide, bottom, 'now', 'small', 'end')}"
    )


def _line(plot: Box, curve: Curve, scale: tuple[float, float, float], number: int) -> str:
    begin, end, top = scale
    colour = _COLOURS[number % len(_COLOURS)]

    def spot(time: float, value: float) -> str:
        x = plot.x + plot.wide * (time - begin) / ((end - begin) or 1)
        return f"{x:.1f},{plot.y + plot.high * (1 - max(0.0, value) / top):.1f}"

    return "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" stroke-linecap="round" '
        f'points="{" ".join(spot(*point) for point in stretch)}"/>'
        for stretch in _stretches(curve.points)
    )


def _stretches(points: Points) -> Iterator[Points]:
    """Where a series was away for a while, its line has a gap."""
    steps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    usual, begin = min(steps, default=0.0), 0
    for number, step in enumerate(steps, 1):
        if step > 1.5 * usual:
            yield points[begin:number]
            begin = number
    yield points[begin:]


def _legends(box: Box, curves: list[Curve]) -> str:
    """In two rows below; what has no room is counted."""
    told = curves if len(curves) <= _MOST_LEGENDS else curves[: _MOST_LEGENDS - 1]
    step, found = (box.wide - 24) / _IN_ROW, []
    for number, curve in enumerate(told):
        x, y = box.x + 12 + number % _IN_ROW * step, box.y + box.high - 24 + number // _IN_ROW * 15
        colour = _COLOURS[number % len(_COLOURS)]
        found.append(f'<rect x="{x:.0f}" y="{y - 8:.0f}" width="10" height="3" fill="{colour}"/>')
        found.append(_text(x + 14, y - 3, _cut(curve.legend, step), "small"))
    if len(told) < len(curves):
        x, more = box.x + 12 + (_IN_ROW - 1) * step, f"and {len(curves) - len(told)} more"
        found.append(_text(x, box.y + box.high - 12, more, "small"))
    return "".join(found)


def _cut(legend: str, wide: float) -> str:
    most = int((wide - 18) / 7.2)
    return legend if len(legend) <= most else f"{legend[: most - 1]}…"


def shown(value: float, unit: str) -> str:
    """A number as a dashboard writes it."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "bytes":
        return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    if unit == "s":
        return _duration(value)
    return _scaled(value, 1000, ("", "k", "M")) + {"ops": "/s", "reqps": "/s"}.get(unit, "")


def _scaled(value: float, base: int, words: tuple[str, ...]) -> str:
    step = 0
    while abs(value) >= base and step < len(words) - 1:
        value, step = value / base, step + 1
    return f"{value:.3g} {words[step]}".strip()


def _duration(value: float) -> str:
    for seconds, word in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if value >= seconds:
            return f"{value / seconds:.3g} {word}"
    return f"{value * 1000:.3g} ms" if value else "0 s"


def write(path: Path, ask: Asked) -> Path:
    """Draws the dashboard in this file into the docs."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    file = PICTURES / f"{name_of(path)}.svg"
    file.write_text(picture(path, ask))
    return file
