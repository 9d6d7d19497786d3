"""What the benchmarks write: plots that a browser shows, and a table for the docs."""

from xml.etree import ElementTree as ET

from bench.__main__ import markdown, write
from bench.plots import Point, svg
from bench.rows import Row
from slurm_operator import wire


def test_a_plot_is_an_image_with_a_dot_for_each_size():
    image = ET.fromstring(svg("CPU", [Point(100, 0.5), Point(1000, 4.0)]))  # noqa: S314

    dots = [each for each in image if each.tag.endswith("circle")]
    [(left, low), (right, high)] = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in dots]
    assert left < right
    assert low > high, "in an image y grows downwards"


def test_the_table_for_the_docs_has_a_line_for_each_figure():
    lines = list(markdown({"workers": [Row("CPU", 2.5, "s", "the floor", 1.25), Row("requests", 2064, "")]}))

    assert lines[1:] == ["| CPU | 2.5 | s | 1.25 | the floor |", "| requests | 2,064 |  |  |  |"]


def test_a_suite_that_runs_alone_leaves_the_figures_of_the_others(tmp_path):
    out = tmp_path / "bench.json"
    write(out, "workers", [Row("CPU", 2.5, "s")])
    write(out, "passes", [Row("a pass", 66.0, "ms")])
    write(out, "workers", [Row("CPU", 2.0, "s")])

    found = wire.decode_any(out.read_bytes())["results"]
    assert {suite: [row["value"] for row in rows] for suite, rows in found.items()} == {
        "passes": [66.0],
        "workers": [2.0],
    }
    assert "### workers" in out.with_suffix(".md").read_text()
