"""Where a worker may run, by rules that people write: also by some that nobody can read."""

import pytest

from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation.placement import is_selected
from slurm_operator.reconcilers.shared import spec_refusal
from testing.workers import (
    KEY,
    NOW,
    controller,
    machine,
    nodeset,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

MACHINE = machine("n1", labels={"gpus": "8", "rack": "r1"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WHERE = f"spec.template.spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


def required(terms) -> dict:
    return {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}}


def rules(*given) -> dict:
    return required([{"matchExpressions": list(given)}])


def rule(key, operator, *values) -> dict:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("template", "is_chosen"),
    [
        pytest.param({}, True, id="no affinity"),
        pytest.param(required([]), False, id="no term"),
        pytest.param(required([{}]), False, id="an empty term"),
        pytest.param(required([{"matchFields": [rule("metadata.name", "In", "n1")]}]), True, id="by its name"),
        pytest.param(rules(rule("rack", "In", "r1", "r2")), True, id="In"),
        pytest.param(rules(rule("rack", "NotIn", "r1")), False, id="NotIn"),
        pytest.param(rules(rule("rack", "Exists")), True, id="Exists"),
        pytest.param(rules(rule("rack", "DoesNotExist")), False, id="DoesNotExist"),
        pytest.param(rules(rule("gpus", "Gt", "7")), True, id="Gt"),
        pytest.param(rules(rule("gpus", "Gt", 8)), False, id="Gt, not more, and the number without quotes"),
        pytest.param(rules(rule("gpus", "Lt", "9")), True, id="Lt"),
        pytest.param(rules(rule("rack", "Lt", "9")), False, id="a label that is no number"),
        pytest.param(rules(rule("none", "Lt", "9")), False, id="a label that is not there"),
    ],
)  # fmt: skip
def test_a_machine_is_chosen_as_the_scheduler_would(template, is_chosen):
    assert is_selected(MACHINE, nodeset(template=template)) is is_chosen


@pytest.mark.parametrize(
    ("template", "told"),
    [
        pytest.param(rules({"key": "gpus", "operator": "Gt"}), f"{WHERE}[0].matchExpressions[0]: Gt needs one number in values", id="no values"),
        pytest.param(rules(rule("gpus", "Lt", "many")), f"{WHERE}[0].matchExpressions[0]: Lt needs one number in values", id="no number"),
        pytest.param(rules(rule("rack", "Exists"), {"operator": "Exists"}), f"{WHERE}[0].matchExpressions[1]: needs a key: the name of the label", id="no key"),
        pytest.param(rules({"key": ["rack"], "operator": "Exists"}), f"{WHERE}[0].matchExpressions[0]: needs a key: the name of the label", id="a key that is none"),
        pytest.param(rules(rule("rack", "in", "r1")), f"{WHERE}[0].matchExpressions[0]: needs an operator: In, NotIn, Exists, DoesNotExist, Gt, Lt", id="no operator"),
        pytest.param(rules({"key": "rack", "operator": "In", "values": "r1"}), f"{WHERE}[0].matchExpressions[0]: values has to be a list", id="no list of values"),
        pytest.param(rules("rack"), f"{WHERE}[0].matchExpressions[0]: needs a key: the name of the label", id="no rule at all"),
        pytest.param(required([{"matchFields": {"key": "metadata.name"}}]), f"{WHERE}[0].matchFields: has to be a list of rules", id="no list of rules"),
        pytest.param(required(["rack=r1"]), f"{WHERE}[0].matchExpressions: has to be a list of rules", id="no term at all"),
        pytest.param(required("rack=r1"), f"{WHERE}: has to be a list of terms", id="no list of terms"),
        pytest.param({"spec": {"affinity": {"nodeAffinity": "rack"}}}, f"{WHERE}: has to be a list of terms", id="no affinity at all"),
    ],
)  # fmt: skip
def test_with_an_affinity_that_nobody_can_read_workers_stay_as_they_are_and_it_is_said(template, told):
    spec = nodeset(scalingMode="DaemonSet", template=template)
    pod = worker(None, on="n1", mode="DaemonSet", name="gpu-abc", hostname="n1")
    made = world(
        spec, controller(), MACHINE, machine("n2"), pod,
        revisions_=[revision_of(spec)], slurm_=slurm(slurm_node(pod, "IDLE")),
    )  # fmt: skip
    seen = RECONCILER.observe(KEY, made)
    plan = spec_refusal.decide(RECONCILER, spec, seen, made, NOW)
    conditions = spec_refusal.status(RECONCILER, seen, plan, Outcome()).conditions

    assert [wait.message for wait in plan.actions()][:1] == [told]
    assert {wait.reason for wait in plan.actions()} == {"SpecRefused"}
    assert ("Degraded", "SpecRefused") in [(one.type, one.reason) for one in conditions]


def test_where_kubernetes_reads_it_workers_come_and_go_and_it_is_a_warning():
    template = rules({"key": "gpus", "operator": "Gt"})
    spec = nodeset(replicas=0, template=template)
    made = world(spec, controller(), revisions_=[revision_of(spec)], slurm_=slurm())

    assert spec_refusal.errors(spec, made) == []
    assert spec_refusal.errors(nodeset(pinToNode=True, template=template), made) != []
