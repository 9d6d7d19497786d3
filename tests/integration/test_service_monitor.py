"""Prometheus may come long after us, and people edit what it was told: the ServiceMonitor follows."""

import json

from kinds_rig import apply, condition, get, merge, ns, operator, ours, plane, wait_for, writes_by
from monitors_crd import MONITORS

from testing.managers import running_manager, until

__all__ = ["ns", "plane"]

WANTED = {
    "enabled": True,
    "serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
}


def endpoints(plane, ns) -> list[dict]:
    return (get(plane, ns, "servicemonitor", "slurm-controller") or {}).get("spec", {}).get("endpoints", [])


def test_a_monitor_is_made_when_its_kind_comes_and_kept_as_it_should_be(plane, ns, tmp_path):
    apply(plane, ours("Controller", ns, "slurm", {"metrics": WANTED}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: "There is no ServiceMonitor yet" in condition(plane, ns, "controllers.slinky.slurm.net", "slurm", "Degraded")[2],
              what="a word about it")  # fmt: skip

        apply(plane, MONITORS)
        plane.kubectl(
            "wait", "--for=condition=Established", "crd", MONITORS["metadata"]["name"], "--timeout=60s"
        )
        made = wait_for(plane, ns, "servicemonitor", "slurm-controller")
        assert made["metadata"]["labels"]["release"] == "prometheus"
        assert {one["path"] for one in made["spec"]["endpoints"]} >= {"/metrics/jobs", "/metrics/nodes"}
        assert {one["interval"] for one in made["spec"]["endpoints"]} == {"30s"}
        until(
            lambda: condition(plane, ns, "controllers.slinky.slurm.net", "slurm", "Degraded")[2] == "",
            what="no word about it",
        )

        plane.kubectl("delete", "servicemonitor", "slurm-controller", "-n", ns)
        wait_for(plane, ns, "servicemonitor", "slurm-controller")
        merge(plane, ns, "servicemonitor", "slurm-controller", {"spec": {"endpoints": []}})
        until(lambda: endpoints(plane, ns) == made["spec"]["endpoints"], what="an edit to be undone")

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(
            lambda: "reconciles_total" in manager.get("/metrics", manager.metrics)[1],
            what="a look at everything",
        )
        merge(plane, ns, "controllers.slinky.slurm.net", "slurm", {"spec": {"metrics": {"enabled": False}}})
        until(lambda: get(plane, ns, "servicemonitor", "slurm-controller") is None, what="the monitor to go")
    monitors = [line for line in writes_by(plane, f"again-{ns}") if "servicemonitors" in line]
    assert [line.split()[0] for line in monitors] == ["delete"], json.dumps(monitors)
