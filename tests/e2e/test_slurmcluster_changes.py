"""A SlurmCluster with accounting and REST is changed in every way while a job runs, which nobody ends."""

import json

import pytest
from control_plane_rig import operator_pods
from job_ledger import Ledger
from operator_rig import until
from slurmcluster_rig import (
    ACCOUNTING,
    CHOSEN,
    CLUSTER,
    FIRST,
    GROUP,
    NAMESPACE,
    NODESET,
    SECOND,
    Jobs,
    SharedRootSlurm,
    running,
)

from slurm_local import image
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from slurm_operator.api.slinky.nodeset import NodeSet

# The first test waits for images to be made where there are none.
pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

PART = f"{NodeSet.KIND.plural}.{NodeSet.KIND.group}/{NODESET}"
REST = {
    **CHOSEN,
    "enabled": True,
    "size": 1,
    "rest": {"image": image.slurm_image("slurmrestd"), "port": 6820},
}

# In the root, as a user's program: the token and the address come by the command line of a test.
CALL = """
import json, sys, urllib.error, urllib.request
url, token, body = sys.argv[1:4]
headers = {"Content-Type": "application/json", **({"X-SLURM-USER-TOKEN": token} if token else {})}
request = urllib.request.Request(url, data=body.encode() or None, headers=headers)
try:
    with urllib.request.urlopen(request, timeout=20) as reply:
        print(json.dumps([reply.status, json.load(reply)]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, {}]))
"""


@pytest.fixture(scope="module")
def slurm(wanted, paths, tmp_path_factory):
    place = tmp_path_factory.mktemp("audit")
    with running(wanted, paths, place, accounting=ACCOUNTING, rest=REST) as made:
        yield made


@pytest.fixture
def job(slurm):
    """A job on the worker with the highest number, which was started once and beats."""
    made = Ledger(Jobs(slurm), f"--nodelist={SECOND}")
    yield made
    made.release()


def call(slurm: SharedRootSlurm, path: str, token: str, body: dict | None = None) -> tuple[int, dict]:
    url = f"http://{CLUSTER}-rest-svc.{NAMESPACE}.svc:6820{path}"
    status, answer = json.loads(
        slurm.run("python3", "-c", CALL, url, token, json.dumps(body) if body else "")
    )
    return status, answer


def token_of(slurm: SharedRootSlurm, user: str) -> str:
    said = slurm.beside_slurmctld("scontrol", "token", f"username={user}", "lifespan=600")
    return said.strip().partition("=")[2]


def submit(slurm: SharedRootSlurm, token: str) -> int:
    """A job that was submitted by REST."""
    job = {
        "name": "by-rest",
        "script": "#!/bin/sh\nwhoami > /tmp/by-rest\n",
        "current_working_directory": "/tmp",
        "environment": ["PATH=/usr/bin:/bin"],
        "standard_output": "/dev/null",
    }
    status, answer = call(slurm, "/slurm/v0.0.45/job/submit", token, {"job": job})
    assert (status, answer["errors"]) == (200, []), answer
    return answer["job_id"]


def test_a_job_that_a_user_submits_by_rest_is_in_the_books(slurm):
    slurm.run("sh", "-c", "id carol || useradd --create-home carol")
    until(lambda: slurm.phase() == "Available", 60, slurm.told)

    assert call(slurm, "/slurm/v0.0.45/jobs/", "")[0] == 401
    job = submit(slurm, token_of(slurm, "carol"))

    shown = ("--format=User,JobName,State,ExitCode", "--allocations", "--noheader", "--parsable2")
    until(lambda: "COMPLETED" in slurm.run("sacct", f"--jobs={job}", *shown), 60, slurm.told)
    assert slurm.run("sacct", f"--jobs={job}", *shown).split() == ["carol|by-rest|COMPLETED|0:0"]
    status, answer = call(slurm, f"/slurmdb/v0.0.45/job/{job}", token_of(slurm, "carol"))
    assert status == 200
    assert [one["job_id"] for one in answer["jobs"]] == [job]


def uids(slurm: SharedRootSlurm) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in slurm.get("pods")["items"]}


def image_changed(slurm: SharedRootSlurm) -> None:
    repository, _, tag = image.slurm_image("slurmctld").rpartition(":")
    slurm.patch("nodesets", NODESET, {"slurmd": {"image": {"repository": repository, "tag": tag}}})


def template_changed(slurm: SharedRootSlurm) -> None:
    slurm.patch("nodesets", NODESET, {"workerAnnotations": {"example.org/changed": "yes"}})


@pytest.mark.parametrize("change", [image_changed, template_changed])
def test_workers_are_replaced_and_the_busy_one_when_its_job_has_ended(slurm, job, change):
    before = uids(slurm)
    change(slurm)

    until(lambda: uids(slurm).get(FIRST) not in (None, before[FIRST]), 180, slurm.told)
    assert uids(slurm)[SECOND] == before[SECOND]
    assert job.is_running()
    until(lambda: f"job {job.job}" in slurm.told() or f"jobs {job.job}" in slurm.told(), 60, slurm.told)

    job.wait_ended_by_itself()
    until(lambda: uids(slurm).get(SECOND) not in (None, before[SECOND]), 180, slurm.told)
    slurm.wait_idle(FIRST, SECOND)


def test_a_changed_configuration_reaches_slurmctld_under_a_job(slurm, job):
    spec = slurm.manifests()[1]["spec"]["customSlurmConfig"]
    before = uids(slurm)
    slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": f"{spec}JobFileAppend=1\n"})

    until(lambda: "JobFileAppend           = 1" in slurm.run("scontrol", "show", "config"), 120, slurm.told)
    assert job.is_running()
    slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": spec})
    until(lambda: "JobFileAppend           = 0" in slurm.run("scontrol", "show", "config"), 120, slurm.told)

    job.wait_ended_by_itself()
    assert uids(slurm)[SECOND] == before[SECOND]


def test_the_operator_is_killed_in_the_middle_of_a_scale_in(slurm, job):
    slurm.patch("nodesets", NODESET, {"replicas": 1})
    until(lambda: slurm.node_states().get(SECOND) == "draining", 60, lambda: str(slurm.node_states()))
    for pod in operator_pods(slurm.cluster):
        slurm.cluster.kubectl("delete", "pod", pod, "-n", OPERATOR_NAMESPACE, "--force", "--grace-period=0")
    slurm.cluster.kubectl(
        "rollout", "status", "deployment/slurm-operator", "-n", OPERATOR_NAMESPACE, "--timeout=120s"
    )

    job.outlives(15)
    assert slurm.node_states()[SECOND] == "draining"
    job.wait_ended_by_itself()
    until(lambda: SECOND not in slurm.pods() and SECOND not in slurm.node_states(), 120, slurm.told)

    slurm.patch("nodesets", NODESET, {"replicas": 2})
    slurm.wait_idle(FIRST, SECOND)


def test_slurmctld_is_restarted_under_a_job(slurm, job):
    controller = f"{CLUSTER}-controller-0"
    before = uids(slurm)[controller]
    slurm.kubectl("delete", "pod", controller, "--timeout=120s")

    until(lambda: uids(slurm).get(controller) not in (None, before), 120, slurm.told)
    until(lambda: slurm.phase() == "Available", 180, slurm.told)
    assert job.is_running()
    job.wait_ended_by_itself()
    slurm.wait_idle(FIRST, SECOND)


def test_rest_works_without_accounting(slurm):
    """slurmdbd leaves when slurmctld no longer names it; tokens and submissions go on."""
    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"accounting": {"enabled": False}}})
    until(lambda: not slurm.get("accountings")["items"], 240, slurm.told)
    until(lambda: slurm.phase() == "Available", 180, slurm.told)

    job = submit(slurm, token_of(slurm, "root"))
    until(lambda: slurm.job_state(job) == "COMPLETED", 60, slurm.told)

    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"accounting": {"enabled": True}}})
    until(lambda: slurm.get("accountings")["items"], 120, slurm.told)
    until(lambda: slurm.phase() == "Available", 240, slurm.told)
    slurm.wait_idle(FIRST, SECOND)


def test_a_nodeset_that_is_deleted_waits_for_its_job(slurm, job):
    slurm.kubectl("delete", f"nodesets.{GROUP}", NODESET, "--wait=false")

    until(lambda: slurm.node_states().get(SECOND) == "draining", 60, lambda: str(slurm.node_states()))
    until(lambda: slurm.pods() == {SECOND}, 120, slurm.told)
    job.outlives(10)
    job.wait_ended_by_itself()
    slurm.kubectl("wait", "--for=delete", f"nodesets.{GROUP}/{NODESET}", "--timeout=180s")
    slurm.kubectl("wait", "--for=delete", PART, "--timeout=60s")

    slurm.cluster.apply(slurm.manifests()[2:])
    slurm.wait_idle(FIRST, SECOND)
