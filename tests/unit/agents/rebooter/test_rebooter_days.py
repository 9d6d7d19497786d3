"""Whole days of a rebooter: what it does to its Kubernetes node, and that it undoes all of it."""

from datetime import timedelta

import pytest
from node_play import DRAIN, NOON, REBOOT, Play, Server, pod, slurmctld, worker

from slurm_operator.agents.rebooter.decide import Limits

BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
TAINT = "node.kubernetes.io/NoExecute"


@pytest.fixture
def server() -> Server:
    server = Server()
    server.make()
    return server


@pytest.fixture
def play(server: Server) -> Play:
    return Play(server)


def drained(play: Play) -> None:
    play.server.ask(DRAIN, "True", "NodeNeedDrain")
    play.settle()


def test_without_a_wish_nothing_is_written(play, server):
    play.settle()

    assert server.version == 1
    assert server.leases == {}


def test_a_drain_cordons_evicts_taints_and_says_so(play, server):
    server.pods = [pod("web"), pod("other", node="b")]

    drained(play)

    assert server.evicted == ["web"]
    assert server.is_cordoned()
    assert server.taints() == [TAINT]
    assert server.told(DRAIN) == "True/NodeDrained"
    assert server.out_of_service() == ["a"]
    assert play.machine.facts["runs"] == 0


def test_a_drain_that_is_taken_back_restores_everything(play, server):
    drained(play)

    server.ask(DRAIN, "False", "NodeRebooted")
    play.settle()

    assert play.is_restored()
    assert server.told(DRAIN) == "False/NodeUndrained"


@pytest.mark.parametrize("looks", range(1, 12))
@pytest.mark.parametrize("how", ["false", "removed"])
@pytest.mark.parametrize("is_started_again", [False, True])
def test_a_drain_that_is_taken_back_at_any_moment_restores_everything(
    play, server, looks, how, is_started_again
):
    server.pods = [pod("web"), worker("gpu-0")]
    server.ask(DRAIN, "True", "NodeNeedDrain")
    play.look(looks)

    server.ask(DRAIN, "False", "NodeRebooted") if how == "false" else server.forget(DRAIN)
    if is_started_again:
        play.again()
    play.settle()

    assert play.is_restored()
    assert server.told(DRAIN) in ("", "False/NodeUndrained", "False/NodeRebooted")
    assert ("gpu-0" in server.evicted) is False


def test_a_worker_with_a_job_holds_the_drain_and_the_condition_names_it(play, server):
    server.pods = [worker("gpu-0")]

    drained(play)
    play.now += timedelta(hours=2)
    play.settle()

    assert server.told(DRAIN) == "True/NodeDraining"
    assert server.message(DRAIN) == "Waiting for 1 pod to leave: slurm/gpu-0 is a worker that may have jobs."
    assert server.is_cordoned()
    assert server.taints() == []  # It would end the worker without asking anybody.

    server.release("gpu-0")
    play.now += timedelta(minutes=1)
    play.settle()

    assert server.evicted == ["gpu-0"]
    assert server.told(DRAIN) == "True/NodeDrained"


def test_a_budget_that_forbids_an_eviction_is_named_and_asked_again(play, server):
    server.pods = [pod("web")]
    server.budgets = {"web": BUDGET}
    drained(play)

    assert server.told(DRAIN) == "True/NodeDraining"
    assert server.message(DRAIN) == f"Waiting for 1 pod to leave: slurm/web ({BUDGET[:-1]})."
    assert server.taints() == []

    server.budgets = {}
    play.now += timedelta(minutes=1)
    play.settle()
    assert server.told(DRAIN) == "True/NodeDrained"


def test_a_worker_with_a_job_is_not_even_asked_to_leave_where_no_budget_protects_it(play, server):
    server.pods = [worker("gpu-0")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    assert server.budgets == {}
    assert server.evicted == []
    assert play.machine.facts["runs"] == 0


def test_a_reboot_cycle(play, server):
    server.pods = [pod("web")]
    server.ask(REBOOT, "True", "NodeNeedReboot")

    play.settle()

    assert play.machine.facts["runs"] == 1
    assert server.told(REBOOT) == "True/NodeRebooted"
    assert server.told(DRAIN) == "False/NodeUndrained"
    assert not server.is_cordoned()
    assert server.taints() == []
    assert server.out_of_service() == []

    server.ask(REBOOT, "False", "NodeRebooted", NOON + timedelta(hours=1))
    play.settle()

    assert play.is_restored()
    assert play.machine.facts["runs"] == 1


@pytest.mark.parametrize("ended_after", range(1, 16))
def test_a_reboot_cycle_in_which_the_agent_is_ended_at_any_moment(play, server, ended_after):
    server.pods = [pod("web")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.look(ended_after)
    play.again()

    play.settle()

    assert play.machine.facts["runs"] == 1
    assert server.told(REBOOT) == "True/NodeRebooted"
    assert not server.is_cordoned()
    assert server.out_of_service() == []


@pytest.mark.parametrize("answers", range(0, 60, 3))
def test_a_reboot_cycle_in_which_the_agent_is_ended_between_any_two_requests(play, server, answers):
    """Whether it was ended before the command or after it: the node is rebooted once, and used again."""
    server.pods = [pod("web")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    server.answers_left = answers
    for _ in range(60):
        play.look()
        if server.answers_left is None:
            break
    play.again()
    play.settle()
    play.now += timedelta(minutes=11)  # A command that was noted, and maybe not run, has its time.
    play.settle()

    assert play.machine.facts["runs"] == 1
    assert server.told(REBOOT) == "True/NodeRebooted"
    assert server.told(DRAIN) == "False/NodeUndrained"
    assert not server.is_cordoned()
    assert server.taints() == []
    assert server.out_of_service() == []


@pytest.mark.parametrize("looks", range(1, 9))
def test_a_reboot_that_is_taken_back_before_it_began_restores_everything(play, server, looks):
    server.pods = [worker("gpu-0")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.look(looks)

    server.forget(REBOOT)
    play.settle()

    assert play.is_restored()
    assert play.machine.facts["runs"] == 0


def test_somebody_who_clears_the_drain_of_a_reboot_does_not_start_a_quarrel(play, server):
    server.pods = [worker("gpu-0")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()
    assert server.told(DRAIN) == "True/NodeDraining"

    server.ask(DRAIN, "False", "NodeRebooted")
    play.settle()

    assert server.told(DRAIN) == "False/NodeRebooted"
    assert server.is_cordoned()


def test_after_the_reboot_the_drain_stands_while_somebody_else_asks_for_it(play, server):
    server.ask(DRAIN, "True", "NodeNeedDrain")
    server.ask(REBOOT, "True", "NodeNeedReboot")

    play.settle()

    assert play.machine.facts["runs"] == 1
    assert server.told(REBOOT) == "True/NodeRebooted"
    assert server.told(DRAIN) == "True/NodeDrained"
    assert server.is_cordoned()

    server.ask(DRAIN, "False", "NodeRebooted")
    server.ask(REBOOT, "False", "NodeRebooted")
    play.settle()
    assert play.is_restored()


def test_a_drain_that_is_asked_for_during_a_reboot_outlives_it(play, server):
    server.pods = [worker("gpu-0")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    server.ask(DRAIN, "True", "NodeNeedDrain")
    play.settle()
    server.release("gpu-0")
    play.now += timedelta(minutes=1)
    play.settle()

    assert play.machine.facts["runs"] == 1
    assert server.told(DRAIN) == "True/NodeDrained"
    assert server.is_cordoned()


def test_the_node_is_used_again_only_when_the_kubelet_of_the_new_boot_is_ready(play, server):
    server.ask(REBOOT, "True", "NodeNeedReboot")
    boot = play.machine.boot
    play.machine.boot_id()

    def silent(at=NOON):
        boot(at)
        server.edit("a", lambda node: node["status"]["nodeInfo"].update(bootID="boot-1"))

    object.__setattr__(play.machine, "boot", silent)
    play.settle()
    assert server.told(REBOOT) == "True/NodeRebooted"
    assert server.is_cordoned()

    server.edit("a", lambda node: node["status"]["nodeInfo"].update(bootID="boot-2"))
    play.settle()
    assert not server.is_cordoned()


def test_a_cordon_of_somebody_else_stays(play, server):
    server.edit("a", lambda node: node["spec"].update(unschedulable=True))
    drained(play)
    server.ask(DRAIN, "False", "NodeRebooted")
    play.settle()

    assert server.is_cordoned()
    assert server.taints() == []
    assert "It stays cordoned" in server.message(DRAIN)
    assert not play.memo


def test_a_taint_of_somebody_else_stays(play, server):
    server.edit("a", lambda node: node["spec"].update(taints=[{"key": TAINT, "value": "x", "effect": "NoExecute"}, {"key": "gpu", "effect": "NoSchedule"}]))  # fmt: skip
    drained(play)
    server.ask(DRAIN, "False", "NodeRebooted")
    play.settle()

    assert server.taints() == [TAINT, "gpu"]


def test_a_node_that_was_only_cordoned_by_a_person_is_left_alone(play, server):
    server.edit("a", lambda node: node["spec"].update(unschedulable=True))
    server.ask(DRAIN, "False", "NodeRebooted")
    version = server.version

    play.settle()

    assert server.is_cordoned()
    assert server.version == version


def test_a_reboot_that_a_person_did_after_the_request_counts(play, server):
    play.machine.boot(NOON + timedelta(minutes=30))
    play.again()
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    assert play.machine.facts["runs"] == 0
    assert server.told(REBOOT) == "True/NodeRebooted"


def test_a_boot_that_may_be_earlier_by_the_difference_of_two_clocks_does_not_count(play, server):
    play.machine.boot(NOON + timedelta(minutes=1))
    play.again()
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    assert play.machine.facts["runs"] == 1


def test_a_reboot_that_does_not_happen_is_tried_again_and_then_given_up(server):
    play = Play(server, limits=Limits(reboot_timeout=timedelta(minutes=10)))
    play.machine.facts["works"] = False
    server.ask(REBOOT, "True", "NodeNeedReboot")
    runs = []
    for _ in range(6):
        play.settle()
        runs.append(play.machine.facts["runs"])
        play.again()
        play.now += timedelta(minutes=11)

    assert runs == [1, 2, 3, 3, 3, 3]
    assert "the reboot command ran 3 times in the last 24 hours, and this is still the same boot" in server.message(REBOOT)  # fmt: skip
    assert server.is_cordoned()


def test_a_command_that_fails_is_told(server):
    play = Play(server)
    play.machine.facts.update(works=False, says="`true` ended with 1: no init here.")
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    assert server.told(REBOOT) == "True/NodeRebooting"
    assert "`true` ended with 1: no init here." in server.message(REBOOT)


def test_a_node_that_reboots_do_not_cure_is_not_rebooted_for_ever(play, server):
    for hour in range(1, 7):
        at = NOON + timedelta(hours=hour)
        play.now = at + timedelta(minutes=1)
        server.ask(REBOOT, "True", "NodeNeedReboot", at)
        play.settle()
        server.ask(REBOOT, "False", "NodeRebooted", at + timedelta(minutes=30))
        play.settle()
        assert not server.is_cordoned()

    assert play.machine.facts["runs"] == 3

    server.edit("a", lambda node: node["metadata"]["annotations"].pop("slurm.nebius.ai/rebooter-reboots"))
    server.ask(REBOOT, "True", "NodeNeedReboot", NOON + timedelta(hours=8))
    play.settle()
    assert play.machine.facts["runs"] == 4


def test_a_second_request_with_the_time_of_the_first_is_another_reboot(play, server):
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.settle()

    assert play.machine.facts["runs"] == 2


def test_a_node_object_that_was_made_again_starts_afresh(play, server):
    drained(play)

    server.make("a", uid="another")
    play.settle()

    assert not server.is_cordoned()
    server.ask(DRAIN, "True", "NodeNeedDrain")
    play.settle()
    assert server.told(DRAIN) == "True/NodeDrained"


@pytest.mark.parametrize("away_after", range(12))
def test_while_the_api_server_is_away_nothing_is_rebooted(play, server, away_after):
    server.ask(REBOOT, "True", "NodeNeedReboot")
    play.look(away_after)
    before = play.machine.facts["runs"]
    server.is_away = True
    play.look(5)
    assert play.machine.facts["runs"] == before

    server.is_away = False
    play.settle()
    assert play.machine.facts["runs"] == 1
    assert not server.is_cordoned()


def test_a_version_that_is_no_longer_the_newest_is_not_acted_on(play, server):
    """The condition is removed, and the agent has not heard of it yet."""
    server.ask(REBOOT, "True", "NodeNeedReboot")
    server.listeners.clear()
    server.forget(REBOOT)
    play.look(20)

    assert play.machine.facts["runs"] == 0
    assert not server.is_cordoned()


def test_a_condition_that_says_neither_changes_nothing(play, server):
    drained(play)
    server.ask(DRAIN, "Unknown", "Lost")
    version = server.version
    play.settle()

    assert server.version == version
    assert server.is_cordoned()


# ---- slurmctld


def test_the_node_of_slurmctld_is_not_drained_while_workers_depend_on_it(play, server):
    server.pods = [slurmctld(), worker("gpu-0", node="b")]
    drained(play)

    assert server.evicted == []
    assert not server.is_cordoned()
    assert server.told(DRAIN) == "True/NodeNeedDrain"
    assert "slurmctld of cluster demo runs here as pod slurm/demo-controller-0" in server.message(DRAIN)
    assert "its 1 worker may have jobs" in server.message(DRAIN)
    assert server.out_of_service() == []


def test_a_person_may_accept_that_slurmctld_moves(play, server):
    server.pods = [slurmctld(), worker("gpu-0", node="b")]
    server.edit("a", lambda node: node["metadata"]["annotations"].update({"slurm.nebius.ai/rebooter-may-move-slurmctld": "true"}))  # fmt: skip
    drained(play)

    assert server.evicted == ["demo-controller-0"]


def test_slurmctld_leaves_after_the_workers_of_the_same_node(play, server):
    server.pods = [slurmctld(), worker("gpu-0")]
    server.edit("a", lambda node: node["metadata"]["annotations"].update({"slurm.nebius.ai/rebooter-may-move-slurmctld": "true"}))  # fmt: skip
    drained(play)
    assert server.evicted == []

    server.release("gpu-0")
    play.now += timedelta(minutes=1)
    play.settle()
    assert server.evicted == ["gpu-0", "demo-controller-0"]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="no workers"),
        pytest.param([worker("gpu-0", node="b"), slurmctld("b", "demo-controller-1")], id="a standby"),
    ],
)
def test_a_slurmctld_that_no_job_depends_on_may_leave(play, server, others):
    server.pods = [slurmctld(), *others]
    drained(play)

    assert server.evicted == ["demo-controller-0"]


def test_a_standby_that_is_not_ready_does_not_count(play, server):
    server.pods = [slurmctld(), worker("gpu-0", node="b"), slurmctld("b", "demo-controller-1", is_ready=False)]  # fmt: skip
    drained(play)

    assert server.evicted == []


# ---- Several nodes


def test_only_so_many_nodes_are_out_of_service_at_once(server):
    server.make("b")
    plays = [Play(server, "a"), Play(server, "b")]
    for name in ("a", "b"):
        server.ask(DRAIN, "True", "NodeNeedDrain", name=name)
    for play in plays:
        play.settle()

    assert server.out_of_service() == ["a"]
    assert not server.is_cordoned("b")
    assert server.message(DRAIN, "b") == (
        "Waiting: at most 1 Kubernetes node may be out of service at once (--max-nodes). Out of service: a."
    )

    server.ask(DRAIN, "False", "NodeRebooted", name="a")
    for play in plays:
        play.settle()
    assert server.out_of_service() == ["b"]
    assert server.told(DRAIN, "b") == "True/NodeDrained"


def test_a_node_that_is_gone_is_not_waited_for(server):
    server.make("b")
    first, second = Play(server, "a"), Play(server, "b")
    drained(first)
    del server.nodes["a"]

    server.ask(DRAIN, "True", "NodeNeedDrain", name="b")
    second.settle()

    assert server.out_of_service() == ["b"]


def test_a_slot_that_was_taken_before_the_agent_ended_is_given_back(server):
    """Ended right after it had counted itself; meanwhile the wish is gone."""
    play = Play(server)
    server.ask(DRAIN, "True", "NodeNeedDrain")
    play.look()
    assert server.out_of_service() == ["a"]
    assert not play.memo

    server.forget(DRAIN)
    play.again()
    play.settle()
    assert server.out_of_service() == []


def test_a_list_that_cannot_be_read_holds_everything(play, server):
    server.leases["slurm-operator-rebooter"] = {"metadata": {"name": "slurm-operator-rebooter", "resourceVersion": "1", "annotations": {"slurm.nebius.ai/rebooter-nodes": "["}}}  # fmt: skip
    server.ask(DRAIN, "True", "NodeNeedDrain")
    play.look(5)

    assert not server.is_cordoned()


# ---- Dry run


def test_a_dry_run_changes_nothing(server):
    play = Play(server, is_dry_run=True)
    server.pods = [pod("web")]
    server.ask(REBOOT, "True", "NodeNeedReboot")
    version = server.version
    play.look(10)

    assert server.version == version
    assert server.evicted == []
    assert play.machine.facts["runs"] == 0
