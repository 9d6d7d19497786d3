"""The gate, case by case: what opens it, and everything that must not."""

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import slurm_operator
from slurm_operator import wire
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
)
from slurm_operator.safety.gate import (
    Candidate,
    Drained,
    Ended,
    Forgotten,
    NeverStarted,
    NotRunning,
    Shut,
    Unreported,
    gate,
    no_steps_mark,
    why_no_longer,
)
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STARTED = NOW - timedelta(hours=1)
RUNNING = ContainerState(running=ContainerStateRunning(started_at=STARTED))
NOTHING = ContainerState()
CRASHED = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
WAITS = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
AFTER_CRASH = ContainerState(terminated=ContainerStateTerminated(exit_code=1))


def pod(state: ContainerState | None = RUNNING, *, phase="Running", last=NOTHING, ip="10.0.0.3") -> Pod:
    statuses = [ContainerStatus(name="slurmd", state=state, last_state=last)] if state is not None else []
    return Pod(
        metadata=Meta(name="gpu-3", namespace="ns", uid="pod-uid", resource_version="7"),
        status=PodStatus(phase=phase, pod_ip=ip, container_statuses=statuses),
    )


def taken(state: ContainerState | None = None, *, asked_to_end=timedelta(0)) -> Pod:
    """A machine has this pod. It was made a minute ago, and perhaps asked to end some time ago."""
    grace, made = 3600, pod(state)
    ends = NOW - asked_to_end + timedelta(seconds=grace) if asked_to_end else None
    meta = wire.replace(
        made.metadata,
        creation_timestamp=NOW - timedelta(minutes=1),
        deletion_timestamp=ends,
        deletion_grace_period_seconds=grace if ends else None,
    )
    return wire.replace(made, metadata=meta, spec=PodSpec(node_name="m1"))


def node(*words: str, jobs=(), address="10.0.0.3", slurmd_start=STARTED, name="gpu-3") -> SlurmNode:
    return SlurmNode(name=name, state=NodeState.of(*words), address=address, slurmd_start_time=slurmd_start)


def job(*words: str, nodes=("gpu-3",), required=(), job_id=42, began=None, batch_host="") -> SlurmJob:
    return SlurmJob(
        job_id=job_id,
        state=JobState.of(*words),
        user="ada",
        nodes=tuple(nodes),
        required_nodes=tuple(required),
        batch_host=batch_host,
        start_time=began,
    )


def slurm(
    *nodes: SlurmNode, jobs=(), age=timedelta(seconds=1), behind=(), clock_behind=timedelta(0)
) -> Snapshot:
    return Snapshot(
        nodes={node.name: node for node in nodes},
        jobs={job.job_id: job for job in jobs},
        jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=NOW - age,
        jobs_asked_at=NOW - age,
        behind=frozenset(behind),
        clock_behind=clock_behind,
    )


LONG = timedelta(minutes=50)
IDLE_DRAIN = node("IDLE", "DRAIN")

CASES = [
    pytest.param(pod(), slurm(IDLE_DRAIN), Drained, id="drained: the pod can go"),
    pytest.param(pod(), slurm(node("IDLE")), "NotDraining", id="idle, but a job may start any moment"),
    pytest.param(pod(), slurm(node("MIXED")), "NotDraining", id="busy: ask Slurm to drain it first"),
    pytest.param(pod(), slurm(node("MIXED", "DRAIN")), "Draining", id="draining: let its jobs finish"),
    pytest.param(pod(), slurm(node("IDLE", "COMPLETING", "DRAIN")), "Draining", id="epilog running: still busy"),
    pytest.param(pod(), slurm(node("IDLE", "DRAIN", "UNDRAIN")), "NotDraining", id="about to come back"),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("SUSPENDED")]), "Draining", id="suspended job: idle, but not free"
    ),
    pytest.param(pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING")]), "Draining", id="the job list knows better"),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("CANCELLED", "COMPLETING")]), "Draining", id="cancelled, not yet gone"
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("PENDING", nodes=[], required=["gpu-3"])]), Drained,
        id="a pending job that insists on it is not on it",
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING", nodes=["gpu-4"])]), Drained, id="a job elsewhere"
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING", nodes=[], batch_host="gpu-3")]), "Draining",
        id="a job that only its batch host names",
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("SUSPENDED", nodes=[], batch_host="gpu-3")]), "Draining",
        id="the same, suspended",
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING", nodes=["gpu-4"], batch_host="gpu-3")]), "Draining",
        id="its batch host is not in its list",
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING", nodes=[], batch_host="gpu-4")]), Drained,
        id="the batch host of a job elsewhere",
    ),
    pytest.param(
        pod(), slurm(IDLE_DRAIN, jobs=[job("RUNNING", "WORD_OF_2030")]), "Draining", id="a state we never heard of"
    ),
    pytest.param(pod(), slurm(node("DRAIN", "WORD_OF_2030")), "Draining", id="a node state we never heard of"),
    pytest.param(pod(), slurm(node("DOWN", "DRAIN")), Drained, id="down and drained: Slurm has ended its jobs"),
    pytest.param(pod(), slurm(node("DOWN")), "NotDraining", id="down: it may return to service"),
    pytest.param(pod(), slurm(IDLE_DRAIN, age=timedelta(seconds=6)), "OldAnswer", id="old answer: read again"),
    pytest.param(pod(), slurm(IDLE_DRAIN, age=-timedelta(seconds=35)), "OldAnswer", id="the clock was set back: read again"),
    pytest.param(pod(), slurm(IDLE_DRAIN, age=-timedelta(seconds=0.5)), Drained, id="the clock was corrected a little"),
    pytest.param(pod(), slurm(IDLE_DRAIN, behind=["gpu-3"]), "OldAnswer", id="read before our write: read again"),
    pytest.param(pod(), slurm(), "UnknownToSlurm", id="Slurm forgot it: its job may still run"),
    pytest.param(pod(), slurm(node("IDLE", "DRAIN", address="10.0.0.9")), "AnotherWorker", id="another address"),
    pytest.param(
        pod(), slurm(node("IDLE", "DRAIN", slurmd_start=STARTED - timedelta(seconds=2))), "AnotherWorker",
        id="record of the pod before this one",
    ),
    pytest.param(
        pod(), slurm(node("IDLE", "DRAIN", slurmd_start=None)), "AnotherWorker", id="a record nobody registered"
    ),
    pytest.param(pod(ip=""), slurm(node("IDLE", "DRAIN", address="")), "AnotherWorker", id="no address is no match"),
    pytest.param(
        pod(), Unreachable(since=NOW, why="no answer"), "SlurmUnreachable", id="unreachable: assume it is busy"
    ),
    pytest.param(pod(None), Unreachable(since=NOW, why=""), NeverStarted, id="slurmd never ran: nothing to lose"),
    pytest.param(
        pod(ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff"))),
        Unreachable(since=NOW, why=""), NeverStarted, id="its image cannot be pulled: nothing to lose",
    ),
    pytest.param(taken(), slurm(), Unreported, id="a machine has it: slurmd may run since a moment ago"),
    pytest.param(taken(WAITS), slurm(), Unreported, id="its kubelet spoke of it, but not of now"),
    pytest.param(taken(), Unreachable(since=NOW, why=""), Unreported, id="Slurm away: it may be asked to end"),
    pytest.param(taken(), slurm(age=timedelta(seconds=6)), "OldAnswer", id="unreported, old answer: read again"),
    pytest.param(taken(), slurm(behind=["gpu-3"]), "OldAnswer", id="unreported, read before our write"),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING", began=NOW)]), "Starting",
        id="Slurm has heard of it before the kubelet's report: a job is there",
    ),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING")]), "Starting", id="a job that says not since when"
    ),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING", began=STARTED)]), Unreported,
        id="a job that is older than the pod is not in it",
    ),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING", began=NOW - timedelta(seconds=90))]), "Starting",
        id="a job that began half a minute before the pod, by another clock",
    ),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING", began=NOW - LONG)], clock_behind=LONG), "Starting",
        id="a job that began a moment ago, by a slurmctld whose clock is behind",
    ),
    pytest.param(
        taken(), slurm(node("MIXED"), jobs=[job("RUNNING", began=STARTED - LONG)], clock_behind=LONG), Unreported,
        id="there, too, one that is older than the pod",
    ),
    pytest.param(
        taken(asked_to_end=timedelta(seconds=9)), slurm(), Unreported, id="asked to end: its kubelet may yet report"
    ),
    pytest.param(
        taken(asked_to_end=LONG), slurm(), Unreported, id="asked long ago: its machine may be cut off"
    ),
    pytest.param(
        taken(asked_to_end=LONG), Unreachable(since=NOW, why=""), Unreported,
        id="its kubelet should have reported, and Slurm is away: its machine may be cut off",
    ),
    pytest.param(
        taken(asked_to_end=LONG), slurm(node("MIXED"), jobs=[job("RUNNING", began=NOW)]), "Starting",
        id="and Slurm still knows better",
    ),
    pytest.param(taken(RUNNING), slurm(IDLE_DRAIN), Drained, id="reported: as every other"),
    pytest.param(pod(phase="Failed"), Unreachable(since=NOW, why=""), Ended, id="all containers ended for good"),
    pytest.param(pod(phase="Succeeded"), slurm(), Ended, id="and with success"),
    pytest.param(pod(phase="Unknown"), slurm(), "UnknownToSlurm", id="a silent kubelet proves nothing"),
    pytest.param(pod(CRASHED, last=AFTER_CRASH), slurm(), NotRunning, id="crashed before it registered"),
    pytest.param(pod(AFTER_CRASH), slurm(IDLE_DRAIN), NotRunning, id="crashed, and no job names it nor can start"),
    pytest.param(pod(AFTER_CRASH), slurm(node("IDLE")), "NotDraining", id="crashed: its next slurmd may get a job"),
    pytest.param(
        pod(AFTER_CRASH), slurm(node("DOWN", slurmd_start=None)), "NotDraining", id="crashed and down: it may return"
    ),
    pytest.param(
        pod(AFTER_CRASH), slurm(node("IDLE", address="10.0.0.9")), NotRunning, id="crashed, and another worker has its name"
    ),
    pytest.param(
        pod(CRASHED, last=AFTER_CRASH), slurm(node("MIXED"), jobs=[job("RUNNING")]), "Crashed",
        id="crashed, but Slurm still counts a job there",
    ),
    pytest.param(
        pod(CRASHED, last=AFTER_CRASH), Unreachable(since=NOW, why=""), "SlurmUnreachable",
        id="crashed and Slurm away: wait",
    ),
    pytest.param(
        pod(CRASHED, last=AFTER_CRASH), slurm(age=timedelta(seconds=6)), "OldAnswer", id="crashed, old answer"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "slurm", "verdict"), CASES)
def test_the_gate_opens_on_fresh_proof_alone(pod, slurm, verdict):
    said = gate(Candidate(pod, "gpu-3", slurm), NOW)

    if isinstance(verdict, str):
        assert isinstance(said, Shut)
        assert said.reason == verdict
        assert said.message
    else:
        assert type(said) is verdict
        assert said.pod_uid == "pod-uid"


def test_a_shut_gate_names_the_jobs_that_hold_it():
    jobs = [job("RUNNING", job_id=number) for number in range(1, 9)]

    said = gate(Candidate(pod(), "gpu-3", slurm(node("MIXED", "DRAIN"), jobs=jobs)), NOW)

    assert said.jobs == (1, 2, 3, 4, 5, 6, 7, 8)
    assert "job 1 of ada (RUNNING)" in said.message
    assert said.message.endswith("and 3 more")


def test_a_reconfigure_restarts_slurmd_but_not_its_pod_and_the_record_is_still_its_own():
    later = node("IDLE", "DRAIN", slurmd_start=STARTED + timedelta(minutes=5))

    assert isinstance(gate(Candidate(pod(), "gpu-3", slurm(later)), NOW), Drained)


def test_what_a_slurmctld_without_its_state_says_about_jobs_is_no_proof():
    worker = Candidate(pod(), "gpu-3", slurm(IDLE_DRAIN), state_lost_since=NOW - timedelta(minutes=1))
    crashed = Candidate(pod(CRASHED, last=AFTER_CRASH), "gpu-3", slurm(), state_lost_since=NOW)

    said = gate(worker, NOW)

    assert isinstance(said, Shut)
    assert said.reason == "StateLost"
    assert "11:59:00" in said.message
    assert isinstance(gate(crashed, NOW), NotRunning), "where no process is left, no job can be"


PROOFS = {"Drained", "NeverStarted", "Unreported", "NotRunning", "Ended"}


def test_nothing_but_the_gate_makes_a_proof():
    source = Path(slurm_operator.__file__).parent
    makers = set()
    for file in source.rglob("*.py"):
        for part in ast.walk(ast.parse(file.read_text())):
            if isinstance(part, ast.Call):
                name = (
                    part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
                )
                if name in PROOFS and "slurm_operator.safety" in file.read_text():
                    makers.add(file.relative_to(source).as_posix())
        if file.relative_to(source).as_posix() == "safety/gate.py":
            makers.add("safety/gate.py")

    assert makers == {"safety/gate.py"}


def looked_into(mark: str | None = None, state: ContainerState = RUNNING) -> Pod:
    """A pod in which somebody looked for steps, and saw none."""
    made = pod(state)
    notes = {"nodeset.slinky.slurm.net/no-steps": no_steps_mark(made) if mark is None else mark}
    return wire.replace(made, metadata=wire.replace(made.metadata, annotations=notes))


@pytest.mark.parametrize(
    ("made", "known", "verdict"),
    [
        pytest.param(looked_into(), slurm(), Forgotten, id="unknown, and no step in this slurmd: it may go"),
        pytest.param(pod(), slurm(), "UnknownToSlurm", id="unknown, and nobody looked: its job may still run"),
        pytest.param(looked_into("pod-uid 2025-01-01T00:00:00+00:00"), slurm(), "UnknownToSlurm", id="looked at before its container started again"),
        pytest.param(looked_into("other 2026-01-01T11:00:00+00:00"), slurm(), "UnknownToSlurm", id="another pod was looked at"),
        pytest.param(looked_into(""), slurm(), "UnknownToSlurm", id="an empty mark"),
        pytest.param(looked_into(), slurm(age=timedelta(minutes=1)), "OldAnswer", id="an old answer of Slurm"),
        pytest.param(looked_into(), Unreachable(since=NOW, why="away"), "SlurmUnreachable", id="Slurm is away"),
        pytest.param(looked_into(), slurm(jobs=[job("RUNNING")]), "UnknownToSlurm", id="a job names it all the same"),
        pytest.param(looked_into(), slurm(node("IDLE")), "NotDraining", id="it is back: the mark says nothing any more"),
    ],
)  # fmt: skip
def test_a_forgotten_worker_may_go_when_no_step_runs_in_it(made, known, verdict):
    found = gate(Candidate(made, "gpu-3", known), NOW)
    assert (found.reason if isinstance(found, Shut) else type(found)) == verdict


@pytest.mark.parametrize(
    ("made", "known", "holds"),
    [
        pytest.param(looked_into(), slurm(), True, id="still so"),
        pytest.param(looked_into(), slurm(node("IDLE")), False, id="it has registered since"),
        pytest.param(looked_into(), slurm(node("IDLE", "DRAIN")), False, id="registered, and drained: another case"),
        pytest.param(pod(), slurm(), False, id="the mark is gone"),
        pytest.param(looked_into(), Unreachable(since=NOW, why="away"), False, id="Slurm is away"),
    ],
)  # fmt: skip
def test_the_proof_of_a_forgotten_worker_holds_while_nothing_has_changed(made, known, holds):
    proof = gate(Candidate(looked_into(), "gpu-3", slurm()), NOW)
    assert isinstance(proof, Forgotten)
    assert (why_no_longer(proof, Candidate(made, "gpu-3", known), NOW) is None) is holds
