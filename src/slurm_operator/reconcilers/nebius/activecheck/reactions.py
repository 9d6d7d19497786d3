"""What is done about the nodes of a Slurm job when it has ended, and what of it the brake holds back."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.activecheck import (
    ActiveCheckSpec,
    CommentSlurmNode,
    DrainSlurmNode,
    Reactions,
    ReservationPrefix,
)
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Action, Tell, WriteSlurm
from slurm_operator.reconcilers.nebius.activecheck import results
from slurm_operator.reconcilers.nebius.activecheck.results import Result
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.reconcilers.nebius.shared.brake import Excess, Limit, excesses
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import sanitised
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import DrainNodes, Reserve, Unreserve, UpdateNodes

# How releases with one list of reactions named what they did. The words are read by the node controllers.
_OLDER_PREFIX = "[node_problem] Failed"
_OLDER_REASON = "Soperator activecheck unknown: node drain process"

# Running jobs stay, and nobody but checks gets the node.
_RESERVATION_FLAGS = ("MAINT", "IGNORE_JOBS")
_WITHOUT_END = timedelta(days=365)  # What slurmctld itself makes of a reservation without an end.


@dataclass(frozen=True)
class Wishes:
    """What is to be done about the nodes of a job; empty texts are nothing."""

    drain_reason: str = ""
    comment: str = ""
    comment_start: str = ""  # Comments that start so are earlier ones of this check.
    add_reservation: str = ""
    remove_reservation: str = ""

    @property
    def takes_out(self) -> bool:
        """Whether no job of a user starts there afterwards."""
        return bool(self.drain_reason or self.add_reservation)


def wishes(spec: ActiveCheckSpec, result: Result) -> Wishes:
    """What the spec says about a job that ended so."""
    if result.verdict == results.COMPLETE:
        return _wishes(spec.success_reactions, spec.name, result.job_id)
    if result.verdict != results.FAILED:
        return Wishes()
    if spec.failure_reactions is None:
        return _older_wishes(spec, result.job_id)
    return _wishes(spec.failure_reactions, spec.name, result.job_id)


def _wishes(reactions: Reactions | None, check: str, job_id: int) -> Wishes:
    if reactions is None:
        return Wishes()
    drain = (reactions.drain_slurm_node or DrainSlurmNode()).drain_reason_prefix
    comment = (reactions.comment_slurm_node or CommentSlurmNode()).comment_prefix
    return Wishes(
        drain_reason=_text(drain, check, job_id) if drain else "",
        comment=_text(comment, check, job_id) if comment else "",
        comment_start=f"{comment} {check}: job " if comment else "",
        add_reservation=_prefix(reactions.add_reservation),
        remove_reservation=_prefix(reactions.remove_reservation),
    )


def _older_wishes(spec: ActiveCheckSpec, job_id: int) -> Wishes:
    older = spec.reactions
    text = _text(_OLDER_PREFIX, spec.name, job_id)
    return Wishes(
        drain_reason=(text if older.set_condition else _OLDER_REASON) if older.drain_slurm_node else "",
        comment=text if older.comment_slurm_node else "",
        comment_start=f"{_OLDER_PREFIX} {spec.name}: job ",
    )


def _text(prefix: str, check: str, job_id: int) -> str:
    return sanitised(f"{prefix} {check}: job {job_id} [slurm_job]")


def _prefix(wished: ReservationPrefix) -> str:
    return sanitised(wished.prefix)


@dataclass(frozen=True)
class Reaction:
    """What is done about one job, on the nodes that Slurm knows."""

    result: Result
    wishes: Wishes
    nodes: tuple[str, ...]
    takes_out: tuple[str, ...]  # Those of them that take jobs now, and will not afterwards.


def reaction(spec: ActiveCheckSpec, result: Result, slurm: Snapshot) -> Reaction:
    found = wishes(spec, result)
    nodes = tuple(node for node in _blamed(result, slurm) if node in slurm.nodes)
    taken = [node for node in nodes if _is_taken_out(found, slurm.nodes[node], slurm)]
    return Reaction(result, found, nodes, tuple(taken))


def _blamed(result: Result, slurm: Snapshot) -> Iterator[str]:
    """All nodes of the job. Where one of many was lost, only those that Slurm has given up."""
    for node in result.nodes:
        record = slurm.nodes.get(node)
        is_up = record is not None and not record.state.is_down and not record.state.is_unresponsive
        if not (result.state in results.LOST and len(result.nodes) > 1 and is_up):
            yield node


def _may_drain(node: SlurmNode) -> bool:
    """Not where it drains already, nor where a person said something about it, such as why it is down."""
    return not node.state.is_drain and (not node.reason or node.is_marked_by_slurm)


def _is_taken_out(wished: Wishes, node: SlurmNode, slurm: Snapshot) -> bool:
    is_drained = bool(wished.drain_reason) and _may_drain(node)
    name = f"{wished.add_reservation}-{node.name}"
    return is_drained or bool(wished.add_reservation and name not in slurm.reservations)


def recent(
    spec: ActiveCheckSpec, drained: Mapping[str, datetime], slurm: Snapshot, now: datetime
) -> dict[str, datetime]:
    """Nodes that this check took out of service within the window: as noted, and as Slurm says.

    Slurm dates by its own clock. What has no date there may be recent.
    """
    since = now - spec.brake.window
    found = {node: at for node, at in drained.items() if at >= since}
    marks = tuple(f"{prefix} {spec.name}: job " for prefix in _drain_prefixes(spec))
    for name, node in slurm.nodes.items():
        if marks and node.state.is_drain and node.reason.startswith(marks):
            at = node.reason_changed_at + slurm.clock_behind if node.reason_changed_at is not None else now
            if at >= since:
                found.setdefault(name, at)
    return dict(sorted(found.items()))


def _drain_prefixes(spec: ActiveCheckSpec) -> Iterator[str]:
    for reactions in (spec.success_reactions, spec.failure_reactions):
        drain = reactions.drain_slurm_node if reactions is not None else None
        if drain is not None and drain.drain_reason_prefix:
            yield drain.drain_reason_prefix
    if spec.failure_reactions is None and spec.reactions.drain_slurm_node:
        yield _OLDER_PREFIX


def too_many(
    spec: ActiveCheckSpec,
    wanted: Iterable[str],
    before: Iterable[str],
    slurm: Snapshot,
    nodesets: frozenset[str],
) -> list[Excess]:
    """The NodeSets of which more workers would be taken out of service than the brake allows."""
    limit = Limit(spec.brake.max_percent, spec.brake.window)
    return excesses(set(wanted), set(before), slurm.nodes, nodesets, limit)


def actions(
    one: Reaction,
    slurm: Snapshot,
    controller: ObjectKey,
    run: Run,
    now: datetime,
    before: Collection[str] = (),
) -> list[Action]:
    """Drain, comment and reservations, in that order; a drain that is there keeps its reason.

    `before` are nodes about which another job of the same pass has its say already.
    """
    one = replace(one, nodes=tuple(node for node in one.nodes if node not in before))
    wished, job = one.wishes, f"job {one.result.job_id} of {run.name} ended as {one.result.text}"
    found: list[Action] = []
    drained = [node for node in one.nodes if _may_drain(slurm.nodes[node])]
    if wished.drain_reason and drained:
        over = frozenset(filter(None, (slurm.nodes[node].reason for node in drained)))
        write = DrainNodes(nodes=tuple(drained), reason=wished.drain_reason, over=over)
        found.append(
            _write(controller, write, Reason.DRAINED_BY_CHECK, f"drained {first_few(drained)}: {job}")
        )
    found += _comments(one, slurm, controller, job)
    found += _reservations(one, slurm, controller, job, now)
    return found


def _comments(one: Reaction, slurm: Snapshot, controller: ObjectKey, job: str) -> Iterator[Action]:
    wished = one.wishes
    for node in one.nodes if wished.comment else ():
        said = slurm.nodes[node].comment
        if said == wished.comment:
            continue
        if said and not said.startswith(wished.comment_start):
            message = f"left the comment of {node} as it is, which somebody else wrote; {job}"
            yield Tell(subject=node, reason=Reason.COMMENT_KEPT, message=message)
            continue
        write = UpdateNodes(nodes=(node,), comment=wished.comment, comment_over=said)
        yield _write(controller, write, Reason.COMMENTED_BY_CHECK, f"commented on {node}: {job}")


def _reservations(
    one: Reaction, slurm: Snapshot, controller: ObjectKey, job: str, now: datetime
) -> Iterator[Action]:
    for node in one.nodes:
        added, removed = f"{one.wishes.add_reservation}-{node}", f"{one.wishes.remove_reservation}-{node}"
        if one.wishes.add_reservation and added not in slurm.reservations:
            write = Reserve(
                name=added,
                nodes=(node,),
                start_time=now,
                duration=_WITHOUT_END,
                users=(names.CHECKS_USER,),
                flags=_RESERVATION_FLAGS,
            )
            yield _write(controller, write, Reason.RESERVED_BY_CHECK, f"reserved {node} as {added}: {job}")
        if one.wishes.remove_reservation and removed in slurm.reservations:
            message = f"removed the reservation {removed}: {job}"
            yield _write(controller, Unreserve(name=removed), Reason.UNRESERVED_BY_CHECK, message)


def _write(
    controller: ObjectKey, write: DrainNodes | UpdateNodes | Reserve | Unreserve, reason: Reason, message: str
) -> WriteSlurm:
    return WriteSlurm(controller=controller, write=write, reason=reason, message=message)
