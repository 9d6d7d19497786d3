"""NodeConfigurators on a real API server: the DaemonSet that is made, and what is said where there is none."""

from collections.abc import Iterator

import pytest
from kinds_rig import (
    apply,
    condition,
    get,
    merge,
    ns,
    operator,
    owner_of,
    refusals,
    serving_kinds,
    wait_for,
    wait_reason,
    writes_by,
)

from slurm_operator.api import registry
from testing.control_plane import Plane
from testing.golden import golden_manifests
from testing.managers import running_manager, until

__all__ = ["ns"]

KIND = "nodeconfigurators.slurm.nebius.ai"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with serving_kinds(tmp_path_factory.mktemp("configurators"), kinds=registry.ALL) as plane:
        yield plane


def configurator(ns: str, name: str, spec: dict) -> dict:
    metadata = {"name": name, "namespace": ns}
    return {"apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "NodeConfigurator", "metadata": metadata, "spec": spec}  # fmt: skip


def test_the_api_server_takes_every_manifest(plane, ns):
    manifests = [one for made in golden_manifests("nebius/nodeconfigurator").values() for one in made]

    assert {one["kind"] for one in manifests} == {"DaemonSet", "ServiceAccount", "Role", "RoleBinding"}
    assert refusals(plane, ns, manifests) == []


def test_pods_on_every_node_as_long_as_something_is_enabled(plane, ns, tmp_path):
    user = f"op-{ns}"
    apply(plane, configurator(ns, "nodes", {}))
    with running_manager(
        operator(plane, user), tmp_path / "log", "--namespaces", ns, "--api=slurm.nebius.ai"
    ) as manager:
        manager.wait_ready()
        made = wait_for(plane, ns, "daemonset", "nodes-ds")
        assert owner_of(made) == ("NodeConfigurator", "nodes")
        assert made["spec"]["template"]["spec"]["hostPID"] is True
        wait_for(plane, ns, "rolebinding", "nodes-rebooter")
        wait_reason(plane, ns, KIND, "nodes", "Starting")

        counts = {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0}  # fmt: skip
        merge(plane, ns, "daemonset", "nodes-ds", {"status": {"observedGeneration": 1, **counts}}, "--subresource=status")  # fmt: skip
        message = wait_reason(plane, ns, KIND, "nodes", "Running")
        assert f"--clusterrole=slurm-operator-rebooter --serviceaccount={ns}:nodes-rebooter" in message

        writes = len(writes_by(plane, user))
        merge(plane, ns, KIND, "nodes", {"metadata": {"annotations": {"look": "again"}}})
        merge(plane, ns, KIND, "nodes", {"spec": {"rebooter": {"enabled": True, "env": [{"name": "REBOOTER_MAX_NODES", "value": "2"}]}}})  # fmt: skip
        until(
            lambda: "REBOOTER_MAX_NODES" in str(get(plane, ns, "daemonset", "nodes-ds")), what="the variable"
        )
        assert [one for one in writes_by(plane, user)[writes:] if "rolebindings" in one] == []

        merge(plane, ns, KIND, "nodes", {"spec": {"rebooter": {"enabled": False}}})
        until(lambda: get(plane, ns, "daemonset", "nodes-ds") is None, what="the DaemonSet to go")
        assert "Neither spec.rebooter nor" in wait_reason(plane, ns, KIND, "nodes", "NothingEnabled")
        assert condition(plane, ns, KIND, "nodes", "Degraded")[0] == "False"
