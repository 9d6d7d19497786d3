"""slurmctld that lost its state: when that is noticed, what is said, and when it is over."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.controller_status import ControllerStatus
from slurm_operator.manifests.objects import Pod, PodCondition, PodStatus
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable
from slurm_operator.slurm.states import JobState, NodeState
from testing.controllers import KEY, NS, controller, thing, world

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
MORNING = NOON - timedelta(hours=4)
CPU = thing("NodeSet", "cpu", {"controllerRef": {"name": "slurm"}})


def worker(name: str, *, ready_since: datetime = MORNING, **notes: str) -> Pod:
    owner = {
        "apiVersion": "v1",
        "kind": "NodeSet",
        "name": "cpu",
        "uid": CPU.metadata.uid,
        "controller": True,
    }
    meta = {
        "name": name,
        "namespace": NS,
        "uid": f"uid-{name}",
        "ownerReferences": [owner],
        "annotations": notes,
    }
    ready = PodCondition(type="Ready", status="True", last_transition_time=ready_since)
    return Pod(metadata=codec.read(Meta, meta), status=PodStatus(phase="Running", conditions=[ready]))


def slurm(*known: str, jobs: tuple[SlurmJob, ...] = ()) -> Snapshot:
    nodes = {name: SlurmNode(name=name, state=NodeState.of("IDLE")) for name in known}
    return Snapshot(
        nodes=nodes, jobs={job.job_id: job for job in jobs}, nodes_asked_at=NOON, jobs_asked_at=NOON
    )


RUNNING = SlurmJob(job_id=7, state=JobState.of("RUNNING"), user="ada", nodes=("cpu-9",))
PENDING = SlurmJob(job_id=8, state=JobState.of("PENDING"), user="ada")


def remembering(**status):
    return wire.replace(controller(), status=ControllerStatus(**status))


def report(*workers: Pod, slurm, known_since=MORNING, lost_since=None):
    made = world(remembering(workers_known_since=known_since, state_lost_since=lost_since), CPU, *workers)
    made.slurms[KEY] = slurm
    seen = RECONCILER.observe(KEY, made)
    plan = RECONCILER.decide(seen, NOON)
    return RECONCILER.status(seen, plan, Outcome())


@pytest.mark.parametrize(
    ("workers", "before", "slurm", "lost"),
    [
        pytest.param(["cpu-0", "cpu-1"], {}, slurm(), True, id="all forgotten"),
        pytest.param(["cpu-0", "cpu-1"], {}, slurm(jobs=(PENDING,)), True, id="somebody submitted already"),
        pytest.param(["cpu-0", "cpu-1"], {}, slurm("cpu-1"), False, id="one record was deleted by somebody"),
        pytest.param(["cpu-0"], {}, slurm(jobs=(RUNNING,)), False, id="it knows running jobs"),
        pytest.param(["cpu-0"], {"known_since": None}, slurm(), False, id="they never managed to register"),
        pytest.param(["cpu-0"], {}, Unreachable(since=NOON, why=""), False, id="it cannot be asked"),
        pytest.param([], {}, slurm(), False, id="nobody is there to be forgotten"),
        pytest.param(["cpu-0", "cpu-1"], {"lost_since": MORNING}, slurm("cpu-0"), True, id="not all are back"),
        pytest.param(["cpu-0", "cpu-1"], {"lost_since": MORNING}, slurm("cpu-0", "cpu-1"), False, id="all are back"),
        pytest.param(["cpu-0"], {"lost_since": MORNING}, Unreachable(since=NOON, why=""), True, id="lost, then away"),
    ],
)  # fmt: skip
def test_a_slurmctld_that_knows_none_of_its_workers_lost_its_state_until_all_are_back(
    workers, before, slurm, lost
):
    told = report(*map(worker, workers), slurm=slurm, **before)

    assert (told.fields["stateLostSince"] is not None) == lost
    degraded = next(one for one in told.conditions if one.type == "Degraded")
    assert (degraded.reason == "StateLost") == lost


def test_it_says_who_is_missing_and_that_nothing_is_removed():
    told = report(*(worker(f"cpu-{n}") for n in range(5)), slurm=slurm(), lost_since=None)

    degraded = next(one for one in told.conditions if one.type == "Degraded")
    assert "Not back yet: cpu-0, cpu-1, cpu-2 and 2 more." in degraded.message
    assert "Nothing is removed" in degraded.message
    assert told.fields["stateLostSince"] == NOON


def test_workers_that_just_started_or_leave_for_good_are_not_missed():
    fresh = worker("cpu-0", ready_since=NOON - timedelta(seconds=3))
    leaving = worker("cpu-1", **{names.POD_RETIRED: "uid-cpu-1"})

    assert report(fresh, leaving, slurm=slurm()).fields["stateLostSince"] is None


def test_that_workers_are_known_is_noted_once():
    assert report(worker("cpu-0"), slurm=slurm("cpu-0"), known_since=None).fields["workersKnownSince"] == NOON
    assert report(worker("cpu-0"), slurm=slurm("cpu-0")).fields["workersKnownSince"] == MORNING
    assert report(worker("cpu-0"), slurm=slurm()).fields["workersKnownSince"] == MORNING


@pytest.mark.parametrize(
    ("status", "known", "changed", "wakes"),
    [
        pytest.param({}, ["cpu-0"], {"cpu-0"}, True, id="the first worker ever"),
        pytest.param({"workers_known_since": MORNING}, ["cpu-0"], {"cpu-0"}, False, id="a node that works"),
        pytest.param({"workers_known_since": MORNING}, [], {"cpu-0"}, True, id="a record is gone"),
        pytest.param({"workers_known_since": MORNING, "state_lost_since": NOON}, ["cpu-0"], {"cpu-0"}, True, id="one is back"),
    ],
)  # fmt: skip
def test_a_controller_looks_again_when_workers_may_have_been_forgotten(status, known, changed, wakes):
    made = world(remembering(**status), CPU)
    made.slurms[KEY] = slurm(*known)

    woken = list(RECONCILER.slurm_wake.keys(KEY, Changes(nodes=frozenset(changed)), made))

    assert woken == ([KEY] if wakes else [])
