"""The API server that the other tests stand on: rights, restarts, audit, secrecy."""

import http.client
import stat
from pathlib import Path

import pytest

from slurm_local.build import versions
from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Caller, Refused
from testing.control_plane import ControlPlane, Plane


def test_the_server_is_the_version_we_pinned(api_server: Plane) -> None:
    assert api_server.caller.call("GET", "/version")["gitVersion"] == f"v{versions.KUBERNETES}"


def test_kubectl_works_with_the_kubeconfig(api_server: Plane, namespace: str) -> None:
    api_server.kubectl("create", "configmap", "greeting", "--from-literal=word=hello", "-n", namespace)

    word = api_server.kubectl("get", "configmap", "greeting", "-n", namespace, "-o", "jsonpath={.data.word}")

    assert word == "hello"


def test_kubectl_s_complaint_becomes_the_error(api_server: Plane, namespace: str) -> None:
    with pytest.raises(LocalError, match='configmaps "nowhere" not found'):
        api_server.kubectl("get", "configmap", "nowhere", "-n", namespace)


def test_pods_can_be_made_though_nobody_makes_service_accounts(api_server: Plane, namespace: str) -> None:
    pod = {"metadata": {"name": "still"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}

    made = api_server.caller.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)

    assert made["status"]["phase"] == "Pending"


def test_somebody_without_a_role_is_forbidden(api_server: Plane, namespace: str) -> None:
    api_server.kubeconfig_for("visitor")
    visitor = Caller(api_server.url, api_server.ca, api_server.certificates.client("visitor"))

    with pytest.raises(Refused) as refusal:
        visitor.call("GET", f"/api/v1/namespaces/{namespace}/secrets")

    assert refusal.value.status == 403


def test_nobody_reads_the_kubeconfig_or_a_key_but_its_owner(api_server: Plane) -> None:
    secret = [api_server.kubeconfig, *(api_server.directory / "pki").glob("*.key")]

    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in secret} == {"0o600"}


def test_objects_outlive_a_restart_of_the_server(api_server: Plane, namespace: str) -> None:
    api_server.kubectl("create", "configmap", "kept", "-n", namespace)

    api_server.restart_apiserver()

    assert "kept" in api_server.kubectl("get", "configmaps", "-n", namespace, "-o", "name")


def test_the_audit_log_names_who_wrote_what(api_server: Plane, namespace: str) -> None:
    api_server.kubectl("create", "configmap", "watched", "-n", namespace)

    lines = [line for line in api_server.audit_log.read_text().splitlines() if namespace in line]

    assert any('"verb":"create"' in line and '"name":"watched"' in line for line in lines)


def test_with_a_controller_manager_namespaces_come_and_go(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, controller_manager=True).running() as plane:
        plane.kubectl("create", "namespace", "brief")
        plane.wait_for_service_account("brief")
        plane.kubectl("delete", "namespace", "brief", "--timeout=60s")

        assert "brief" not in plane.kubectl("get", "namespaces", "-o", "name")


def test_nothing_listens_after_the_block(tmp_path: Path) -> None:
    with ControlPlane(tmp_path).running() as plane:
        caller = plane.caller

    with pytest.raises((OSError, http.client.HTTPException)):
        caller.call("GET", "/readyz")
