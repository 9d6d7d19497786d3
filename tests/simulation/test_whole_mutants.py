"""Take out a guard of keys, configuration, deletion or restarts, and the simulation notices within seconds."""

import pytest

from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.runs import Story, play
from simulation.scenes import PARTS, Scene
from slurm_operator.reconcilers.accounting import lost_secrets
from slurm_operator.reconcilers.controller.configuration import jobs_at_risk, pipeline
from slurm_operator.reconcilers.controller.daemon import workload
from slurm_operator.reconcilers.controller.keys import key_copies, rotation
from slurm_operator.reconcilers.controller.observe import _key
from slurm_operator.reconcilers.shared import deletion_hold, partition_removal, slurm_servers
from slurm_operator.safety.gate import Candidate

ALONE = Scene(PARTS, has_login=False, has_token=False)
FORGETFUL = Scene(PARTS, is_persistent=False, has_login=False, has_token=False)
WITH_RECORDS = Scene(PARTS, accounting="managed", has_login=False, has_token=False)


def story(scene: Scene, *happenings: tuple, seed: int = 2) -> Story:
    return Story(seed, tuple(Happening(*happening) for happening in happenings), scene=scene)


KEY_LOST = story(ALONE, (50, "lose_key", 0), (25, "calm"))
PASSWORD_LOST = story(WITH_RECORDS, (70, "lose_key", 2), (25, "calm"))
SPOILT = story(ALONE, (50, "spoil_config", 1), (40, "calm"))
ROTATED = story(ALONE, (40, "rotate_slurm_key"), (4, "edit_config", 0, 5), (40, "calm"))
DELETED = story(ALONE, (50, "submit", 1, 39), (1, "submit", 1, 39), (8, "delete_kind", 0), (60, "calm"))
RESIGNED = story(FORGETFUL, (60, "rotate_signing_key"), (20, "calm"))
LATE = story(
    Scene(nodeset=(("replicas", 1), ("scalingMode", "DaemonSet"))),
    (31.2, "lose_machine", 7, 38), (3.6, "cut_off_machine", 4, 49), (2.2, "cordon", 4, 27),
    (2.2, "fail_worker", 5, 48), (2.0, "submit", 4, 52), (3.0, "switch_mode", 3, 34), seed=5,
)  # fmt: skip
CLOSED = story(
    Scene(PARTS, nodeset=(("replicas", 0),), has_login=False, has_token=False),
    (50, "delete_kind", 1), (10.5, "submit", 1, 34), (20, "calm"), seed=11,
)  # fmt: skip
TAKEN_DOWN = story(ALONE, (50, "submit", 1, 59), (1, "submit", 1, 59), (5, "scale_restapi", 0, 0), seed=7)
BROKEN_WORKERS = story(ALONE, (50, "break_workers"), (40, "submit", 1, 9), (20, "calm"))
STEPS_AT_RISK = story(ALONE, (60, "submit", 1, 39), (6, "suspend"), (1, "break_workers"), (80, "calm"))
FORGETS = story(FORGETFUL, (60, "submit", 1, 39), (6, "change_daemon_image", 0, 3), (20, "calm"))


@pytest.mark.parametrize(
    ("target", "old", "new", "told"),
    [
        pytest.param(_key, "given is None and workload is not None", "False", KEY_LOST, id="a key that is lost is not made again"),
        pytest.param(lost_secrets.made_once, "world.child(kind, namespace, name) is not None", "False", PASSWORD_LOST, id="nor is a password that data know"),
        pytest.param(pipeline.refused, " or _failed_rehearsal(seen, files)", "", SPOILT, id="what a rehearsal refused"),
        pytest.param(rotation._unread, "assert there.since is not None", "return None\n    assert there.since is not None", ROTATED, id="everybody reads a new key before it signs"),
        pytest.param(workload.slurm_key_hash, "if names.KEY_RING in notes", "if False", ROTATED, id="a new Slurm key restarts no slurmctld"),
        pytest.param(deletion_hold.holding, "bool(dependents) and", "False and", DELETED, id="a Controller stays while it is needed"),
        pytest.param(slurm_servers._keys, "one.key != is_copy", "False", RESIGNED, id="the signing key before is kept"),
        pytest.param(key_copies.removals, "return gone", "return []", TAKEN_DOWN, id="copies of keys go with the last who needs them"),
        pytest.param(key_copies.restored, "now < seen.slurm.since + MISSED_AFTER", "True", TAKEN_DOWN, id="lost keys are put back for a pod that has to start"),
        pytest.param(partition_removal._open, "not partition.takes_jobs", "True", CLOSED, id="a partition is closed before it goes"),
        pytest.param(Candidate.is_unreported, "bool(self.pod.spec.node_name)", "False", LATE, id="who starts may not be heard of yet"),
        pytest.param(jobs_at_risk._stakes, "unfinished if change.rule.loses_queue else started", "unfinished", BROKEN_WORKERS, id="pending jobs do not hold up the correction that they need"),
        pytest.param(jobs_at_risk.started, "if job.state.holds_node", "if job.state.is_completing", STEPS_AT_RISK, id="running jobs hold up a change that costs their steps"),
        pytest.param(jobs_at_risk.unfinished, "if jobs else", "if not jobs else", FORGETS, id="slurmctld without a volume stays while it has jobs"),
    ],
)  # fmt: skip
def test_one_guard_less_is_noticed(target, old, new, told):
    assert play(told).broken is None, "without the mutation all is well"

    with mutated(target, old, new):
        assert play(told).broken is not None, "nobody noticed"
