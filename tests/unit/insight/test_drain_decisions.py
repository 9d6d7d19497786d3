"""A human's drain: what is sent, what is left alone, and what people are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.insight.drain.decide import (
    DRAINED,
    UNDRAINED,
    NoSuchWorker,
    Outcome,
    chosen,
    draining,
    human_reason,
    is_by,
    outcomes,
    outcomes_text,
    undraining,
)
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import MAX_REASON_CHARACTERS, is_our_reason
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import Answer, Verdict
from testing.workers import job, slurm, slurm_node, worker

OPERATORS = "slurm-operator: ScaleIn: leaving the NodeSet (pod 4f1c-aa)"


def node(*words: str, reason: str = "", by: str = "slurm") -> SlurmNode:
    return SlurmNode(name="gpu-0", state=NodeState.of(*words), reason=reason, reason_set_by=by)


@pytest.mark.parametrize(
    ("there", "force", "verdict"),
    [
        pytest.param(node("IDLE"), False, None, id="a free node is drained"),
        pytest.param(node("MIXED"), False, None, id="a busy one too: its jobs go on"),
        pytest.param(node("DOWN", reason="Not responding"), False, None, id="a lost one too"),
        pytest.param(node("IDLE", "DRAIN", reason="ada: cable"), False, Verdict.ALREADY, id="the same drain again"),
        pytest.param(node("IDLE", "DRAIN", reason="bob: disk"), False, Verdict.FOREIGN, id="another's keeps its reason"),
        pytest.param(node("IDLE", "DRAIN", reason="bob: disk"), True, None, id="forced: replaced"),
        pytest.param(node("IDLE", "DRAIN", reason=OPERATORS), False, Verdict.FOREIGN, id="the operator's keeps its reason"),
        pytest.param(node("IDLE", "DRAIN", reason=OPERATORS), True, None, id="forced: becomes a human's"),
        pytest.param(node("IDLE", "DRAIN"), False, Verdict.FOREIGN, id="a drain without a reason is somebody's"),
        pytest.param(None, True, Verdict.UNKNOWN, id="Slurm does not know it"),
    ],
)  # fmt: skip
def test_a_drain_never_writes_over_somebody_elses_unless_forced(there, force, verdict):
    nodes = {"gpu-0": there} if there is not None else {}

    decision = draining(("gpu-0",), nodes, "ada: cable", force=force)

    assert (decision.write is None) == (verdict is not None)
    assert [answer.verdict for answer in decision.answers.values()] == ([verdict] if verdict else [])
    if decision.write is not None:
        assert (decision.write.nodes, decision.write.reason) == (("gpu-0",), "ada: cable")


@pytest.mark.parametrize(
    ("there", "force", "verdict"),
    [
        pytest.param(node("IDLE", "DRAIN", reason="ada: cable"), False, None, id="my own"),
        pytest.param(node("IDLE", "DRAIN", reason="adam: cable"), False, Verdict.FOREIGN, id="somebody whose name starts like mine"),
        pytest.param(node("IDLE", "DRAIN", reason="bad disk", by="root"), False, Verdict.FOREIGN, id="somebody with scontrol"),
        pytest.param(node("IDLE", "DRAIN", reason="bad disk", by="root"), True, None, id="forced"),
        pytest.param(node("IDLE", "DRAIN", reason=OPERATORS), False, Verdict.FOREIGN, id="the operator's"),
        pytest.param(node("IDLE", "DRAIN", reason="Kill task failed", by="root"), False, Verdict.FOREIGN, id="Slurm's own"),
        pytest.param(node("IDLE"), False, Verdict.ALREADY, id="not drained at all"),
        pytest.param(None, True, Verdict.UNKNOWN, id="Slurm does not know it"),
    ],
)  # fmt: skip
def test_only_my_own_drain_is_lifted_unless_forced(there, force, verdict):
    nodes = {"gpu-0": there} if there is not None else {}

    decision = undraining(("gpu-0",), nodes, "ada", force=force)

    assert (decision.write is None) == (verdict is not None)
    assert [answer.verdict for answer in decision.answers.values()] == ([verdict] if verdict else [])


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            node("IDLE", "DRAIN", reason="bad disk", by="root"),
            "is drained by root with the reason 'bad disk'.",
        ),
        (
            node("IDLE", "DRAIN", reason="bob: disk"),
            "is drained by bob with the reason 'disk'. You are 'ada'.",
        ),
        (node("IDLE", "DRAIN", by="root"), "is drained by root without a reason."),
        (node("IDLE", "DRAIN", reason="Kill task failed", by="root"), "is drained by Slurm itself"),
        (
            node("IDLE", "DRAIN", reason=OPERATORS),
            "is drained by the operator with the reason 'slurm-operator: ScaleIn: leaving the NodeSet'.",
        ),
    ],
)
def test_a_refusal_says_whose_drain_it_is(there, words):
    decision = undraining(("gpu-0",), {"gpu-0": there}, "ada")

    assert words in decision.answers["gpu-0"].message
    assert "--force" in decision.answers["gpu-0"].message


def test_one_refused_node_does_not_hold_up_the_others():
    nodes = {
        "a": SlurmNode(name="a", state=NodeState.of("IDLE", "DRAIN"), reason="ada: x"),
        "b": SlurmNode(name="b", state=NodeState.of("IDLE", "DRAIN"), reason="bob: x"),
    }

    decision = undraining(("a", "b", "c"), nodes, "ada")

    assert decision.write.nodes == ("a",)
    assert {name: answer.verdict for name, answer in decision.answers.items()} == {
        "b": Verdict.FOREIGN,
        "c": Verdict.UNKNOWN,
    }


@given(st.text(), st.text())
def test_whatever_people_are_called_their_reason_is_theirs_and_never_the_operators(user, text):
    reason = human_reason(user, text)

    assert not is_our_reason(reason)
    assert reason.isprintable()
    assert len(reason) <= MAX_REASON_CHARACTERS
    if len(user) < 100:
        assert is_by(user, reason)


def test_workers_are_named_as_hostlists_as_pods_and_by_their_machine():
    pods = [worker(0, on="m1"), worker(1, on="m2"), worker(2, on="m2", hostname="odd-name")]

    assert chosen(["gpu-[0-1]", "gpu-0"], [], pods) == ("gpu-0", "gpu-1")
    assert chosen(["pod/gpu-2"], [], pods) == ("odd-name",)
    assert chosen(["gpu-1"], ["m2"], pods) == ("gpu-1", "odd-name")
    with pytest.raises(NoSuchWorker, match="no worker on the Kubernetes node m9"):
        chosen([], ["m9"], pods)
    with pytest.raises(NoSuchWorker, match="no worker pod login"):
        chosen(["pod/login"], [], pods)


def test_people_hear_which_jobs_go_on_and_when_a_node_takes_jobs_again():
    pod = worker(0)
    after = slurm(slurm_node(pod, "MIXED", "DRAIN"), jobs=[job(7, "gpu-0"), job(8, "gpu-0")])
    [drained] = outcomes(["gpu-0"], {"gpu-0": Answer(verdict=Verdict.DONE)}, after)

    assert outcomes_text([drained], DRAINED).plain == "gpu-0 drained; 2 jobs still there: 7, 8.\n"
    assert (
        outcomes_text([Outcome(node="a", verdict=Verdict.DONE)], DRAINED).plain
        == "a drained; no job is there.\n"
    )
    lines = {
        "IDLE": "a undrained; jobs can start there.\n",
        "IDLE+NOT_RESPONDING": "a undrained; jobs start as soon as it has answered slurmctld.\n",
        "DOWN": "a undrained, but it is down; `kubectl slurm status` says why.\n",
    }
    for state, line in lines.items():
        assert outcomes_text([Outcome(node="a", verdict=Verdict.DONE, state=state)], UNDRAINED).plain == line
