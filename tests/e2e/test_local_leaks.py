"""`down` removes everything it made, and nothing else."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from e2e_pods import make_namespace, run, server

from slurm_local import stop
from slurm_local.cluster import Cluster
from slurm_local.machine import cgroups
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_local.start import Wanted, up


@dataclass(frozen=True)
class Traces:
    """What a cluster could leave on this machine."""

    processes: frozenset[str]
    mounts: frozenset[str]
    devices: frozenset[str]
    namespaces: frozenset[str]
    rules: str
    groups: frozenset[Path]
    files: frozenset[Path]


def traces(name: str, paths: Paths) -> Traces:
    return Traces(
        processes=frozenset(_processes(str(paths.cluster(name)))),
        mounts=frozenset(line for line in Path("/proc/mounts").read_text().splitlines() if name in line),
        devices=frozenset(_devices(name)),
        namespaces=frozenset(_output("ip", "netns", "list").split()),
        rules=_output("nft", "list", "ruleset"),
        groups=frozenset(_groups(name)),
        files=frozenset(paths.clusters.glob(name)),
    )


def _processes(mark: str) -> Iterator[str]:
    """Programs that have anything to do with the cluster's directory; a shim or a pod is in its groups."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark in command and int(entry.name) != os.getpid():
            yield command


def _devices(name: str) -> Iterator[str]:
    for alias in Path("/sys/class/net").glob("*/ifalias"):
        with contextlib.suppress(OSError):  # Somebody else's device went away while we looked.
            if alias.read_text().strip().endswith(f" {name}"):
                yield alias.parent.name


def _groups(name: str) -> Iterator[Path]:
    for hierarchy in cgroups.hierarchies():
        yield from hierarchy.glob(f"slurm-operator/{name}")
        yield from hierarchy.glob(f"**/{name}")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def with_pods(wanted: Wanted, paths: Paths) -> Cluster:
    """A cluster that does something: pods with mounts, on both nodes."""
    cluster, _ = up(wanted, paths, Quiet())
    make_namespace(cluster, "busy")
    run(cluster, "busy", server("one", "node-1"), server("two", "node-2"))
    return cluster


@pytest.fixture
def own(wanted: Wanted) -> Wanted:
    return replace(wanted, name=f"e2e-leak-{os.getpid()}")


@pytest.mark.parametrize(
    "cycles", [1, pytest.param(10, marks=[pytest.mark.minutes, pytest.mark.timeout(1800)])]
)
def test_up_and_down_again_and_again_leaves_nothing_behind(own: Wanted, paths: Paths, cycles: int) -> None:
    before = traces(own.name, paths)

    for _ in range(cycles):
        with_pods(own, paths)
        during = traces(own.name, paths)
        assert during != before, "the traces would not see a cluster at all"
        stop.down(own.name, paths, Quiet())

        assert traces(own.name, paths) == before


@pytest.mark.full
def test_two_clusters_side_by_side_do_not_see_each_other(own: Wanted, paths: Paths) -> None:
    other = replace(own, name=f"e2e-other-{os.getpid()}")
    first, second = with_pods(own, paths), with_pods(other, paths)
    try:
        assert first.state.url != second.state.url
        stop.down(first.name, paths, Quiet())

        pods = second.kubectl("get", "pods", "-n", "busy", "--no-headers")
        assert pods.count("Running") == 2, "taking one down left the other alone"
    finally:
        stop.down(first.name, paths, Quiet())
        stop.down(second.name, paths, Quiet())


@pytest.fixture(autouse=True)
def heeds_ctrl_c() -> Iterator[None]:
    """A shell lets what it starts in the background ignore Ctrl-C, and that is inherited; a handler is not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def starting(name: str, moment: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """An `up` that has just begun the step whose line contains `moment`."""
    command = [sys.executable, "-u", "-m", "slurm_operator.cli", "up", "--name", name, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert any(moment in line for line in process.stderr)
        yield process


OTHER_MOMENTS = [
    pytest.param(moment, marks=pytest.mark.full) for moment in ("Namespaces", "etcd", "CoreDNS", "Slurm with")
]


@pytest.mark.parametrize("moment", ["containerd, kubelet", *OTHER_MOMENTS])
def test_ctrl_c_while_it_starts_leaves_nothing_behind(own: Wanted, paths: Paths, moment: str) -> None:
    before = traces(own.name, paths)

    with starting(own.name, moment) as process:
        os.killpg(process.pid, signal.SIGINT)  # The terminal sends it to the whole group.
        assert process.stderr is not None
        rest = process.stderr.read()

    assert process.returncode != 0
    assert "Traceback" not in rest
    assert traces(own.name, paths) == before


def test_a_start_that_was_killed_is_cleaned_up_by_the_next_down(own: Wanted, paths: Paths) -> None:
    before = traces(own.name, paths)

    with starting(own.name, "kube-controller-manager", "--kubernetes-only") as process:
        process.kill()
    assert traces(own.name, paths) != before
    stop.down(own.name, paths, Quiet())

    assert traces(own.name, paths) == before
