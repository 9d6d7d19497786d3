"""What a NodeSet calls progress: that something is under way, not that something is left to do."""

from datetime import timedelta

import pytest

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.nodeset_status import ReservationStatus
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

HOUR = timedelta(hours=1)
BEFORE = nodeset(replicas=2)
OLD = revision_of(BEFORE)


def hash_of(revision) -> str:
    return revision.metadata.labels[names.LABEL_REVISION]


def old(ordinal: int, **kwargs):
    return worker(ordinal, **{"on": f"n{ordinal}", "revision": hash_of(OLD), **kwargs})


def scheduled(start=NOW + HOUR, *flags: str) -> dict:
    schedule = {"startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}", "duration": "30m", "flags": list(flags)}
    return {"type": "ScheduledUpdate", "scheduledUpdate": schedule}


def changed(*pods, strategy, words=("IDLE",), **slurm_):
    """Workers of a previous revision, and a spec that says when they are replaced."""
    spec = nodeset(replicas=2, slurmd={"image": "slurmd:next"}, updateStrategy=strategy)
    there = pods or (old(0), old(1))
    nodes = [slurm_node(pod, *words) for pod in there]
    new = revision_of(spec, OLD)
    return world(spec, controller(), *there, revisions_=[OLD, new], slurm_=slurm(*nodes, **slurm_))


def unchanged(*words, reason="", jobs=(), kube_node=None, **kwargs):
    pods = [old(0), old(1, **kwargs)]
    nodes = [slurm_node(pods[0], "IDLE"), slurm_node(pods[1], *words, reason=reason)]
    things = [kube_node] if kube_node is not None else []
    return world(BEFORE, controller(), *pods, *things, revisions_=[OLD], slurm_=slurm(*nodes, jobs=jobs))


def conditions(made) -> dict:
    seen = RECONCILER.observe(KEY, made)
    report = RECONCILER.status(seen, RECONCILER.decide(seen, NOW), Outcome())
    return {condition.type: condition for condition in report.conditions}


def progress(made) -> tuple[str, str]:
    found = conditions(made)["Progressing"]
    return found.status, found.reason


def window(start, nodes=("gpu-0", "gpu-1")) -> Reservation:
    return Reservation(
        name="SlurmOperatorMaint-gpu", start_time=start, end_time=start + HOUR, nodes=nodes, users=("slurm",),
        flags=frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"}),
    )  # fmt: skip


ON_DELETE = {"type": "OnDelete"}
CORDONED = machine("n1", cordoned=True)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(unchanged("IDLE"), ("False", "UpToDate"), id="nothing to do"),
        pytest.param(changed(strategy=ON_DELETE), ("False", "AwaitsDeletion"), id="OnDelete: somebody else has to do something"),
        pytest.param(changed(strategy={"rollingUpdate": {"paused": True}}), ("False", "AwaitsDeletion"), id="paused is the same"),
        pytest.param(changed(old(0), old(1, ready=False), strategy=ON_DELETE), ("True", "Starting"), id="but one starts meanwhile"),
        pytest.param(changed(old(0), strategy=ON_DELETE), ("True", "Starting"), id="or comes"),
        pytest.param(changed(strategy=scheduled()), ("False", "AwaitsWindow"), id="the window is ahead"),
        pytest.param(changed(strategy=scheduled(NOW - HOUR)), ("False", "AwaitsWindow"), id="the window is over"),
        pytest.param(changed(strategy=scheduled(NOW - HOUR / 2), reservations=[window(NOW - HOUR / 2)]), ("True", "Starting"), id="the window is open"),
        pytest.param(changed(strategy={}), ("True", "Starting"), id="RollingUpdate: they are replaced without help"),
        pytest.param(unchanged("IDLE", "DRAIN", reason=ours(old(1), "NodeCordon"), kube_node=CORDONED, protected=False), ("False", "UpToDate"), id="one is cordoned, and free for whoever cordoned it"),
        pytest.param(unchanged("MIXED", "DRAIN", reason=ours(old(1), "NodeCordon"), kube_node=CORDONED, jobs=[job(1, "gpu-1")]), ("False", "UpToDate"), id="or not yet"),
        pytest.param(unchanged("IDLE", "DRAIN", reason=ours(old(1), "PodCordon"), protected=False, annotations={names.POD_CORDON: "true"}), ("False", "UpToDate"), id="the same, by the pod"),
        pytest.param(unchanged("IDLE", "DRAIN", reason=ours(old(1), "ScaleIn")), ("True", "Starting"), id="drained to leave, and wanted again"),
        pytest.param(unchanged("IDLE", "DRAIN", reason=ours(old(9), "NodeCordon")), ("True", "Starting"), id="it takes over from one that was cordoned"),
        pytest.param(unchanged("IDLE", "DRAIN", reason="bad disk"), ("False", "UpToDate"), id="a human drained it"),
    ],
)  # fmt: skip
def test_progress_is_what_is_under_way(made, told):
    assert progress(made) == told


def test_with_on_delete_it_says_how_many_are_left_and_how_one_is_replaced():
    message = conditions(changed(strategy=ON_DELETE))["Progressing"].message

    assert message.startswith("2 of 2 workers have a previous revision.")
    assert message.endswith(f"kubectl annotate pod -n ns gpu-0 {names.POD_REPLACE}=true")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(changed(strategy=scheduled(NOW - HOUR)), "2 workers of a previous revision wait. Set it to a later time", id="it has passed: what to set"),
        pytest.param(changed(strategy=scheduled(NOW - HOUR, "FORCE_START")), "", id="it is made at once"),
        pytest.param(changed(strategy=scheduled(NOW - HOUR, "WEEKLY")), "", id="it comes again"),
        pytest.param(changed(strategy=scheduled()), "", id="it is made in this pass"),
    ],
)  # fmt: skip
def test_a_start_that_has_passed_without_effect_is_told(made, told):
    created = conditions(made)["ReservationCreated"]

    assert (created.status, created.reason) == ("False", "NotExists")
    assert told in created.message
    assert ("is over" in created.message) is bool(told)


def test_a_window_that_was_used_leaves_nobody_waiting():
    spec = nodeset(replicas=1, updateStrategy=scheduled(NOW - HOUR))
    pod = worker(0, revision=hash_of(revision_of(spec)))
    made = world(
        spec, controller(), pod, revisions_=[revision_of(spec)], slurm_=slurm(slurm_node(pod, "IDLE"))
    )

    assert conditions(made)["ReservationCreated"].message.endswith("no worker waits for another window.")
    assert progress(made) == ("False", "UpToDate")


def test_while_slurm_is_silent_former_workers_wait_for_the_window_that_was_there():
    made = changed(strategy=scheduled(NOW + HOUR))
    known = made.things[0]
    status = type(known.status)(reservation=ReservationStatus(start_time=NOW + HOUR, end_time=NOW + 2 * HOUR))
    made.things[0] = NodeSet(metadata=known.metadata, spec=known.spec, status=status)
    made.slurms[CONTROLLER] = Unreachable(since=NOW, why="no answer")

    told = conditions(made)["Progressing"]

    assert told.reason == "AwaitsWindow"
    assert told.message.endswith("in the next window at 2026-01-01 13:00 UTC.")


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def rolled(*words, reason=""):
    """In the middle of an update: one has been replaced, and the other could go."""
    spec = nodeset(replicas=2, slurmd={"image": "slurmd:next"}, updateStrategy=ROLLING)
    new, former = revision_of(spec, OLD), old(1)
    replaced = worker(0, on="n0", revision=hash_of(new))
    nodes = [slurm_node(replaced, *words, reason=reason), slurm_node(former, "IDLE")]
    there = world(spec, controller(), replaced, former, revisions_=[OLD, new], slurm_=slurm(*nodes))
    return conditions(there)["Progressing"]


def test_an_update_that_waits_for_workers_out_of_use_names_them():
    told = rolled("IDLE", "DRAIN", reason="disk is bad")

    assert (told.status, told.reason) == ("True", "AwaitsWorkers")
    assert told.message.startswith("1 of 2 workers have a previous revision")
    for needed in ("gpu-0.", "maxUnavailable lets 1 be away", "kubectl slurm explain"):
        assert needed in told.message


def test_an_update_that_goes_on_is_at_work():
    assert rolled("IDLE").reason != "AwaitsWorkers"
