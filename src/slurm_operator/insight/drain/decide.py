"""`drain` and `undrain`: manual drains, which the operator never changes and never lifts.

Slurm has no compare-and-set, so everything is decided about a node list that was read a moment before.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from slurm_operator import wire
from slurm_operator.api.shared import belonging, names
from slurm_operator.insight.text.output import BAD, DIM, GOOD, Cell, counted, joined, node_state, paragraph
from slurm_operator.listing import first_few
from slurm_operator.manifests.objects import Pod
from slurm_operator.slurm.hostlist import expand
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import (
    MAX_REASON_CHARACTERS,
    OurReason,
    is_our_reason,
    sanitised,
)
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import NodeBase, NodeFlag
from slurm_operator.slurm.writes import Answer, DrainNodes, ResumeNodes, Verdict

DEFAULT_TEXT = "drained with kubectl slurm"

DRAINED, UNDRAINED = "drained", "undrained"

_SHOWN_JOBS = 8
# Whose name slurmctld notes for what comes with a token of ours.
SLURM_USER = "slurm"


class Decision(NamedTuple):
    """What is sent, if anything, and the answers for the nodes that are left alone."""

    write: DrainNodes | ResumeNodes | None
    answers: dict[str, Answer]


class Outcome(wire.Record):
    """What became of one node."""

    node: str
    verdict: Verdict
    message: str = ""
    state: str = ""
    jobs: tuple[int, ...] = ()

    @property
    def is_good(self) -> bool:
        return self.verdict in (Verdict.DONE, Verdict.ALREADY)


class NoSuchWorker(Exception):  # noqa: N818 - it says what is the case
    """Nothing here is called that."""


def human_reason(user: str, text: str) -> str:
    """A reason that starts with who set it, and cannot pass for one of the operator's."""
    reason = f"{_owner(user)}: {sanitised(text) or DEFAULT_TEXT}"
    return reason[:MAX_REASON_CHARACTERS].rstrip()


def is_by(user: str, reason: str) -> bool:
    """Whether this user gave the reason, by this command."""
    return reason.startswith(f"{_owner(user)}: ")


def chosen(words: Iterable[str], on: Sequence[str], pods: Sequence[Pod]) -> tuple[str, ...]:
    """The Slurm nodes that are meant, each once.

    `words` are hostlists (`gpu-[0-3]`) and `pod/NAME`; `on` names Kubernetes nodes, for all workers there.
    Raises NoSuchWorker, or HostlistError.
    """
    found: list[str] = []
    for word in words:
        found += [_worker(word.removeprefix("pod/"), pods)] if word.startswith("pod/") else expand(word)
    for kube_node in on:
        there = [pod for pod in pods if pod.spec.node_name == kube_node and _is_worker(pod)]
        if not there:
            raise NoSuchWorker(f"There is no worker on the Kubernetes node {kube_node}.")
        found += [slurm_name(pod) for pod in there]
    return tuple(dict.fromkeys(found))


def slurm_name(pod: Pod) -> str:
    """What Slurm calls the worker in this pod."""
    return pod.metadata.labels.get(names.LABEL_POD_HOSTNAME) or pod.spec.hostname or pod.metadata.name


def draining(
    wanted: Sequence[str], nodes: Mapping[str, SlurmNode], reason: str, *, force: bool = False
) -> Decision:
    """A node that drains already keeps its reason, unless forced: there may be somebody's plan behind it."""
    answers = {name: answer for name in wanted if (answer := _in_the_way(name, nodes, reason, force=force))}
    send = tuple(name for name in wanted if name not in answers)
    return Decision(DrainNodes(nodes=send, reason=reason) if send else None, answers)


def undraining(
    wanted: Sequence[str], nodes: Mapping[str, SlurmNode], user: str, *, force: bool = False
) -> Decision:
    """Lifts what this user drained; what others did only when forced."""
    answers = {name: answer for name in wanted if (answer := _kept(name, nodes, user, force=force))}
    send = tuple(name for name in wanted if name not in answers)
    over = frozenset(nodes[name].reason for name in send)
    return Decision(ResumeNodes(nodes=send, over=over) if send else None, answers)


def whose(node: SlurmNode) -> str:
    """Who drained it and why, in words."""
    name, why = drained_by(node)
    who = f" by {name}" if name else ""
    return f"{who} with the reason {why!r}" if why else f"{who} without a reason"


def drained_by(node: SlurmNode) -> tuple[str, str]:
    """Who drained it, as people call them, and why. An empty name is nobody that we know of."""
    if node.is_marked_by_slurm:
        return "Slurm itself", node.reason
    if is_our_reason(node.reason):
        return "the operator", reason_text(node)
    who, why = node.reason_by
    return ("" if who == SLURM_USER else who), why


def reason_text(node: SlurmNode) -> str:
    """The reason of a drain without what only programs need."""
    ours = OurReason.read(node.reason)
    return str(OurReason(cause=ours.cause, text=ours.text)) if ours is not None else node.reason


def outcomes(
    wanted: Sequence[str], answers: Mapping[str, Answer], snapshot: Snapshot | None
) -> list[Outcome]:
    """One for each node, with what is there after the write."""
    return [_outcome(name, answers[name], snapshot) for name in wanted]


def outcomes_text(found: Sequence[Outcome], done: str) -> Text:
    """A line for each node: what became of it, and which jobs go on there."""
    return joined(_outcome_text(one, done) for one in found)


def _outcome_text(one: Outcome, done: str) -> Text:
    if one.verdict is not Verdict.DONE:
        return paragraph(one.node, " ", Cell(one.message or one.verdict.value, DIM if one.is_good else BAD))
    return paragraph(one.node, " ", Cell(done, GOOD), _now(one, done))


def _now(one: Outcome, done: str) -> str:
    """What that means at this moment."""
    if done == DRAINED:
        jobs = (
            f"{counted(len(one.jobs), 'job')} still there: {_ids(one.jobs)}."
            if one.jobs
            else "no job is there."
        )
        return f"; {jobs}"
    if NodeBase.DOWN in one.state:
        return ", but it is down; `kubectl slurm status` says why."
    # slurmctld asks a node for a sign of life before it trusts it again (seen on 26.05).
    waits = NodeFlag.NOT_RESPONDING in one.state
    return "; jobs start as soon as it has answered slurmctld." if waits else "; jobs can start there."


def _ids(jobs: Sequence[int]) -> str:
    return first_few(jobs, _SHOWN_JOBS)


def _owner(user: str) -> str:
    """The user on one line, without the colon that ends it."""
    name = sanitised(user).replace(": ", ":") or "somebody"
    return f"user {name}" if is_our_reason(f"{name}: ") else name


def _is_worker(pod: Pod) -> bool:
    return belonging.daemon_of(pod.metadata.labels) == "slurmd"


def _worker(name: str, pods: Sequence[Pod]) -> str:
    for pod in pods:
        if pod.metadata.name == name and _is_worker(pod):
            return slurm_name(pod)
    raise NoSuchWorker(f"There is no worker pod {name} in this cluster.")


def _unknown() -> Answer:
    return Answer(verdict=Verdict.UNKNOWN, message="is unknown to Slurm. See `kubectl slurm status`.")


def _in_the_way(name: str, nodes: Mapping[str, SlurmNode], reason: str, *, force: bool) -> Answer | None:
    """Why nothing is sent about this node; None when it may be drained."""
    node = nodes.get(name)
    if node is None:
        return _unknown()
    if not node.state.is_drain:
        return None
    if node.reason == reason:
        return Answer(verdict=Verdict.ALREADY, message="is drained like this already.")
    if force:
        return None
    if is_our_reason(node.reason):
        note = (
            "The operator lifts that when its cause is gone; --force makes the drain yours, so that it stays."
        )
    else:
        note = "It keeps that reason; --force replaces it."
    return Answer(verdict=Verdict.FOREIGN, message=f"is drained already{whose(node)}. {note}")


def _kept(name: str, nodes: Mapping[str, SlurmNode], user: str, *, force: bool) -> Answer | None:
    """Why the drain of this node stands; None when it may be lifted."""
    node = nodes.get(name)
    if node is None:
        return _unknown()
    if not node.state.is_drain:
        return Answer(verdict=Verdict.ALREADY, message=f"is not drained; it is {node_state(node.state)}.")
    if force or is_by(user, node.reason):
        return None
    if is_our_reason(node.reason):
        note = "It lifts that itself; `kubectl slurm explain` says what it waits for. --force lifts it now."
    else:
        note = f"You are {user!r}. Ask them, or lift it with --force."
    return Answer(verdict=Verdict.FOREIGN, message=f"is drained{whose(node)}. {note}")


def _outcome(name: str, answer: Answer, snapshot: Snapshot | None) -> Outcome:
    node = snapshot.nodes.get(name) if snapshot is not None else None
    jobs = tuple(job.job_id for job in snapshot.jobs_on(name)) if snapshot is not None else ()
    state = node_state(node.state) if node is not None else ""
    return Outcome(node=name, verdict=answer.verdict, message=answer.message, state=state, jobs=jobs)
