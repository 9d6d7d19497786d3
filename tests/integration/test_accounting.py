"""Accountings on a real API server: what is made, what follows a changed password, who is in the way."""

import base64
import json

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

from slurm_operator.slurm.conf.lines import parse
from testing.golden import golden_manifests
from testing.managers import running_manager, until

__all__ = ["ns"]

GOLDEN = golden_manifests("accounting")
STORAGE = {"host": "db.example.org", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    assert refusals(plane, ns, GOLDEN[name]) == []


def test_slurmdbd_follows_its_password_is_put_right_and_then_left_alone(plane, ns, tmp_path):
    apply(plane, ours("Accounting", ns, "slurm", {"storageConfig": STORAGE}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        assert "Secret 'db'" in wait_reason(plane, ns, "accounting", "slurm", "SecretNotFound")
        assert len(key_bytes(plane, ns, "slurm-auth-slurm", "slurm.key")) == 1024
        first_key = key_bytes(plane, ns, "slurm-auth-jwt", "jwt.key")
        assert "ownerReferences" not in get(plane, ns, "secret", "slurm-auth-jwt")["metadata"]

        apply(plane, secret(ns, "db", password="s3c#ret one"))
        assert owner_of(wait_for(plane, ns, "statefulset", "slurm-accounting")) == ("Accounting", "slurm")
        assert owner_of(wait_for(plane, ns, "service", "slurm-accounting")) == ("Accounting", "slurm")
        assert owner_of(get(plane, ns, "secret", "slurm-accounting")) == ("Accounting", "slurm")
        assert slurmdbd_conf(plane, ns).last("StoragePass") == "s3c#ret one"
        before = conf_hash(plane, ns)

        apply(plane, secret(ns, "db", password="another"))
        until(lambda: slurmdbd_conf(plane, ns).last("StoragePass") == "another", what="the new password")
        until(lambda: conf_hash(plane, ns) != before, what="a new pod for it")

        edited = {"data": {"slurmdbd.conf": base64.b64encode(b"StoragePass=foreign\n").decode()}}
        merge(plane, ns, "secret", "slurm-accounting", edited)
        until(
            lambda: slurmdbd_conf(plane, ns).last("StoragePass") == "another", what="slurmdbd.conf put back"
        )

        pretend_ready(plane, ns, "statefulset", "slurm-accounting")
        plane.kubectl("wait", "--for=condition=Ready", "accounting/slurm", "-n", ns, "--timeout=60s")
        until(lambda: condition(plane, ns, "accounting", "slurm", "Progressing")[0] == "False", what="an end")
        events = plane.kubectl("get", "events.events.k8s.io", "-n", ns, "-o", "json")
        told = manager.log.read_text() + events + json.dumps(get(plane, ns, "accounting", "slurm"))
        assert "s3c#ret" not in told
        assert "another" not in told

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        done = 'reconciles_total{reconciler="accounting",result="done"}'
        until(lambda: done in manager.get("/metrics", manager.metrics)[1], what="a pass with nothing to do")
    assert writes_by(plane, f"again-{ns}") == []
    assert key_bytes(plane, ns, "slurm-auth-jwt", "jwt.key") == first_key


def test_a_managed_mariadb_comes_first_and_its_data_outlive_the_accounting(plane, ns, tmp_path):
    apply(plane, ours("Accounting", ns, "slurm", {"managed": {"storage": {"size": "1Gi"}}}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        assert "waiting for MariaDB" in wait_reason(plane, ns, "accounting", "slurm", "DatabaseStarting")
        assert owner_of(wait_for(plane, ns, "statefulset", "slurm-mariadb")) == ("Accounting", "slurm")
        assert get(plane, ns, "statefulset", "slurm-accounting") is None

        pretend_ready(plane, ns, "statefulset", "slurm-mariadb")
        wait_for(plane, ns, "statefulset", "slurm-accounting")
        password = key_bytes(plane, ns, "slurm-mariadb", "password").decode()
        assert slurmdbd_conf(plane, ns).last("StoragePass") == password
        assert get(plane, ns, "accounting", "slurm")["status"]["database"]["managed"] is True

        merge(plane, ns, "accounting", "slurm", {"spec": {"managed": {"storage": {"size": "2Gi"}}}})
        wait_reason(plane, ns, "accounting", "slurm", "WriteFailed", "Degraded")  # No class here can grow.
        merge(plane, ns, "accounting", "slurm", {"spec": {"managed": {"storage": {"size": "1Gi"}}}})

        plane.kubectl("delete", "accounting", "slurm", "-n", ns, "--timeout=30s")
        assert "ownerReferences" not in get(plane, ns, "pvc", "slurm-mariadb")["metadata"]
        assert "ownerReferences" not in get(plane, ns, "secret", "slurm-mariadb")["metadata"]


def test_deletion_waits_for_controllers_says_so_and_can_be_forced(plane, ns, tmp_path):
    external = {
        "external": True,
        "externalConfig": {"host": "c", "port": 6817},
        "accountingRef": {"name": "slurm"},
    }
    apply(plane, secret(ns, "db", password="x"), ours("Accounting", ns, "slurm", {"storageConfig": STORAGE}),
          ours("Controller", ns, "head", external))  # fmt: skip
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: get(plane, ns, "accounting", "slurm")["metadata"].get("finalizers"), what="a finalizer")
        wait_for(plane, ns, "statefulset", "slurm-accounting")

        plane.kubectl("delete", "accounting", "slurm", "-n", ns, "--wait=false")
        assert "Controller head" in wait_reason(plane, ns, "accounting", "slurm", "InUse", "Progressing")
        assert get(plane, ns, "statefulset", "slurm-accounting") is not None

        plane.kubectl("annotate", "accounting", "slurm", "-n", ns, "slinky.slurm.net/force-deletion=true")
        until(lambda: get(plane, ns, "accounting", "slurm") is None, what="the Accounting gone")

        apply(plane, ours("Accounting", ns, "slurm", {"storageConfig": STORAGE}))
        until(lambda: get(plane, ns, "accounting", "slurm")["metadata"].get("finalizers"), what="a finalizer")
        plane.kubectl("delete", "accounting", "slurm", "-n", ns, "--wait=false")
        wait_reason(plane, ns, "accounting", "slurm", "InUse", "Progressing")
        merge(plane, ns, "controller", "head", {"spec": {"accountingRef": None}})
        until(lambda: get(plane, ns, "accounting", "slurm") is None, what="the Accounting gone")


def key_bytes(plane, ns: str, name: str, entry: str) -> bytes:
    return base64.b64decode(wait_for(plane, ns, "secret", name)["data"][entry])


def slurmdbd_conf(plane, ns: str):
    return parse(key_bytes(plane, ns, "slurm-accounting", "slurmdbd.conf").decode(), "slurmdbd.conf")


def conf_hash(plane, ns: str) -> str:
    template = get(plane, ns, "statefulset", "slurm-accounting")["spec"]["template"]
    return template["metadata"]["annotations"]["slinky.slurm.net/slurmdbd-conf-hash"]
