import pytest

from slurm_operator import wire
from slurm_operator.safety.write_screening import needs_fresh_nodes, screen
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurm.writes import (
    AddNodes,
    DeleteNodes,
    DrainNodes,
    ExplainNodes,
    NodeWrite,
    PowerNodes,
    ResumeNodes,
    SetNodesDown,
    UpdateNodes,
    Verdict,
)

OURS = "slurm-operator: ScaleIn"
THEIRS = "bad fan, ask Mara"
LOST = "Not responding"


def node(*words: str, reason: str = "", by: str = "mara") -> SlurmNode:
    return SlurmNode(name="n", state=NodeState.of(*words), reason=reason, reason_set_by=by)


def commented(comment: str) -> SlurmNode:
    return wire.replace(node("IDLE"), comment=comment)


def featured(features: str, active: str | None = None) -> SlurmNode:
    there, switched_on = features.split(), (features if active is None else active).split()
    return wire.replace(node("IDLE"), features=tuple(there), active_features=tuple(switched_on))


COMMENT = UpdateNodes(nodes=("n",), comment="our new one", comment_over="our old one")
FEATURES = UpdateNodes(
    nodes=("n",), features=("gpu", "k8s/nvme", "mode"), active_features=("gpu", "k8s/nvme")
)
DRAIN = DrainNodes(nodes=("n",), reason=OURS)
DRAIN_IDLE = DrainNodes(nodes=("n",), reason=OURS, unless_in_use=True)
DRAIN_LOST = DrainNodes(nodes=("n",), reason=OURS, over=frozenset({LOST}))
DRAIN_ANEW = DrainNodes(nodes=("n",), reason=OURS, over=frozenset({"slurm-operator: NodeCordon"}))
DOWN = SetNodesDown(nodes=("n",), reason=OURS)
EXPLAIN = ExplainNodes(nodes=("n",), reason=OURS, over=frozenset({LOST}))
RESUME = ResumeNodes(nodes=("n",))
RESUME_LOST = ResumeNodes(nodes=("n",), over=frozenset({LOST}), from_down=True)
RESUME_KILL = ResumeNodes(nodes=("n",), over=frozenset({"Kill task failed"}))
DELETE = DeleteNodes(nodes=("n",))
ADD = AddNodes(nodes=("n",), conf="State=CLOUD")
UPDATE = UpdateNodes(nodes=("n",), weight=7)
SEND = None


@pytest.mark.parametrize(
    ("write", "seen", "verdict"),
    [
        pytest.param(EXPLAIN, node("DOWN", reason=LOST, by="slurm"), SEND, id="explain: Slurm's own word"),
        pytest.param(EXPLAIN, node("DOWN", reason=THEIRS), Verdict.FOREIGN, id="explain: a manual state"),
        pytest.param(EXPLAIN, node("DOWN"), Verdict.FOREIGN, id="explain: down by somebody, without a word"),
        pytest.param(EXPLAIN, node("IDLE", reason=LOST), Verdict.ALREADY, id="explain: it is up again"),
        pytest.param(EXPLAIN, node("DOWN", reason=OURS), Verdict.ALREADY, id="explain: said before"),
        pytest.param(DRAIN, node("IDLE"), SEND, id="drain: an idle node"),
        pytest.param(DRAIN, node("MIXED"), SEND, id="drain: a busy node"),
        pytest.param(
            DRAIN, node("IDLE", "DRAIN", reason=OURS), Verdict.ALREADY, id="drain: ours keeps its clock"
        ),
        pytest.param(
            DRAIN,
            node("IDLE", "DRAIN", reason="slurm-operator: other cause"),
            Verdict.ALREADY,
            id="drain: another of ours",
        ),
        pytest.param(
            DRAIN_ANEW,
            node("MIXED", "DRAIN", reason="slurm-operator: NodeCordon"),
            SEND,
            id="drain: ours, untrue",
        ),
        pytest.param(
            DRAIN_ANEW, node("MIXED", "DRAIN", reason=THEIRS), Verdict.FOREIGN, id="drain: theirs meanwhile"
        ),
        pytest.param(DRAIN, node("IDLE", "DRAIN", reason=THEIRS), Verdict.FOREIGN, id="drain: a human's"),
        pytest.param(DRAIN, node("IDLE", "DRAIN"), Verdict.FOREIGN, id="drain: a human's without a reason"),
        pytest.param(DRAIN, node("DOWN", reason=LOST), Verdict.FOREIGN, id="drain: down with a reason"),
        pytest.param(DRAIN_LOST, node("DOWN", reason=LOST), SEND, id="drain: over a reason that was named"),
        pytest.param(
            DRAIN_LOST, node("DOWN", reason=THEIRS), Verdict.FOREIGN, id="drain: another than named"
        ),
        pytest.param(DRAIN, node("IDLE", reason=OURS), SEND, id="drain: our own old reason"),
        pytest.param(DRAIN_IDLE, node("MIXED"), Verdict.LATE, id="drain: it has come back in the meantime"),
        pytest.param(DRAIN_IDLE, node("IDLE", "NOT_RESPONDING"), SEND, id="drain: it is still away"),
        pytest.param(DRAIN, None, Verdict.UNKNOWN, id="drain: nobody"),
        pytest.param(
            DELETE, node("IDLE", "DRAIN", reason="Low CPUs", by="slurm"), SEND, id="delete: slurmctld's drain"
        ),
        pytest.param(
            DELETE,
            node("IDLE", "DRAIN", reason="Low CPUs"),
            Verdict.FOREIGN,
            id="delete: a human's, in its words",
        ),
        pytest.param(
            DELETE, node("DOWN", "DRAIN", reason=LOST), Verdict.FOREIGN, id="delete: drained, then lost"
        ),
        pytest.param(RESUME, node("IDLE", "DRAIN", reason=OURS), SEND, id="resume: our drain"),
        pytest.param(RESUME, node("IDLE"), Verdict.ALREADY, id="resume: not drained"),
        pytest.param(RESUME, node("IDLE", "DRAIN", reason=THEIRS), Verdict.FOREIGN, id="resume: a human's"),
        pytest.param(RESUME, node("IDLE", "DRAIN"), Verdict.FOREIGN, id="resume: no reason is not ours"),
        pytest.param(
            RESUME_KILL, node("IDLE", "DRAIN", reason="Kill task failed"), SEND, id="resume: slurmd's"
        ),
        pytest.param(RESUME, None, Verdict.UNKNOWN, id="resume: nobody"),
        pytest.param(RESUME, node("DOWN", reason=OURS), Verdict.ALREADY, id="resume: down is not drained"),
        pytest.param(RESUME_LOST, node("DOWN", reason=LOST), SEND, id="resume from down: lost"),
        pytest.param(RESUME_LOST, node("DOWN", reason=OURS), SEND, id="resume from down: with our reason"),
        pytest.param(
            RESUME_LOST, node("DOWN", reason=THEIRS), Verdict.FOREIGN, id="resume from down: a human's"
        ),
        pytest.param(RESUME_LOST, node("DOWN"), Verdict.FOREIGN, id="resume from down: without a reason"),
        pytest.param(RESUME_LOST, node("IDLE"), Verdict.ALREADY, id="resume from down: in service"),
        pytest.param(DOWN, node("IDLE"), SEND, id="down: a node"),
        pytest.param(DOWN, node("DOWN", reason=LOST), Verdict.ALREADY, id="down: already"),
        pytest.param(DOWN, node("IDLE", "DRAIN", reason=THEIRS), Verdict.FOREIGN, id="down: a human's drain"),
        pytest.param(DELETE, node("IDLE", "DRAIN", reason=OURS), SEND, id="delete: our drain"),
        pytest.param(
            DELETE, node("IDLE", "DRAIN", reason=THEIRS), Verdict.FOREIGN, id="delete: a human's drain"
        ),
        pytest.param(DELETE, node("DOWN", reason=LOST), SEND, id="delete: lost"),
        pytest.param(DELETE, None, Verdict.ALREADY, id="delete: gone already"),
        pytest.param(ADD, None, SEND, id="add: nobody has this name"),
        pytest.param(ADD, node("IDLE"), Verdict.ALREADY, id="add: whoever made it, it is used"),
        pytest.param(ADD, node("DOWN", "DRAIN", reason=THEIRS), Verdict.ALREADY, id="add: as it is"),
        pytest.param(UPDATE, node("IDLE", "DRAIN", reason=THEIRS), SEND, id="update: not about the drain"),
        pytest.param(UPDATE, None, Verdict.UNKNOWN, id="update: nobody"),
        pytest.param(COMMENT, node("IDLE"), SEND, id="comment: none there"),
        pytest.param(COMMENT, commented("our old one"), SEND, id="comment: the one we saw"),
        pytest.param(
            COMMENT, commented("flaky NIC, ask Mara"), Verdict.FOREIGN, id="comment: a human's, since"
        ),
        pytest.param(FEATURES, featured("gpu mode", "gpu"), SEND, id="features: ours come beside the others"),
        pytest.param(FEATURES, featured("gpu mode k8s/old", "gpu k8s/old"), SEND, id="features: ours go"),
        pytest.param(
            FEATURES, featured("gpu mode test", "gpu test"), Verdict.LATE, id="features: a human's, since"
        ),
        pytest.param(FEATURES, featured("gpu mode"), Verdict.LATE, id="features: a human switched one on"),
        pytest.param(FEATURES, featured("gpu", "gpu"), Verdict.LATE, id="features: a human took one away"),
    ],
)
def test_a_write_touches_only_what_it_may(
    write: NodeWrite, seen: SlurmNode | None, verdict: Verdict | None
) -> None:
    found = screen(write, {} if seen is None else {"n": seen})

    assert found.send == (("n",) if verdict is SEND else ())
    assert {name: answer.verdict for name, answer in found.answers.items()} == (
        {} if verdict is SEND else {"n": verdict}
    )


def test_a_refusal_says_who_and_why() -> None:
    found = screen(DRAIN, {"n": node("IDLE", "DRAIN", reason=THEIRS)})

    assert found.answers["n"].message == "n was drained by mara with the reason 'bad fan, ask Mara'"


def test_the_others_go_on() -> None:
    nodes = {"a": wire.replace(node("IDLE"), name="a"), "n": node("IDLE", "DRAIN", reason=THEIRS)}

    found = screen(DrainNodes(nodes=("n", "a", "gone", "a"), reason=OURS), nodes)

    assert found.send == ("a",)
    assert set(found.answers) == {"n", "gone"}


@pytest.mark.parametrize(
    ("write", "fresh"),
    [
        (DRAIN, True),
        (RESUME, True),
        (DOWN, True),
        (DELETE, True),
        (ADD, True),
        (UPDATE, False),
        (COMMENT, True),
        (FEATURES, True),
        (PowerNodes(nodes=("n",), up=True), False),
    ],
)
def test_what_depends_on_others_is_read_right_before(write: NodeWrite, fresh: bool) -> None:
    assert needs_fresh_nodes(write) is fresh
