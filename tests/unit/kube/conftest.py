"""Modules that say `VIRTUAL_TIME = True` wait without waiting."""

from collections.abc import Callable

import pytest
from virtual_time import VirtualLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], VirtualLoop]] | None:
    return {"virtual": VirtualLoop} if getattr(item.module, "VIRTUAL_TIME", False) else None
