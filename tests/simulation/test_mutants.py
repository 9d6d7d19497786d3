"""Take out any one condition of the gate, and the simulation notices within seconds."""

import pytest

from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.runs import Story, play
from simulation.scenes import Scene
from slurm_operator.reconcilers.nodeset.creation import pod
from slurm_operator.safety import gate, record_removal, write_screening
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState
from slurm_operator.slurmsync.lists import Lists

NO_PROOF = "NeverStarted(pod_uid=pod.metadata.uid, resource_version=pod.metadata.resource_version)"
DRAINED = "Drained(pod_uid=worker.pod.metadata.uid, slurm_node=name, asked_at=snapshot.asked_at)"


def story(*happenings: tuple, **spec) -> tuple:
    scene = Scene(nodeset=tuple({"replicas": 2, **spec}.items()))
    return tuple(Happening(*happening) for happening in happenings), scene


BUSY_AND_AWAY = story((8, "submit", 1, 39), (2, "submit", 1, 39), (1, "scale", 0, 0))
SUSPENDED = story((8, "submit", 1, 30), (2, "suspend"), (3, "scale", 0, 0), (60, "wake"))
UPDATED = story((8, "submit", 1, 2), (1, "submit", 1, 3), (1, "change_image", 0, 5), (9, "submit", 1, 4))
STARTING = story(
    (8, "scale", 0, 0), (12, "submit", 1, 30), (0, "submit", 1, 30), (0, "scale", 0, 4), (1, "scale", 0, 0), (40, "calm")
)  # fmt: skip
SUSPENDED_AND_UPDATED = story(
    (8, "submit", 1, 30), (2, "suspend"), (3, "change_image", 0, 5), (60, "wake"), replicas=1
)
SILENT = story(
    (8, "submit", 1, 39), (1, "submit", 1, 39), (2, "lose_slurmrestd", 0, 35), (0, "crash_operator"), (4, "scale", 0, 0)
)  # fmt: skip
FORGOTTEN = story((8, "submit", 1, 39), (1, "submit", 1, 38), (1, "lose_state"), (1, "scale", 0, 0))
LIFTED = story(
    (8, "drain", 0, 0), (6, "drain", 0, 0), (8, "lose_slurmrestd", 0, 25), (1, "submit", 1, 39),
    (0, "submit", 1, 39), (1, "lift"), (0, "lift"), (11, "scale", 0, 0),
)  # fmt: skip
CORDONED = story(
    (8, "cordon", 0), (6, "submit", 1, 39), (0, "submit", 1, 39), (0, "submit", 1, 39), (2, "cordon", 1),
    (4, "uncordon", 0), (0.6, "lose_slurmrestd", 0, 9), (0.5, "change_image", 0, 5),
)  # fmt: skip
INSISTED = story(
    (8, "submit", 0, 12), (0, "submit", 0, 12), (2, "insist", 0, 5), (0, "insist", 1, 5), (0, "scale", 0, 0),
    (60, "calm"), (0, "calm"),
)  # fmt: skip
RESERVED = story((8, "reserve", 0), (0, "reserve", 1), (12, "scale", 0, 0), (30, "calm"))
OVERRULED = story((8, "cordon", 0), (8, "drain_over", 0), (0.1, "uncordon", 0), (20, "calm"))
CROSSED = story((8, "drain", 0, 0), (0, "scale", 0, 0), (20, "calm"))
SET_BACK = story(
    (8, "drain", 0, 0), (6, "drain", 0, 0), (20, "set_back_clock", 0, 90), (1, "submit", 1, 39), (0, "submit", 1, 39),
    (1, "lift"), (0, "lift"), (11, "scale", 0, 0),
)  # fmt: skip
ARRAY = story(
    (8, "submit_array", 2, 19), (2, "policy_off"), (0, "delete_pod", 1), (8, "calm"),
    template={"spec": {"terminationGracePeriodSeconds": 15}},
)  # fmt: skip
HUNG = story((8, "submit", 1, 39), (0, "submit", 1, 39), (1, "submit", 1, 39), (1, "hang_worker", 0, 55), (0, "hang_worker", 1, 55), (20, "submit", 1, 39), (20, "submit", 1, 39), (90, "calm"))  # fmt: skip
LIVENESS = '"livenessProbe": parts.http_probe("/livez", "slurmd", period_seconds=10, failures=6)'


def _shifted(happenings: tuple[Happening, ...], seed: int) -> tuple[Happening, ...]:
    """The last two things happen a little later in each: some gaps are short."""
    *first, late, last = happenings
    return (*first, Happening(late.after + seed % 15 / 10, late.deed, late.pick, late.amount), last)


@pytest.mark.parametrize(
    ("target", "old", "new", "told"),
    [
        pytest.param(gate.gate, "pod.has_ended", "True", BUSY_AND_AWAY, id="the whole gate"),
        pytest.param(gate.gate, "return Shut(", f"return {NO_PROOF} or Shut(", SILENT, id="Slurm cannot be asked"),
        pytest.param(gate._ask_slurm, "jobs_on(name, snapshot)", "[]", SUSPENDED, id="jobs that name the node"),
        pytest.param(gate._ask_slurm, "slurm_node is None:\n        return Shut(", f"slurm_node is None:\n        return {DRAINED} or Shut(", FORGOTTEN, id="unknown to Slurm"),
        pytest.param(gate.old_answer, "not snapshot.is_current(name)", "False", CORDONED, id="not read since our write"),
        pytest.param(gate._drained, "not slurm_node.state.is_drained", "False", UPDATED, id="busy flags of the node"),
        pytest.param(gate._drained, "not slurm_node.state.is_drain:", "False:", BUSY_AND_AWAY, id="DRAIN is set"),
        pytest.param(JobState.is_unfinished, "not self.is_finished", "self.is_running", SUSPENDED_AND_UPDATED, id="unfinished is more than running"),
        pytest.param(Snapshot.jobs_naming, "self.jobs_by_node.get(node, ())", "()", SUSPENDED_AND_UPDATED, id="which jobs name a node"),
        pytest.param(gate.version_to_delete, "return version\n        case NotRunning", 'return ""\n        case NotRunning', STARTING, id="the version of a pod that never started"),
        pytest.param(SlurmJob.own_nodes, "return (self.batch_host, *self.nodes)", "return self.nodes", SUSPENDED_AND_UPDATED, id="a job that only its batch host names"),
        pytest.param(record_removal.may_delete_record, "not named and", "", INSISTED, id="records that jobs insist on"),
        pytest.param(record_removal.may_delete_record, "slurm.jobs_naming(slurm_node) or reserved", "slurm.jobs_naming(slurm_node)", RESERVED, id="records that are reserved"),
        pytest.param(write_screening._foreign, "is_our_reason(node.reason) or node.reason in over", "True", OVERRULED, id="whose drain it is"),
        pytest.param(SlurmJob.address, 'f"{self.array_job_id}_{self.array_task_id}"', "str(self.job_id)", ARRAY, id="which task of an array"),
        pytest.param(pod.slurmd, '"readinessProbe":', f'{LIVENESS}, "readinessProbe":', HUNG, id="no liveness probe"),
        pytest.param(Lists._read_reservations, "return not any(", "return True or any(", SET_BACK, id="what slurmctld's clock says"),
    ],
)  # fmt: skip
def test_one_condition_less_is_noticed(target, old, new, told):
    happenings, scene = told
    stories = [Story(seed, _shifted(happenings, seed), scene=scene) for seed in range(30, 0, -1)]
    assert play(stories[0]).broken is None, "without the mutation all is well"

    with mutated(target, old, new):
        endings = (play(story).broken for story in stories)
        assert any(endings), "nobody noticed"
