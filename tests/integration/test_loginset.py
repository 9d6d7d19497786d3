"""LoginSets on a real API server: what is made, what is put back, and scaling as autoscalers do it."""

import pytest
from kinds_rig import (
    apply,
    condition,
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
)

from testing.golden import golden_manifests
from testing.managers import running_manager, until

__all__ = ["ns"]

GOLDEN = golden_manifests("loginset")


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    assert refusals(plane, ns, GOLDEN[name]) == []


def test_login_pods_come_up_are_put_right_and_then_left_alone(plane, ns, tmp_path):
    apply(plane, ours("LoginSet", ns, "login", {"controllerRef": {"name": "slurm"}}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_reason(plane, ns, "loginset", "login", "ControllerNotFound")
        host_keys = wait_for(plane, ns, "secret", "login-ssh-host-keys")
        assert len(host_keys["data"]) == 6
        assert host_keys["immutable"] is True

        external = {"external": True, "externalConfig": {"host": "head.example.org", "port": 6817}}
        apply(plane, secret(ns, "slurm-auth-slurm", **{"slurm.key": "x"}), secret(ns, "slurm-auth-jwt", **{"jwt.key": "y"}),
              ours("Controller", ns, "slurm", external))  # fmt: skip
        for kind, name in [
            ("deployment", "login"), ("service", "login"), ("configmap", "login-ssh-config"),
            ("secret", "login-ssh-host-keys"), ("secret", "login-sssd-conf"),
        ]:  # fmt: skip
            assert owner_of(wait_for(plane, ns, kind, name)) == ("LoginSet", "login")
        pretend_ready(plane, ns, "deployment", "login")
        plane.kubectl("wait", "--for=condition=Ready", "loginset/login", "-n", ns, "--timeout=60s")

        before = get(plane, ns, "deployment", "login")["metadata"]["generation"]
        merge(plane, ns, "loginset", "login", {"spec": {"rootSshAuthorizedKeys": "ssh-ed25519 AAAA me"}})
        until(lambda: "AAAA me" in get(plane, ns, "configmap", "login-ssh-config")["data"]["authorized_keys"])
        assert get(plane, ns, "deployment", "login")["metadata"]["generation"] == before

        merge(plane, ns, "configmap", "login-ssh-config", {"data": {"sshd_config": "PermitRootLogin yes"}})
        until(lambda: "UsePAM" in get(plane, ns, "configmap", "login-ssh-config")["data"]["sshd_config"])
        merge(plane, ns, "secret", "login-sssd-conf", {"stringData": {"sssd.conf": "[sssd]"}})
        size = len(get(plane, ns, "secret", "login-sssd-conf")["data"]["sssd.conf"])
        until(
            lambda: len(get(plane, ns, "secret", "login-sssd-conf")["data"]["sssd.conf"]) > 300,
            what=f"more than {size}",
        )

        for strategy in ({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}):
            merge(plane, ns, "loginset", "login", {"spec": {"strategy": strategy}})
            until(
                lambda type_=strategy["type"]: (
                    get(plane, ns, "deployment", "login")["spec"]["strategy"]["type"] == type_
                ),
                what=f"{strategy}",
            )
        plane.kubectl("scale", "loginset/login", "-n", ns, "--replicas=3")
        until(lambda: get(plane, ns, "deployment", "login")["spec"]["replicas"] == 3, what="three replicas")
        pretend_ready(plane, ns, "deployment", "login")
        until(
            lambda: get(plane, ns, "loginset", "login")["status"]["readyReplicas"] == 3,
            what="all of them ready",
        )
        until(lambda: condition(plane, ns, "loginset", "login", "Progressing")[0] == "False", what="an end")
        selector = get(plane, ns, "loginset", "login")["status"]["selector"]
        assert len(get(plane, ns, "loginset", "login")["status"]["hostKeyFingerprints"]) == 3
        assert selector == "app.kubernetes.io/instance=login,app.kubernetes.io/name=login"

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        done = 'reconciles_total{reconciler="loginset",result="done"}'
        until(lambda: done in manager.get("/metrics", manager.metrics)[1], what="a pass with nothing to do")
    assert writes_by(plane, f"again-{ns}") == []
    assert get(plane, ns, "secret", "login-ssh-host-keys")["data"] == host_keys["data"]
