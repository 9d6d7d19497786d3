"""Plots without a library: a curve in an SVG file."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN = 480, 300, 56


class Point(NamedTuple):
    x: float
    y: float


def plot(file: Path, title: str, points: Sequence[tuple[float, float]]) -> None:
    """Cost against size: points, a line through them, and the straight line from nothing to the first."""
    if not points:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(svg(title, [Point(*point) for point in points]))


def svg(title: str, points: list[Point]) -> str:
    most = Point(max(p.x for p in points), max(p.y for p in points) or 1.0)
    first = points[0]
    straight = Point(most.x, first.y / first.x * most.x if first.x else 0.0)
    top = Point(most.x, max(most.y, straight.y))
    dots = "".join(
        f'<circle cx="{_x(p, top):.0f}" cy="{_y(p, top):.0f}" r="4"/>'
        f'<text x="{_x(p, top):.0f}" y="{_y(p, top) - 10:.0f}" text-anchor="middle">{p.y:,.3g}</text>'
        f'<text x="{_x(p, top):.0f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">{p.x:,.0f}</text>'
        for p in points
    )
    grey, black = _path([Point(0, 0), straight], top), _path([Point(0, 0), *points], top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-size="12" '
        f'font-family="sans-serif">'
        f'<text x="{MARGIN}" y="20">{title}</text>'
        f'<polyline fill="none" stroke="#bbb" stroke-dasharray="4" points="{grey}"/>'
        f'<polyline fill="none" stroke="black" points="{black}"/>'
        f"{dots}</svg>\n"
    )


def _path(points: list[Point], top: Point) -> str:
    return " ".join(f"{_x(p, top):.0f},{_y(p, top):.0f}" for p in points)


def _x(point: Point, top: Point) -> float:
    return MARGIN + point.x / top.x * (WIDTH - 2 * MARGIN)


def _y(point: Point, top: Point) -> float:
    return HEIGHT - MARGIN - point.y / top.y * (HEIGHT - 2 * MARGIN)
