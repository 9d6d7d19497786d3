"""Thirty changes of configuration under running jobs: none is lost, nothing restarts needlessly, nothing bad is used."""

import json

import pytest
from control_plane_rig import ControlPlane, control_plane, setting
from job_ledger import Ledger
from operator_rig import PROCESS_CONF, install, until

pytestmark = pytest.mark.timeout(2400)

BASE = PROCESS_CONF + "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n"

# Lines that are added to the configuration, and what slurmctld then says: a key, and its value in `show config`.
TAKEN_AS_IT_RUNS = [
    ("KillWait=31", "KillWait", "31 sec"),
    ("SchedulerParameters=defer,bf_interval=31", "SchedulerParameters", "defer,bf_interval=31"),
    ("SlurmctldDebug=debug", "SlurmctldDebug", "debug"),
    ("MinJobAge=11", "MinJobAge", "11 sec"),
    ("Licenses=matlab:4", "Licenses", "matlab:4"),
    ("PriorityType=priority/basic", "PriorityType", "priority/basic"),
    ("PrivateData=usage", "PrivateData", "usage"),
    ("MaxArraySize=77", "MaxArraySize", "77"),
    ("SlurmctldParameters=idle_on_node_suspend", "SlurmctldParameters", "idle_on_node_suspend"),
    ("PartitionName=more Nodes=ALL MaxTime=60\nWaitTime=7", "WaitTime", "7 sec"),
]

REFUSED_BY_OUR_GRAMMAR = [
    ("MaxJobCoutn=5", "there is no key MaxJobCoutn"),
    ("KillWait=70000", "larger than 65535"),
    ("PartitionName=p Nodes=ALL MaxTime=xyz", "MaxTime"),
    ("KillWait=5 MaxJobCount=6", "must begin a line of its own"),
    ("garbage", "line"),
]
REFUSED_BY_THE_PARSER = [
    ("FirstJobId=10\nMaxJobId=5", "does not start with this configuration"),
    ("HashPlugin=hash/nonsense", "hash"),
    ("BcastExclude=relative", "BcastExclude"),
    ("SlurmUser=nobody-knows", "nobody-knows"),
    ("PreemptType=preempt/none\nPreemptMode=REQUEUE", "reempt"),
]
REFUSED_BY_SLURMCTLD = [
    ("JobSubmitPlugins=job_submit/nonsense", "job_submit"),
    ("PartitionName=p Nodes=nowhere", "Invalid node names in partition p"),
    ("TopologyPlugin=topology/tree", "topology"),
    ("SchedulerType=sched/nonsense", "sched"),
    ("PriorityType=priority/nonsense", "priority"),
]


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    install(cluster, operator_image)
    with control_plane(cluster) as made:
        # What is proven to be good is what a refusal leaves in force.
        until(lambda: owed(made) == "nothing", what=made.told)
        yield made


@pytest.fixture
def job(slurm):
    """A job that runs through it all."""
    slurm.wait_idle(1)
    made = Ledger(slurm)
    yield made
    made.wait_ended_by_itself()


def owed(slurm: ControlPlane) -> str:
    return (slurm.status().get("config") or {}).get("owed", "")


def configure(slurm: ControlPlane, lines: str, **spec: object) -> None:
    slurm.apply(slurm.controller(extraConf=f"{BASE}{lines}\n" if lines else BASE, **spec))


def shown(slurm: ControlPlane, key: str) -> str:
    return setting(slurm.answers("scontrol", "show", "config"), key)


def is_settled(slurm: ControlPlane) -> bool:
    """Everything that the spec asks for is in force."""
    found = slurm.get("controller")
    status = found.get("status") or {}
    config = status.get("config") or {}
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and config.get("owed") == "nothing" and config["applied"] == config["wanted"]


def is_refused(slurm: ControlPlane) -> bool:
    """Just what the spec asks for now is refused."""
    found = slurm.get("controller")
    status = found.get("status") or {}
    config = status.get("config") or {}
    refused = (config.get("refused") or {}).get("digest", "")
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and refused != "" and refused == config["wanted"]


def mounted(slurm: ControlPlane) -> dict:
    return slurm.get("configmap", "slurm-config")["data"]


def take(slurm: ControlPlane, lines: str, key: str, value: str) -> None:
    """A change that slurmctld takes while it runs: same pod, same process."""
    before = slurm.heads()
    configure(slurm, lines)
    until(lambda: value in shown(slurm, key), what=lambda: f"{key}={value}: {slurm.told()}")
    until(lambda: is_settled(slurm), what=slurm.told)
    assert slurm.heads() == before, f"{lines} restarted slurmctld"


def refuse(slurm: ControlPlane, lines: str, why: str, reason: str) -> None:
    """A change that is refused: nothing that runs or will start ever sees it."""
    heads, files = slurm.heads(), mounted(slurm)
    configure(slurm, lines)
    until(lambda: is_refused(slurm), what=lambda: f"{lines!r} to be refused: {slurm.told()}")
    assert slurm.condition("Degraded")["reason"] == reason
    assert why in slurm.condition("Degraded")["message"]
    assert why in slurm.status()["config"]["refused"]["message"]
    assert (slurm.heads(), mounted(slurm)) == (heads, files)
    slurm.kill_head()
    assert mounted(slurm) == files
    assert slurm.condition("Degraded")["reason"] == reason, "the refusal outlives the restart"


def restart(slurm: ControlPlane, lines: str, key: str, value: str) -> None:
    """A change for which slurmctld has to restart, once."""
    (before, _) = slurm.heads()["slurm-controller-0"]
    configure(slurm, lines)
    until(lambda: value in shown(slurm, key), 180, lambda: f"{key}={value}: {slurm.told()}")
    until(lambda: is_settled(slurm), 180, slurm.told)
    (after, restarts) = slurm.heads()["slurm-controller-0"]
    assert (after != before, restarts) == (True, 0), f"{lines} takes one new pod"
    until(slurm.is_up, what=slurm.told)


def test_a_change_is_taken_a_bad_line_is_named_and_a_running_job_sees_neither(slurm, job):
    take(slurm, *TAKEN_AS_IT_RUNS[0])
    refuse(slurm, *REFUSED_BY_OUR_GRAMMAR[0], "ConfigRefused")
    told = slurm.condition("Degraded")["message"]
    assert f"line {BASE.count(chr(10)) + 1} of spec.extraConf" in told
    refuse(slurm, *REFUSED_BY_SLURMCTLD[0], "RehearsalRefused")
    assert job.is_running()
    take(slurm, "", "KillWait", "30 sec")


@pytest.mark.full
def test_ten_changes_that_slurmctld_takes_as_it_runs(slurm, job):
    workers = slurm.worker_restarts()
    for lines, key, value in TAKEN_AS_IT_RUNS:
        take(slurm, lines, key, value)
        assert job.is_running(), lines
    assert slurm.worker_restarts() == workers


@pytest.mark.full
def test_five_changes_that_need_a_new_slurmctld(slurm, job):
    workers = slurm.worker_restarts()
    restart(slurm, "SlurmctldPort=6827", "SlurmctldPort", "6827")
    assert job.is_running()
    restart(slurm, "CommunicationParameters=keepalivetime=31", "CommunicationParameters", "keepalivetime=31")
    assert job.is_running()
    restart(slurm, "SlurmctldPort=6837", "SlurmctldPort", "6837")
    assert job.is_running()
    restart(slurm, "", "SlurmctldPort", "6817")
    assert job.is_running()
    change_signing_key(slurm)
    assert job.is_running()
    assert slurm.worker_restarts() == workers
    assert slurm.run("srun", "--overlap", f"--jobid={job.job}", "hostname").strip() == "cpu-0"


def change_signing_key(slurm: ControlPlane) -> None:
    """The key that tokens are signed with: slurmctld reads it when it starts."""
    (before, _) = slurm.heads()["slurm-controller-0"]
    patch = {"stringData": {"jwt.key": "another key of thirty-two bytes!"}}
    slurm.cluster.kubectl("patch", "secret", "slurm-auth-jwt", "-n", slurm.namespace, "-p", json.dumps(patch))
    until(lambda: slurm.heads().get("slurm-controller-0", (before,))[0] != before, 180, slurm.told)
    until(slurm.is_up, what=slurm.told)
    until(lambda: any(one["responding"] for one in slurm.status()["controllers"]), what=slurm.told)
    until(lambda: is_settled(slurm), 180, slurm.told)


@pytest.mark.full
@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        pytest.param(REFUSED_BY_OUR_GRAMMAR, "ConfigRefused", id="only our grammar"),
        pytest.param(REFUSED_BY_THE_PARSER, "RehearsalRefused", id="only Slurm's parser"),
        pytest.param(REFUSED_BY_SLURMCTLD, "RehearsalRefused", id="only slurmctld"),
    ],
)
def test_what_cannot_work_is_refused_and_slurmctld_goes_on_and_comes_back(slurm, job, cases, reason):
    for lines, why in cases:
        refuse(slurm, lines, why, reason)
        assert job.is_running(), lines
    take(slurm, "", "KillWait", "30 sec")


@pytest.mark.full
def test_a_change_that_would_cost_jobs_waits_for_them(slurm):
    slurm.wait_idle(1)
    made = Ledger(slurm, "--partition=all")
    files = mounted(slurm)
    configure(slurm, "CredType=cred/none")
    until(lambda: slurm.condition("Progressing").get("reason") == "JobsAtStake", what=slurm.told)
    words = f"jobs that have started: {made.job}"
    until(lambda: words in slurm.condition("Progressing")["message"], what=slurm.told)
    assert mounted(slurm) == files
    configure(slurm, "")
    until(lambda: is_settled(slurm), what=slurm.told)
    made.wait_ended_by_itself()
