"""When a check runs, what the end of its jobs leads to, and what stands in its status."""

from datetime import timedelta

import pytest

from slurm_operator.api.nebius import ActiveCheck, SlurmCluster, names
from slurm_operator.api.nebius.schedules import trouble
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.platform import PodTemplate
from slurm_operator.plan.actions import Create, DeleteObject, PatchObject
from slurm_operator.reconcilers.nebius.activecheck import of_dependency
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.writes import DrainNodes, Reserve, Unreserve, UpdateNodes
from testing import children
from testing.checks import (
    DRAIN,
    NOW,
    SLURM,
    changed_node,
    check,
    conditions,
    decide,
    ended,
    made,
    node,
    passed,
    patched,
    told,
    waits,
    with_run,
    with_slurm,
    world,
    writes,
)

REASON = "[node_problem] gpus: job 7 [slurm_job]"


# ---- What each final state leads to. docs/guides/checks.md has the same table.

STATES = [
    ("COMPLETED", "Complete", False),
    ("FAILED", "Failed", True),
    ("TIMEOUT", "Failed", True),
    ("NODE_FAIL", "Failed", True),
    ("BOOT_FAIL", "Failed", True),
    ("CANCELLED", "Cancelled", False),
    ("OUT_OF_MEMORY", "Error", False),
    ("DEADLINE", "Error", False),
    ("PREEMPTED", "Error", False),
]


@pytest.mark.parametrize(("state", "word", "drains"), STATES, ids=[state for state, _, _ in STATES])
def test_what_a_final_state_leads_to(state, word, drains):
    there = with_run(world(check()), ids="7")
    there.job_ends[7] = (ended(7, state, "cpu-3"),)
    _, plan = decide(there)

    assert writes(plan) == ([DrainNodes(nodes=("cpu-3",), reason=REASON)] if drains else [])
    assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""
    assert patched(plan)[0][names.FINAL_STATE_TIME]
    status = told(there)
    assert status["slurmJobsStatus"]["lastRunStatus"] == word
    [result] = status["slurmJobsStatus"]["lastRunResults"]
    assert (result["jobID"], result["nodes"], result["result"], result["state"]) == (
        "7",
        ["cpu-3"],
        word,
        state,
    )


def test_a_drain_comes_before_the_note_that_it_was_done():
    there = with_run(world(check()), ids="7")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    _, plan = decide(there)
    [run] = [lane for lane in plan.lanes if lane.name.startswith("run ")]

    assert [len(stage) for stage in run.stages] == [1, 1]
    assert isinstance(run.stages[1][0], PatchObject)


def test_what_was_handled_is_not_done_again():
    """A person may have resumed the node since."""
    there = with_run(world(check()), ids="7", unhandled_slurm_job_id="")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)

    assert writes(decide(there)[1]) == []


@pytest.mark.parametrize(
    ("record", "drained"),
    [
        pytest.param(
            node("cpu-3", "IDLE", "DRAIN", reason="grace: bad NIC"), False, id="a person drained it"
        ),
        pytest.param(
            node("cpu-3", "DOWN", reason="on fire", reason_set_by="grace"), False, id="a person's word"
        ),
        pytest.param(
            node("cpu-3", "DOWN", reason="Not responding", reason_set_by="slurm"), True, id="Slurm gave it up"
        ),
        pytest.param(node("cpu-3", "ALLOCATED"), True, id="another job runs there, and goes on"),
    ],
)
def test_an_existing_reason_is_kept(record, drained):
    there = changed_node(with_run(world(check()), ids="7"), record)
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    _, plan = decide(there)

    assert [write.nodes for write in writes(plan)] == ([("cpu-3",)] if drained else [])
    assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""


def test_of_a_job_on_many_nodes_only_the_lost_one_is_to_blame():
    there = changed_node(with_run(world(check()), ids="7"), node("cpu-1", "DOWN", "NOT_RESPONDING"))
    there.job_ends[7] = (ended(7, "NODE_FAIL", "cpu-0", "cpu-1", "cpu-2"),)

    assert [write.nodes for write in writes(decide(there)[1])] == [("cpu-1",)]


def test_every_node_of_a_failed_job_is_drained_and_unknown_ones_are_not():
    there = with_run(world(check(brake={"maxPercent": 100})), ids="7")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-0", "cpu-1", "gone-9"),)

    assert [write.nodes for write in writes(decide(there)[1])] == [("cpu-0", "cpu-1")]


def test_an_array_is_as_good_as_its_worst_task():
    there = with_run(world(check()), ids="7")
    there.job_ends[7] = (ended(7, "COMPLETED", "cpu-0"), ended(8, "FAILED", "cpu-1"))

    assert [write.nodes for write in writes(decide(there)[1])] == [("cpu-1",)]
    assert told(there)["slurmJobsStatus"]["lastRunStatus"] == "Failed"


OVERALL = [
    (["COMPLETED", "COMPLETED"], "Complete"),
    (["COMPLETED", "CANCELLED"], "Cancelled"),
    (["CANCELLED", "OUT_OF_MEMORY"], "Error"),
    (["OUT_OF_MEMORY", "FAILED"], "Failed"),
    (["FAILED", None], "InProgress"),
]


@pytest.mark.parametrize(("states", "word"), OVERALL, ids=[word for _, word in OVERALL])
def test_what_a_run_comes_to(states, word):
    there = with_run(world(check()), ids="1,2")
    for job_id, state in enumerate(states, 1):
        there.job_ends[job_id] = (ended(job_id, state, "cpu-0"),) if state else Unread(why="it has not ended")

    assert told(there)["slurmJobsStatus"]["lastRunStatus"] == word


# ---- Reactions


def test_success_and_failure_have_reactions_of_their_own():
    body = check(successReactions={"commentSlurmNode": {"commentPrefix": "fine"}})
    there = with_run(world(body), ids="1,2")
    there.job_ends = {1: (ended(1, "COMPLETED", "cpu-0"),), 2: (ended(2, "FAILED", "cpu-1"),)}

    assert writes(decide(there)[1]) == [
        UpdateNodes(nodes=("cpu-0",), comment="fine gpus: job 1 [slurm_job]"),
        DrainNodes(nodes=("cpu-1",), reason="[node_problem] gpus: job 2 [slurm_job]"),
    ]


@pytest.mark.parametrize(
    ("comment", "over"),
    [
        pytest.param("", "", id="there is none"),
        pytest.param(
            "bad gpus: job 1 [slurm_job]", "bad gpus: job 1 [slurm_job]", id="an earlier one of ours"
        ),
        pytest.param("ask grace", None, id="somebody else's"),
    ],
)
def test_a_comment_of_somebody_else_stays(comment, over):
    body = check(failureReactions={"commentSlurmNode": {"commentPrefix": "bad"}})
    there = changed_node(with_run(world(body), ids="7"), node("cpu-3", comment=comment))
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    _, plan = decide(there)
    text = "bad gpus: job 7 [slurm_job]"
    wanted = [] if over is None else [UpdateNodes(nodes=("cpu-3",), comment=text, comment_over=over)]

    assert writes(plan) == wanted
    assert ("CommentKept" in [action.reason for action in plan.actions()]) == (over is None)


def test_reservations_of_older_releases():
    body = check(
        failureReactions={"addReservation": {"prefix": "suspicious-node"}},
        successReactions={"removeReservation": {"prefix": "suspicious-node"}},
    )
    there = with_run(world(body), ids="1,2,3")
    there.job_ends = {
        1: (ended(1, "FAILED", "cpu-0"),),
        2: (ended(2, "COMPLETED", "cpu-1"),),
        3: (ended(3, "COMPLETED", "cpu-2"),),
    }
    with_slurm(
        there,
        dict(there.slurms[SLURM].nodes),
        reservations={"suspicious-node-cpu-1": Reservation(name="suspicious-node-cpu-1")},
    )

    assert writes(decide(there)[1]) == [
        Reserve(
            name="suspicious-node-cpu-0",
            nodes=("cpu-0",),
            start_time=NOW,
            duration=timedelta(days=365),
            users=("soperatorchecks",),
            flags=("MAINT", "IGNORE_JOBS"),
        ),
        Unreserve(name="suspicious-node-cpu-1"),
    ]


@pytest.mark.parametrize(
    ("older", "reason", "comment"),
    [
        (
            {"drainSlurmNode": True, "setCondition": True},
            "[node_problem] Failed gpus: job 7 [slurm_job]",
            None,
        ),
        ({"drainSlurmNode": True}, "Soperator activecheck unknown: node drain process", None),
        ({"commentSlurmNode": True}, None, "[node_problem] Failed gpus: job 7 [slurm_job]"),
    ],
    ids=["drain with a condition", "drain without", "comment"],
)
def test_the_one_list_of_reactions_of_older_releases(older, reason, comment):
    there = with_run(world(check(failureReactions=None, reactions=older)), ids="7")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    [write] = writes(decide(there)[1])

    assert (getattr(write, "reason", None), getattr(write, "comment", None)) == (reason, comment)


# ---- What cannot be told


def test_while_slurm_does_not_answer_nothing_is_handled():
    there = with_run(world(check()), ids="7")
    there.slurms[SLURM] = Unreachable(since=NOW, why="timed out")
    there.job_ends[7] = Unread(why="timed out")
    _, plan = decide(there)

    assert not writes(plan)
    assert not patched(plan)
    assert "SlurmUnreachable" in waits(plan)
    assert told(there)["slurmJobsStatus"]["lastRunStatus"] == "InProgress"


@pytest.mark.parametrize("notes", [{}, {"ids": "7", "unhandled_slurm_job_id": ""}], ids=["none", "handled"])
def test_a_run_that_asks_nothing_of_slurm_is_closed_without_it(notes):
    there = with_run(world(check()), state="Failed", **notes)
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    told(there)
    there.slurms[SLURM] = Unreachable(since=NOW, why="timed out")
    there.job_ends[7] = Unread(why="timed out")
    _, plan = decide(there)

    assert patched(plan)[0][names.FINAL_STATE_TIME]
    assert "SlurmUnreachable" not in waits(plan)


def test_nothing_is_done_while_a_run_submits():
    """Its pod notes every job again, those that were handled too; the brake counts them all at once."""
    there = with_run(world(check()), state="Active", ids="7")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    _, plan = decide(there)

    assert not writes(plan)
    assert not patched(plan)
    there.job_ends[7] = ()
    _, plan = decide(with_run(there, ids="7"))
    assert not writes(plan), "Slurm has forgotten it, and nobody noted how it ended"
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    told(with_run(there, state="Active", ids="7"))
    there.job_ends[7] = ()
    _, plan = decide(with_run(there, ids="7"))
    assert [write.nodes for write in writes(plan)] == [("cpu-3",)], "the status remembers it"


def test_a_job_that_was_submitted_just_now_is_not_forgotten_though_its_run_began_long_ago():
    there = with_run(world(check()), state="Active", ids="7", made_at=NOW - timedelta(hours=1))
    there.job_ends[7] = ()
    status = told(there)["slurmJobsStatus"]

    assert (status["lastRunStatus"], status["lastRunResults"]) == ("InProgress", [])


@pytest.mark.parametrize(
    ("minutes", "word"), [(5, "InProgress"), (60, "Error")], ids=["not in the books yet", "forgotten"]
)
def test_without_accounting_a_forgotten_job_is_an_error_and_no_pass(minutes, word):
    there = with_run(world(check()), ids="7", made_at=NOW - timedelta(minutes=minutes))
    there.job_ends[7] = ()

    status = told(there)["slurmJobsStatus"]

    assert status["lastRunStatus"] == word
    assert not writes(decide(there)[1])
    if word == "Error":
        assert "accounting" in status["lastRunErrorJobsAndReasons"][0]["reason"]


def test_what_the_status_remembers_outlives_slurms_memory():
    there = with_run(world(check()), ids="1,2")
    there.job_ends = {1: (ended(1, "FAILED", "cpu-0"),), 2: Unread(why="it has not ended")}
    passed(there)
    there.job_ends = {1: (), 2: (ended(2, "COMPLETED", "cpu-1"),)}
    there.now = NOW + timedelta(hours=2)
    status = told(there)["slurmJobsStatus"]

    assert status["lastRunStatus"] == "Failed"
    assert [one["result"] for one in status["lastRunResults"]] == ["Failed", "Complete"]
    assert patched(decide(there)[1])[0][names.FINAL_STATE_TIME]


@pytest.mark.parametrize(
    ("run", "word", "identity"),
    [
        pytest.param({"state": "Active"}, "InProgress", "", id="it submits"),
        pytest.param({"state": "Failed"}, "Error", "No slurm job", id="it could not submit"),
        pytest.param({"state": "Complete"}, "Error", "No slurm job", id="it submitted nothing"),
        pytest.param(
            {"state": "Complete", "slurm_skipped_reason": "no GPU"},
            "Skipped",
            "No slurm job",
            id="nothing to check",
        ),
    ],
)
def test_a_run_without_slurm_jobs(run, word, identity):
    status = told(with_run(world(check()), **run))["slurmJobsStatus"]

    assert (status["lastRunStatus"], status["lastRunId"]) == (word, identity)


def test_jobs_that_were_submitted_count_although_the_job_failed_afterwards():
    there = with_run(world(check()), ids="7", state="Failed")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)

    assert [write.nodes for write in writes(decide(there)[1])] == [("cpu-3",)]
    assert told(there)["slurmJobsStatus"]["lastRunStatus"] == "Failed"


# ---- When it runs


def test_the_first_run_and_the_schedule():
    _, plan = decide(world(check()))
    [cron], [job] = made(plan, "CronJob"), made(plan, "Job")

    assert (cron["metadata"]["name"], cron["spec"]["suspend"]) == ("gpus", False)
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["metadata"]["name"] == "gpus-initial-run"
    assert job["spec"] == cron["spec"]["jobTemplate"]["spec"]
    assert [body["metadata"]["name"] for body in made(plan, "ConfigMap")] == ["sbatch-script-gpus"]
    assert [body["metadata"]["name"] for body in made(plan, "ServiceAccount")] == ["smallest-activecheck-sa"]


def test_a_settled_check_writes_nothing():
    there = with_run(passed(world(check())), ids="7")
    there.job_ends[7] = Unread(why="it has not ended")
    _, plan = decide(there)

    assert plan.is_idle


@pytest.mark.parametrize(
    ("spec", "status", "starts"),
    [
        pytest.param({}, {}, True, id="new"),
        pytest.param({"runAfterCreation": False}, {}, False, id="only by the clock"),
        pytest.param(
            {}, {"slurmJobsStatus": {"lastRunId": "5", "lastRunStatus": "Complete"}}, False, id="it ran"
        ),
        pytest.param(
            {}, {"slurmJobsStatus": {"lastRunStatus": "Skipped"}, "skippedBy": ["b"]}, True, id="skipped"
        ),
    ],
)
def test_the_first_run_happens_once(spec, status, starts):
    there = world()
    body = {**check(**spec), "status": status}
    there.things += [
        codec.read(ActiveCheck, {**body, "metadata": {"name": "gpus", "namespace": "ns", "uid": "u"}})
    ]

    assert bool(made(decide(there)[1], "Job")) == starts


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        pytest.param(world(check(), phase="Not available"), "WaitingForCluster", id="cluster not available"),
        pytest.param(world(check(slurmClusterRefName="other")), "ClusterNotFound", id="no cluster"),
        pytest.param(world(check(dependsOn=["none"])), "WaitingForChecks", id="a check that is not there"),
        pytest.param(world(check(podTemplateNameRef="t")), "PodTemplateNotFound", id="no template"),
        pytest.param(world(check(schedule="61 * * * *")), "SpecRefused", id="a bad schedule"),
        pytest.param(world(check(dependsOn=["gpus"])), "SpecRefused", id="it depends on itself"),
        pytest.param(
            world(check(dependsOn=["b"]), check("b", dependsOn=["gpus"])), "SpecRefused", id="in a circle"
        ),
        pytest.param(world(check(slurmJobSpec=None)), "SpecRefused", id="no image"),
        pytest.param(
            world(check(slurmJobSpec={"jobContainer": {"image": "i:1"}})), "SpecRefused", id="no script"
        ),
        pytest.param(world(check(brake={"window": "0s"})), "SpecRefused", id="a brake without time"),
    ],
)  # fmt: skip
def test_what_a_check_waits_for(there, reason):
    _, plan = decide(there)

    assert list(waits(plan)) == [reason]
    assert not made(plan, "Job")
    assert conditions(told(there))["Ready"] == ("False", reason)


@pytest.mark.parametrize(
    ("mode", "held"), [("none", False), ("downscale", True), ("skipPopulateJail", False)]
)
def test_nothing_runs_by_the_clock_while_the_cluster_is_taken_down(mode, held):
    there = world(check())
    cluster = there.get(SlurmCluster, "ns", "smallest")
    body = codec.plain(cluster)
    body["spec"]["maintenance"] = mode
    there.things = [thing for thing in there.things if thing is not cluster] + [
        codec.read(SlurmCluster, body)
    ]
    _, plan = decide(there)

    assert made(plan, "CronJob")[0]["spec"]["suspend"] is held
    assert bool(made(plan, "Job")) is not held


def test_a_check_without_a_spec_says_so():
    there = world({**check(), "spec": None})

    assert conditions(told(there))["Ready"] == ("False", "SpecRefused")


def test_a_pod_template_is_merged_into_the_pod():
    there = world(check(podTemplateNameRef="t"))
    there.served.add(kinds.POD_TEMPLATE)
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"priorityClassName": "high"}}
    there.things.append(
        PodTemplate(metadata=children._meta({"name": "t", "namespace": "ns"}), template=template)
    )
    [job] = made(decide(there)[1], "Job")

    assert job["spec"]["template"]["spec"]["priorityClassName"] == "high"
    assert job["spec"]["template"]["metadata"]["labels"]["team"] == "a"
    assert [one["name"] for one in job["spec"]["template"]["spec"]["containers"]] == ["check"]


# ---- Checks that depend on each other

STANDINGS = [
    ("k8sJob", {"k8sJobsStatus": {"lastJobStatus": "Complete"}}, "runs"),
    ("k8sJob", {"k8sJobsStatus": {"lastJobStatus": "Failed"}}, "DependencyFailed"),
    ("k8sJob", {"k8sJobsStatus": {"lastJobStatus": "Active"}}, "WaitingForChecks"),
    ("k8sJob", {}, "WaitingForChecks"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "Complete"}}, "runs"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "Skipped"}}, "runs"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "Skipped"}, "skippedBy": ["z"]}, "DependencyFailed"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "Error"}}, "DependencyFailed"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "Cancelled"}}, "DependencyFailed"),
    ("slurmJob", {"slurmJobsStatus": {"lastRunStatus": "InProgress"}}, "WaitingForChecks"),
]


@pytest.mark.parametrize(("type_", "status", "then"), STANDINGS, ids=[f"{t} {s}" for t, s, _ in STANDINGS])
def test_what_another_check_means_to_those_that_depend_on_it(type_, status, then):
    there = world(check(dependsOn=["b"]))
    body = {**check("b", type_), "status": status}
    there.things.append(
        codec.read(ActiveCheck, {**body, "metadata": {"name": "b", "namespace": "ns", "uid": "b"}})
    )
    _, plan = decide(there)

    assert (list(waits(plan)) or ["runs"]) == [then]
    assert bool(made(plan, "Job")) == (then == "runs")
    if then == "DependencyFailed":
        status = told(there)
        assert status["slurmJobsStatus"]["lastRunStatus"] == "Skipped"
        assert status["skippedBy"] == ["b"]
        assert "b " in waits(plan)["DependencyFailed"]
        assert made(plan, "CronJob")[0]["spec"]["suspend"] is True


def test_a_check_that_runs_only_by_the_clock_holds_up_nobody_before_it_ran():
    there = world(check(dependsOn=["b"]), check("b", runAfterCreation=False))

    assert not waits(decide(there)[1])


def test_a_change_of_a_check_wakes_those_that_depend_on_it():
    there = world(check(dependsOn=["b"]), check("b"))

    assert list(of_dependency(there.get(ActiveCheck, "ns", "b"), there)) == [ObjectKey("ns", "gpus")]


def test_a_chain_whose_second_check_fails():
    """A passes, B fails, C is skipped because of B, D because of C; B passes in the end and they run."""
    there = world(
        check("a", "k8sJob"), check("b", dependsOn=["a"]), check("c", dependsOn=["b"]),
        check("d", "k8sJob", dependsOn=["c"]),
    )  # fmt: skip
    story = []

    def look(*names_: str) -> None:
        for name in names_:
            passed(there, name)
        for name in "abcd":
            found = there.get(ActiveCheck, "ns", name).status
            word = found.slurm_jobs_status.last_run_status or found.k8s_jobs_status.last_job_status
            story.append(
                f"{name}:{word or '-'}" + (f"({','.join(found.skipped_by)})" if found.skipped_by else "")
            )

    look("a", "b", "c", "d")
    with_run(there, "a", state="Complete", run="a-initial-run", made_at=NOW)
    look("a", "b", "c", "d")
    with_run(there, "b", ids="7", run="b-initial-run", made_at=NOW)
    there.job_ends[7] = (ended(7, "FAILED", "cpu-1"),)
    look("b", "c", "d", "d")
    with_run(there, "b", ids="8", run="b-by-hand", made_at=NOW + timedelta(minutes=1))
    there.job_ends[8] = (ended(8, "COMPLETED", "cpu-1"),)
    look("b", "c", "d", "d")

    assert [" ".join(story[at : at + 4]) for at in range(0, len(story), 4)] == [
        "a:- b:- c:- d:-",
        "a:Complete b:- c:- d:-",
        "a:Complete b:Failed c:Skipped(b) d:Skipped(c)",
        "a:Complete b:Complete c:- d:-",
    ]
    assert there.child(kinds.JOB, "ns", "c-initial-run") is not None
    assert there.child(kinds.JOB, "ns", "d-initial-run") is None


# ---- Kubernetes Jobs


@pytest.mark.parametrize("state", ["Active", "Complete", "Failed", "Suspended"])
def test_a_k8s_job_is_its_own_result(state):
    there = with_run(world(check(type_="k8sJob")), state=state)
    status = told(there)

    assert status["k8sJobsStatus"]["lastJobStatus"] == state
    assert status["k8sJobsStatus"]["lastJobName"] == "gpus-initial-run"
    assert not writes(decide(there)[1])
    if state == "Failed":
        assert conditions(status)["Passed"] == ("False", "Failed")


# ---- Deleted, and taken over


def test_a_check_that_is_deleted_while_its_job_runs_ends_no_slurm_job():
    """Its Jobs go with it, by Kubernetes' own hand. What they submitted runs on, and nothing is done about it."""
    there = with_run(world(check()), ids="7")
    there.job_ends[7] = (ended(7, "FAILED", "cpu-3"),)
    there.things = [
        codec.read(
            ActiveCheck,
            {
                **codec.plain(t),
                "metadata": {**codec.plain(t.metadata), "deletionTimestamp": "2026-01-01T12:00:00Z"},
            },
        )
        if isinstance(t, ActiveCheck)
        else t
        for t in there.things
    ]
    _, plan = decide(there)

    assert list(plan.actions()) == []


def _of_soperator(there, *, finalizer=False, terminating=False):
    body = check()
    body["metadata"] |= {"finalizers": [names.ACTIVE_CHECK_FINALIZER]} if finalizer else {}
    body["metadata"] |= {"deletionTimestamp": "2026-01-01T12:00:00Z"} if terminating else {}
    meta = {**body["metadata"], "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    there.things.append(codec.read(ActiveCheck, {**body, "metadata": meta}))
    owner = {
        "apiVersion": "slurm.nebius.ai/v1",
        "kind": "SlurmCluster",
        "name": "smallest",
        "uid": "uid-smallest",
        "controller": True,
    }
    meta = {"name": "gpus", "namespace": "ns", "ownerReferences": [owner]}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": {}}
    there.children_[kinds.CRON_JOB] = [Child(metadata=children._meta(meta), body=cron)]
    return there


def test_soperators_cron_job_is_adopted():
    _, plan = decide(_of_soperator(world()))
    [patch] = [action for action in plan.actions() if isinstance(action, PatchObject)]

    assert patch.kind == kinds.CRON_JOB
    assert patch.operations[0]["value"][0]["kind"] == "ActiveCheck"


def test_soperators_finalizer_goes_after_the_cron_job():
    _, plan = decide(_of_soperator(world(), finalizer=True, terminating=True))
    [farewell] = plan.lanes

    assert [type(stage[0]) for stage in farewell.stages] == [DeleteObject, PatchObject]
    assert farewell.stages[1][0].operations[1]["value"] == []


# ---- The pod


def test_the_pod_that_submits():
    [job] = made(decide(world(check(tolerations=[{"operator": "Exists"}], hostUsers=False)))[1], "Job")
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    env = {one["name"]: one.get("value") for one in container["env"]}

    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["metadata"]["annotations"] == {names.ACTIVE_CHECK: "gpus"}
    assert (pod["activeDeadlineSeconds"], pod["hostUsers"]) == (1800, False)
    assert pod["serviceAccountName"] == "smallest-activecheck-sa"
    assert "command" not in container  # Soperator's image has its own.
    assert env["ACTIVE_CHECK_NAME"] == "gpus"
    assert env["EACH_WORKER_JOBS"] == "false"
    assert env["ACTIVE_CHECK_MAX_NUMBER_OF_JOBS"] == "0"
    assert [one["name"] for one in pod["initContainers"]] == ["munge"]
    assert "/opt/bin/sbatch.sh" in [one["mountPath"] for one in container["volumeMounts"]]


def test_our_image_submits_with_our_program_and_finds_slurms_files():
    image = "ghcr.io/slinkyproject/login:26.05-ubuntu26.04"
    jobs = {"jobContainer": {"image": image}, "sbatchScript": "true\n", "eachWorkerJobArray": True}
    [job] = made(decide(world(check(slurmJobSpec=jobs)))[1], "Job")
    [container] = job["spec"]["template"]["spec"]["containers"]

    assert container["command"] == ["slurm-entry", "submit-check"]
    assert "/etc/slurm" in [one["mountPath"] for one in container["volumeMounts"]]
    assert {"name": "EACH_WORKER_JOBS", "value": "true"} in container["env"]


def test_a_script_of_a_k8s_job_is_run_by_bash():
    [job] = made(decide(world(check(type_="k8sJob")))[1], "Job")
    [container] = job["spec"]["template"]["spec"]["containers"]

    assert container["command"] == ["bash", "/opt/bin/entrypoint.sh"]
    assert "initContainers" not in job["spec"]["template"]["spec"]


def test_a_long_name_makes_a_first_run_that_kubernetes_takes():
    name = "a" * 52
    [job] = made(decide(world(check(name)), name)[1], "Job")

    assert len(job["metadata"]["name"]) <= 63
    assert job["metadata"]["name"].endswith("-initial-run")


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("0 */3 * * *", None),
        ("0 0,12 * * *", None),
        ("15 2 * jan-mar mon", None),
        ("@daily", None),
        ("0 24 * * *", "hour"),
        ("* * * *", "five fields"),
        ("*/0 * * * *", "minute"),
        ("TZ=UTC 0 0 * * *", "time zone"),
    ],
)
def test_schedules(schedule, words):
    found = trouble(schedule)

    assert (found is None) == (words is None)
    assert words is None or words in str(found)


def test_strange_notes_of_a_pod_are_named_and_the_others_count():
    there = with_run(world(check()), ids="abc,,7, 8 ,7,-3")
    there.job_ends = {7: (ended(7, "COMPLETED", "cpu-0"),), 8: (ended(8, "COMPLETED", "cpu-1"),)}
    status = told(there)["slurmJobsStatus"]

    assert [one["jobID"] for one in status["lastRunResults"]] == ["7", "8"]
    assert status["lastRunStatus"] == "Error"
    assert [one["reason"] for one in status["lastRunErrorJobsAndReasons"]] == [
        "'abc' is no id of a Slurm job",
        "'-3' is no id of a Slurm job",
    ]


def test_the_first_run_may_be_there_already():
    """Two operators, or one that crashed before it saw its own Job."""
    [first] = [action for action in decide(world(check()))[1].actions() if isinstance(action, Create)]

    assert first.may_exist
    assert DRAIN["drainSlurmNode"]
