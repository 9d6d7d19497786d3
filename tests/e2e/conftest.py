"""A whole cluster for the end-to-end tests: one that all share, and one for tests that break things."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from e2e_pods import make_namespace

from slurm_local import image, status, stop
from slurm_local.cluster import Cluster
from slurm_local.kubernetes import containerd
from slurm_local.machine.cell import born
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress, Progress, Quiet
from slurm_local.start import Wanted, prepare, up
from testing import neighbours, prometheus, rights
from testing.audit import audit_flags

_MARK = "e2e"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes, before the first test, what takes minutes on a fresh machine: a test's time is limited."""
    if session.items and not session.config.option.collectonly:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            paths, progress = Paths.of(), PlainProgress()
            prepare(Wanted(_MARK, fake_nodes=1), paths, progress)
            containerd.seed(_archives(paths, progress), paths, progress)
            image.operator_archive(paths, progress)
            if any("monitoring" in item.path.stem for item in session.items):
                prometheus.rootfs()
            for page, beside in neighbours.OF_TESTS.items():
                if any(page == item.path.stem for item in session.items):
                    neighbours.prepare(beside, paths)


@pytest.fixture(scope="session")
def paths() -> Paths:
    """The user's own directories: builds and images are shared with `make up`."""
    return Paths.of()


@pytest.fixture(scope="session")
def wanted(paths: Paths) -> Wanted:
    """Two nodes that have the pause and Slurm images. Everything that is made once per machine is there."""
    _end_orphans(paths)
    return Wanted("", nodes=2, archives=_archives(paths, Quiet()))


@pytest.fixture(scope="session")
def cluster(wanted: Wanted, paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster that all tests share: stay in your namespace. It writes down what the operator asks of it."""
    place = tmp_path_factory.mktemp("audit")
    flags = tuple(audit_flags(place, "Metadata"))
    rights.LOGS.append(place / "audit.log")
    yield from _running("shared", replace(wanted, api_flags=flags), paths)
    assert rights.refused(place / "audit.log") == []


@pytest.fixture(scope="module")
def fragile_cluster(wanted: Wanted, paths: Paths) -> Iterator[Cluster]:
    """A cluster of this module alone, for tests that stop nodes or components."""
    yield from _running("fragile", wanted, paths)


@pytest.fixture(scope="session")
def operator_image(cluster: Cluster, paths: Paths) -> str:
    """The name of this program's image, loaded into the shared cluster."""
    cluster.load_image(image.operator_archive(paths, Quiet()))
    return image.OPERATOR_IMAGE


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace in the shared cluster, ready for pods."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    make_namespace(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def _archives(paths: Paths, progress: Progress) -> tuple[Path, Path]:
    return image.pause_archive(paths, progress), image.slurm_archive(paths, progress)


def _running(name: str, wanted: Wanted, paths: Paths) -> Iterator[Cluster]:
    own = f"{_MARK}-{name}-{os.getpid()}"
    cluster, _ = up(replace(wanted, name=own), paths, Quiet())
    yield cluster
    stop.down(own, paths, Quiet())


def _end_orphans(paths: Paths) -> None:
    """Clusters of test runs that were killed."""
    for name in status.names(paths):
        mark, pid = name.partition("-")[0], name.rpartition("-")[2]
        if mark == _MARK and pid.isdigit() and born(int(pid)) is None:
            stop.down(name, paths, Quiet())
