"""What the benchmarks write: plots that a browser shows, and a table for the docs."""

from xml.etree import ElementTree as ET

from bench.__main__ import markdown
from bench.plots import Point, svg
from bench.rows import Row


def test_a_plot_is_an_image_with_a_dot_for_each_size():
    image = ET.fromstring(svg("CPU", [Point(100, 0.5), Point(1000, 4.0)]))  # noqa: S314

    dots = [each for each in image if each.tag.endswith("circle")]
    [(left, low), (right, high)] = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in dots]
    assert left < right
    assert low > high, "in an image y grows downwards"


def test_the_table_for_the_docs_has_a_line_for_each_figure():
    lines = list(markdown({"workers": [Row("CPU", 2.5, "s", "the floor", 1.25), Row("requests", 2064, "")]}))

    assert lines[1:] == ["| CPU | 2.5 | s | 1.25 | the floor |", "| requests | 2,064 |  |  |  |"]
