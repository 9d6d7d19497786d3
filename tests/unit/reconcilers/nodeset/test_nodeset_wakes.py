"""What makes the operator look at a NodeSet again, and what does not."""

import pytest

from slurm_operator import wire
from slurm_operator.manifests.objects import KubeNode, PodCondition
from slurm_operator.reconcilers.nodeset import RECONCILER, sets_in_slurm
from slurm_operator.slurm.snapshot import Changes
from testing.workers import CONTROLLER, KEY, machine, nodeset, world

[MACHINES] = [wake for wake in RECONCILER.wakes if wake.type is KubeNode]
QUIET = machine("m1", conditions=[PodCondition(type="Ready", status="True")])
WORLD = world(nodeset())


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, QUIET, True, id="a new machine"),
        pytest.param(QUIET, None, True, id="a machine goes"),
        pytest.param(QUIET, machine("m1", cordoned=True), True, id="cordoned"),
        pytest.param(QUIET, machine("m1", taints=[("x", "NoExecute")]), True, id="tainted"),
        pytest.param(QUIET, machine("m1", labels={"a": "b"}), True, id="another label"),
        pytest.param(QUIET, machine("m1", conditions=[PodCondition(type="Ready", status="False")]), True, id="another condition"),
        pytest.param(QUIET, wire.replace(QUIET, metadata=wire.replace(QUIET.metadata, resource_version="9")), False, id="a heartbeat"),
    ],
)  # fmt: skip
def test_machines_wake_for_what_matters(old, new, wakes):
    assert (KEY in set(MACHINES.woken(old, new, WORLD))) is wakes


@pytest.mark.parametrize(
    "changes",
    [
        Changes(nodes=frozenset({"gpu-0"})),
        Changes(jobs=frozenset({1})),
        Changes(reservations=frozenset({"r"})),
        Changes(everything=True),
    ],
)
def test_slurm_wakes_the_sets_of_its_controller(changes):
    assert list(sets_in_slurm(CONTROLLER, changes, WORLD)) == [KEY]


def test_a_changed_partition_does_not():
    assert list(sets_in_slurm(CONTROLLER, Changes(partitions=frozenset({"p"})), WORLD)) == []
