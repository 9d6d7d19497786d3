"""RestApis on a real API server: what is made, what is put back, and that nothing is written twice."""

import pytest
from kinds_rig import (
    apply,
    get,
    merge,
    ns,
    operator,
    ours,
    owner_of,
    pretend_ready,
    refusals,
    secret,
    wait_for,
    wait_reason,
    writes_by,
)  # fmt: skip

from testing.golden import golden_manifests
from testing.managers import running_manager, until

__all__ = ["ns"]

GOLDEN = golden_manifests("restapi")
KEYS = {
    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    """All but the ServiceMonitor, whose definition comes with the Prometheus operator."""
    assert refusals(plane, ns, [one for one in GOLDEN[name] if one["kind"] != "ServiceMonitor"]) == []


def test_a_restapi_comes_up_is_put_right_and_then_left_alone(plane, ns, tmp_path):
    apply(plane, ours("RestApi", ns, "rest", {"controllerRef": {"name": "slurm"}, "replicas": 2}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        assert "there is none" in wait_reason(plane, ns, "restapi", "rest", "ControllerNotFound")
        assert owner_of(wait_for(plane, ns, "service", "rest-restapi")) == ("RestApi", "rest")
        assert get(plane, ns, "deployment", "rest-restapi") is None

        apply(
            plane, secret(ns, "slurm-auth-slurm", **{"slurm.key": "x"}), secret(ns, "slurm-auth-jwt", **{"jwt.key": "y"}),
            ours("Controller", ns, "slurm", {"external": True, "externalConfig": {"host": "c", "port": 6817}, **KEYS}),
        )  # fmt: skip
        assert owner_of(wait_for(plane, ns, "deployment", "rest-restapi")) == ("RestApi", "rest")
        pretend_ready(plane, ns, "deployment", "rest-restapi")
        plane.kubectl("wait", "--for=condition=Ready", "restapi/rest", "-n", ns, "--timeout=60s")
        status = get(plane, ns, "restapi", "rest")["status"]
        assert (status["replicas"], status["readyReplicas"]) == (2, 2)
        assert status["url"] == f"http://rest-restapi.{ns}:6820"

        plane.kubectl("patch", "deployment", "rest-restapi", "-n", ns, "--type=strategic", "-p",
                      '{"spec":{"replicas":7,"template":{"spec":{"containers":[{"name":"slurmrestd","args":["else"]}]}}}}')  # fmt: skip
        until(
            lambda: the_pod(plane, ns)["containers"][0]["args"][-1] == "0.0.0.0:6820",
            what="the arguments put back",
        )
        assert get(plane, ns, "deployment", "rest-restapi")["spec"]["replicas"] == 2
        plane.kubectl("delete", "service", "rest-restapi", "-n", ns)
        wait_for(plane, ns, "service", "rest-restapi")
        pretend_ready(plane, ns, "deployment", "rest-restapi")
        plane.kubectl("wait", "--for=condition=Ready", "restapi/rest", "-n", ns, "--timeout=60s")

        elsewhere = {"external": True, "externalConfig": {"host": "dbd.example.org", "port": 6819}}
        apply(plane, ours("Accounting", ns, "books", elsewhere))
        merge(plane, ns, "controller", "slurm", {"spec": {"accountingRef": {"name": "books"}}})
        until(lambda: "-s" not in the_pod(plane, ns)["containers"][0]["args"], what="the paths of slurmdbd")
        pretend_ready(plane, ns, "deployment", "rest-restapi")
        until(lambda: settled(plane, ns), what="a settled status")

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        done = 'reconciles_total{reconciler="restapi",result="done"}'
        until(lambda: done in manager.get("/metrics", manager.metrics)[1], what="a pass with nothing to do")
    assert writes_by(plane, f"again-{ns}") == []


def the_pod(plane, ns: str) -> dict:
    return get(plane, ns, "deployment", "rest-restapi")["spec"]["template"]["spec"]


def settled(plane, ns: str) -> bool:
    conditions = {c["type"]: c["status"] for c in get(plane, ns, "restapi", "rest")["status"]["conditions"]}
    return conditions == {"Ready": "True", "Progressing": "False", "Degraded": "False"}


def test_an_exporter_follows_its_switch_and_is_written_once(plane, ns, tmp_path):
    wanted = {"controllerRef": {"name": "slurm"}, "exporter": {"enabled": True}}
    apply(
        plane, secret(ns, "slurm-auth-slurm", **{"slurm.key": "x"}), secret(ns, "slurm-auth-jwt", **{"jwt.key": "y"}),
        ours("Controller", ns, "slurm", {"external": True, "externalConfig": {"host": "c", "port": 6817}, **KEYS}),
        ours("RestApi", ns, "rest", wanted),
    )  # fmt: skip
    made = (("deployment", "rest-metrics"), ("service", "rest-metrics"))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        for kind, name in made:
            assert owner_of(wait_for(plane, ns, kind, name)) == ("RestApi", "rest")

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        merge(plane, ns, "restapi", "rest", {"spec": {"exporter": {"enabled": False}}})
        for kind, name in made:
            until(lambda: get(plane, ns, kind, name) is None, what=f"{kind} {name} to be deleted")  # noqa: B023
    wrote = [line for line in writes_by(plane, f"again-{ns}") if "rest-metrics" in line]
    assert {line.split()[0] for line in wrote} == {"delete"}, wrote
