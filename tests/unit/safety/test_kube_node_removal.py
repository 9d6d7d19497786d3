"""Whether a Kubernetes node may go, with the pods on it."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.manifests.objects import PodStatus
from slurm_operator.safety.gate import Candidate
from slurm_operator.safety.kube_node_removal import why_not_removed
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import NOW, job, slurm, slurm_node, worker

POD = worker(0)


def known(*words, jobs=(), seconds=0, **facts):
    found = slurm(slurm_node(POD, *words), jobs=jobs) if words else slurm(jobs=jobs)
    at = NOW + timedelta(seconds=seconds)
    return wire.replace(found, nodes_asked_at=at, jobs_asked_at=at, **facts)


CASES = [
    ("drained", known("IDLE", "DRAIN"), None),
    ("given up", known("DOWN", "NOT_RESPONDING"), None),
    ("idle", known("IDLE"), "neither drained gpu-0 nor given it up"),
    ("silent, not given up", known("IDLE", "NOT_RESPONDING"), "neither drained"),
    ("busy", known("MIXED", "DRAIN", jobs=[job(7, "gpu-0")]), "Slurm counts job 7"),
    ("suspended", known("IDLE", "DRAIN", jobs=[job(7, "gpu-0", "SUSPENDED")]), "Slurm counts job 7"),
    ("an epilog", known("IDLE", "COMPLETING", "DRAIN"), "neither drained"),
    ("a job on a node that was given up", known("DOWN", jobs=[job(7, "gpu-0")]), "Slurm counts job 7"),
    ("not known", known(), "Slurm does not know gpu-0"),
    ("an old answer", known("IDLE", "DRAIN", seconds=-60), "refreshing"),
    ("written to since", known("IDLE", "DRAIN", behind=frozenset({"gpu-0"})), "since our last write"),
    ("no answer", Unreachable(since=NOW, why="timed out"), "Slurm does not answer (timed out)"),
]


@pytest.mark.parametrize(("facts", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_only_fresh_knowledge_that_no_job_is_there_counts(facts, why):
    said = why_not_removed([Candidate(POD, "gpu-0", facts)], NOW)

    assert said is None if why is None else why in (said or "")


def test_a_worker_that_has_ended_needs_no_answer():
    pod = wire.replace(POD, status=PodStatus(phase="Failed"))

    assert why_not_removed([Candidate(pod, "gpu-0", Unreachable(since=NOW, why="x"))], NOW) is None


def test_one_of_many_is_enough_to_object():
    found = [Candidate(POD, "gpu-0", known("IDLE", "DRAIN")), Candidate(POD, "gpu-0", known("IDLE"))]

    assert why_not_removed(found, NOW) is not None
    assert why_not_removed([], NOW) is None


def test_after_a_loss_of_slurms_state_nothing_is_known():
    found = Candidate(POD, "gpu-0", known("IDLE", "DRAIN"), NOW)

    assert "lost its state" in (why_not_removed([found], NOW) or "")
