"""Two installations in two namespaces, and Slinky's operator beside one: a single one of them acts on a cluster."""

import time

import pytest
from kinds_rig import condition, get, merge, ns, operator, ours, wait_for, wait_reason, writes_by

from slurm_operator.api.shared import names
from testing.audit import changes_by
from testing.managers import running_manager, until

__all__ = ["ns"]

pytestmark = pytest.mark.timeout(240)


def home(plane, ns: str, which: str) -> str:
    name = f"{ns}-{which}"
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def flags(ns: str, home: str) -> tuple[str, ...]:
    return ("--namespaces", ns, "--leader-elect", f"--leader-elect-namespace={home}")


def marked(plane, ns: str) -> str:
    return get(plane, ns, "controller", "slurm")["metadata"].get("annotations", {}).get(names.MANAGER, "")


def claims_that_lost(plane, user: str) -> list[int]:
    """Answers to patches of a Controller that another installation had changed first."""
    return [
        entry["responseStatus"]["code"]
        for entry in changes_by(plane.audit_log, user)
        if entry.get("objectRef", {}).get("resource") == "controllers"
        and entry["responseStatus"]["code"] in (409, 422)
    ]


def test_one_of_two_installations_acts_and_the_other_one_when_the_first_is_gone(plane, ns, tmp_path):
    first, second = home(plane, ns, "a"), home(plane, ns, "b")
    plane.kubectl("apply", "-f", "-", stdin=str(ours("Controller", ns, "slurm", {})).replace("'", '"'))
    with (
        running_manager(operator(plane, f"b-{ns}"), tmp_path / "b", *flags(ns, second)) as other,
        running_manager(operator(plane, f"a-{ns}"), tmp_path / "a", *flags(ns, first)) as manager,
    ):
        manager.wait_ready(), other.wait_ready()
        until(lambda: marked(plane, ns), what="one of them to claim the Controller")
        wait_for(plane, ns, "service", "slurm-controller")
        if marked(plane, ns).startswith(second):
            manager, other, first, second = other, manager, second, first
        message = wait_reason(plane, ns, "controller", "slurm", "ManagedElsewhere", "Observing")
        assert f"Lease {first}/slurm-operator manages" in message
        bystander = f"{'b' if second.endswith('-b') else 'a'}-{ns}"
        before, lost = writes_by(plane, bystander), claims_that_lost(plane, bystander)
        assert len(before) - len(lost) == 1, before
        for replicas in (1, 2, 3):
            merge(plane, ns, "controller", "slurm", {"spec": {"extraConf": f"MaxJobCount={replicas}000"}})
            time.sleep(2)
        assert writes_by(plane, bystander) == before, "it reports, and writes nothing else"

        manager.process.kill()
        plane.kubectl("delete", "lease", "slurm-operator", "-n", first)
        until(lambda: marked(plane, ns).startswith(second), what="the other one to take over")
        until(
            lambda: condition(plane, ns, "controller", "slurm", "Observing")[0] == "",
            what="no condition any more",
        )
        assert other.process.poll() is None


def test_while_slinkys_operator_has_its_lease_nothing_is_done(plane, ns, tmp_path):
    theirs, mine = home(plane, ns, "slinky"), home(plane, ns, "ours")
    labels = {"app.kubernetes.io/name": "slurm-operator"}
    container = {
        "name": "slurm-operator",
        "image": "slinky:1.3",
        "args": ["--leader-elect", f"--namespaces={ns}"],
    }
    deployment = {
        "metadata": {"name": "slurm-operator", "labels": labels},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    }  # fmt: skip
    plane.caller.call("POST", f"/apis/apps/v1/namespaces/{theirs}/deployments", deployment)
    lease = {
        "metadata": {"name": "slurm-operator"},
        "spec": {"holderIdentity": "slurm-operator-0_1", "leaseDurationSeconds": 15},
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/{theirs}/leases"
    plane.caller.call("POST", path, lease)
    plane.kubectl("apply", "-f", "-", stdin=str(ours("Controller", ns, "slurm", {})).replace("'", '"'))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", *flags(ns, mine)) as manager:
        manager.wait_ready()
        message = wait_reason(plane, ns, "controller", "slurm", "AnotherOperatorActs", "Observing")
        assert f"kubectl -n {theirs} scale deployment/slurm-operator --replicas=0" in message
        time.sleep(5)
        assert len(writes_by(plane, f"op-{ns}")) == 1, writes_by(plane, f"op-{ns}")
        assert get(plane, ns, "service", "slurm-controller") is None

        patch = {"spec": {"holderIdentity": ""}}
        plane.caller.call("PATCH", f"{path}/slurm-operator", patch, kind="application/merge-patch+json")
        wait_for(plane, ns, "service", "slurm-controller")
        assert marked(plane, ns).startswith(f"{mine}/slurm-operator/")
