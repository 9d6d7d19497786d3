"""Modules that say `VIRTUAL_TIME = True` wait without waiting."""

import asyncio
from collections.abc import Callable

import pytest

from support.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    if getattr(item.module, "VIRTUAL_TIME", False):
        return {"virtual": VirtualLoop}
    return {"real": asyncio.new_event_loop}
