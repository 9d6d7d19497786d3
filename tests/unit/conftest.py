"""Modules that say `VIRTUAL_TIME = True` wait without waiting. Loggers are never kept."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from testing.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    if getattr(item.module, "VIRTUAL_TIME", False):
        return {"virtual": VirtualLoop}
    return {"real": asyncio.new_event_loop}


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
