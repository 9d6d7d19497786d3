"""When the Job that populates the shared root is made, made again, waited for, and how its failure is told."""

import json

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Create
from testing import children
from testing.slurmclusters import (
    NOW,
    carried_out,
    decide,
    job_pod,
    manifest,
    pod,
    populated,
    read,
    report,
    settled,
    with_job,
    with_our_images,
    world,
)

NAME = "smallest"
OVERWRITE = "downscaleAndOverwritePopulateJail"
DELETE = "downscaleAndDeletePopulateJail"
LOGIN = pod("smallest-login-0", NAME, "login", phase="Running")
WORKER = pod("cpu-0", NAME, "nodeset", phase="Running")
ENDED = pod("cpu-0", NAME, "nodeset", phase="Succeeded")
OTHERS = pod("gpu-0", "another", "nodeset", phase="Running")
FULL = {
    "result": "Failed",
    "reason": "NoSpace",
    "phase": "Unpacking",
    "message": "The volume is full: 3 GiB are missing.",
}


def cluster(mode: str = "none", **changes):
    return with_our_images(manifest("SlurmCluster", NAME, spec__maintenance=mode, **changes))


def same_digest(mode: str = "none") -> str:
    """The digest of the Job that this cluster would make now."""
    [made] = [a.manifest for a in _steps(world(cluster(mode))) if isinstance(a, Create)]
    return made["metadata"]["annotations"][names.POPULATE_DIGEST]


def _steps(there):
    _, plan = decide(there, SlurmCluster, NAME)
    return [action for lane in plan.lanes if lane.name == "populate" for action in lane.actions()]


def told(there) -> str:
    """The only step of the lane: its type, and its reason."""
    found = [f"{type(action).__name__} {action.reason}" for action in _steps(there)]
    assert len(found) <= 1
    return found[0] if found else "nothing"


def failed(**more) -> dict:
    condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
    return {"failed": 7, "conditions": [{**condition, **more}]}


@pytest.mark.parametrize(
    ("mode", "pods", "expected"),
    [
        pytest.param("none", [], "Create Created", id="nothing runs: populate it"),
        pytest.param("none", [WORKER], "nothing", id="a worker runs on it: it was populated before"),
        pytest.param("none", [ENDED], "Create Created", id="a worker that ended uses nothing"),
        pytest.param("none", [OTHERS], "Create Created", id="pods of another cluster on another root"),
        pytest.param("downscale", [], "Create Created", id="downscale: as none"),
        pytest.param("skipPopulateJail", [], "nothing", id="skipped"),
        pytest.param(DELETE, [], "nothing", id="delete: there is nothing to delete"),
        pytest.param(OVERWRITE, [LOGIN], "Wait RootInUse", id="overwrite waits for login pods"),
        pytest.param(OVERWRITE, [WORKER], "Wait RootInUse", id="overwrite waits for workers"),
        pytest.param(OVERWRITE, [], "Create Created", id="overwrite: nobody is there"),
    ],
)
def test_without_a_job(mode, pods, expected):
    there = world(cluster(mode))
    there.things += pods

    assert told(there) == expected


@pytest.mark.parametrize(
    ("mode", "purpose", "expected"),
    [
        pytest.param("none", "populate", "nothing", id="populated"),
        pytest.param("downscale", "populate", "nothing", id="downscale leaves it"),
        pytest.param("skipPopulateJail", "populate", "nothing", id="skip leaves it"),
        pytest.param(DELETE, "populate", "DeleteObject Deleted", id="delete"),
        pytest.param(OVERWRITE, "populate", "DeleteObject Deleted", id="overwrite: the old Job goes first"),
        pytest.param(OVERWRITE, "overwrite", "nothing", id="overwrite: done, and not done twice"),
        pytest.param(OVERWRITE, "overwritten", "DeleteObject Deleted", id="overwrite asked for once more"),
        pytest.param("none", "overwrite", "PatchObject Overwritten", id="overwriting is over: note that"),
        pytest.param("none", "overwritten", "nothing", id="noted"),
    ],
)
def test_with_a_job_that_succeeded(mode, purpose, expected):
    there = with_job(world(cluster(mode)), NAME, purpose=purpose, digest="x", succeeded=1)

    assert told(there) == expected


def test_the_old_job_stays_while_pods_run_on_the_root():
    there = with_job(world(cluster(OVERWRITE)), NAME, digest="x", succeeded=1)
    there.things.append(WORKER)

    assert told(there) == "Wait RootInUse"
    assert "cpu-0" in _steps(there)[0].message


@pytest.mark.parametrize(
    ("status", "pods", "expected", "words"),
    [
        pytest.param({}, [], "Wait Populating", "its pod is being created", id="just made"),
        pytest.param({"active": 1}, [job_pod(NAME, running={})], "Wait Populating", "its pod is running", id="at work"),
        pytest.param(
            {"active": 1},
            [job_pod(NAME, phase="Pending", waiting={"reason": "ImagePullBackOff", "message": "no such image"})],
            "Wait Populating",
            "ImagePullBackOff: no such image",
            id="its image cannot be had",
        ),
        pytest.param(
            {"failed": 1},
            [job_pod(NAME, phase="Failed", terminated={"exitCode": 1, "message": json.dumps(FULL)})],
            "Wait PopulateFailed",
            "The volume is full: 3 GiB are missing (NoSpace). Attempt 2 follows.",
            id="full: in the program's own words",
        ),
        pytest.param(
            {"failed": 1},
            [job_pod(NAME, phase="Failed", terminated={"exitCode": 137, "reason": "OOMKilled"})],
            "Wait PopulateFailed",
            "it ended with exit code 137 (OOMKilled)",
            id="killed",
        ),
        pytest.param(
            {"failed": 1, "active": 1},
            [
                job_pod(NAME, "populate-1", phase="Failed", terminated={"exitCode": 1, "message": json.dumps(FULL)}),
                job_pod(NAME, "populate-2", running={}),
            ],
            "Wait Populating",
            "its pod is running; an attempt before it failed: The volume is full",
            id="the next attempt runs",
        ),
        pytest.param(
            failed(lastTransitionTime="2026-01-01T11:55:00Z"), [], "Wait PopulateFailed", "too often", id="it has given up"
        ),
        pytest.param(
            failed(lastTransitionTime="2026-01-01T11:40:00Z"), [], "DeleteObject Deleted", "made again", id="long ago: again"
        ),
    ],
)  # fmt: skip
def test_a_job_that_is_not_done(status, pods, expected, words):
    there = with_job(world(cluster()), NAME, digest=same_digest(), **status)
    there.things += pods

    assert told(there) == expected
    assert words in _steps(there)[0].message


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], "DeleteObject Deleted", id="not started: make the corrected one"),
        pytest.param([job_pod(NAME, running={})], "Wait Populating", id="at work: let it end"),
    ],
)
def test_a_job_that_was_corrected(pods, expected):
    there = with_job(world(cluster()), NAME, digest="of another image")
    there.things += pods

    assert told(there) == expected


def test_a_job_on_its_way_out_is_waited_for():
    there = with_job(world(cluster()), NAME, succeeded=1)
    job = there.child(kinds.JOB, "ns", names.populate_jail(NAME))
    there.children_[kinds.JOB] = [_leaving(job)]

    assert told(there) == "Wait Populating"


def _leaving(job):
    return wire.replace(job, metadata=wire.replace(job.metadata, deletion_timestamp=NOW))


def test_overwriting_from_the_first_pass_to_the_next_time():
    """The mode stays for as long as the user likes, and overwrites once each time it is chosen."""
    there = with_job(world(cluster(OVERWRITE)), NAME, digest="x", succeeded=1)
    seen = []
    for mode in (OVERWRITE, OVERWRITE, OVERWRITE, "none", "none", OVERWRITE):
        there.things = [*world(cluster(mode)).things]
        _, plan = decide(there, SlurmCluster, NAME)
        seen.append(told(there))
        carried_out(there, plan)
        if seen[-1] == "Create Created":
            populated(there, NAME)

    assert seen == [
        "DeleteObject Deleted", "Create Created", "nothing", "PatchObject Overwritten", "nothing", "DeleteObject Deleted",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, "0"), ({names.DELETE_OTHERS: "true"}, "1"), ({names.DELETE_OTHERS: "yes"}, "0")],
)
def test_deleting_what_is_not_in_the_image_needs_a_word(annotations, expected):
    body = cluster(OVERWRITE)
    body["metadata"]["annotations"] = annotations
    [made] = [a.manifest for a in _steps(world(body)) if isinstance(a, Create)]
    env = {one["name"]: one.get("value") for one in made["spec"]["template"]["spec"]["containers"][0]["env"]}

    assert env["POPULATE_DELETE_OTHERS"] == expected
    assert env["OVERWRITE"] == "1"


@pytest.mark.parametrize(
    ("said", "seconds"), [("", 7200), ("60", 60), ("0", 7200), ("soon", 7200), ("-5", 7200)]
)
def test_the_deadline(said, seconds):
    body = cluster()
    body["metadata"]["annotations"] = {names.POPULATE_DEADLINE: said}
    [made] = [a.manifest for a in _steps(world(body)) if isinstance(a, Create)]

    assert made["spec"]["template"]["spec"]["activeDeadlineSeconds"] == seconds + 60


def test_two_clusters_on_one_root_know_each_others_pods():
    other = manifest("SlurmCluster", NAME)
    other["metadata"]["name"] = "another"
    there = world(cluster(OVERWRITE), other)
    there.things.append(OTHERS)

    assert told(there) == "Wait RootInUse"


def part(type_, name, replicas=0, *, status=0, observed=1, controller=NAME):
    body = {
        "metadata": {"name": name, "namespace": "ns", "generation": 1},
        "spec": {"controllerRef": {"name": controller}, "replicas": replicas},
        "status": {"replicas": status, "observedGeneration": observed},
    }
    return codec.read(type_, body)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([part(LoginSet, "smallest-login"), part(WorkerPart, "cpu")], "Create Created", id="all at 0"),
        pytest.param([part(LoginSet, "smallest-login", 2)], "Wait RootInUse", id="login pods are wanted"),
        pytest.param([part(LoginSet, "smallest-login", status=1)], "Wait RootInUse", id="a login pod is left"),
        pytest.param([part(LoginSet, "smallest-login", observed=0)], "Wait RootInUse", id="not looked at since"),
        pytest.param([part(WorkerPart, "cpu", 1)], "Wait RootInUse", id="workers are wanted"),
        pytest.param([part(WorkerPart, "cpu", status=3)], "Wait RootInUse", id="workers are left"),
        pytest.param([part(WorkerPart, "cpu", observed=0)], "Wait RootInUse", id="workers: not looked at since"),
        pytest.param([part(WorkerPart, "gpu", 1, controller="x")], "Create Created", id="of another cluster"),
    ],
)  # fmt: skip
def test_the_root_is_overwritten_only_when_its_pods_are_known_to_be_gone(found, expected):
    """A pod that is made at this moment is in no list yet; who makes it says whether there may be one."""
    there = world(cluster(OVERWRITE))
    there.things += found

    assert told(there) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(part(WorkerPart, "cpu", 1), "nothing", id="workers that ended a moment ago"),
        pytest.param(part(LoginSet, "smallest-login", 1), "nothing", id="login pods that ended a moment ago"),
        pytest.param(part(WorkerPart, "cpu", 0), "Create Created", id="nobody has started yet"),
        pytest.param(part(WorkerPart, "cpu", 1, controller="x"), "Create Created", id="of another cluster"),
    ],
)
def test_a_lost_job_is_not_made_again_where_pods_have_run(found, expected):
    """Their next pods start at any moment, under the Job."""
    there = world(cluster())
    there.things.append(found)

    assert told(there) == expected
    assert decide(there, SlurmCluster, NAME)[0].root.is_usable is (expected == "nothing")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"observedGeneration": 1, "replicas": 0}, "Create Created", id="empty"),
        pytest.param({"observedGeneration": 0, "replicas": 0}, "Wait RootInUse", id="not looked at since"),
        pytest.param({"observedGeneration": 1, "replicas": 2}, "Wait RootInUse", id="pods are ending"),
    ],
)
def test_the_workload_of_the_login_pods_counts_too(status, expected):
    there = world(cluster(OVERWRITE))
    there.things.append(part(LoginSet, "smallest-login"))
    metadata = {"name": "smallest-login", "namespace": "ns"}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata}
    children.put(there, {**body, "spec": {"replicas": 0}, "status": status})

    assert told(there) == expected


def root_says(there) -> tuple[str, str]:
    return report(there, SlurmCluster, NAME)["RootPopulated"][:2]


def test_populating_is_skipped_while_its_job_runs():
    there = with_job(world(cluster("skipPopulateJail")), NAME, digest="x", active=1)
    there.things.append(job_pod(NAME, running={}))
    assert told(there) == "Wait Populating"
    assert root_says(there)[0] == "False", "no pod may start while it is written to"

    there.children_[kinds.JOB][0].body["status"] = {"succeeded": 1}
    there.things = [*world(cluster("skipPopulateJail")).things]
    assert told(there) == "nothing"
    assert root_says(there) == ("True", "Skipped")


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [job_pod(NAME, phase="Failed", terminated={"exitCode": 1})],
        [job_pod(NAME, phase="Pending", waiting={"reason": "ImagePullBackOff"})],
    ],
    ids=["not started", "between two attempts", "its image cannot be had"],
)
def test_populating_is_skipped_before_its_job_began(pods):
    """It would begin later, under the pods that started in the meantime."""
    there = with_job(world(cluster("skipPopulateJail")), NAME, digest="x", active=1)
    there.things += pods
    assert told(there) == "DeleteObject Deleted"
    assert root_says(there)[0] == "False"


def test_the_pods_of_a_deleted_job_are_waited_for():
    there = world(cluster("skipPopulateJail"))
    there.things.append(job_pod(NAME, phase="Running", running={}))
    assert root_says(there)[0] == "False"

    there = world(cluster(OVERWRITE))
    there.things.append(job_pod(NAME, phase="Running", running={}))
    assert told(there) == "Wait Populating", "two Jobs never write at once"


def test_a_mount_point_that_is_added_later_does_not_populate_the_root_again():
    """Pods run on it; the container runtime makes the directory when the first of them mounts there."""
    there = with_job(world(cluster()), NAME, digest=same_digest(), succeeded=1)
    data = {"name": "data", "mountPath": "/data", "volumeSource": {"emptyDir": {}}}
    there.things += world(
        manifest("NodeSet", "cpu", spec__clusterName=NAME, spec__slurmd__volumes__jailSubMounts=[data])
    ).things
    assert told(there) == "nothing"

    there.children_[kinds.JOB] = []
    [made] = [step.manifest for step in _steps(there) if isinstance(step, Create)]
    env = {one["name"]: one.get("value") for one in made["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert "/data" in env["POPULATE_MOUNT_POINTS"].split()


def another(**changes):
    other = cluster(**changes)
    other["metadata"]["name"] = "another"
    return other


@pytest.mark.parametrize("mode", ["none", OVERWRITE])
def test_the_job_of_another_cluster_on_the_same_root_goes_first(mode):
    there = with_job(world(cluster(mode), another()), "another", digest="x", active=1)
    [waiting] = _steps(there)
    assert (type(waiting).__name__, waiting.reason) == ("Wait", "Populating")
    assert "another-populate-jail of SlurmCluster another" in waiting.message

    there.children_[kinds.JOB][0].body["status"] = {"succeeded": 1}
    assert told(there) == "Create Created"


def test_no_pod_starts_while_another_cluster_overwrites_the_root():
    there = with_job(world(cluster(), another(mode=OVERWRITE)), NAME, digest="x", succeeded=1)
    with_job(there, "another", purpose="overwrite", digest="x", active=1)
    seen, _ = decide(there, SlurmCluster, NAME)
    assert not seen.root.is_usable

    there.children_[kinds.JOB][-1].body["status"] = {"succeeded": 1}
    seen, _ = decide(there, SlurmCluster, NAME)
    assert seen.root.is_usable


WRITER = {"container": {"image": "writer:1"}, "node": {"size": 1, "k8sNodeFilterName": "all"}}
EARLIER, LATER = "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"


def made_at(moment: str, found: dict, *, has_files: bool) -> dict:
    found["metadata"]["creationTimestamp"] = moment
    found["spec"]["sConfigController"] = WRITER if has_files else None
    return found


@pytest.mark.parametrize(
    ("own", "has_files", "theirs", "is_taken"),
    [
        pytest.param(LATER, True, True, True, id="both have files: the older one has the root"),
        pytest.param(LATER, False, True, True, id="only the older one: clients of the other would read them"),
        pytest.param(LATER, True, False, True, id="only the younger one: so would those of the older one"),
        pytest.param(LATER, False, False, False, id="none has files: both ask their slurmctld"),
        pytest.param(EARLIER, True, True, False, id="the older one itself"),
    ],
)
def test_a_root_with_slurms_files_is_that_of_the_older_cluster(own, has_files, theirs, is_taken):
    mine = made_at(own, cluster(), has_files=has_files)
    others = made_at(LATER if own == EARLIER else EARLIER, another(), has_files=theirs)
    there = world(mine, others, manifest("NodeSet", "cpu", spec__clusterName=NAME))

    assert told(there) == ("Wait RootTaken" if is_taken else "Create Created")
    with_job(there, NAME, digest="x", succeeded=1)
    seen, _ = decide(there, SlurmCluster, NAME)
    assert seen.root.is_usable is not is_taken
    _, workers = decide(there, NodeSet, "cpu")
    assert any("it is that of ns/another" in wait.message for wait in workers.waits) is is_taken
    if is_taken:
        said = report(there, SlurmCluster, NAME)
        assert {said[type_][1] for type_ in ("Ready", "Degraded", "RootPopulated")} == {"RootTaken"}


def test_a_root_that_is_no_claim_is_the_same_in_every_namespace():
    nfs = [{"name": "jail", "nfs": {"server": "files", "path": "/jail"}}, {"name": "spool", "emptyDir": {}}]
    there = world(cluster(spec__volumeSources=nfs))
    there.things.append(read(another(spec__volumeSources=nfs), namespace="elsewhere"))
    body = with_job(world(), "another", digest="x", active=1).children_[kinds.JOB][0]
    there.children_[kinds.JOB] = [
        wire.replace(body, metadata=wire.replace(body.metadata, namespace="elsewhere"))
    ]
    assert told(there) == "Wait Populating"

    there.things = [*world(cluster()).things, read(another(), namespace="elsewhere")]
    assert told(there) == "Create Created", "a claim of the same name there is another one"


@pytest.mark.parametrize(
    ("mode", "job", "pods", "expected"),
    [
        pytest.param("none", None, [], ("False", "Populating"), id="not yet"),
        pytest.param("none", {"succeeded": 1}, [], ("True", "Populated"), id="populated"),
        pytest.param("none", None, [WORKER], ("True", "InUse"), id="pods run"),
        pytest.param("skipPopulateJail", None, [], ("True", "Skipped"), id="skipped"),
        pytest.param("none", {"failed": 1}, [], ("False", "Populating"), id="failed, and no word why yet"),
        pytest.param(OVERWRITE, {"succeeded": 1}, [WORKER], ("False", "RootInUse"), id="in use"),
    ],
)
def test_what_is_said_of_the_root(mode, job, pods, expected):
    there = world(cluster(mode))
    there.things += pods
    if job is not None:
        with_job(there, NAME, digest=same_digest(mode), **job)

    assert report(there, SlurmCluster, NAME)["RootPopulated"][:2] == expected


def test_a_failure_is_the_reason_why_the_cluster_is_not_ready():
    there = with_job(settled(world(cluster()), (SlurmCluster, NAME)), NAME, digest=same_digest(), failed=1)
    there.things.append(
        job_pod(NAME, phase="Failed", terminated={"exitCode": 1, "message": json.dumps(FULL)})
    )
    found = report(there, SlurmCluster, NAME)

    assert found["Ready"][:2] == ("False", "PopulateFailed")
    assert found["Degraded"][:2] == ("True", "PopulateFailed")
    assert "The volume is full" in found["RootPopulated"][2]
    assert found["phase"] == "Not available"
