"""Modules that say `VIRTUAL_TIME = True` wait without waiting. What is marked `both_loops` also runs, in real
time, on the event loop of programs that run for long. Loggers are never kept.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from slurm_operator.http import loops
from testing.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    is_virtual = getattr(item.module, "VIRTUAL_TIME", False)
    found: dict[str, Callable[[], asyncio.AbstractEventLoop]]
    found = {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}
    if item.get_closest_marker("both_loops"):
        found["uvloop" if sys.platform == "linux" else "again"] = loops.new_loop
    return found


@pytest.fixture(autouse=True, scope="session")
def fresh_loggers() -> Iterator[None]:
    """A program that runs inside a test has loggers kept for speed. Later tests could not capture their lines."""
    configure = structlog.configure

    def without_cache(**settings: Any) -> None:
        configure(**(settings | {"cache_logger_on_first_use": False}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", without_cache)
        yield


@pytest.fixture(autouse=True)
def same_settings_of_loggers() -> Iterator[None]:
    """A program that runs inside a test also says from which level on lines are kept."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
