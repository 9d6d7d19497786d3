"""A Controller whose children the Slinky operator has made."""

import copy

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Apply, DeleteDaemonPod, DeleteObject
from slurm_operator.reconcilers.controller import RECONCILER
from testing.controller_play import NOON, Play
from testing.controllers import KEY, controller, put, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
HA = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "shared"}}


def pair() -> Play:
    """Two slurmctlds that were made in order, without notes of ours, and are ready while they live."""
    made = all_ready(Play(world(controller(HA), RESTAPI)).rounds())
    workload = copy.deepcopy(RECONCILER.observe(KEY, made.world).workload.body)
    workload["metadata"]["annotations"] = {}
    workload["spec"]["podManagementPolicy"] = "OrderedReady"
    del workload["spec"]["template"]["metadata"]["annotations"][names.KEY_RING]
    put(made.world, workload)
    return made


def all_ready(made: Play, **labels: str) -> Play:
    head = made.pods()[0]
    for pod in made.pods():
        meta = wire.replace(pod.metadata, annotations={}, labels=pod.metadata.labels | labels)
        made._replace(wire.replace(pod, metadata=meta, status=head.status))
    return made


def actions(made: Play) -> list:
    return list(RECONCILER.decide(RECONCILER.observe(KEY, made.world), made.now).actions())


def selector(made: Play) -> dict:
    """Of the Service that clients use, as it is or is about to be."""
    key = kinds.SERVICE, names.controller_service("slurm")
    written = [one.manifest for one in actions(made) if isinstance(one, Apply)]
    there = RECONCILER.observe(KEY, made.world).children[key].body
    found = [one for one in written if (kinds.kind_of(one), one["metadata"]["name"]) == key]
    return [there, *found][-1]["spec"]["selector"]


def test_slurmctlds_with_a_backup_go_on_as_they_are():
    found = actions(pair())

    assert not [one for one in found if isinstance(one, DeleteObject | DeleteDaemonPod)]
    [workload] = [one for one in found if isinstance(one, Apply) and one.manifest["kind"] == "StatefulSet"]
    assert workload.manifest["spec"]["podManagementPolicy"] == "OrderedReady"


def test_the_strategy_of_a_stateful_set_is_changed_before_ours_is_applied():
    made = pair()
    workload = copy.deepcopy(RECONCILER.observe(KEY, made.world).workload.body)
    workload["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    put(made.world, workload)

    [lane] = [
        lane
        for lane in RECONCILER.decide(RECONCILER.observe(KEY, made.world), NOON).lanes
        if lane.name == "workload"
    ]
    [[patch], [apply]] = lane.stages
    assert patch.operations == (
        {"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},
    )
    assert isinstance(apply, Apply)


def test_a_changed_spec_is_for_pods_that_are_made_our_way():
    made = pair()
    made.spec(slurmctld={"image": "slurmctld:26.11"})

    [deleted] = [one for one in actions(made) if isinstance(one, DeleteObject)]
    assert "podManagementPolicy" in deleted.message
    assert deleted.keeps_dependents


def test_clients_are_led_to_the_labelled_one_of_pods_that_are_all_ready():
    made = pair()
    assert selector(made)[names.LABEL_ACTIVE] == "true"

    ours = Play(world(controller(HA), RESTAPI)).rounds()
    assert names.LABEL_ACTIVE not in selector(ours)
    alone = Play(world(controller(), RESTAPI)).rounds()
    [pod] = alone.pods()
    alone._replace(wire.replace(pod, metadata=wire.replace(pod.metadata, annotations={})))
    assert names.LABEL_ACTIVE not in selector(alone), "the only one is in charge, whoever made it"


def test_of_pods_that_are_all_ready_the_first_is_in_charge_and_replaced_last():
    made = all_ready(Play(world(controller(HA), RESTAPI)).rounds(), **{names.LABEL_REVISION: "older"})

    [replaced] = [one.key.name for one in actions(made) if isinstance(one, DeleteDaemonPod)]
    assert replaced == "slurm-controller-1"
