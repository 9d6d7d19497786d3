"""Faults of every kind while jobs run: no ledger is broken. And with a hole in the gate, one is."""

import pytest
import worker_cases as cases
from gateless import gate_without
from job_ledger import JobLost
from operator_rig import PROCESS_CONF
from test_slurm_workers import cluster_of, operator, slurm

__all__ = ["operator", "slurm"]

pytestmark = pytest.mark.timeout(900)

# How long to look on after a fault. What goes wrong goes wrong at once, or with the grace period of a pod.
A_WHILE = 5
A_GRACE_PERIOD = 120


def named(case) -> str:
    return case.__name__


@pytest.mark.parametrize("case", [cases.kubectl_drain, cases.slurmrestd_hangs], ids=named)
def test_no_job_is_lost(slurm, case):
    case(slurm, A_WHILE)


@pytest.mark.full
@pytest.mark.parametrize(
    "case",
    [
        cases.four_one_four,
        cases.image_that_is_not_there,
        cases.mode_switch,
        cases.foreground_cascade,
        cases.suspended_job,
        cases.slurmctld_restart,
        cases.lost_state,
        cases.restapi_deletion,
        cases.operator_killed,
    ],
    ids=named,
)
def test_no_job_is_lost_in_rarer_cases(slurm, case):
    case(slurm, A_WHILE)


@pytest.mark.full
def test_no_job_is_lost_while_a_machine_is_silent(slurm):
    cases.machine_not_ready(slurm, A_WHILE)


PREEMPTION = """\
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PartitionName=low Nodes=ALL Default=YES State=UP PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=ALL State=UP PriorityTier=10 OverSubscribe=FORCE:1
"""


@pytest.mark.full
def test_no_job_is_lost_that_another_one_has_suspended(operator):
    with cluster_of(operator, extraConf=PROCESS_CONF + PREEMPTION) as slurm:
        cases.preempted_job(slurm, A_WHILE)


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "hole"),
    [
        pytest.param(cases.mode_switch, ["Draining"], id="mode_switch"),
        pytest.param(cases.suspended_job, ["Draining"], id="suspended_job"),
        pytest.param(cases.slurmctld_restart, ["SlurmUnreachable", "OldAnswer"], id="slurmctld_restart"),
        pytest.param(cases.restapi_deletion, ["SlurmUnreachable", "OldAnswer"], id="restapi_deletion"),
    ],
)
def test_with_a_hole_in_the_gate_the_same_case_loses_a_job(slurm, operator, case, hole):
    with gate_without(operator, *hole), pytest.raises(JobLost):
        case(slurm, A_GRACE_PERIOD)
