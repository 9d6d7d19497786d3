"""Workers that come back to a record which Slurm has given up: who is put back, who stays, and what is said."""

from datetime import timedelta

import pytest

from slurm_operator.api.shared import names
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.slurm.writes import DrainNodes, ResumeNodes
from slurm_operator.slurmsync.writer import write_without_nodes
from testing.story import Story
from testing.workers import (
    KEY,
    NOW,
    STARTED,
    controller,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

ONE = nodeset(replicas=1)
R = revision_of(ONE)
A = worker(0, revision=R.metadata.labels[names.LABEL_REVISION])
BEFORE, SINCE = STARTED - timedelta(minutes=1), STARTED + timedelta(minutes=1)
LOST, REBOOTED = "Not responding", "Node unexpectedly rebooted"
REBOOT = "[compute_maintenance] node reboot process"
THERE = machine("n1")


def seen(*words: str, reason: str = "", at=BEFORE, things=()):
    record = slurm_node(A, *words, reason=reason, changed_at=at, reason_set_by="root")
    return world(ONE, controller(), A, *things, revisions_=[R], slurm_=slurm(record))


@pytest.mark.parametrize(
    ("made", "from_down"),
    [
        pytest.param(seen("DOWN", reason=LOST), True, id="lost, and a new slurmd has registered"),
        pytest.param(seen("DOWN", reason=LOST, at=STARTED + timedelta(seconds=3)), True, id="given up while the new one started"),
        pytest.param(seen("DOWN", reason=LOST, at=SINCE), None, id="lost itself, and back: slurm.conf wants a human to look"),
        pytest.param(seen("DOWN", "NOT_RESPONDING", reason=LOST), None, id="silent again"),
        pytest.param(seen("DOWN", reason=REBOOTED, at=SINCE), True, id="its machine rebooted before it"),
        pytest.param(seen("DOWN", "DRAIN", reason=ours(A, "Update")), True, id="drained by us, then lost"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"{ours(A, 'Update')} : {LOST}"), True, id="and Slurm says so behind our reason"),
        pytest.param(seen("DOWN", reason=f"{ours(A, 'Update')} : {LOST}"), True, id="our drain was lifted, and DOWN stayed"),
        pytest.param(seen("DOWN", "DRAIN", reason=ours(A, "ScaleIn"), at=SINCE), False, id="down since: only our drain is lifted"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"{ours(A, 'NodeCordon')} : {REBOOTED}", at=SINCE, things=[THERE]), True, id="drained by us, then its machine rebooted"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"{ours(A, 'NodeCordon')} : {REBOOTED} : {LOST}", at=SINCE, things=[THERE]), False, id="and then it was lost itself"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"ask Ada : {REBOOTED}", at=SINCE), None, id="drained by a human, then its machine rebooted"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"Kill task failed : {LOST}", at=BEFORE), True, id="drained by slurmctld for the pod before"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"Kill task failed : {LOST}", at=SINCE), None, id="not for this one"),
        pytest.param(seen("DOWN", reason=f"{REBOOT} : {LOST}"), True, id="a node controller lifted its drain after a reboot, and DOWN stayed"),
        pytest.param(seen("DOWN", reason=f"{REBOOT} : {LOST}", at=SINCE), None, id="and then it was lost itself, too"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"{REBOOT} : {LOST}"), None, id="a node controller has not lifted it yet"),
        pytest.param(seen("DOWN", reason="bad fan, ask Ada"), None, id="a human's down"),
        pytest.param(seen("DOWN"), None, id="a human's down without a reason"),
        pytest.param(seen("DOWN", "DRAIN", reason=LOST), None, id="a human's drain without a reason, then lost"),
        pytest.param(seen("DOWN", "DRAIN", reason=f"bad fan, ask Ada : {LOST}"), None, id="a human's drain, then lost"),
        pytest.param(seen("DOWN", reason=LOST, at=None), None, id="nobody knows since when"),
        pytest.param(seen("IDLE", reason=LOST), None, id="in service"),
    ],
)  # fmt: skip
def test_what_slurm_noted_about_the_worker_before_is_over_with_it(made, from_down):
    writes = [a.write for a in planned(made).actions() if isinstance(a, WriteSlurm)]
    resumes = [write for write in writes if isinstance(write, ResumeNodes)]

    assert [write.from_down for write in resumes] == ([] if from_down is None else [from_down])


def test_a_cordoned_worker_is_not_put_back():
    cordoned = seen("DOWN", reason=LOST, things=[machine("n1", cordoned=True)])

    assert told(cordoned) == ["drain gpu-0 for NodeCordon"]


def writes_of(made, kind):
    return [
        a.write for a in planned(made).actions() if isinstance(a, WriteSlurm) and isinstance(a.write, kind)
    ]


@pytest.mark.parametrize(
    ("words", "noted", "at", "from_down"),
    [
        pytest.param(["DOWN"], LOST, BEFORE, True, id="lost before it"),
        pytest.param(["DOWN"], REBOOTED, SINCE, True, id="rebooted before it"),
        pytest.param(["DOWN", "DRAIN"], f"{ours(worker(0, name='before'), 'NodeCordon')} : {LOST}", BEFORE, True, id="drained for the worker before, too"),
        pytest.param(["DOWN"], LOST, SINCE, False, id="lost itself: slurm.conf wants a human to look"),
    ],
)  # fmt: skip
def test_one_that_is_cordoned_before_it_is_put_back_is_put_back_when_that_is_over(
    words, noted, at, from_down
):
    """Our drain takes the place of what Slurm had noted, and of when that was."""
    [drain] = writes_of(seen(*words, reason=noted, at=at, things=[machine("n1", cordoned=True)]), DrainNodes)

    lifted = seen("DOWN", "DRAIN", reason=drain.reason, at=NOW, things=[THERE])
    lost_again = seen("DOWN", "DRAIN", reason=f"{drain.reason} : {LOST}", at=NOW, things=[THERE])

    assert [write.from_down for write in writes_of(lifted, ResumeNodes)] == [from_down]
    assert [write.from_down for write in writes_of(lost_again, ResumeNodes)] == [False]


def test_workers_of_a_lost_machine_come_back_by_one_request():
    two = nodeset(replicas=2)
    hash_ = revision_of(two).metadata.labels[names.LABEL_REVISION]
    workers = [worker(n, revision=hash_) for n in (0, 1)]
    lost = slurm(*(slurm_node(pod, "DOWN", reason=LOST, changed_at=BEFORE) for pod in workers))
    made = world(two, controller(), *workers, revisions_=[revision_of(two)], slurm_=lost)

    resumes = [a.write for a in planned(made).actions() if isinstance(a, WriteSlurm)]

    assert len(resumes) == 2
    assert len({write_without_nodes(write) for write in resumes}) == 1, "they differ in nothing but the node"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        pytest.param(
            seen("DOWN", reason="bad fan"),
            "gpu-0: it takes no jobs: root called it DOWN with the reason 'bad fan', and it stays so "
            "until somebody says `scontrol update nodename=gpu-0 state=resume`.", id="a human's",
        ),
        pytest.param(
            seen("DOWN"),
            "gpu-0: it takes no jobs: root called it DOWN without a reason, and it stays so until "
            "somebody says `scontrol update nodename=gpu-0 state=resume`.", id="without a reason",
        ),
        pytest.param(seen("DOWN", reason=LOST), "", id="about to be put back"),
        pytest.param(seen("DOWN", "NOT_RESPONDING", reason=LOST, at=SINCE), "", id="silent: that is told by its pod"),
        pytest.param(seen("IDLE"), "", id="in service"),
    ],
)  # fmt: skip
def test_the_status_says_why_a_worker_that_is_up_takes_no_jobs(made, message):
    facts = RECONCILER.observe(KEY, made)
    report = RECONCILER.status(facts, RECONCILER.decide(facts, NOW), Outcome())

    [degraded] = [condition for condition in report.conditions if condition.type == "Degraded"]
    assert (degraded.message if degraded.status.value == "True" else "") == message


def test_a_lost_worker_takes_jobs_again_though_slurm_keeps_it_down():
    """Slurm's default, ReturnToService=0: a record that was given up stays DOWN, whoever registers."""
    story = Story({"replicas": 1}, machines=1)
    story.slurm.returns_to_service = False
    story.tick(5)
    [only] = story.pods.machines
    only.is_cordoned = True
    del story.pods.pods["gpu-0"]
    story.tick(20)
    assert story.slurm.records["gpu-0"].is_down

    only.is_cordoned = False
    job = story.submit(5)
    story.tick(12)

    assert job.state == "COMPLETED"
    assert any("Resumed: gpu-0 takes jobs again: Slurm kept it DOWN" in line for line in story.lines)
