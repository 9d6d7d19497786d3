"""Carries out one write: checks that it may, sends it, and finds out what became of each node."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from slurm_operator import wire
from slurm_operator.clock import Clock
from slurm_operator.safety.write_screening import needs_fresh_nodes, screen
from slurm_operator.slurm import writes
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.writes import Answer, NodeWrite, SlurmWrite, Verdict, subjects
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import (
    JobFinished,
    JobPending,
    SlurmFailure,
    UnknownNode,
    UnknownReservation,
)
from slurm_operator.slurmrest.sender import few_names, job_fields, node_fields
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.remove_nodes import (
    RECORDS_PER_REQUEST,
    TOO_SLOW,
    Fencing,
    Guard,
    Told,
    is_old,
    opposed,
)
from slurm_operator.slurmsync.results import answer_to, answer_to_removal, for_all, is_about_some

MAX_NODES_PER_REQUEST = 1000

# How old an answer about the nodes may be that a write is held against: what others did since then is not
# seen, and Slurm has no compare-and-set.
FRESH_SECONDS = 0.1

ASKED_ALREADY = "it was asked to end, and Slurm has not been read since: it may have started again elsewhere"

_VERBS: dict[type[NodeWrite], str] = {
    writes.DrainNodes: "drain",
    writes.ResumeNodes: "resume",
    writes.UpdateNodes: "update",
    writes.SetNodesDown: "set down",
    writes.ExplainNodes: "explain",
    writes.PowerNodes: "power",
    writes.DeleteNodes: "delete",
    writes.AddNodes: "add",
}


class NotLeading(SlurmFailure):
    """We held it back ourselves."""

    phrase = "we may not"


class Sending:
    """Gives an answer for each subject, whatever happens. One `carry_out` at a time."""

    def __init__(
        self,
        client: SlurmRest,
        poller: SlurmPoller,
        ledger: Ledger,
        clock: Clock,
        may_write: Callable[[], bool],
    ) -> None:
        self._send = client.send
        self._poller = poller
        self._ledger = ledger
        self._clock = clock
        self._may_write = may_write
        self._nodes: Mapping[str, SlurmNode] = {}
        self._nodes_asked_at = -FRESH_SECONDS
        self._written: set[str] = set()  # Since the nodes were asked for.

    async def carry_out(
        self, write: SlurmWrite, told: Told, guards: Mapping[str, Guard] | None = None
    ) -> dict[str, Answer]:
        """What became of it, for each subject. A write that takes many requests is `told` of in between.

        Records go some at a time, and a worker whose record went may go: were it to wait for hundreds of
        others, what was known of it would be too old by then.
        """
        if guards and isinstance(write, writes.DeleteNodes):
            return await self._fenced(write, guards, told)
        if isinstance(write, NodeWrite):
            return await self._to_nodes(write, told)
        if guards and (against := await self._objections(write, guards)):
            return against
        subject, call = subjects(write)[0], self._call(write)
        return {subject: _outcome(write, await self._attempt(call, _ended_by(write)))}

    async def _objections(self, write: SlurmWrite, guards: Mapping[str, Guard]) -> dict[str, Answer]:
        """Why it is not sent, by what Slurm said a moment ago. Many in a row share a reading."""
        names = subjects(write)
        if is_old(self._poller, self._clock):
            try:
                await self._poller.read_now()
            except SlurmFailure as failure:
                return for_all(names, Verdict.NOT_SENT, f"held back, because {failure}")
        if is_old(self._poller, self._clock):
            return for_all(names, Verdict.LATE, TOO_SLOW)
        if not self._ledger.behind.isdisjoint(_ended_by(write)):
            return for_all(names, Verdict.LATE, ASKED_ALREADY)
        return opposed(names, guards, self._poller)

    def _call(self, write: SlurmWrite) -> Callable[[], Awaitable[None]]:
        """The request of a write that is not about nodes."""
        send = self._send
        match write:
            case writes.Reconfigure():
                return send.reconfigure
            case writes.Reserve():
                return lambda: send.reserve(write)
            case writes.Unreserve(name=name):
                return lambda: send.unreserve(name)
            case writes.UpdateJob(job_id=job_id):
                return lambda: send.update_job(job_id, job_fields(write))
            case writes.SignalJob(address=address, signal=signal):
                return lambda: send.signal_job(address, signal)
            case writes.RequeueJob(address=address, hold=hold):
                return lambda: send.requeue_job(address, hold=hold)
            case writes.CancelJob(address=address):
                return lambda: send.cancel_job(address)
            case _:
                raise TypeError(f"{type(write).__name__} is about nodes")

    async def _fenced(
        self, write: writes.DeleteNodes, guards: Mapping[str, Guard], told: Told
    ) -> dict[str, Answer]:
        def remove(names: Sequence[str]) -> Awaitable[SlurmFailure | None]:
            return self._attempt(self._node_call(write, names), names)

        return await Fencing(self._poller, self._clock, remove, guards, told).carry_out(write)

    async def _to_nodes(self, write: NodeWrite, told: Told) -> dict[str, Answer]:
        unsure, in_parts = self._ledger.is_unsure(write.nodes), partial(self._in_parts, told=told)
        if not (unsure or needs_fresh_nodes(write)):
            return await in_parts(write, write.nodes)
        return await self._screened(write, write.nodes, in_parts, whole=unsure)

    async def _screened(
        self,
        write: NodeWrite,
        names: Sequence[str],
        go_on: Callable[[NodeWrite, Sequence[str]], Awaitable[dict[str, Answer]]],
        *,
        whole: bool,
    ) -> dict[str, Answer]:
        """Reads the nodes, answers for those that must be left alone, and goes on with the others."""
        try:
            nodes = await self._fresh_nodes(names, whole=whole)
        except SlurmFailure as failure:
            return for_all(names, Verdict.NOT_SENT, f"held back, because {failure}")
        send, answers = screen(wire.replace(write, nodes=tuple(names)), nodes)
        return answers | await go_on(write, send) if send else answers

    async def _fresh_nodes(self, names: Sequence[str], *, whole: bool) -> Mapping[str, SlurmNode]:
        """The nodes as they are. A thousand drains with a reason each need not read them a thousand times."""
        asked_at = self._clock.monotonic()
        is_fresh = asked_at - self._nodes_asked_at < FRESH_SECONDS and self._written.isdisjoint(names)
        if whole or not is_fresh:
            self._written.clear()
            self._nodes = await self._poller.nodes_now(whole=whole)
            self._nodes_asked_at = asked_at
        return self._nodes

    async def _in_parts(self, write: NodeWrite, names: Sequence[str], *, told: Told) -> dict[str, Answer]:
        size = RECORDS_PER_REQUEST if isinstance(write, writes.DeleteNodes) else MAX_NODES_PER_REQUEST
        answers: dict[str, Answer] = {}
        for start in range(0, len(names), size):
            answers |= await self._part(write, names[start : start + size])
            told(answers)
        return answers

    async def _part(self, write: NodeWrite, names: Sequence[str]) -> dict[str, Answer]:
        """One request. slurmctld does not say whom a refusal is about, so we look for them."""
        failure = await self._attempt(self._node_call(write, names), names)
        if failure is None:
            return for_all(names, Verdict.DONE)
        if is_about_some(failure) and len(names) > 1:
            return await self._without_culprit(write, names)
        answer = answer_to_removal if isinstance(write, writes.DeleteNodes) else answer_to
        return dict.fromkeys(names, answer(failure))

    async def _without_culprit(self, write: NodeWrite, names: Sequence[str]) -> dict[str, Answer]:
        """The refused names again, in halves and freshly screened, until each has an answer of its own."""
        middle = len(names) // 2
        first = await self._screened(write, names[:middle], self._part, whole=True)
        return first | await self._screened(write, names[middle:], self._part, whole=False)

    def _node_call(self, write: NodeWrite, names: Sequence[str]) -> Callable[[], Awaitable[None]]:
        if isinstance(write, writes.DeleteNodes):
            return lambda: self._send.delete_nodes(names)
        if isinstance(write, writes.AddNodes):
            return lambda: self._send.add_nodes(names, write.conf)
        attempt = f"{_VERBS[type(write)]} {few_names(names)}"
        return lambda: self._send.update_nodes(attempt, names, node_fields(write))

    async def _attempt(
        self, call: Callable[[], Awaitable[None]], nodes: Sequence[str] = ()
    ) -> SlurmFailure | None:
        """None when it is done. The ledger hears of it before and after."""
        if not self._may_write():
            return NotLeading("write to Slurm", "another operator holds the Lease")
        sure = is_answered = False
        self._ledger.begin(nodes)
        self._written.update(nodes)
        try:
            await call()
        except SlurmFailure as failure:
            # Whom we wrote to by what we had read, and is not known, tells that we had read it wrong.
            is_answered = not failure.may_have_happened
            sure = is_answered and not isinstance(failure, UnknownNode)
            return failure
        else:
            sure = True
            return None
        finally:
            self._ledger.end(nodes, self._clock.monotonic(), sure=sure, is_answered=is_answered)


def _ended_by(write: SlurmWrite) -> tuple[str, ...]:
    """What the ledger calls the job that this would end. Parts of a job that go as a whole are one."""
    return (f"job {write.address}",) if isinstance(write, writes.CancelJob | writes.RequeueJob) else ()


def _outcome(write: SlurmWrite, failure: SlurmFailure | None) -> Answer:
    """Done, or what went wrong; what is gone need not be deleted, what has ended need not be cancelled.

    What waits in the queue need not be put there: with the first part of a pack its others have gone back.
    """
    if failure is None:
        return Answer(verdict=Verdict.DONE)
    if isinstance(write, writes.Unreserve) and isinstance(failure, UnknownReservation):
        return Answer(verdict=Verdict.ALREADY)
    if isinstance(write, writes.CancelJob) and isinstance(failure, JobFinished):
        return Answer(verdict=Verdict.ALREADY)
    if isinstance(write, writes.RequeueJob) and isinstance(failure, JobPending):
        return Answer(verdict=Verdict.ALREADY)
    return answer_to(failure)
