"""What `local status` says."""

import pytest

from slurm_local.demo import described
from slurm_local.status import ClusterStatus, ComponentStatus, ThingStatus

ETCD = ComponentStatus(name="etcd", is_running=True, log="/log/etcd")
DEAD = ComponentStatus(name="etcd", is_running=False, log="/log/etcd", last_lines="disk full")
READY, NOT_READY = ThingStatus(name="node-1", is_ready=True), ThingStatus(name="node-2", is_ready=False)


def cluster(**facts: object) -> ClusterStatus:
    return ClusterStatus(**({"name": "demo", "is_running": True, "components": [ETCD]} | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "healthy"),
    [
        pytest.param(cluster(nodes=[READY]), True, id="all well"),
        pytest.param(cluster(is_running=False), False, id="not running"),
        pytest.param(cluster(components=[DEAD]), False, id="a component ended"),
        pytest.param(cluster(nodes=[READY, NOT_READY]), False, id="a node is not ready"),
        pytest.param(cluster(slurm_pods=[NOT_READY]), False, id="a Slurm pod is not ready"),
    ],
)
def test_healthy_is_when_everything_that_should_run_runs(found: ClusterStatus, healthy: bool) -> None:
    assert found.is_healthy is healthy


def test_a_component_that_ended_is_named_with_its_last_words() -> None:
    text = described(cluster(components=[DEAD]))

    assert "etcd ENDED. The last lines of /log/etcd:\ndisk full" in text


def test_what_is_not_ready_is_named() -> None:
    assert "nodes: 1 of 2 ready; not yet: node-2" in described(cluster(nodes=[READY, NOT_READY]))
