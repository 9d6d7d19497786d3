"""When a job may be ended for a worker that leaves: hardly ever, never early, never without a word."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.worker import drain_policy, job_notices
from slurm_operator.safety.job_end_check import Ending
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.states import JobState
from slurm_operator.slurm.writes import CancelJob, DrainNodes, RequeueJob, UpdateJob
from testing.story import Story
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

HOUR = timedelta(hours=1)


def leaving(
    type_="Wait", *, since=2 * HOUR, jobs=None, reason=None, replicas=0, deadline="1h", api="", message=""
):
    policy = {"type": type_, "message": message, **({"deadline": deadline} if deadline else {})}
    spec = nodeset(replicas=replicas, drainPolicy=policy)
    revision = revision_of(spec)
    pod = worker(0, revision=revision.metadata.labels["controller-revision-hash"])
    node = slurm_node(
        pod, "MIXED", "DRAIN", reason=reason if reason is not None else ours(pod, "ScaleIn"), changed_at=NOW - since
    )  # fmt: skip
    state = slurm(node, jobs=jobs or [job(1, "gpu-0", is_requeueable=True)])
    return world(spec, controller(), pod, revisions_=[revision], slurm_=wire.replace(state, api_version=api))


def ends(made) -> list[str]:
    """What happens to jobs, in order."""
    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]
    kinds = {UpdateJob: "told", RequeueJob: "requeued", CancelJob: "cancelled"}
    return [f"{kinds[type(write)]} {write.job_id}" for write in writes if type(write) in kinds]


RERUNS, STAYS = job(1, "gpu-0", is_requeueable=True), job(2, "gpu-0")


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(leaving("Wait"), [], id="Wait: it finishes, however long that takes"),
        pytest.param(leaving("Requeue", since=HOUR / 2), ["told 1"], id="before the deadline: only told"),
        pytest.param(leaving("Requeue"), ["told 1", "requeued 1"], id="after it: told, then requeued"),
        pytest.param(leaving("Requeue", jobs=[STAYS]), [], id="not requeueable: it finishes"),
        pytest.param(leaving("Cancel", jobs=[RERUNS, STAYS]), ["told 1", "requeued 1", "told 2", "cancelled 2"], id="Cancel: requeued where allowed, else cancelled"),
        pytest.param(leaving("Cancel", api="v0.0.44"), ["told 1", "cancelled 1"], id="a REST API that cannot requeue"),
        pytest.param(leaving("Requeue", api="v0.0.44"), [], id="Requeue never cancels"),
        pytest.param(leaving("Cancel", reason="ask Ada"), [], id="a human's drain is no clock of ours"),
        pytest.param(leaving("Cancel", reason="slurm-operator: NodeCordon: fan (pod 1234)"), [], id="nor is a cordon"),
        pytest.param(leaving("Cancel", reason="slurm-operator: ScaleIn: x (pods made until 2025-12-31T00:00:00Z)"), [], id="nor one of pods that were there before"),
        pytest.param(leaving("Cancel", reason="slurm-operator: ScaleIn: x (pod aaaa-bbbb)"), [], id="nor a drain of the pod before"),
        pytest.param(leaving("Cancel", replicas=1), [], id="it stays after all"),
        pytest.param(leaving("Cancel", jobs=[job(1, "gpu-0", words=["CANCELLED", "COMPLETING"])]), [], id="it is ending already"),
        pytest.param(leaving("Cancel", jobs=[job(1, "gpu-0", words=["SUSPENDED"])]), ["told 1", "cancelled 1"], id="a suspended job holds up too"),
        pytest.param(leaving("Cancel", deadline=""), [], id="no deadline: nothing is ended"),
    ],
)  # fmt: skip
def test_jobs_are_ended_only_as_the_policy_says(made, story):
    assert ends(made) == story


@pytest.mark.parametrize(
    ("behind", "since", "story"),
    [
        pytest.param(HOUR, timedelta(minutes=61), ["told 1"], id="behind: it was drained a minute ago"),
        pytest.param(HOUR, 2 * HOUR, ["told 1", "requeued 1"], id="behind: an hour ago"),
        pytest.param(-HOUR, timedelta(0), ["told 1", "requeued 1"], id="ahead: an hour ago"),
        pytest.param(-HOUR, -HOUR / 2, ["told 1"], id="ahead: half an hour ago"),
    ],
)
def test_the_deadline_counts_by_the_clock_that_dates_the_drain(behind, since, story):
    """slurmctld's. Its machine's clock may be off, or ours, or a backup take over whose clock is."""
    made = leaving("Requeue", since=since)
    made.slurms[CONTROLLER] = wire.replace(made.slurms[CONTROLLER], clock_behind=behind)

    assert ends(made) == story
    if story == ["told 1"]:
        assert planned(made).look_again == behind - since + HOUR, "nothing else would tell that it has come"


def drains(made) -> list[str]:
    """The causes that are written into Slurm now."""
    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]
    return [OurReason.read(write.reason).cause for write in writes if isinstance(write, DrainNodes)]


def cordoned(**kwargs):
    """The same worker, on a machine that is cordoned."""
    made = leaving(**kwargs)
    made.things.append(machine("n1", cordoned=True))
    return made


@pytest.mark.parametrize(
    ("made", "causes"),
    [
        pytest.param(cordoned(reason="slurm-operator: NodeCordon: fan (pod 1234)"), ["ScaleIn"], id="it was cordoned and leaves: the clock starts"),
        pytest.param(leaving(reason="slurm-operator: PodCordon: x (pods made until 2026-01-01T11:30:00Z)"), ["ScaleIn"], id="a user's cordon"),
        pytest.param(cordoned(), [], id="it runs already"),
        pytest.param(cordoned(reason="ask Ada"), [], id="a human's drain is not rewritten"),
        pytest.param(cordoned(reason=""), [], id="nor one without a reason"),
        pytest.param(cordoned(replicas=1), ["NodeCordon"], id="it stays after all, cordoned: the clock stops"),
        pytest.param(cordoned(replicas=1, reason="slurm-operator: NodeCordon: fan (pods made until 2026-01-01T11:30:00Z)"), [], id="it stays as it is"),
    ],
)  # fmt: skip
def test_the_clock_of_a_worker_that_was_cordoned_first_starts_when_it_leaves(made, causes):
    assert drains(made) == causes


def test_jobs_on_a_worker_that_was_cordoned_before_it_left_have_the_whole_deadline():
    story = Story({"replicas": 2, "drainPolicy": {"type": "Cancel", "deadline": "1m"}}, machines=2).tick(5)
    job = story.submit(1000, width=2, is_requeueable=False)
    story.tick(2).pods.machines[0].is_cordoned = story.pods.machines[1].is_cordoned = True
    story.tick(100)
    assert job.state == "RUNNING", "a cordon says nothing about jobs"

    story.change(replicas=0).tick(55)
    assert job.state == "RUNNING", "its time is not over"

    story.tick(10)
    assert job.state == "CANCELLED"


def test_the_owner_reads_when_and_why_and_keeps_what_others_wrote():
    made = leaving(
        "Requeue", since=HOUR / 2, message="call 123", jobs=[job(1, "gpu-0", is_requeueable=True, admin_comment="prio")]
    )  # fmt: skip

    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]
    [write] = [write for write in writes if isinstance(write, UpdateJob)]

    assert write.admin_comment == (
        "prio | slurm-operator: gpu-0 is leaving (ScaleIn); "
        "this job is requeued at 2026-01-01 12:30:00 UTC. call 123"
    )


def test_an_owner_who_was_told_is_not_told_again():
    note = job_notices.notice("gpu-0", "requeued", NOW + HOUR / 2, "ScaleIn", "")
    told = [job(1, "gpu-0", is_requeueable=True, admin_comment=note)]

    assert ends(leaving("Requeue", since=HOUR / 2, jobs=told)) == []
    assert ends(leaving("Requeue", since=HOUR / 2, jobs=told, replicas=1)) == ["told 1"], (
        "it may stay: said too"
    )


@pytest.mark.parametrize(
    ("at", "story"),
    [
        pytest.param(NOW + HOUR, ["told 1"], id="it lies ahead, and will not happen"),
        pytest.param(NOW - HOUR, [], id="it has happened: the job runs again, on a worker of the same name"),
    ],
)
def test_what_an_owner_was_told_stands_once_it_has_come_true(at, story):
    note = job_notices.notice("gpu-0", "requeued", at, "PodTerminating", "ask at 2020-01-01 00:00:00 UTC")
    runs = [job(1, "gpu-0", is_requeueable=True, admin_comment=f"prio | {note}")]

    assert ends(leaving("Wait", jobs=runs, replicas=1)) == story


OTHERS = job_notices.notice("cpu-0", "requeued", NOW + HOUR, "ScaleIn", "")
OURS = job_notices.notice("gpu-0", "requeued", NOW + HOUR / 2, "ScaleIn", "")
FORMER = job_notices.notice("gpu-9", "requeued", NOW - HOUR, "ScaleIn", "")


def comments(made) -> list[str]:
    """What owners are told."""
    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]
    return [write.admin_comment for write in writes if isinstance(write, UpdateJob)]


@pytest.mark.parametrize(
    ("comment", "replicas", "told"),
    [
        pytest.param(f"prio | {OTHERS}", 0, [f"prio | {OTHERS} | {OURS}"], id="ours stands beside that of another NodeSet"),
        pytest.param(f"{OURS} | {OTHERS}", 0, [], id="where it stands it stays"),
        pytest.param(f"{OTHERS} | {OURS}", 0, [], id="on either side"),
        pytest.param(f"{OURS} | prio | {OTHERS}", 1, [f"prio | {OTHERS}"], id="only ours is taken back"),
        pytest.param(f"prio | {OTHERS}", 1, [], id="that of another NodeSet never is"),
        pytest.param(f"{FORMER} | {OTHERS}", 0, [f"{OURS} | {OTHERS}"], id="a worker that is no more is replaced"),
        pytest.param(f"{OURS} | {FORMER}", 0, [OURS], id="and forgotten"),
    ],
)  # fmt: skip
def test_a_job_on_workers_of_two_nodesets_has_a_notice_of_each(comment, replicas, told):
    runs = [job(1, "gpu-0", "cpu-0", is_requeueable=True, admin_comment=comment)]
    made = leaving("Requeue", since=HOUR / 2, jobs=runs, replicas=replicas)
    [(key, state)] = made.slurms.items()
    other = slurm_node(worker(0, name="cpu-0"), "MIXED", "DRAIN", reason="slurm-operator: ScaleIn: x")
    made.slurms[key] = wire.replace(state, nodes={**state.nodes, "cpu-0": wire.replace(other, name="cpu-0")})

    assert comments(made) == told


def test_a_job_on_two_workers_is_ended_once():
    spec = nodeset(replicas=0, drainPolicy={"type": "Cancel", "deadline": "1h"})
    revision = revision_of(spec)
    pods = [worker(n) for n in range(2)]
    nodes = [
        slurm_node(pod, "MIXED", "DRAIN", reason=ours(pod, "ScaleIn"), changed_at=NOW - 2 * HOUR)
        for pod in pods
    ]
    made = world(
        spec,
        controller(),
        *pods,
        revisions_=[revision],
        slurm_=slurm(*nodes, jobs=[job(1, "gpu-0", "gpu-1")]),
    )

    assert ends(made) == ["told 1", "cancelled 1"]


def many(count, **fields):
    return [job(number, "gpu-0", **fields) for number in range(1, count + 1)]


def test_many_jobs_are_told_at_once_and_ended_some_at_a_time():
    story = ends(leaving("Cancel", jobs=many(drain_policy.MOST_ENDED + 10)))

    assert len([line for line in story if line.startswith("told")]) == drain_policy.MOST_ENDED + 10
    assert len([line for line in story if line.startswith("cancelled")]) == drain_policy.MOST_ENDED
    assert planned(leaving("Cancel")).look_again == timedelta(seconds=1), (
        "for those that were late, or are left"
    )


def test_what_ends_a_job_says_for_which_worker():
    [pod], reason = [it for it in leaving("Cancel").things if isinstance(it, Pod)], ours(worker(0), "ScaleIn")
    [by_policy] = [a.ending for a in planned(leaving("Cancel")).actions() if getattr(a, "ending", None)]
    [by_hand] = [a.ending for a in planned(deleted(9, RERUNS)).actions() if getattr(a, "ending", None)]

    assert by_policy == Ending(key_of(pod), pod.metadata.uid, "gpu-0", drained_for=reason)
    assert by_hand == Ending(key_of(pod), pod.metadata.uid, "gpu-0", drained_for="")
    with pytest.raises(ValueError, match="say which"):
        WriteSlurm(ObjectKey("ns", "slurm"), CancelJob(job_id=1, address="1"), "", "")


LAST_TASK = {"array_job_id": 100, "array_task_id": 3}


@pytest.mark.parametrize(
    ("made", "address"),
    [
        pytest.param(leaving("Requeue", jobs=[job(100, "gpu-0", is_requeueable=True, **LAST_TASK)]), "100_3", id="the last task of an array has its id: back into the queue"),
        pytest.param(leaving("Cancel", jobs=[job(100, "gpu-0", **LAST_TASK)]), "100_3", id="and cancelled"),
        pytest.param(leaving("Cancel", jobs=[job(101, "gpu-0", array_job_id=100, array_task_id=0)]), "100_0", id="another task"),
        pytest.param(leaving("Requeue", jobs=[job(12, "gpu-0", is_requeueable=True, het_job_id=11)]), "11", id="a part of a pack: it goes back as a whole"),
        pytest.param(leaving("Cancel", jobs=[job(12, "gpu-0", het_job_id=11)]), "12", id="a part of a pack that may not: it alone"),
        pytest.param(leaving("Cancel", jobs=[job(1, "gpu-0")]), "1", id="any other job"),
    ],
)  # fmt: skip
def test_a_job_is_ended_by_an_address_that_means_no_other(made, address):
    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]

    [ending] = [write for write in writes if isinstance(write, RequeueJob | CancelJob)]
    assert ending.address == address


def test_the_other_tasks_of_an_array_run_on_where_one_is_ended():
    """The one that has to go has the id of all of them."""
    story = Story({"replicas": 2, "drainPolicy": {"type": "Cancel", "deadline": "1m"}}, machines=2).tick(5)
    tasks = [story.submit(1000, is_requeueable=False, array_job_id=1, array_task_id=task) for task in (1, 0)]
    story.tick(2)
    [goes] = [task for task in tasks if task.nodes == ("gpu-1",)]
    [stays] = [task for task in tasks if task is not goes]
    goes.job_id, stays.job_id = 1, 2
    story.slurm.jobs = {1: goes, 2: stays}

    story.change(replicas=1).tick(70)

    assert (goes.state, stays.state) == ("CANCELLED", "RUNNING")


def status(made):
    seen = RECONCILER.observe(KEY, made)
    return RECONCILER.status(seen, RECONCILER.decide(seen, NOW), Outcome())


@pytest.mark.parametrize(
    ("made", "degraded", "deadline"),
    [
        pytest.param(leaving("Wait"), "DrainOverdue", None, id="Wait: it is only said"),
        pytest.param(leaving("Wait", since=HOUR / 2), "AsExpected", None, id="not yet"),
        pytest.param(leaving("Requeue", since=HOUR / 2), "AsExpected", NOW + HOUR / 2, id="when it will be"),
    ],
)
def test_status_says_which_workers_are_overdue(made, degraded, deadline):
    report = status(made)

    [condition] = [c for c in report.conditions if c.type == "Degraded"]
    assert condition.reason == degraded
    assert report.fields["drains"][0]["deadline"] == deadline


def test_the_deadline_is_looked_at_when_it_comes():
    assert planned(leaving("Requeue", since=HOUR / 2)).look_again == HOUR / 2


AHEAD = NOW + timedelta(seconds=9)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodes_asked_at": NOW - timedelta(seconds=9)}, id="read a while ago"),
        pytest.param({"behind": frozenset({"gpu-0"})}, id="read before our write"),
        pytest.param(
            {"nodes_asked_at": AHEAD, "jobs_asked_at": AHEAD}, id="read before the clock was set back"
        ),
    ],
)
def test_nothing_is_ended_on_an_old_answer(change):
    """The job may have been requeued since, and run on another worker."""
    made = leaving("Cancel")
    [(key, state)] = made.slurms.items()
    made.slurms[key] = wire.replace(state, **change)

    assert ends(made) == ["told 1"]
    assert planned(made).look_again == timedelta(seconds=1)


def deleted(ends_in, *jobs, replicas=1):
    """A worker whose pod somebody deleted, so long before its grace period is over."""
    spec = nodeset(replicas=replicas)
    revision = revision_of(spec)
    pod = worker(
        0, revision=revision.metadata.labels["controller-revision-hash"], terminating=True, grace=ends_in
    )
    node = slurm_node(pod, "MIXED", "DRAIN", reason=ours(pod, "PodTerminating"), changed_at=NOW)
    state = wire.replace(slurm(node, jobs=jobs), api_version="v0.0.45")
    return world(spec, controller(), pod, revisions_=[revision], slurm_=state)


NOTICE = "slurm-operator: gpu-0 is leaving (PodTerminating); this job is requeued at 2026-01-01 11:59:59 UTC"
TOLD = wire.replace(RERUNS, admin_comment=NOTICE)


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(deleted(3600, RERUNS), ["told 1"], id="its job has time to finish, and is told"),
        pytest.param(deleted(9, RERUNS), ["told 1", "requeued 1"], id="no time is left: back into the queue"),
        pytest.param(deleted(9, STAYS), ["told 2"], id="what may not be requeued is told"),
        pytest.param(deleted(9, RERUNS, STAYS), ["told 1", "requeued 1", "told 2"], id="each by its own"),
        pytest.param(deleted(9), [], id="nobody is there"),
        pytest.param(deleted(9, TOLD), ["requeued 1"], id="its owner was told before"),
        pytest.param(
            deleted(9, wire.replace(TOLD, state=JobState.of("PENDING", "COMPLETING"))),
            [],
            id="it was requeued: what its owner was told stands",
        ),
        pytest.param(
            deleted(9, wire.replace(TOLD, state=JobState.of("PENDING", "REQUEUED"))), [], id="and waits"
        ),
    ],
)
def test_jobs_of_a_pod_that_somebody_deleted_go_back_into_the_queue_before_it_ends(made, story):
    assert ends(made) == story


def test_a_deleted_pod_takes_no_job_along_that_is_in_another_pod_of_its_name():
    spec = nodeset(scalingMode="DaemonSet")
    revision = revision_of(spec)
    of_n1 = {
        "mode": "DaemonSet",
        "hostname": "n1",
        "revision": revision.metadata.labels["controller-revision-hash"],
    }
    ending = worker(None, name="gpu-aaaa", terminating=True, grace=5, **of_n1)
    other = worker(None, name="gpu-bbbb", **of_n1)
    known = slurm(slurm_node(other, "MIXED"), jobs=[job(8, "n1", is_requeueable=True)])

    made = world(spec, controller(), ending, other, machine("n1"), revisions_=[revision], slurm_=known)

    assert ends(made) == []


def test_the_owner_reads_who_ended_the_job():
    (told, *_) = [a.write for a in planned(deleted(9, STAYS)).actions() if isinstance(a, WriteSlurm)]

    assert told.admin_comment == (
        "slurm-operator: gpu-0 is leaving (PodTerminating); this job is ended with it at 2026-01-01 11:59:59 UTC"
    )


def test_a_deleted_pod_is_looked_at_again_in_time_for_its_jobs():
    assert planned(deleted(100, RERUNS)).look_again == timedelta(seconds=90)
