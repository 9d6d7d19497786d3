import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.slurm.states import (
    OCCUPYING,
    TERMINAL,
    JobState,
    NodeState,
)

NODES = [
    # words, busy, drain, drained, draining
    ("IDLE", False, False, False),
    ("MIXED", True, False, False),
    ("ALLOCATED", True, False, False),
    ("IDLE+COMPLETING", True, False, False),
    ("IDLE+DRAIN", False, True, True),
    ("MIXED+DRAIN", True, True, False),
    ("ALLOCATED+DRAIN", True, True, False),
    ("IDLE+DRAIN+COMPLETING", True, True, False),
    ("IDLE+DRAIN+UNDRAIN", False, False, False),
    ("DOWN", False, False, False),
    ("DOWN+DRAIN", False, True, True),
    ("DOWN+NOT_RESPONDING", False, False, False),
    ("IDLE+DYNAMIC_NORM", False, False, False),
    ("IDLE+DRAIN+DYNAMIC_NORM+INVALID_REG", False, True, True),
    ("IDLE+DRAIN+SPARKLING", False, True, True),
    ("SPARKLING+DRAIN", False, True, False),
]


@pytest.mark.parametrize(("words", "busy", "drain", "drained"), NODES, ids=[n[0] for n in NODES])
def test_a_node_is_drained_only_when_drain_is_set_and_nothing_runs(words, busy, drain, drained):
    state = NodeState.read(words.split("+"))

    assert (state.is_busy, state.is_drain, state.is_drained) == (busy, drain, drained)


NOTIONS = [
    ("DOWN+NOT_RESPONDING", {"is_down", "is_unresponsive", "is_defunct"}),
    ("IDLE+NOT_RESPONDING", {"is_idle", "is_unresponsive"}),
    ("DOWN", {"is_down"}),
    ("IDLE", {"is_idle", "is_available"}),
    ("MIXED+DYNAMIC_NORM", {"is_busy", "is_available", "is_dynamic"}),
    ("IDLE+COMPLETING", {"is_busy", "is_available"}),
    ("IDLE+FAIL", {"is_idle", "is_failing"}),
    ("ERROR", {"is_failing"}),
    ("IDLE+DRAIN+INVALID_REG", {"is_idle", "is_drain", "is_drained", "is_invalid"}),
    ("IDLE+MAINTENANCE+RESERVED", {"is_idle", "is_available", "is_in_maintenance"}),
    ("IDLE+CLOUD+POWERED_DOWN", {"is_idle", "is_powered_off"}),
    ("IDLE+DRAIN+REBOOT_REQUESTED", {"is_idle", "is_drain", "is_drained"}),
    ("IDLE+REBOOT_REQUESTED+REBOOT_CANCELED", {"is_idle", "is_available"}),
    ("FUTURE+DYNAMIC_FUTURE", {"is_dynamic"}),
    ("", set()),
    ("SPARKLING", set()),
]


@pytest.mark.parametrize(("words", "true"), NOTIONS, ids=[n[0] or "nothing" for n in NOTIONS])
def test_each_notion_of_a_node_state_holds_exactly_when_it_should(words, true):
    state = NodeState.read(words.split("+") if words else [])

    assert {name for name in dir(NodeState) if name.startswith("is_") and getattr(state, name)} == true


@given(st.sets(st.one_of(st.sampled_from(sorted(NodeState.KNOWN)), st.text(min_size=1, max_size=8))))
def test_any_words_make_a_node_state_and_none_is_lost(words):
    state = NodeState.read(words)

    assert state.words == {word.upper() for word in words}
    assert state.base is None or state.base in NodeState.BASES
    assert not (state.is_drained and state.is_busy)
    assert state.is_drain or not state.is_drained
    assert all(word.upper() in str(state) for word in words)


@pytest.mark.parametrize("base", sorted(TERMINAL))
@pytest.mark.parametrize("flag", sorted(OCCUPYING))
def test_an_ended_job_that_still_occupies_its_node_is_unfinished(base, flag):
    assert JobState.of(base).is_finished
    assert JobState.of(base, flag).is_unfinished
    assert JobState.of(base, flag).holds_node


JOBS = [
    # words, finished, holds a node
    ("PENDING", False, False),
    ("PENDING+REQUEUED", False, False),
    ("PENDING+REQUEUE_HOLD", False, False),
    ("PENDING+COMPLETING", False, True),
    ("PENDING+SPARKLING", False, True),
    ("RUNNING", False, True),
    ("RUNNING+CONFIGURING", False, True),
    ("RUNNING+STOPPED", False, True),
    ("SUSPENDED", False, True),
    ("COMPLETED", True, False),
    ("CANCELLED", True, False),
    ("NODE_FAIL+REQUEUED", True, False),
    ("CANCELLED+REVOKED", True, False),
    ("FAILED+LAUNCH_FAILED", True, False),
    ("COMPLETED+SPARKLING", False, True),
    ("COMPLETED+RUNNING", False, True),
    ("SPARKLING", False, True),
    ("COMPLETING", False, True),
    ("", False, True),
]


@pytest.mark.parametrize(("words", "finished", "holds"), JOBS, ids=[j[0] or "nothing" for j in JOBS])
def test_only_a_surely_ended_job_lets_its_node_go(words, finished, holds):
    state = JobState.read(words.split("+") if words else [])

    assert (state.is_finished, state.is_unfinished, state.holds_node) == (finished, not finished, holds)


@given(st.sets(st.one_of(st.sampled_from(sorted(JobState.KNOWN)), st.text(min_size=1, max_size=8))))
def test_any_words_make_a_job_state_and_none_is_lost(words):
    state = JobState.read(words)

    assert state.words == {word.upper() for word in words}
    assert state.base is None or state.base in JobState.BASES
    assert state.is_finished != state.is_unfinished
    assert not (state.is_finished and state.holds_node)
    assert not (state.is_pending and state.holds_node)


def test_states_are_written_the_way_scontrol_does():
    assert str(NodeState.of("DRAIN", "IDLE", "DYNAMIC_NORM")) == "IDLE+DRAIN+DYNAMIC_NORM"
    assert str(JobState.of("COMPLETING", "CANCELLED")) == "CANCELLED+COMPLETING"


def test_words_of_a_newer_slurm_are_told_apart():
    assert NodeState.of("IDLE", "SPARKLING").unknown_words == {"SPARKLING"}
    assert JobState.of("RUNNING", "GLOWING").unknown_words == {"GLOWING"}
