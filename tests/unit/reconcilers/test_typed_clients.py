"""A typed client that reads an object and writes it back restarts no daemon; nor does this version of the operator."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Wish, input_notes
from slurm_operator.manifests.compare.differences import (
    INPUT_DIGEST,
    INPUT_DIGEST_AS_WRITTEN,
    TEMPLATE_DIGEST,
)
from slurm_operator.manifests.digests import digest
from slurm_operator.plan.actions import Apply
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.configuration.slurm_conf import endpoint
from slurm_operator.reconcilers.controller.daemon.workload import inputs
from testing.controller_play import Play
from testing.controllers import KEY, controller, thing, world
from testing.go_types import typed
from testing.pictures import RECONCILERS, SPEC, working

KINDS = (Controller, RestApi, LoginSet, Accounting)
CONTAINERS = {"slurmctld", "logfile", "reconfigure", "slurmrestd", "login", "initconf", "slurmdbd", "mariadb"}

# As a chart renders it, full of what says nothing; and as a client makes it shorter, and longer.
WORDY = {"image": "daemon:1", "resources": {"limits": {"memory": "1024Mi"}}, "env": [], "tty": False}
POD = {"nodeSelector": {}, "hostNetwork": False, "priorityClassName": "", "tolerations": [{"key": "a"}]}


def rewritten(spec: dict) -> dict:
    """Every container and template in it as a typed client writes it."""
    found = {}
    for field, value in spec.items():
        if field in CONTAINERS:
            found[field] = typed(value, "Container")
        elif field == "template":
            found[field] = {**value, "spec": typed(value.get("spec") or {}, "PodSpec")}
        else:
            found[field] = rewritten(value) if isinstance(value, dict) else value
    return found


def changed(made: Picture, type_: type, edit) -> list[Apply]:
    """What is written to workloads once every object of a kind has been edited."""
    [reconciler] = [one for one in RECONCILERS if one.about is type_]
    found = []
    for one in made.all(type_):
        body = codec.plain(one)
        spec = edit(body["spec"])
        made.put(codec.read(type_, {**body, "spec": spec}))
        plan = reconciler.decide(reconciler.observe(key_of(one), made), made.now)
        found += [action for action in plan.actions() if isinstance(action, Apply)]
    assert made.all(type_)
    return [action for action in found if action.manifest["kind"] in ("StatefulSet", "Deployment")]


@pytest.fixture(scope="module")
def plain() -> Picture:
    return working()


@pytest.fixture(scope="module")
def with_database() -> Picture:
    return working({**SPEC, "accounting": {"managed": {}}})


@pytest.mark.parametrize("type_", KINDS, ids=lambda type_: type_.__name__)
def test_a_typed_client_that_writes_an_object_back_changes_no_workload(type_, plain, with_database):
    for there in (plain, with_database):
        made = there.copy()

        assert changed(made, type_, rewritten) == []
        assert codec.plain(made.all(type_)[0].spec) != codec.plain(there.all(type_)[0].spec)


@pytest.mark.parametrize("type_", KINDS, ids=lambda type_: type_.__name__)
def test_another_image_changes_one(type_, plain):
    field = {Controller: "slurmctld", RestApi: "slurmrestd", LoginSet: "login", Accounting: "slurmdbd"}[type_]

    assert changed(plain.copy(), type_, lambda spec: {**spec, field: {"image": "other:1"}}) != []


def test_a_typed_client_restarts_no_slurmctld():
    restapi = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
    spec = {"slurmctld": WORDY, "template": {"spec": POD}}
    made = Play(world(controller(spec), restapi)).rounds()
    made.spec(slurmctld=typed(WORDY, "Container"), template={"spec": typed(POD, "PodSpec")})
    made.rounds()
    assert made.restarts == 0

    made.spec(slurmctld={**WORDY, "image": "daemon:2"})
    made.rounds()
    assert made.restarts == 1


# ---- Notes of the version before


WISHES = {
    "containers": [Wish(WORDY)],
    "template": Wish(controller({"template": {"spec": POD}}).spec.template),
}


def test_what_says_nothing_is_not_in_the_digest_and_the_digest_of_before_is_known():
    template = {"metadata": {"labels": {}, "annotations": {}}, "spec": POD}
    notes = input_notes(WISHES)

    assert notes[INPUT_DIGEST_AS_WRITTEN] == digest({"containers": [WORDY], "template": template})
    assert notes[INPUT_DIGEST] != notes[INPUT_DIGEST_AS_WRITTEN]


def test_without_zeros_the_digest_is_the_one_that_it_always_was():
    wishes = {"image": "daemon:1", "resources": {"limits": {"memory": "1Gi"}}}

    assert input_notes((Wish(wishes), ["x", False, ""])) == {INPUT_DIGEST: digest((wishes, ["x", False, ""]))}
    empty = controller({}).spec.template
    assert input_notes(Wish(empty)) == {INPUT_DIGEST: digest(codec.plain(empty))}


def test_a_workload_that_the_version_before_made_keeps_its_template_and_gets_the_new_note():
    restapi = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
    made = Play(world(controller({"slurmctld": WORDY}), restapi)).rounds()
    [workload] = made.world.children_[kinds.STATEFUL_SET]
    before = input_notes(_inputs(made))[INPUT_DIGEST_AS_WRITTEN]
    notes = {**workload.metadata.annotations, INPUT_DIGEST: before, TEMPLATE_DIGEST: "older"}
    body = wire.decode_any(wire.encode(workload.body))
    body["metadata"]["annotations"] = notes
    body["spec"]["template"]["spec"]["containers"][0]["args"] = ["as", "older", "versions", "did"]
    metadata = wire.replace(workload.metadata, annotations=notes)
    made.world.children_[kinds.STATEFUL_SET] = [wire.replace(workload, metadata=metadata, body=body)]
    made.round()
    [after] = made.world.children_[kinds.STATEFUL_SET]

    assert after.body["spec"]["template"] == body["spec"]["template"]
    assert after.body["metadata"]["annotations"][INPUT_DIGEST] == input_notes(_inputs(made))[INPUT_DIGEST]
    assert INPUT_DIGEST_AS_WRITTEN not in after.body["metadata"]["annotations"]


def _inputs(made: Play) -> dict:
    seen = RECONCILER.observe(KEY, made.world)
    return inputs(seen, endpoint(seen.controller)[1])
