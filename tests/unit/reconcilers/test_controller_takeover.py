"""A Controller whose children the operator before us has made."""

from slurm_operator.api import names
from slurm_operator.plan.actions import Apply, PatchObject
from slurm_operator.reconcilers.controller import RECONCILER
from support.controller_play import NOON
from support.controllers import KEY, NS, controller, put, world


def budget(**spec) -> dict:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": names.worker_budget("slurm"), "namespace": NS},
        "spec": spec,
    }


def network(made) -> list:
    seen = RECONCILER.observe(KEY, made)
    [lane] = [lane for lane in RECONCILER.decide(seen, NOON).lanes if lane.name == "network"]
    return [list(stage) for stage in lane.stages]


def test_a_budget_with_max_unavailable_is_changed_before_ours_is_applied():
    made = world(controller())
    put(made, budget(maxUnavailable=0))

    first, second = network(made)

    [patch] = first
    assert isinstance(patch, PatchObject)
    [operation] = patch.operations
    assert (operation["op"], operation["path"]) == ("replace", "/spec")
    assert "maxUnavailable" not in operation["value"]
    assert any(isinstance(one, Apply) and one.manifest["kind"] == "PodDisruptionBudget" for one in second)


def test_a_budget_of_ours_needs_no_such_change():
    made = world(controller())
    put(made, budget(minAvailable=1_000_000))

    assert not any(isinstance(one, PatchObject) for stage in network(made) for one in stage)
