"""A spec with problems: nothing is changed for it, and its object says why."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema.codec import read
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import first_come
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers import nodeset
from slurm_operator.reconcilers.cluster import RECONCILER as CLUSTERS
from slurm_operator.reconcilers.controller import RECONCILER as CONTROLLERS
from slurm_operator.reconcilers.shared import spec_refusal
from testing.workers import KEY, NOW, controller, revision_of, slurm, slurm_node, worker, world
from testing.workers import nodeset as nodeset_
from testing.world import HandmadeWorld

RECONCILER = nodeset.RECONCILER


def workers(name: str, day: int, hostname: str = "gpu-", controller_: str = "slurm", **metadata) -> NodeSet:
    created = f"2025-01-{day:02d}T00:00:00Z"
    return read(NodeSet, {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created, **metadata},
        "spec": {"controllerRef": {"name": controller_}, "template": {"spec": {"hostname": hostname}}},
    })  # fmt: skip


def decided(about: NodeSet, *others: NodeSet):
    world = HandmadeWorld([controller(), about, *others])
    seen = RECONCILER.observe(key_of(about), world)
    plan = spec_refusal.decide(RECONCILER, about, seen, world, NOW)
    report = spec_refusal.status(RECONCILER, seen, plan, Outcome(done=tuple(plan.actions())))
    return plan, {condition.type: (condition.status, condition.reason) for condition in report.conditions}


def test_the_younger_of_two_that_slurm_would_confuse_is_not_touched_and_says_why():
    plan, conditions = decided(workers("second", 2), workers("first", 1))

    [wait] = plan.actions()
    assert (wait.subject, wait.reason) == ("spec", "SpecRefused")
    assert wait.message == (
        "spec.template.spec.hostname: NodeSet 'first' is already known as 'gpu' to the same Controller; "
        "use another hostname prefix"
    )
    assert plan.look_again is None, "nothing is tried again before something changes"
    assert {type_: conditions[type_] for type_ in (READY, PROGRESSING, DEGRADED)} == {
        READY: ("False", "SpecRefused"),
        PROGRESSING: ("False", "SpecRefused"),
        DEGRADED: ("True", "SpecRefused"),
    }


@pytest.mark.parametrize(
    ("about", "other"),
    [
        pytest.param(workers("first", 1), workers("second", 2), id="the older one goes on"),
        pytest.param(workers("second", 2, "cpu-"), workers("first", 1), id="another name"),
        pytest.param(workers("second", 2), workers("first", 1, controller_="other"), id="another cluster"),
        pytest.param(
            workers("second", 2, deletionTimestamp="2025-02-01T00:00:00Z", finalizers=["x"]), workers("first", 1),
            id="one that is deleted goes its way",
        ),
    ],
)  # fmt: skip
def test_these_are_decided_about_as_ever(about, other):
    world = HandmadeWorld([controller(), about, other])
    seen = RECONCILER.observe(key_of(about), world)

    assert spec_refusal.decide(RECONCILER, about, seen, world, NOW) == RECONCILER.decide(seen, NOW)


def test_one_that_was_stored_before_its_rule_keeps_its_workers_and_says_why():
    """It cannot be written down for a worker, so every pass that makes one would fail."""
    stored = nodeset_(replicas=2, extraConf="Gres=gpu:8\x01 Weight=10")
    made = world(stored, controller(), worker(0), slurm_=slurm(slurm_node(worker(0), "IDLE")))
    seen = RECONCILER.observe(KEY, made)

    plan = spec_refusal.decide(RECONCILER, stored, seen, made, NOW)

    [wait] = plan.actions()
    assert wait.message == (
        "spec.extraConf: is a list of Key=Value, with spaces between them and neither spaces nor control characters inside"
    )
    report = spec_refusal.status(RECONCILER, seen, plan, Outcome(done=(wait,)))
    assert {
        (one.type, one.status, one.message) for one in report.conditions if one.reason == spec_refusal.REASON
    } == {
        (READY, "False", wait.message),
        (PROGRESSING, "False", "No changes will be made until the spec is fixed."),
        (DEGRADED, "True", wait.message),
    }


def test_one_that_is_deleted_goes_though_its_spec_breaks_a_rule():
    stored = nodeset_(replicas=2, extraConf="Gres=gpu:8\x01", deleted=True)
    record = slurm_node(worker(0), "IDLE")
    made = world(stored, controller(), worker(0), revisions_=[revision_of(stored)], slurm_=slurm(record))
    seen = RECONCILER.observe(KEY, made)

    plan = spec_refusal.decide(RECONCILER, stored, seen, made, NOW)

    assert [action.reason for action in plan.actions() if isinstance(action, WriteSlurm)] == ["Deletion"]


def test_when_a_name_becomes_free_the_others_look_again():
    first, second = workers("first", 1), workers("second", 2)
    world = HandmadeWorld([controller(), first, second])
    [wake] = [wake for wake in RECONCILER.wakes if wake.type is NodeSet]

    assert list(wake.woken(first, None, world)) == [key_of(second)]
    renamed = wire.replace(first, spec=workers("first", 1, "cpu-").spec)
    assert key_of(second) in wake.woken(first, renamed, world)
    assert list(wake.woken(first, first, world)) == [], "a new status changes nothing"


def test_those_that_go_on_with_what_they_can_judge_themselves():
    assert CONTROLLERS.validates_itself
    assert CLUSTERS.validates_itself


def test_slurm_hears_of_a_name_once():
    first, second, other = workers("first", 1), workers("a-second", 2), workers("other", 3, "cpu-")

    assert first_come([second, first, other]) == [first, other]
