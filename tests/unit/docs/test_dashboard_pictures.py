"""Pictures of dashboards: drawn from data, and those in the docs show every panel."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from testing import dashboard_pictures as pictures
from testing import dashboards

FILES = dashboards.files()


def texts(svg: str) -> list[str]:
    found = ET.fromstring(svg)  # noqa: S314 - drawn by ourselves
    return [one.text or "" for one in found.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("path", FILES, ids=pictures.name_of)
def test_each_panel_has_its_curves_with_their_legends(path: Path):
    def two(expression: str):
        labels = dict.fromkeys(("cluster", "state", "partition", "pool"), "<a&b>")
        return [(labels, [(0.0, 1.0), (60.0, 2.0)]), ({}, [(0.0, float("nan")), (60.0, 0.0)])]

    found = pictures.picture(path, two)

    assert pictures.NO_DATA not in texts(found)
    assert {title for title, _ in dashboards.expressions(path)} <= set(texts(found))
    assert found.count("<polyline") > 4
    assert "nan" not in found


def test_a_panel_without_data_says_so():
    found = pictures.picture(FILES[1], lambda expression: [])

    assert texts(found).count(pictures.NO_DATA) == len(dashboards.expressions(FILES[1]))


def test_many_curves_are_all_drawn_and_those_without_a_legend_are_counted():
    def many(expression: str):
        return [({"state": f"s{number:02}"}, [(0.0, number), (1.0, number)]) for number in range(30)]

    found = pictures.picture(FILES[1], many)

    assert "and 25 more" in texts(found)
    assert found.count("<polyline") >= 30


def test_a_line_has_a_gap_where_its_series_was_away():
    def broken(expression: str):
        return [({"state": "down"}, [(0.0, 1.0), (1.0, 1.0), (9.0, 1.0), (10.0, 1.0)])]

    unbroken = pictures.picture(FILES[1], lambda expression: [({"state": "down"}, [(0.0, 1.0), (1.0, 1.0)])])

    assert pictures.picture(FILES[1], broken).count("<polyline") == 2 * unbroken.count("<polyline")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.25, "percentunit", "25 %"),
        (3 * 2**30, "bytes", "3 GiB"),
        (5400, "s", "1.5 h"),
        (0.004, "s", "4 ms"),
        (12000, "short", "12 k"),
        (2, "reqps", "2/s"),
    ],
)
def test_numbers_have_units(value: float, unit: str, text: str):
    assert pictures.shown(value, unit) == text
