from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import (
    MAX_REASON_CHARACTERS,
    OUR_REASON_PREFIX,
    OurReason,
    author,
    is_node_controllers_drain,
    is_our_reason,
    is_slurms_own_drain,
    is_slurms_own_reason,
)
from slurm_operator.slurm.states import NodeState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("slurm-operator: ScaleIn: leaving the NodeSet (pod 1)", True),
        ("slurm-operator: Pod is terminating", True),
        ("", False),
        ("slurm-operator", False),
        ("Slurm-Operator: x", False),
        (" slurm-operator: x", False),
        ("broken fan", False),
        ("Kill task failed", False),
    ],
)
def test_a_drain_is_ours_only_when_its_reason_begins_with_our_name(reason, ours):
    assert is_our_reason(reason) == ours
    assert (OurReason.read(reason) is not None) == ours


@pytest.mark.parametrize(
    ("reason", "set_by", "own"),
    [
        ("Kill task failed", "root", True),
        ("Kill task failed", "", True),
        ("Kill task failed", "ada", False),
        ("Low RealMemory (reported:10 < 100.00% of configured:20)", "slurm", True),
        ("Low socket*core*thread count, Low CPUs", "slurm", True),
        ("gres/gpu count reported lower than configured (0 < 4)", "slurm", True),
        ("Low CPUs, and I know why", "ada", False),
        ("Low CPUsage", "slurm", False),
        ("Not responding", "slurm", True),
        ("Not responding to anybody", "slurm", False),
        ("Epilog error again, hold for the vendor (ada)", "slurm", False),
        ("broken fan", "slurm", False),
        ("low on coffee", "slurm", False),
        ("", "slurm", False),
    ],
)
def test_what_slurm_wrote_by_itself_is_told_from_a_humans_word(reason, set_by, own):
    assert is_slurms_own_reason(reason, set_by) == own


@pytest.mark.parametrize(
    ("reason", "set_by", "is_theirs"),
    [
        ("[compute_maintenance] node reboot process", "slurm", True),
        ("[compute_maintenance] node replacement process : Not responding", "slurm", True),
        ("[node_problem] compute_maintenance: node reboot process", "root", True),
        ("[user_problem] pod_ephemeral_storage: 91% used", "slurm", True),
        ("[compute_maintenance] node reboot process", "ada", False),
        ("see [compute_maintenance] node reboot process", "slurm", False),
        ("[node_problem] gpu: Xid 79", "slurm", False),
        ("[hardware_problem] gpu: Xid 79", "slurm", False),
        ("", "slurm", False),
    ],
)
def test_a_drain_for_the_place_of_a_worker_is_told_from_a_humans_word(reason, set_by, is_theirs):
    """Such a record goes with its worker. What a check says about the hardware stays with the node."""
    record = SlurmNode(name="gpu-0", state=NodeState.of("IDLE", "DRAIN"), reason=reason, reason_set_by=set_by)

    assert is_node_controllers_drain(reason, set_by) == is_theirs
    assert record.is_drained_by_people != is_theirs


@pytest.mark.parametrize("reason", ["Not responding", "Node unexpectedly rebooted", "broken fan", ""])
def test_a_drain_beside_slurms_word_for_a_lost_node_is_somebody_elses(reason):
    assert not is_slurms_own_drain(reason, "slurm")


def test_a_reason_is_one_line_without_control_characters():
    assert str(OurReason("Why", " disk\tis\r\nfull\x07 ")) == "slurm-operator: Why: disk is  full"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            OurReason("ScaleIn", "leaving the NodeSet", "4f1c"),
            "slurm-operator: ScaleIn: leaving the NodeSet (pod 4f1c)",
        ),
        (OurReason("ScaleIn", pod_uid="4f1c"), "slurm-operator: ScaleIn (pod 4f1c)"),
        (
            OurReason("ScaleIn", "leaving", made_until=NOON),
            "slurm-operator: ScaleIn: leaving (pods made until 2026-01-01T12:00:00Z)",
        ),
        (OurReason("Pod is terminating"), "slurm-operator: Pod is terminating"),
        (OurReason("Cordon", "see (pod docs)"), "slurm-operator: Cordon: see (pod docs)"),
    ],
)
def test_a_reason_of_ours_names_cause_and_pods(reason, text):
    assert str(reason) == text
    assert OurReason.read(text) == reason


@pytest.mark.parametrize(
    "whole",
    [OurReason("Cordon", "x" * 1000, "4f1c"), OurReason("Cordon", "x" * 1000, made_until=NOON)],
    ids=["a pod", "many"],
)
def test_a_long_text_gives_way_to_the_pods(whole):
    reason = str(whole)

    assert len(reason) == MAX_REASON_CHARACTERS
    read = OurReason.read(reason)
    assert (read.pod_uid, read.made_until) == (whole.pod_uid, whole.made_until)


A_SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("reason", "made_at", "is_about"),
    [
        pytest.param(OurReason("Update", pod_uid="4f1c"), NOON, True, id="names the pod"),
        pytest.param(OurReason("Update", pod_uid="aaaa"), NOON, False, id="names the one before it"),
        pytest.param(OurReason("Update", made_until=NOON), NOON, True, id="made in that second"),
        pytest.param(OurReason("Update", made_until=NOON), NOON - A_SECOND, True, id="made before"),
        pytest.param(OurReason("Update", made_until=NOON), NOON + A_SECOND, False, id="came after the drain"),
        pytest.param(OurReason("Update", made_until=NOON), None, False, id="not made yet"),
        pytest.param(OurReason("Update"), NOON, True, id="an older wording does not tell"),
    ],
)
def test_a_drain_is_about_the_pods_that_were_there(reason, made_at, is_about):
    assert reason.is_about("4f1c", made_at) == is_about


@pytest.mark.parametrize(
    "reason", [OurReason("Update", "x", "4f1c"), OurReason("Update", "x", made_until=NOON)]
)
def test_what_slurmctld_says_behind_a_reason_of_ours_is_no_part_of_it(reason):
    """It was lost while it drained, perhaps twice."""
    assert OurReason.read(f"{reason} : Not responding") == reason
    assert OurReason.read(f"{reason} : Not responding : Node unexpectedly rebooted") == reason


def test_a_day_that_never_was_is_nothing_we_wrote():
    read = OurReason.read("slurm-operator: Update: x (pods made until 2026-02-30T12:00:00Z)")

    assert read.made_until is None


@given(st.text(), st.text(), st.uuids())
def test_any_text_makes_a_reason_of_ours_that_names_its_pod(cause, text, uid):
    reason = str(OurReason(cause, text, str(uid)))

    assert reason.startswith(OUR_REASON_PREFIX)
    assert len(reason) <= MAX_REASON_CHARACTERS
    assert reason.isprintable()
    assert OurReason.read(reason).pod_uid == str(uid)


@pytest.mark.parametrize(
    ("reason", "set_by", "found"),
    [
        pytest.param("bad NIC", "root", ("root", "bad NIC"), id="with scontrol"),
        pytest.param("grace: bad NIC", "slurm", ("grace", "bad NIC"), id="with kubectl slurm drain"),
        pytest.param("system:serviceaccount:ns:ci: test", "slurm", ("system:serviceaccount:ns:ci", "test"), id="by a program"),
        pytest.param("grace: bad NIC", "ada", ("ada", "grace: bad NIC"), id="slurmctld knows who it was"),
        pytest.param("slurm-operator: ScaleIn: leaving", "slurm", ("slurm", "slurm-operator: ScaleIn: leaving"), id="ours"),
        pytest.param("bad NIC", "slurm", ("slurm", "bad NIC"), id="unsigned"),
        pytest.param("", "", ("", ""), id="nothing at all"),
    ],
)  # fmt: skip
def test_who_gave_a_reason(reason: str, set_by: str, found: tuple[str, str]) -> None:
    assert author(reason, set_by) == found
