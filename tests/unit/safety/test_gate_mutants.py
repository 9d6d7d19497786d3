"""Take out any one condition of the gate, and its table of cases notices.

The simulation does so for what ends jobs within seconds; some of these would take a coincidence.
"""

import pytest

from simulation.mutants import is_passed, mutated
from slurm_operator.safety import gate
from unit.safety import test_gate, test_gate_fence

TESTS = [
    test
    for module in (test_gate, test_gate_fence)
    for name, test in vars(module).items()
    if name.startswith("test_")
]


def test_without_a_mutation_all_is_well():
    assert [test.__name__ for test in TESTS if not is_passed(test)] == []


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        pytest.param(gate._not_started, "worker.is_unreported and isinstance(slurm, Snapshot)", "False", id="Slurm may have heard of it before its kubelet tells"),
        pytest.param(gate._not_started, "if worker.is_unreported:\n        return Unreported", "if False:\n        return Unreported", id="a machine has it"),
        pytest.param(gate._may_be_in, "began_at + slurm.clock_behind", "began_at", id="slurmctld's clock is behind"),
        pytest.param(gate._may_be_in, "made_at - CLOCKS_DIFFER_BY", "made_at", id="two clocks differ"),
        pytest.param(gate._may_be_in, "return True", "return False", id="a job that says not since when"),
        pytest.param(gate.old_answer, "not snapshot.is_fresh(now, PROOF_LIFETIME)", "False", id="an old answer"),
        pytest.param(gate._ask_slurm, "worker.state_lost_since is not None", "False", id="slurmctld lost its state"),
        pytest.param(gate._ask_slurm, "not is_record_of(slurm_node, worker.pod)", "False", id="whose record it is"),
        pytest.param(gate._ask_slurm, "not jobs and has_no_steps(worker.pod)", "has_no_steps(worker.pod)", id="a job names what Slurm has forgotten"),
        pytest.param(gate._ask_slurm, "not jobs and has_no_steps(worker.pod)", "not jobs", id="somebody looked for steps"),
        pytest.param(gate._crashed, "if jobs:", "if False:", id="jobs of one that crashed"),
        pytest.param(gate._crashed, "and not slurm_node.state.is_drain", "and False", id="the next slurmd may get a job"),
        pytest.param(gate._crashed, "and is_record_of_crashed_worker(slurm_node, worker)", "and True", id="whose record it left"),
        pytest.param(gate._drained, "if jobs:", "if False:", id="suspended jobs"),
        pytest.param(gate.is_record_of, "not registers_from(slurm_node.address, pod)", "False", id="from where it registered"),
        pytest.param(gate.is_record_of, "slurm_node.slurmd_start_time >= running.started_at.replace(microsecond=0)", "True", id="the slurmd before this one"),
        pytest.param(gate.has_no_steps, "pod.metadata.annotations.get(POD_NO_STEPS) == mark", "POD_NO_STEPS in pod.metadata.annotations", id="in which container nobody saw a step"),
    ],
)  # fmt: skip
def test_one_condition_less_is_noticed(target, old, new):
    with mutated(target, old, new):
        assert not all(is_passed(test) for test in TESTS)
