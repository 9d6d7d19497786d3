"""Stories of slurm-aware updates: a worker that is called ready has no job, whatever happens meanwhile."""

from dataclasses import replace

import pytest

from simulation.deeds import Happening
from simulation.promises import Promises
from simulation.runs import Story, play
from simulation.scenes import SLURMCLUSTER, Scene
from slurm_operator.reconcilers.nodeset.worker import update_phases

AWARE = Scene(name=SLURMCLUSTER, nodeset=(("replicas", 3), ("updateStrategy", "slurmAwareRollingUpdate")))
BUSY = tuple(Happening(1, "submit", 1, 30) for _ in range(3))
UPDATED = Story(
    seed=4,
    scene=AWARE,
    happenings=(Happening(60, "calm"), *BUSY, Happening(2, "change_image", 0, 3), Happening(240, "calm")),
)


@pytest.mark.parametrize("seed", range(4))
def test_every_promise_is_kept(seed):
    assert play(replace(Story.of(seed, scene=SLURMCLUSTER), scene=AWARE)).broken is None


def test_each_worker_is_called_ready_before_it_is_replaced(monkeypatch):
    ready, check = [], Promises._check_ready

    def noted(self: Promises, uid: str, pod: str) -> None:
        ready.append(pod)
        check(self, uid, pod)

    monkeypatch.setattr(Promises, "_check_ready", noted)
    ending = play(UPDATED)

    assert ending.broken is None
    deleted = [line.split()[-1] for line in ending.lines if "operator: delete Pod" in line]
    assert sorted(ready) == ["gpu-0", "gpu-1", "gpu-2"]
    assert deleted, "the lines have the end of the story"
    assert ready[-len(deleted) :] == deleted


def test_a_busy_worker_that_is_called_ready_is_noticed(monkeypatch):
    """The control: what the promise is worth."""
    monkeypatch.setattr(update_phases, "STOPPING", update_phases.READY)

    assert "is called ready to be replaced under job" in (play(UPDATED).broken or "")
