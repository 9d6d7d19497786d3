"""Stories of Kubernetes nodes under workers of a SlurmCluster: maintenance, tasks that cannot be ended, reboots."""

import pytest

from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.runs import Ending, Story, play
from simulation.scenes import SLURMCLUSTER, Scene
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.reconcilers.nebius.kubenode import rules
from slurm_operator.reconcilers.nebius.kubenode.marks import Case

SCENE = Scene(SLURMCLUSTER, nodeset=(("replicas", 3),))
BUSY = tuple(Happening(1, "submit", 1, 30) for _ in range(3))
EVERYWHERE = tuple(Happening(0, "announce", number) for number in range(5))
MAINTENANCE = (
    Happening(60, "calm"), *BUSY, *EVERYWHERE, Happening(120, "calm"),
    *(Happening(1, "unannounce") for _ in range(5)), Happening(60, "calm"),
)  # fmt: skip
REBOOT = (Happening(60, "calm"), *BUSY, Happening(1, "fail_to_kill"), Happening(150, "calm"))


def told(happenings: tuple[Happening, ...], seed: int = 4) -> Ending:
    return play(Story(seed=seed, scene=SCENE, happenings=happenings))


@pytest.mark.parametrize(
    ("happenings", "steps"),
    [
        pytest.param(MAINTENANCE, (f"({names.NEED_DRAIN})", "unannounce", f"({names.UNDRAINED})", "slurm resumes"), id="maintenance"),
        pytest.param(REBOOT, ("node reboot process", f"({names.NEED_REBOOT})", f"({names.REBOOTED})", "slurm resumes"), id="a reboot"),
    ],
)  # fmt: skip
def test_a_kubernetes_node_is_emptied_and_comes_back(happenings, steps):
    ending = told(happenings)

    assert ending.broken is None
    text = "\n".join(ending.lines)
    at = -1
    for step in steps:
        at = text.find(step, at + 1)
        assert at >= 0, f"{step} is missing, or comes too early"


@pytest.mark.parametrize(
    ("target", "old", "new", "happenings", "broken"),
    [
        pytest.param(Case.is_empty, "self.empties is Tells.YES", "True", MAINTENANCE, "SlurmNodeDrain", id="maintenance under jobs"),
        pytest.param(Case.is_empty, "self.empties is Tells.YES", "True", REBOOT, "SlurmNodeReboot", id="a reboot under jobs"),
        pytest.param(rules.is_for_reboot, "any(", "not any(", MAINTENANCE, "", id="a reboot that nobody asked for"),
    ],
)  # fmt: skip
def test_without_these_conditions_a_promise_is_broken(target, old, new, happenings, broken):
    """The control: what the promises are worth."""
    with mutated(target, old, new):
        found = [told(happenings, seed).broken for seed in range(4, 8)]
    assert any(one is not None and broken in one for one in found), found
