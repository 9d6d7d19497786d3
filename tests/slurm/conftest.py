"""Real Slurm daemons for the tests of this floor: started once, put back in order before each test.

`slurm` and `slurm_with_accounting` are shared; a test that breaks something for good, or needs another
slurm.conf, makes its own with `new_slurm`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from slurm_local.image.roots import SLURM_SERIES, slurm_rootfs
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from slurm_operator.http import loops
from testing import prometheus
from testing.boxed.series import OLDER_SERIES, older_slurm_rootfs
from testing.daemons import SlurmDaemons

WORKERS = ("w-0", "w-1")
_ROOTS = {SLURM_SERIES: slurm_rootfs, OLDER_SERIES: older_slurm_rootfs}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slurm-series", choices=list(_ROOTS), default=SLURM_SERIES, help="run the daemons of this Slurm"
    )


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What talks to real servers does so on the event loop of our programs."""
    return {"ours": loops.new_loop}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes, before the first test, what takes minutes on a fresh machine: a test's time is limited."""
    if session.items and not session.config.option.collectonly:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            _rootfs(session.config)
            if any("older_slurm" in item.path.stem for item in session.items):
                older_slurm_rootfs(Paths.of(), PlainProgress())
            if any("prometheus" in item.path.stem for item in session.items):
                prometheus.rootfs()


def _rootfs(config: pytest.Config) -> Path:
    return _ROOTS[config.getoption("--slurm-series", SLURM_SERIES)](Paths.of(), PlainProgress())


@pytest.fixture(scope="session")
def rootfs(pytestconfig: pytest.Config) -> Path:
    return _rootfs(pytestconfig)


@pytest.fixture(scope="session")
def _shared_slurm(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmDaemons]:
    with SlurmDaemons(rootfs, tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture(scope="session")
def _shared_slurm_with_accounting(
    rootfs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SlurmDaemons]:
    with SlurmDaemons(rootfs, tmp_path_factory.mktemp("slurm-with-accounting"), accounting=True) as slurm:
        yield slurm


@pytest.fixture
def slurm(_shared_slurm: SlurmDaemons) -> SlurmDaemons:
    """Two idle workers, no jobs, no reservations, no accounting."""
    _shared_slurm.reset(*WORKERS)
    return _shared_slurm


@pytest.fixture
def slurm_with_accounting(_shared_slurm_with_accounting: SlurmDaemons) -> SlurmDaemons:
    """The same, with slurmdbd and MariaDB."""
    _shared_slurm_with_accounting.reset(*WORKERS)
    return _shared_slurm_with_accounting


@pytest.fixture
def new_slurm(rootfs: Path, tmp_path: Path) -> Iterator[Callable[..., SlurmDaemons]]:
    """Makes a Slurm of the test's own; takes what `SlurmDaemons` takes beside its directories."""
    with ExitStack() as stack:

        def make(**options: Any) -> SlurmDaemons:
            directory = tmp_path / f"slurm-{len(list(tmp_path.iterdir()))}"
            return stack.enter_context(SlurmDaemons(rootfs, directory, **options))

        yield make
