"""What the rebooter does next, for each thing that conditions of a Node can ask for."""

from datetime import timedelta

import pytest
from node_play import DRAIN, NOON, REBOOT, condition, pod, worker

from slurm_operator import wire
from slurm_operator.agents.rebooter.budget import Holder, Slots
from slurm_operator.agents.rebooter.decide import (
    RULES,
    Attempt,
    ChangeNode,
    ClaimSlot,
    Evict,
    Reboot,
    ReleaseSlot,
    Seen,
    SetCondition,
    decide,
)
from slurm_operator.agents.rebooter.node import MEMO, REBOOTS, Memo, Node
from slurm_operator.agents.rebooter.pods import Pod

NOW = NOON + timedelta(minutes=1)
FREE, OURS = Slots({}, 1), Slots({"a": Holder(uid="u")}, 1)
FULL, OF_ANOTHER = Slots({"b": Holder(uid="v")}, 1), Slots({"a": Holder(uid="older")}, 1)
CORDONED = {"unschedulable": True}
DRAINED = {**CORDONED, "taints": [{"key": "node.kubernetes.io/NoExecute", "value": "true", "effect": "NoExecute"}]}  # fmt: skip
REQUEST = "2026-01-01T12:00:00Z"

NEED_DRAIN = condition(DRAIN, "True", "NodeNeedDrain")
IS_DRAINED = condition(DRAIN, "True", "NodeDrained", message="No pods are left, except those that stay on every Kubernetes node.")  # fmt: skip
NEED_REBOOT = condition(REBOOT, "True", "NodeNeedReboot")
READY = condition("Ready", "True", "KubeletReady")
NOTED = Memo(request=REQUEST, boot_id="now")
AT_WORK = Memo(began=True, cordoned=True)
FOR_REBOOT = Memo(began=True, cordoned=True, tainted=True, own_drain=True, told=True, request=REQUEST, boot_id="now")  # fmt: skip


def node(*conditions, spec=None, memo=None, reboots="", boot_id="now", **metadata) -> Node:
    notes = {MEMO: wire.encode(memo).decode()} if memo is not None else {}
    notes |= {REBOOTS: reboots} if reboots else {}
    meta = {"name": "a", "uid": "u", "annotations": notes, **metadata}
    status = {"conditions": [READY, *conditions], "nodeInfo": {"bootID": boot_id}}
    return wire.convert({"metadata": meta, "spec": spec or {}, "status": status}, Node)


def seen(node: Node, *pods, slots=OURS, boot_id="now", booted=timedelta(days=-1), attempts=None) -> Seen:
    return Seen(
        node,
        boot_id,
        NOON + booted,
        pods=tuple(wire.convert(one, Pod) for one in pods),
        slots=slots,
        attempts=attempts or {},
    )


def steps(facts: Seen) -> list[str]:
    return [type(step).__name__ for step in decide(facts, NOW).steps]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(seen(node()), [ReleaseSlot], id="nothing asked, counted by an earlier agent"),
        pytest.param(seen(node(), slots=FREE), [], id="nothing asked"),
        pytest.param(seen(node(condition(DRAIN, "False", "NodeRebooted")), slots=FREE), [], id="drain taken back, nothing of ours"),
        pytest.param(seen(node(NEED_DRAIN), slots=FREE), [ClaimSlot], id="drain: first among the others"),
        pytest.param(seen(node(NEED_DRAIN), slots=OF_ANOTHER), [ClaimSlot], id="drain: an earlier Node of our name had the slot"),
        pytest.param(seen(node(NEED_DRAIN), slots=FULL), [SetCondition], id="drain: no slot"),
        pytest.param(seen(node(NEED_DRAIN)), [ChangeNode], id="drain: cordon"),
        pytest.param(seen(node(NEED_DRAIN, spec=CORDONED, memo=AT_WORK), pod("web")), [SetCondition, Evict], id="drain: evict"),
        pytest.param(seen(node(NEED_DRAIN, spec=CORDONED, memo=AT_WORK)), [ChangeNode], id="drain: empty, so taint"),
        pytest.param(seen(node(NEED_DRAIN, spec=DRAINED, memo=AT_WORK)), [SetCondition], id="drain: say so"),
        pytest.param(seen(node(IS_DRAINED, spec=DRAINED, memo=AT_WORK)), [], id="drain: stays drained"),
        pytest.param(seen(node(IS_DRAINED, spec={"taints": DRAINED["taints"]}, memo=AT_WORK)), [ChangeNode], id="drain: somebody uncordoned, so cordon again"),
        pytest.param(seen(node(IS_DRAINED, spec=DRAINED, memo=Memo(began=True, cordoned=True, tainted=True)), worker("gpu-0")), [ChangeNode], id="drain: a worker under the taint"),
        pytest.param(seen(node(condition(DRAIN, "False", "NodeRebooted"), spec=DRAINED, memo=AT_WORK)), [ChangeNode], id="taken back: uncordon"),
        pytest.param(seen(node(condition(DRAIN, "False", "NodeRebooted"), memo=Memo(began=True))), [SetCondition], id="taken back: say so"),
        pytest.param(seen(node(condition(DRAIN, "False", "NodeUndrained"), memo=Memo(began=True))), [ReleaseSlot], id="taken back: give the slot back"),
        pytest.param(seen(node(condition(DRAIN, "False", "NodeUndrained"), memo=Memo(began=True)), slots=FREE), [ChangeNode], id="taken back: forget"),
        pytest.param(seen(node(condition(DRAIN, "Unknown", "x"), spec=DRAINED, memo=AT_WORK)), [], id="unknown: neither"),
        pytest.param(seen(node(NEED_REBOOT)), [ChangeNode], id="reboot: note the boot"),
        pytest.param(seen(node(NEED_REBOOT), booted=timedelta(minutes=5)), [SetCondition], id="reboot: happened after it was asked for"),
        pytest.param(seen(node(NEED_REBOOT), booted=timedelta(seconds=30)), [ChangeNode], id="reboot: later by less than clocks differ"),
        pytest.param(seen(node({**NEED_REBOOT, "lastTransitionTime": None}), booted=timedelta(minutes=5)), [ChangeNode], id="reboot: asked for at no known time"),
        pytest.param(seen(node(NEED_REBOOT, memo=NOTED)), [ChangeNode], id="reboot: cordon"),
        pytest.param(seen(node(NEED_REBOOT, memo=NOTED), boot_id="next"), [SetCondition], id="reboot: another boot than noted"),
        pytest.param(seen(node(NEED_REBOOT, IS_DRAINED, spec=DRAINED, memo=FOR_REBOOT)), [ChangeNode, SetCondition, Reboot], id="reboot: empty"),
        pytest.param(seen(node(NEED_REBOOT, IS_DRAINED, spec=DRAINED, memo=wire.replace(FOR_REBOOT, attempted_at=NOON))), [], id="reboot: under way"),
        pytest.param(seen(node(NEED_REBOOT, IS_DRAINED, spec=DRAINED, memo=wire.replace(FOR_REBOOT, attempted_at=NOON - timedelta(hours=1)))), [ChangeNode, SetCondition, Reboot], id="reboot: did not happen"),
        pytest.param(seen(node(NEED_REBOOT, memo=NOTED, reboots=",".join([REQUEST] * 3))), [SetCondition], id="reboot: too often"),
        pytest.param(seen(node(NEED_REBOOT, memo=NOTED, reboots="rubbish")), [ChangeNode], id="reboot: notes that nobody can read"),
        pytest.param(seen(node(condition(REBOOT, "True", "NodeRebooted"), IS_DRAINED, spec=DRAINED, memo=FOR_REBOOT), boot_id="next"), [ChangeNode], id="rebooted: note the answer"),
        pytest.param(seen(node(condition(REBOOT, "True", "NodeRebooted"), IS_DRAINED, spec=DRAINED, memo=wire.replace(FOR_REBOOT, answered=True)), boot_id="next"), [], id="rebooted: the kubelet is not ready yet"),
        pytest.param(seen(node(condition(REBOOT, "True", "NodeRebooted"), IS_DRAINED, spec=DRAINED, boot_id="next", memo=wire.replace(FOR_REBOOT, answered=True)), boot_id="next"), [ChangeNode], id="rebooted: uncordon"),
        pytest.param(seen(node(spec=DRAINED, memo=wire.replace(FOR_REBOOT, attempted_at=NOON))), [], id="taken back while the machine goes down"),
        pytest.param(seen(node(NEED_DRAIN, memo=AT_WORK, deletionTimestamp="2026-01-01T12:00:00Z")), [], id="the Node is deleted"),
    ],
)  # fmt: skip
def test_next(facts, expected):
    assert steps(facts) == [step.__name__ for step in expected]


def test_every_rule_decides_something_in_the_table():
    """So that no rule can be taken out without a test that fails."""
    [mark] = test_next.pytestmark
    deciding = set()
    for case in mark.args[1]:
        facts = case.values[0]
        deciding.add(next((rule for rule in RULES if rule(facts, NOW) is not None), None))

    # The others are in whole days: they need pods around the node, or a list that was not read.
    elsewhere = {"drain_is_asked_too", "own_drain_is_told", "pods_are_unknown", "slurmctld_is_needed"}
    assert {rule.__name__ for rule in RULES} - {rule.__name__ for rule in deciding if rule} == elsewhere


@pytest.mark.parametrize(
    ("one", "stays"),
    [
        pytest.param(pod("web"), False, id="any pod"),
        pytest.param(pod("done", status={"phase": "Succeeded"}), True, id="ended"),
        pytest.param(pod("mirror", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}), True, id="static"),
        pytest.param(pod("agent", metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}), True, id="of a DaemonSet"),
        pytest.param(pod("tough", spec={"tolerations": [{"operator": "Exists"}]}), True, id="tolerates everything"),
        pytest.param(pod("tough", spec={"tolerations": [{"key": "node.kubernetes.io/NoExecute", "operator": "Exists", "effect": "NoExecute"}]}), True, id="tolerates the taint"),
        pytest.param(pod("tough", spec={"tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]}), False, id="tolerates it for a while"),
        pytest.param(pod("silent", spec={"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]}), False, id="tolerates another taint"),
        pytest.param(worker("gpu-0", spec={"tolerations": [{"operator": "Exists"}]}), False, id="a worker, whatever it tolerates"),
        pytest.param(pod("gpu-0", labels={"slurm.nebius.ai/worker": "true"}, spec={"tolerations": [{"operator": "Exists"}]}), False, id="a worker of Soperator"),
        pytest.param(worker("gpu-0", metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}), False, id="a worker of a DaemonSet"),
    ],
)  # fmt: skip
def test_pods_that_stay(one, stays):
    assert wire.convert(one, Pod).stays is stays


def test_a_pod_is_not_asked_again_at_once():
    facts = node(NEED_DRAIN, spec=CORDONED, memo=AT_WORK)
    refused = {"uid-web": Attempt(NOW - timedelta(seconds=5), "not now")}

    assert steps(seen(facts, pod("web"), attempts=refused)) == ["SetCondition"]
    assert steps(
        seen(facts, pod("web"), attempts={"uid-web": Attempt(NOW - timedelta(seconds=20), "no")})
    ) == ["SetCondition", "Evict"]


def test_a_terminating_pod_is_waited_for_and_named():
    leaving = pod("web", metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})
    [told] = decide(seen(node(NEED_DRAIN, spec=CORDONED, memo=AT_WORK), leaving), NOW).steps

    assert told.message == "Waiting for 1 pod to leave: slurm/web is terminating."


def test_many_pods_are_counted():
    pods = [pod(f"web-{number}") for number in range(5)]
    told = decide(seen(node(NEED_DRAIN, spec=CORDONED, memo=AT_WORK), *pods), NOW).steps[0]

    assert told.message == "Waiting for 5 pods to leave: slurm/web-0; slurm/web-1; slurm/web-2; and 2 more."
