"""Which nodes a write may touch, given the nodes as they are right now.

Slurm has no compare-and-set: a second drain replaces the reason, whoever set it, and restarts its clock.
So whoever sends a write asks here first, with a node list that is as fresh as can be.
"""

from collections.abc import Mapping
from typing import NamedTuple

from slurm_operator.slurm.features import others
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import is_our_reason
from slurm_operator.slurm.writes import (
    AddNodes,
    Answer,
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


class Screened(NamedTuple):
    """`send` are the nodes to go on with; the others have their answer."""

    send: tuple[str, ...]
    answers: dict[str, Answer]


def screen(write: NodeWrite, nodes: Mapping[str, SlurmNode]) -> Screened:
    """What is left of a write when nothing is sent that is so already, forbidden, or about nobody."""
    answers: dict[str, Answer] = {}
    send: list[str] = []
    for name in dict.fromkeys(write.nodes):
        answer = _answer(write, name, nodes.get(name))
        if answer is None:
            send.append(name)
        else:
            answers[name] = answer
    return Screened(tuple(send), answers)


def needs_fresh_nodes(write: NodeWrite) -> bool:
    """Whether the answer depends on what others may have done a second ago."""
    match write:
        case UpdateNodes(comment=comment, features=features, active_features=active):
            return comment is not None or features is not None or active is not None
        case _:
            return not isinstance(write, PowerNodes)


def _answer(write: NodeWrite, name: str, node: SlurmNode | None) -> Answer | None:
    """An answer that needs no sending; None when the write may go ahead."""
    if node is None:
        return None if isinstance(write, AddNodes) else _about_nobody(write, name)
    match write:
        case DrainNodes(over=over, unless_in_use=unless_in_use):
            if node.is_drained_by_us and node.reason not in over:
                return Answer(verdict=Verdict.ALREADY)
            if unless_in_use and node.state.is_available:
                return Answer(verdict=Verdict.LATE, message=f"{name} takes jobs again; it waits for its turn")
            return _foreign(node, over) if node.is_drained_by_others or node.reason else None
        case SetNodesDown(over=over):
            if node.state.is_down:
                return Answer(verdict=Verdict.ALREADY)
            return _foreign(node, over) if node.is_drained_by_others or node.reason else None
        case ResumeNodes(over=over, from_down=from_down):
            if not (node.state.is_drain or (from_down and node.state.is_down)):
                return Answer(verdict=Verdict.ALREADY)
            return _foreign(node, over)
        case ExplainNodes(reason=reason, over=over):
            if node.reason == reason or not node.state.is_down:
                return Answer(verdict=Verdict.ALREADY)
            return _foreign(node, over)
        case AddNodes():
            return Answer(verdict=Verdict.ALREADY)
        case DeleteNodes():
            return _foreign(node, frozenset()) if node.is_drained_by_people else None
        case UpdateNodes(comment=str(), comment_over=over) if node.comment not in ("", over, write.comment):
            message = f"{name} has the comment {node.comment!r} by now, which is not ours to replace"
            return Answer(verdict=Verdict.FOREIGN, message=message)
        case UpdateNodes() if _changes_features_of_others(write, node):
            message = f"somebody changed the features of {name} a moment ago; it is looked at again"
            return Answer(verdict=Verdict.LATE, message=message)
        case UpdateNodes() | PowerNodes():
            return None


def _changes_features_of_others(write: UpdateNodes, node: SlurmNode) -> bool:
    """Slurm takes whole lists only, and this one was made when others were there."""
    lists = ((write.features, node.features), (write.active_features, node.active_features))
    return any(wanted is not None and others(wanted) != others(there) for wanted, there in lists)


def _about_nobody(write: NodeWrite, name: str) -> Answer:
    if isinstance(write, DeleteNodes):
        return Answer(verdict=Verdict.ALREADY)
    return Answer(verdict=Verdict.UNKNOWN, message=f"Slurm knows no node {name}")


def _foreign(node: SlurmNode, over: frozenset[str]) -> Answer | None:
    """Refuses to touch what others said about the node, unless that was allowed word for word."""
    if is_our_reason(node.reason) or node.reason in over:
        return None
    who = f" by {node.reason_set_by}" if node.reason_set_by else ""
    what = f"with the reason {node.reason!r}" if node.reason else "without a reason"
    state = "drained" if node.state.is_drain else "marked"
    return Answer(verdict=Verdict.FOREIGN, message=f"{node.name} was {state}{who} {what}")
