"""Every kind at once, in any order: nothing crashes while it waits, and then users have all they came for."""

import base64
import random

import pytest
from control_plane_rig import (
    ControlPlane,
    complaints,
    control_plane_of,
    failed_passes,
    restarts,
    without_operator,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from job_ledger import Ledger
from operator_rig import install, until

from slurm_local.errors import LocalError
from slurm_operator.api.shared import names

pytestmark = [pytest.mark.timeout(1500), pytest.mark.full]

KINDS = [("accounting", "books"), ("controller", "slurm"), ("restapi", "slurm"), ("loginset", "login"), ("nodeset", "cpu"), ("token", "robot")]  # fmt: skip


def key_pair() -> tuple[str, str]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


PRIVATE, PUBLIC = key_pair()


def manifests(made: ControlPlane) -> list[dict]:
    """Each after those that it needs."""
    robot = {
        "controllerRef": {"name": "slurm"},
        "username": "slurm",
        "secretRef": {"name": "robot", "key": "token"},
    }
    return [
        made.accounting(),
        made.files(),
        made.controller(accountingRef={"name": "books"}),
        made.restapi(),
        made.loginset(rootSshAuthorizedKeys=PUBLIC),
        made.nodeset(replicas=2),
        made.kind("Token", "robot", robot),
    ]


def wait_all_ready(made: ControlPlane) -> None:
    for kind, name in KINDS:
        made.wait_ready(kind, name)
    made.wait_idle(2, 240)


def restarted(made: ControlPlane) -> dict[str, int]:
    return {pod["metadata"]["name"]: restarts(pod) for pod in all_pods(made) if restarts(pod)}


def all_pods(slurm: ControlPlane) -> list[dict]:
    return slurm.cluster.items(f"/api/v1/namespaces/{slurm.namespace}/pods")


@pytest.fixture(scope="module")
def operator(cluster, operator_image):
    install(cluster, operator_image)
    return cluster


@pytest.fixture(scope="module")
def slurm(operator):
    """Applied one by one, each before those that it needs."""
    before = failed_passes(operator)
    with control_plane_of(operator) as made:
        made.keeps_books = True
        for one in reversed(manifests(made)):
            made.apply(one)
        wait_all_ready(made)
        assert restarted(made) == {}, "nothing crashed while it waited"
        assert failed_passes(operator) == before, complaints(operator)
        yield made


def booked(slurm: ControlPlane, job: int) -> str:
    return slurm.answers("sacct", "-n", "-P", "-X", "-o", "State", "-j", str(job)).strip()


@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order_every_kind_becomes_ready_without_a_failed_pass_or_a_restart(operator, seed):
    before = failed_passes(operator)
    with control_plane_of(operator) as made:
        order = manifests(made)
        random.Random(seed).shuffle(order)
        for one in order:
            made.apply(one)
        wait_all_ready(made)
        assert restarted(made) == {}, [one["kind"] for one in order]
        assert failed_passes(operator) == before, complaints(operator)
        assert len(made.run("srun", "-N2", "hostname").split()) == 2


def test_clients_answer_beside_slurmctld(slurm):
    assert " UP" in slurm.run("scontrol", "ping")
    assert "all*" in slurm.run("sinfo", "-h", "-o", "%P")
    assert slurm.status()["clusterName"] in slurm.run(
        "sacctmgr", "-n", "-P", "show", "cluster", "format=cluster"
    )


def test_no_slurmctld_restarts_when_nodesets_loginsets_and_partitions_come(slurm):
    before, failed = slurm.heads(), failed_passes(slurm.cluster)
    slurm.apply(
        slurm.kind("LoginSet", "door", slurm.loginset()["spec"]),
        slurm.nodeset("more", replicas=1, partition={"enabled": True, "config": "MaxTime=60"}),
    )
    until(lambda: "more" in slurm.answers("sinfo", "-h", "-o", "%R"), what=slurm.told)
    until(lambda: slurm.states().get("more-0") == "idle", what=lambda: slurm.states())
    slurm.wait_ready("loginset", "door")
    assert slurm.heads() == before
    assert failed_passes(slurm.cluster) == failed, complaints(slurm.cluster)
    assert slurm.run("srun", "-p", "more", "hostname").strip() == "more-0"


def by_ssh(slurm: ControlPlane, key: str, *command: str) -> str:
    """What a command of root prints who logs in with this key; nothing when the door stays shut."""
    slurm.in_login("sh", "-c", "umask 077; cat > /tmp/key", stdin=key)
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes")
    words = [word for option in options for word in ("-o", option)]
    where = f"root@{names.login_workload('login')}.{slurm.namespace}"
    try:
        return slurm.in_login("ssh", "-i", "/tmp/key", *words, where, *command)
    except LocalError:
        return ""


def login_pods(slurm: ControlPlane) -> set[str]:
    return {pod["metadata"]["uid"] for pod in all_pods(slurm) if pod["metadata"]["name"].startswith("login-")}


def test_a_user_logs_in_by_ssh_and_runs_a_job(slurm):
    out = by_ssh(slurm, PRIVATE, "srun", "-N2", "-p", "all", "hostname")

    assert len({line for line in out.split() if line.startswith(("cpu-", "more-"))}) == 2, out


def test_a_new_key_of_root_opens_the_running_pod_and_the_old_one_no_longer_does(slurm):
    (private, public), before = key_pair(), login_pods(slurm)
    assert by_ssh(slurm, private, "hostname") == ""

    slurm.apply(slurm.loginset(rootSshAuthorizedKeys=public))

    until(lambda: by_ssh(slurm, private, "hostname"), 240, lambda: slurm.status("loginset", "login"))
    assert by_ssh(slurm, PRIVATE, "hostname") == ""
    assert login_pods(slurm) == before
    slurm.apply(slurm.loginset(rootSshAuthorizedKeys=PUBLIC))


def test_a_token_opens_the_rest_api(slurm):
    token = base64.b64decode(slurm.get("secret", "robot")["data"]["token"]).decode()
    url = slurm.status("restapi")["url"]
    program = (
        "import json,sys,urllib.request as r;"
        "q=r.Request(sys.argv[1]+'/slurm/v0.0.43/nodes/',headers={'X-SLURM-USER-TOKEN':sys.stdin.read().strip()});"
        "print(len(json.load(r.urlopen(q,timeout=20))['nodes']))"
    )

    assert int(slurm.in_login("python3", "-c", program, url, stdin=token)) >= 2


def test_a_restapi_says_that_it_is_in_use_and_what_it_speaks(slurm):
    until(lambda: slurm.status("restapi").get("inUse"), what=lambda: slurm.status("restapi"))
    status = slurm.status("restapi")
    assert status["slurmVersion"] == slurm.status()["slurmVersion"]
    assert status["apiVersions"] == ["v0.0.45"]


def test_jobs_and_their_records_outlive_restarts_of_slurmdbd_and_slurmctld(slurm):
    both = ("--exclusive", "-N2", "--partition=all", "--nodelist=cpu-[0-1]")
    running, waiting = Ledger(slurm, *both), slurm.submit("true", *both)
    until(lambda: booked(slurm, running.job) == "RUNNING", what=lambda: booked(slurm, running.job))

    slurm.cluster.kubectl("delete", "pod", "books-accounting-0", "-n", slurm.namespace, "--grace-period=1")
    slurm.kill_head()
    assert slurm.job_state(waiting) == "PENDING"
    assert slurm.job_state(running.job) == "RUNNING"
    running.wait_ended_by_itself()

    until(
        lambda: booked(slurm, waiting) == "COMPLETED", 240, lambda: f"{booked(slurm, waiting)} {slurm.told()}"
    )
    assert booked(slurm, running.job) == "COMPLETED"


def test_a_second_controller_keeps_its_books_in_the_same_place(slurm):
    other = ControlPlane(slurm.cluster, slurm.namespace)
    other.head = "other-controller-0"
    ref = {"controllerRef": {"name": "other"}}
    slurm.apply(
        slurm.kind("Controller", "other", slurm.controller(accountingRef={"name": "books"})["spec"]),
        slurm.kind("RestApi", "other", {**slurm.restapi()["spec"], **ref}),
        slurm.kind("NodeSet", "second", {**slurm.nodeset()["spec"], **ref, "replicas": 1}),
    )
    slurm.wait_ready("controller", "other")
    slurm.wait_ready("nodeset", "second")
    job = int(other.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=true").split(";")[0])

    clusters = {slurm.status(name=name)["clusterName"] for name in ("slurm", "other")}
    shown = set(slurm.run("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster").split())
    assert len(clusters) == 2
    assert clusters <= shown
    until(lambda: booked(other, job) == "COMPLETED", what=lambda: booked(other, job))
    assert sorted(slurm.status("accounting", "books")["controllers"]) == ["other", "slurm"]


def test_the_operator_may_come_and_go(slurm):
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in all_pods(slurm)}
    for _ in range(2):
        with without_operator(slurm.cluster):
            pass
    assert {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in all_pods(slurm)} == before
