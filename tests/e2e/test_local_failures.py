"""What happens to a local cluster when parts of it are taken away."""

import os
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from e2e_pods import address, ask, make_namespace, run, server

from slurm_local import stop
from slurm_local.cluster import Cluster, is_ready
from slurm_local.errors import LocalError
from slurm_local.machine.cell import wait_until
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_local.start import Wanted, up
from slurm_local.status import status
from testing.power import start_node, stop_node


@pytest.fixture
def place(fragile_cluster: Cluster) -> str:
    """A namespace in the cluster that may be broken."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    make_namespace(fragile_cluster, name)
    return name


def test_a_drained_node_is_left_by_its_pods_and_used_again_after(
    fragile_cluster: Cluster, place: str
) -> None:
    cluster = fragile_cluster
    run(cluster, place, server("leaves", "node-2"), server("stays", "node-1"))

    cluster.kubectl("drain", "node-2", "--force", "--timeout=60s")
    assert cluster.kubectl("get", "pods", "-n", place, "-o", "name") == "pod/stays\n"

    cluster.kubectl("uncordon", "node-2")
    run(cluster, place, server("back", "node-2"))


@pytest.mark.full
def test_a_node_that_was_switched_off_and_on_runs_its_pods_again(
    fragile_cluster: Cluster, place: str
) -> None:
    cluster = fragile_cluster
    run(cluster, place, server("asks", "node-1"), server("survives", "node-2", restartPolicy="Always"))

    stop_node(cluster, 2)
    with pytest.raises(LocalError):
        ask(cluster, place, "asks", address(cluster, place, "survives"))
    start_node(cluster, 2)

    def restarted() -> bool:
        pods = cluster.items(f"/api/v1/namespaces/{place}/pods")
        [pod] = [each for each in pods if each["metadata"]["name"] == "survives"]
        return is_ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] == 1

    wait_until(restarted, "the pod to run again", deadline_s=90)
    assert ask(cluster, place, "asks", address(cluster, place, "survives")) == "survives"


def test_a_component_that_ended_is_named_with_the_last_lines_of_its_log(
    fragile_cluster: Cluster, paths: Paths
) -> None:
    cluster = fragile_cluster
    cluster.parts.stop("kube-scheduler")

    found = status(cluster.name, paths)
    [dead] = [component for component in found.components if not component.is_running]
    assert dead.name == "kube-scheduler"
    assert dead.last_lines in Path(dead.log).read_text()
    with pytest.raises(LocalError, match="kube-scheduler ended"):
        cluster.parts.raise_if_dead()

    cluster.parts.restart("kube-scheduler")
    assert status(cluster.name, paths).is_healthy


def test_up_twice_starts_nothing(fragile_cluster: Cluster, paths: Paths) -> None:
    before = fragile_cluster.state

    cluster, is_new = up(Wanted(fragile_cluster.name), paths, Quiet())

    assert not is_new
    assert cluster.state == before


def test_down_ends_a_cluster_whose_first_process_was_killed(wanted: Wanted, paths: Paths) -> None:
    cluster, _ = up(replace(wanted, name=f"e2e-crash-{os.getpid()}"), paths, Quiet())
    state = cluster.state
    state.cell.end()
    with pytest.raises(LocalError, match="is not running any more"):
        _ = cluster.state

    assert stop.down(cluster.name, paths, Quiet())

    assert not cluster.directory.exists()
    assert not stop.down(cluster.name, paths, Quiet()), "there is nothing left to take down"
