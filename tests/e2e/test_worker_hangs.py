"""A slurmd that is stopped under a running job: the job goes on, and no new one is sent there until it is back."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from job_ledger import Ledger
from operator_rig import PROCESS_CONF, Slurm, until
from test_slurm_workers import cluster_of, operator

__all__ = ["operator"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

# As long as Slurm itself waits, if nobody says otherwise.
CONF = PROCESS_CONF.replace("SlurmdTimeout=30", "SlurmdTimeout=300")
ALL = "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n"
STOPPED_SECONDS = 120


@contextmanager
def stopped(slurm: Slurm, worker: str) -> Iterator[None]:
    """slurmd hangs; its steps go on."""
    inside = ("exec", worker, "-c", "slurmd", "--", "sh", "-c")
    slurm.kubectl(*inside, "kill -STOP $(pidof slurmd)")
    try:
        yield
    finally:
        slurm.kubectl(*inside, "kill -CONT $(pidof slurmd)")


def reason(slurm: Slurm, worker: str) -> str:
    return slurm.run("sinfo", "--noheader", f"--nodes={worker}", "--Format=Reason:200").strip()


def degraded(slurm: Slurm) -> str:
    found = json.loads(slurm.kubectl("get", "nodeset", "cpu", "-o", "json"))["status"]["conditions"]
    return next(one["reason"] for one in found if one["type"] == "Degraded")


def restarts(slurm: Slurm, worker: str) -> str:
    return slurm.kubectl("get", "pod", worker, "-o", "jsonpath={.status.containerStatuses[*].restartCount}")


def events(slurm: Slurm) -> set[str]:
    shown = json.loads(slurm.kubectl("get", "events", "-o", "json"))["items"]
    return {one["reason"] for one in shown if one["involvedObject"]["kind"] in ("NodeSet", "Pod")}


def test_a_slurmd_that_is_stopped_for_two_minutes_keeps_its_job(operator):
    with cluster_of(operator, extraConf=CONF + ALL) as slurm:
        job, before, began = Ledger(slurm, "--exclusive"), slurm.pods(), time.monotonic()
        with stopped(slurm, job.node):
            stopped_at = time.monotonic()
            until(lambda: "Unresponsive" in reason(slurm, job.node), 100, lambda: reason(slurm, job.node))
            assert time.monotonic() - stopped_at >= 55, "shorter silences are ordinary"
            until(lambda: degraded(slurm) == "Unresponsive", 30, lambda: degraded(slurm))
            job.outlives(STOPPED_SECONDS - (time.monotonic() - stopped_at))
            assert "drain" in slurm.states()[job.node], slurm.states()
        until(lambda: job.node not in slurm.drained_by_us(), 60, lambda: f"no drain: {slurm.states()}")

        job.outlives(3)
        assert time.monotonic() - began > STOPPED_SECONDS
        assert slurm.pods() == before
        assert set(restarts(slurm, job.node).split()) == {"0"}
        assert {"Unresponsive", "Resumed"} <= events(slurm)
        until(lambda: degraded(slurm) == "AsExpected", 30, lambda: degraded(slurm))
        job.wait_ended_by_itself()
        slurm.wait_idle(2)


def test_the_end_of_the_log_sidecar_costs_no_job(operator):
    """slurmd writes its log into a pipe that the sidecar reads. Without a reader it must neither end nor hang."""
    with cluster_of(operator, extraConf=CONF + ALL) as slurm:
        job, before = Ledger(slurm, "--mem=1"), slurm.pods()
        where = ("get", "pod", job.node, "-o")
        counts = (*where, "jsonpath={.status.initContainerStatuses[?(@.name=='logfile')].restartCount}")
        for round_ in (1, 2):
            slurm.kubectl("exec", job.node, "-c", "logfile", "--", "sh", "-c", "kill -9 $(pidof cat); kill 1")
            for _ in range(3):  # Each of them makes slurmd write lines.
                slurm.run("srun", f"--nodelist={job.node}", "--mem=1", "true")
            until(lambda: int(slurm.kubectl(*counts)) >= round_, 90, lambda: slurm.kubectl(*counts))  # noqa: B023
        job.outlives(3)

        assert slurm.pods() == before
        assert set(restarts(slurm, job.node).split()) == {"0"}
        job.wait_ended_by_itself()
