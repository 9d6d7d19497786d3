"""What all tests share: which of the long ones run, and a note of the rights that the operator used.

`--shard 7/100` adds a hundredth of the tests marked `full` to all others, and leaves out those that take minutes.
"""

import os
import zlib
from pathlib import Path

import hypothesis
import pytest

from testing import rights

# A busy machine is slow, and that is no finding.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shard",
        help="I/N: of the tests marked `full`, only the I-th of N parts, I modulo N; none that take minutes",
    )
    parser.addoption(
        "--rights", default="build/rights", help="where runs note which rights the operator used"
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if rights.LOGS:
        rights.note(Path(session.config.getoption("--rights")) / f"{os.getpid()}.json")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--shard"):
        return
    part, parts = (int(number) for number in config.getoption("--shard").split("/"))
    left_out = [item for item in items if not _has_its_turn(item, part, parts)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _has_its_turn(item: pytest.Item, part: int, parts: int) -> bool:
    if item.get_closest_marker("minutes"):
        return False
    return not item.get_closest_marker("full") or _part(item, parts) == part % parts


def _part(item: pytest.Item, parts: int) -> int:
    """The same in every run and on every machine, so that a failure of CI can be had at home."""
    return zlib.crc32(item.nodeid.encode()) % parts
