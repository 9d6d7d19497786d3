"""A write that a real API server refuses for good: how often it is sent, what is told, and that it is made in the end."""

import json
import threading
import time
import uuid
from contextlib import contextmanager

import pytest
from kinds_rig import apply, condition, get, merge, operator, ours, plane

from testing.audit import changes_by
from testing.managers import running_manager, until

__all__ = ["plane"]

SECONDS = 12.0
SERVICE = "slurm-workers-slurm"


@pytest.fixture
def ns(plane) -> str:
    name = f"refused-{uuid.uuid4().hex[:8]}"
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def asked(plane, user: str, ns: str) -> list[int]:
    """The answers to every write of the operator about the Service."""
    return [
        entry["responseStatus"]["code"]
        for entry in changes_by(plane.audit_log, user)
        if entry["objectRef"].get("name") == SERVICE and entry["objectRef"].get("namespace") == ns
    ]


def events(plane, ns: str) -> list[dict]:
    found = json.loads(plane.kubectl("get", "events.events.k8s.io", "-n", ns, "-o", "json"))["items"]
    return [event for event in found if "clusterIP" in event.get("note", "")]


@contextmanager
def restless(plane, ns: str):
    """Something about the Controller changes several times a second that its children do not inherit."""
    over = threading.Event()
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{ns}/controllers/slurm"

    def touch() -> None:
        for number in range(10_000):
            if over.is_set():
                return
            note = {"metadata": {"annotations": {"kubectl.kubernetes.io/touched": str(number)}}}
            plane.caller.call("PATCH", path, note, kind="application/merge-patch+json")
            time.sleep(0.25)

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.timeout(300)
def test_a_refused_write_is_repeated_ever_more_seldom_shown_and_made_when_it_can_be(plane, ns, tmp_path):
    user = f"operator-{ns}"
    # A Service with an address cannot become one without: nobody but its owner can make room for ours.
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": ns},
        "spec": {"selector": {"hers": "yes"}, "ports": [{"port": 80}]},
    }
    apply(plane, theirs, ours("Controller", ns, "slurm", {"extraConf": "Nonsense=1\n"}))

    with running_manager(operator(plane, user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: asked(plane, user, ns), what="the operator to try it")
        with restless(plane, ns):
            time.sleep(SECONDS)
        tried = asked(plane, user, ns)
        assert set(tried) == {422}
        assert 2 <= len(tried) <= 7, "once a second or more, it would be dozens"

        status, reason, told = condition(plane, ns, "controller", "slurm", "Degraded")
        assert (status, reason) == ("True", "WriteFailed")
        assert "clusterIP" in told
        assert "line 1 of spec.extraConf" in told, "a refused configuration is not hidden"
        assert sum((one.get("series") or {"count": 1})["count"] for one in events(plane, ns)) <= len(tried)

        merge(plane, ns, "controller", "slurm", {"spec": {"extraConf": "KillWait=5"}})
        until(lambda: len(asked(plane, user, ns)) > len(tried), seconds=8, what="a try for the new spec")

        # Nobody watches an object without our labels, so its removal alone would not be seen.
        plane.kubectl("delete", "service", SERVICE, "-n", ns)
        merge(plane, ns, "controller", "slurm", {"spec": {"extraConf": ""}})
        until(lambda: get(plane, ns, "service", SERVICE) is not None, seconds=8, what="the Service, at once")
        assert asked(plane, user, ns)[-1] in (200, 201)
        until(
            lambda: condition(plane, ns, "controller", "slurm", "Degraded")[1] != "WriteFailed",
            what="all well",
        )
