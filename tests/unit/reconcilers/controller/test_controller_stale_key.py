"""Installed again within seconds: slurmctld may have the key of the release before, and refuses our tokens."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.manifests.objects import Pod, Secret
from slurm_operator.slurm.snapshot import Unreachable
from testing.controller_play import NOON, Play
from testing.controllers import KEY, NS, controller, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
SECRET = (Secret, ObjectKey(NS, "slurm-auth-jwt"))
MADE = NOON  # The Secret.


def refusing(*, persistent=True, pod_after=5, refused=True, ready=True, key="j1", asked_after=60) -> Play:
    """A cluster that came up, but whose slurmctld does not take tokens; times in seconds after the Secret."""
    made = Play(world(controller({"persistence": {"enabled": persistent}}), RESTAPI)).rounds()
    made.world.named[SECRET] = wire.replace(
        made.world.named[SECRET],
        metadata=Meta(name="slurm-auth-jwt", namespace=NS, creation_timestamp=MADE),
    )
    [pod] = made.pods()
    began = MADE + timedelta(seconds=pod_after)
    notes = {**pod.metadata.annotations, "slinky.slurm.net/jwt-key-hash": key}
    statuses = [
        wire.replace(one, state=wire.replace(one.state, running=wire.replace(one.state.running, started_at=began)))
        for one in pod.status.container_statuses
    ]  # fmt: skip
    conditions = pod.status.conditions if ready else []
    made._replace(
        wire.replace(
            pod,
            metadata=wire.replace(pod.metadata, creation_timestamp=began, annotations=notes),
            status=wire.replace(pod.status, container_statuses=statuses, conditions=conditions),
        )
    )
    made.world.slurms[KEY] = Unreachable(since=MADE, why="authentication failure", is_refused=refused)
    made.now = MADE + timedelta(seconds=asked_after)
    made._slurm = lambda: None
    return made


def test_it_is_told_and_the_pod_replaced_because_its_jobs_are_on_the_volume():
    made = refusing()
    made.round()

    assert made.restarts == 1
    ready = made.condition("Ready")
    assert (ready.status, ready.reason) == ("False", "TokensRefused")
    assert "refuses tokens that are signed with the key in Secret slurm-auth-jwt" in ready.message
    assert "The operator replaces the pod, which costs no job" in ready.message
    assert made.condition("Degraded").reason == "TokensRefused"


def test_without_a_volume_it_may_have_jobs_and_is_left_alone():
    made = refusing(persistent=False)
    for _ in range(5):
        made.round()

    assert made.restarts == 0
    assert "To begin without them, delete pod slurm-controller-0" in made.condition("Ready").message


@pytest.mark.parametrize(
    ("case", "reason", "restarts"),
    [
        pytest.param({"refused": False}, "Serving", 0, id="nobody answers at all: that may be the network"),
        pytest.param({"pod_after": -5}, "Serving", 0, id="the pod is older than the Secret: a rotation is under way"),
        pytest.param({"key": "j0"}, "Serving", 1, id="it was made for another key: it is replaced for that"),
        pytest.param({"ready": False}, "Starting", 0, id="it does not answer anybody yet"),
        pytest.param({"asked_after": 30}, "TokensRefused", 0, id="that may have been the one before it"),
        pytest.param({"pod_after": 40, "asked_after": 75}, "TokensRefused", 0, id="the second one has twice the time"),
        pytest.param({"pod_after": 40, "asked_after": 81}, "TokensRefused", 1, id="and is replaced, too"),
        pytest.param({"pod_after": 86400, "asked_after": 90000}, "TokensRefused", 0, id="with a Secret of yesterday it has another cause"),
    ],
)  # fmt: skip
def test_only_a_pod_that_should_have_the_key_and_refuses_it_for_a_while_is_replaced(case, reason, restarts):
    made = refusing(**case)
    if case.get("key") == "j0":
        made.world.things = [
            wire.replace(one, metadata=wire.replace(one.metadata, labels={**one.metadata.labels, "controller-revision-hash": "old"}))
            if isinstance(one, Pod) else one for one in made.world.things
        ]  # fmt: skip
    made.round()

    assert (made.condition("Ready").reason, made.restarts) == (reason, restarts)
