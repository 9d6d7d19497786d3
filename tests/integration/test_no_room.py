"""An etcd that is full, and a namespace without room: what the operator sends meanwhile, says, and does afterwards."""

import time
import uuid

import pytest
from kinds_rig import apply, condition, get, merge, operator, ours

from slurm_local.kubernetes.api_call import Caller, Refused
from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import registry
from slurm_operator.api.schema.crd import crd
from testing import rights
from testing.audit import changes_by
from testing.control_plane import ControlPlane
from testing.managers import running_manager, until

FULL = "database space exceeded"
QUOTA = 40 << 20
BLOCK = "x" * 700_000
SECONDS = 10.0

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """Its etcd has little room."""
    wanted = ControlPlane(
        tmp_path_factory.mktemp("room"), audit="Metadata", etcd_flags=(f"--quota-backend-bytes={QUOTA}",)
    )
    with wanted.running() as plane:
        rights.grant(plane, registry.DEFAULT)
        for model in registry.DEFAULT.models:
            plane.caller.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(model))
        wait_established(plane.kubectl)
        yield plane


@pytest.fixture
def ns(plane) -> str:
    name = f"room-{uuid.uuid4().hex[:8]}"
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def writes(plane, user: str, resource: str) -> list[int]:
    """The answers to every write of the operator about this kind of thing."""
    return [
        entry["responseStatus"]["code"]
        for entry in changes_by(plane.audit_log, user)
        if entry["objectRef"]["resource"] == resource
    ]


def test_a_quota_is_reported_and_asked_again_without_haste(plane, ns, tmp_path):
    none = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": ns}, "spec": {"hard": {"services": "0"}}, "status": {"hard": {"services": "0"}, "used": {"services": "0"}}}  # fmt: skip
    apply(plane, none)
    merge(plane, ns, "resourcequota", "none", {"status": none["status"]}, "--subresource=status")
    user = f"operator-{ns}"
    with running_manager(operator(plane, user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        apply(plane, ours("Controller", ns, "slurm", {}))
        until(lambda: 403 in writes(plane, user, "services"), what="the operator to be refused")
        before = len(writes(plane, user, "services"))
        for number in range(int(SECONDS * 4)):
            note = {"metadata": {"annotations": {"kubectl.kubernetes.io/touched": str(number)}}}
            merge(plane, ns, "controllers.slinky.slurm.net", "slurm", note)
        assert len(writes(plane, user, "services")) - before <= 12, "each of two Services, ever more seldom"

        status, reason, told = condition(plane, ns, "controllers.slinky.slurm.net", "slurm", "Degraded")
        assert (status, reason) == ("True", "WriteFailed")
        assert "exceeded quota: none" in told

        plane.kubectl("delete", "resourcequota", "none", "-n", ns)
        until(
            lambda: get(plane, ns, "service", "slurm-controller") is not None, seconds=60, what="the Service"
        )


def test_a_full_etcd_is_not_asked_with_every_pass_and_work_goes_on_when_there_is_room(plane, ns, tmp_path):
    user = f"operator-{ns}"
    with running_manager(operator(plane, user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        # Made while there is room, so that the operator knows of it.
        apply(plane, ours("Controller", ns, "slurm", {}))
        until(lambda: get(plane, ns, "service", "slurm-controller") is not None, what="the Service")
        fill(plane, ns)
        plane.kubectl("delete", "service", "slurm-controller", "-n", ns)
        until(
            lambda: max(writes(plane, user, "services")) >= 400 and 500 in writes(plane, user, "configmaps"),
            what="the operator to be refused",
        )
        before = len(writes(plane, user, "services"))
        time.sleep(SECONDS)
        assert len(writes(plane, user, "services")) - before <= 8
        assert FULL in (tmp_path / "log").read_text()

        make_room(plane, ns)
        until(
            lambda: get(plane, ns, "service", "slurm-controller") is not None,
            seconds=90,
            what="the Service again",
        )


def fill(plane, ns: str) -> None:
    """Until etcd takes no more."""
    for number in range(1000):
        made = {"metadata": {"name": f"block-{number}"}, "data": {"x": BLOCK}}
        try:
            plane.caller.call("POST", f"/api/v1/namespaces/{ns}/configmaps", made)
        except Refused as refused:
            if FULL in str(refused):
                return
            raise
    raise AssertionError("it is never full")


def make_room(plane, ns: str) -> None:
    """As an administrator does: less in it, what was deleted given back, and the alarm off."""
    plane.kubectl("delete", "configmap", "--all", "-n", ns)
    etcd = Caller(plane.etcd_url, plane.certificates.etcd_authority.pair.certificate, plane.certificates.etcd)
    revision = etcd.call("POST", "/v3/maintenance/status", {})["header"]["revision"]
    etcd.call("POST", "/v3/kv/compaction", {"revision": revision, "physical": True})
    etcd.call("POST", "/v3/maintenance/defragment", {})
    until(lambda: not disarmed(etcd), what="the alarm to be off")


def disarmed(etcd: Caller) -> list[dict]:
    """The alarms that were on, each turned off for the member that raised it."""
    alarms = etcd.call("POST", "/v3/maintenance/alarm", {"action": "GET"}).get("alarms", [])
    for alarm in alarms:
        etcd.call("POST", "/v3/maintenance/alarm", {"action": "DEACTIVATE", **alarm})
    return alarms
