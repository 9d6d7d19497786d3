"""Why pods are not ready, and how far a workload has come, in words and numbers for conditions."""

from datetime import UTC, datetime

import pytest

from slurm_operator.manifests.builders.workloads import Rollout, rollout
from slurm_operator.manifests.events import Event, Regarding
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.pod_troubles import refusals, troubles
from testing.children import pod


def container(state: dict, last: dict | None = None) -> dict:
    return {"containerStatuses": [{"name": "slurmdbd", "state": state, "lastState": last or {}}]}


def ended(code: int, message: str = "", reason: str = "Error") -> dict:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param({"phase": "Running"}, [], id="nothing is wrong"),
        pytest.param(container({"waiting": {"reason": "ContainerCreating"}}), [], id="merely young"),
        pytest.param(container({"running": {}}, ended(1)), [], id="it runs again"),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]},
            ["pod p cannot be scheduled: 0/3 nodes are available"], id="no room",
        ),
        pytest.param(
            container({"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}}),
            ['pod p cannot start container slurmdbd: CreateContainerConfigError: secret "x" not found'], id="no Secret",
        ),
        pytest.param(
            container(BACK_OFF, ended(1, "first line\nfatal: no such key\n")),
            ["pod p has a container slurmdbd that keeps ending with exit code 1: fatal: no such key"], id="last words",
        ),
        pytest.param(
            container(BACK_OFF, ended(137, reason="OOMKilled")),
            ["pod p has a container slurmdbd that keeps ending with exit code 137: OOMKilled"], id="killed for its memory",
        ),
        pytest.param({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}, ["pod p failed: low on disk"], id="evicted"),
    ],
)  # fmt: skip
def test_what_keeps_a_pod_from_being_ready(status, told):
    assert troubles([pod("p", "slurmdbd", "slurm", **status)]) == told


def workload(status: dict, generation: int = 2, replicas: int = 2) -> Child:
    return Child(
        metadata=Meta(name="w", generation=generation),
        body={"spec": {"replicas": replicas}, "status": status},
    )


COUNTS = {
    "observedGeneration": 2,
    "replicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
    "updatedReplicas": 2,
}


@pytest.mark.parametrize(
    ("status", "works", "is_done"),
    [
        pytest.param(COUNTS, True, True, id="all there"),
        pytest.param(
            {**COUNTS, "observedGeneration": 1}, False, False, id="these numbers are about an older spec"
        ),
        pytest.param({**COUNTS, "updatedReplicas": 1}, True, False, id="half of it is old"),
        pytest.param({**COUNTS, "replicas": 3}, True, False, id="one is still to go"),
        pytest.param({**COUNTS, "availableReplicas": 1}, False, False, id="one is away"),
        pytest.param({}, False, False, id="nobody has looked yet"),
    ],
)
def test_how_far_a_workload_has_come(status, works, is_done):
    found = rollout(workload(status))

    assert isinstance(found, Rollout)
    assert (found.works, found.is_done) == (works, is_done)


def test_a_workload_that_cannot_go_on_says_why():
    stuck = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}

    assert rollout(workload({**COUNTS, "conditions": [stuck]})).stuck == "exceeded quota"
    assert rollout(None) is None


def _workload(replicas: int) -> Child:
    body = {"spec": {"replicas": 1}, "status": {"replicas": replicas, "observedGeneration": 1}}
    return Child(metadata=Meta(name="slurm-controller", uid="u", generation=1), body=body)


def _complaint(note: str, minute: int, uid: str = "u", reason: str = "FailedCreate") -> Event:
    about = Regarding(kind="StatefulSet", name="slurm-controller", uid=uid)
    when = datetime(2026, 1, 1, 12, minute, tzinfo=UTC)
    return Event(metadata=Meta(name=note), regarding=about, reason=reason, note=note, event_time=when)


def test_a_workload_without_its_pods_says_who_refused_them_last():
    said = "create Pod slurm-controller-0 in StatefulSet slurm-controller failed error: {}"
    events = [
        _complaint(said.format("exceeded quota"), 2),
        _complaint(said.format("an older complaint"), 1),
        _complaint(said.format("about another one"), 3, uid="other"),
        _complaint("pulled an image", 4, reason="Pulled"),
    ]

    assert refusals(_workload(0), events) == ["no pod can be made: exceeded quota"]
    assert refusals(_workload(1), events) == []
    assert refusals(None, events) == []
