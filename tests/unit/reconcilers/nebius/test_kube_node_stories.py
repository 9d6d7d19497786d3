"""Kubernetes nodes from end to end: rebooted, replaced, spared, with the rebooter and the provider played here."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.kubenode.troubles import REBOOT_REASON, REPLACEMENT_REASON
from testing.kube_nodes import World, condition, kube_node, waits

CALL = names.MAINTENANCE_SCHEDULED


def empties(world: World, node: str = "n0") -> None:
    """The rebooter cordons and taints, waits for the pods, and says so."""
    assert world.mark(node, names.DRAIN) == ("True", names.NEED_DRAIN)
    world.says(node, names.DRAIN, "True", names.DRAINING)
    world.taint(node)
    world.passes()
    assert world.mark(node, names.DRAIN) == ("True", names.DRAINING), "it is left to the rebooter"
    for name in world._pods_on(node):
        del world.pods[name]
    world.says(node, names.DRAIN, "True", names.DRAINED)


def reboots(world: World, node: str = "n0") -> None:
    """The rebooter drains for the reboot, and after it lifts cordon and taint and says that it did."""
    assert world.mark(node, names.REBOOT) == ("True", names.NEED_REBOOT)
    world.says(node, names.DRAIN, "True", names.DRAINING)
    world.taint(node)
    world.passes()
    world.says(node, names.REBOOT, "True", names.REBOOTING)
    world.passes()
    world.now += timedelta(minutes=5)
    world.taint(node, on=False)
    world.says(node, names.DRAIN, "True", names.UNDRAINED)
    world.says(node, names.REBOOT, "True", names.REBOOTED)


def test_a_node_with_a_task_that_could_not_be_ended_is_rebooted_and_returns():
    world = World().add(kube_node(), "cpu-0", "cpu-1").add(kube_node("n1"), "cpu-2")
    for number in range(3, 10):
        world.add(kube_node(f"n{number}"), f"cpu-{number}")
    world.runs("cpu-1")
    world.drained("cpu-0", "Kill task failed")
    world.passes()

    assert world.records["cpu-0"].reason == world.records["cpu-1"].reason == REBOOT_REASON
    assert world.mark("n0", names.DEGRADED) is None, "a job still runs beside it"

    world.ends()
    world.passes()
    assert world.mark("n0", names.DEGRADED) == ("True", names.NEED_REBOOT)
    reboots(world)
    world.passes()

    assert world.mark("n0", names.DEGRADED) == world.mark("n0", names.REBOOT) == ("False", names.REBOOTED)
    assert world.mark("n0", names.DRAIN) == ("False", names.REBOOTED)
    for name in ("cpu-0", "cpu-1"):
        assert (str(world.records[name].state), world.records[name].reason) == ("IDLE", "")
    assert world.deleted == []
    count = len(world.told)
    world.now += timedelta(hours=1)
    assert len(world.passes().told) == count, "no second reboot follows"


def test_workers_that_come_back_elsewhere_during_a_reboot_take_jobs_there():
    """Their new Kubernetes node is not rebooted as well."""
    world = World().add(kube_node(), "cpu-0").add(kube_node("n1"))
    world.drained("cpu-0", "Kill task failed").passes()
    world.place("cpu-0", "n1")
    world.passes()

    assert world.records["cpu-0"].reason == ""
    assert world.mark("n1", names.DEGRADED) is None


def test_a_node_under_maintenance_is_emptied_and_deleted_and_its_worker_returns_under_another_name():
    world = World(options=NodeOptions(deletes_drained=True)).add(kube_node(), "cpu-0")
    world.runs("cpu-0")
    world.says("n0", CALL)
    world.passes()
    assert (world.records["cpu-0"].reason, world.mark("n0", names.MAINTENANCE)) == (REPLACEMENT_REASON, None)

    world.ends()
    world.passes()
    assert world.mark("n0", names.MAINTENANCE) == ("True", names.DRAINING)
    empties(world)
    world.passes()
    assert world.deleted == ["n0"]
    assert world.records["cpu-0"].reason == REPLACEMENT_REASON, "nothing runs there yet"

    world.add(kube_node("other", made_at=world.now))
    world.place("cpu-0", "other")
    world.passes()
    assert (str(world.records["cpu-0"].state), world.records["cpu-0"].reason) == ("IDLE", "")


def test_without_the_flag_a_node_that_is_empty_waits_for_its_provider():
    world = World().add(kube_node(), "cpu-0")
    world.says("n0", CALL)
    world.passes()
    empties(world)
    world.passes()

    assert world.deleted == []
    assert "--delete-drained-nodes" in waits(world.decide()[1])["KubeNodeIsEmpty"]


def test_a_failed_health_check_leads_to_other_hardware_and_its_worker_returns():
    options = NodeOptions(replaces=True, deletes_drained=True)
    world = World(options=options).add(kube_node(), "cpu-0")
    world.drained("cpu-0", "[node_problem] gpu_pairs: 2 of 8 [hc_program]", comment="GPU 3 fell off the bus")
    world.passes()
    assert world.mark("n0", names.HARDWARE_SUSPECTED) == ("True", names.HEALTH_CHECK_FAILED)
    [told] = [
        one.message for one in world.nodes["n0"].status.conditions if one.type == names.HARDWARE_SUSPECTED
    ]
    assert told == "GPU 3 fell off the bus"

    empties(world)
    world.passes()
    assert world.deleted == ["n0"]
    world.add(kube_node("n9", made_at=world.now))
    world.place("cpu-0", "n9")
    world.passes()
    assert world.records["cpu-0"].reason == ""


STAGES = ["called", "marked", "asked", "draining", "drained"]


@pytest.mark.parametrize("stage", STAGES)
def test_maintenance_that_is_cancelled_restores_everything(stage):
    world = World().add(kube_node(), "cpu-0")
    if stage == "called":
        world.runs("cpu-0")
    world.says("n0", CALL)
    world.passes()
    if stage in ("draining", "drained"):
        world.says("n0", names.DRAIN, "True", names.DRAINING)
        world.taint("n0")
        world.passes()
    if stage == "drained":
        del world.pods["cpu-0"]
        world.says("n0", names.DRAIN, "True", names.DRAINED)
        world.passes()
    if stage == "marked":
        world.unsays("n0", names.DRAIN)

    world.says("n0", CALL, "False")
    world.passes()
    for type_ in (names.MAINTENANCE, names.DRAIN):
        assert world.mark("n0", type_) in (None, ("False", names.UNDRAINED)), type_
    if stage in ("draining", "drained"):
        assert world.records["cpu-0"].reason == REPLACEMENT_REASON, (
            "a job there would be evicted with its pod"
        )
        world.taint("n0", on=False)
        world.says("n0", names.DRAIN, "False", names.UNDRAINED)
        if stage == "drained":
            world.place("cpu-0", "n0")
        world.passes()
    assert (world.records["cpu-0"].reason, world.records["cpu-0"].state.is_drain) == ("", False)


def test_a_drain_that_a_person_made_stays_through_maintenance_and_after():
    world = World().add(kube_node(), "cpu-0", "cpu-1")
    world.drained("cpu-0", "grace: new disks")
    world.says("n0", CALL)
    world.passes()
    assert world.mark("n0", names.MAINTENANCE) == ("True", names.DRAINING)
    world.unsays("n0", CALL)
    world.passes()

    assert world.records["cpu-0"].reason == "grace: new disks"
    assert world.records["cpu-1"].reason == ""


def test_a_person_who_resumes_a_worker_before_its_reboot_takes_the_reboot_back():
    world = World().add(kube_node(), "cpu-0")
    world.drained("cpu-0", "Kill task failed").passes()
    assert world.mark("n0", names.REBOOT) == ("True", names.NEED_REBOOT)
    world.resume("cpu-0")
    world.runs("cpu-0")
    world.passes()

    assert world.mark("n0", names.DEGRADED) == world.mark("n0", names.REBOOT) == ("False", names.CANCELLED)


def test_a_reboot_that_was_taken_back_before_it_began_is_asked_for_again():
    """A new pod of the worker has not registered for a moment, and nobody can tell that it is idle."""
    world = World().add(kube_node(), "cpu-0")
    world.drained("cpu-0", "Kill task failed").passes()
    registered = world.records["cpu-0"]
    world.records["cpu-0"] = wire.replace(registered, address="10.9.9.9")
    world.passes()
    assert world.mark("n0", names.REBOOT) == ("False", names.CANCELLED)

    world.now += timedelta(minutes=1)
    world.records["cpu-0"] = registered
    world.passes()
    assert world.mark("n0", names.DEGRADED) == world.mark("n0", names.REBOOT) == ("True", names.NEED_REBOOT)


def test_a_job_that_starts_after_the_wish_takes_the_wish_back():
    """A person resumes a worker under maintenance: it is drained again, and nothing is emptied meanwhile."""
    world = World().add(kube_node(), "cpu-0")
    world.says("n0", CALL)
    world.passes()
    world.resume("cpu-0")
    world.runs("cpu-0")
    world.passes()
    assert world.mark("n0", names.DRAIN) == ("False", names.CANCELLED)
    assert world.records["cpu-0"].reason == REPLACEMENT_REASON

    world.ends()
    world.passes()
    assert world.mark("n0", names.DRAIN) == ("True", names.NEED_DRAIN)


def test_while_slurm_does_not_answer_nothing_is_begun_lifted_or_deleted():
    world = World(options=NodeOptions(deletes_drained=True, deletes_not_ready=True, replaces=True))
    world.add(kube_node(), "cpu-0")
    world.says("n0", CALL)
    world.passes()
    world.unreachable = "timed out"
    assert "timed out" in waits(world.decide()[1])["SlurmUnreachable"]
    world.says("n0", CALL, "False")
    before, records = len(world.told), dict(world.records)
    world.passes()
    assert world.records == records, "the drain stays"
    assert all("set conditions" in line for line in world.told[before:])

    lost = World(options=world.options, unreachable="timed out")
    lost.add(kube_node("n0", condition("Ready", "Unknown")), "cpu-0")
    assert lost.passes().deleted == []
