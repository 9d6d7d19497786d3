"""Removes the records of workers that are about to go, each by what Slurm said a moment ago.

Thousands take longer than an answer of Slurm may be relied on. So Slurm is read again as often as it takes,
and whoever asked is asked in turn, right before a record goes, what speaks against that by now. What ends a
job is guarded in the same way.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from slurm_operator import wire
from slurm_operator.clock import Clock
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.safety.write_screening import screen
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import Answer, DeleteNodes, Verdict
from slurm_operator.slurmrest.errors import SlurmFailure
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.results import answer_to, for_all, is_about_some

# What speaks against removing a record, or ending a job, given what is known of Slurm; None if nothing does.
Guard = Callable[[Snapshot | Unreachable], str | None]
Told = Callable[[Mapping[str, Answer]], None]

# As many pods follow at once, and the proof of each is checked when it has a connection.
RECORDS_PER_REQUEST = 25

TOO_SLOW = "Slurm takes longer to read than what it says may be relied on"


def is_old(poller: SlurmPoller, clock: Clock) -> bool:
    """Whether what is known of Slurm cannot be relied on any more by whoever ends something."""
    facts = poller.latest()
    return not isinstance(facts, Snapshot) or not facts.is_fresh(clock.steady(), PROOF_LIFETIME)


def opposed(names: Sequence[str], guards: Mapping[str, Guard], poller: SlurmPoller) -> dict[str, Answer]:
    """Those whose guard objects. They may be asked for again."""
    facts = poller.latest()
    against = {name: why for name in names if (why := guards[name](facts)) is not None}
    return {name: Answer(verdict=Verdict.LATE, message=why) for name, why in against.items()}


class Fencing:
    """One removal. `remove` sends a request; `told` hears of each answer at once, so that pods can follow."""

    def __init__(
        self,
        poller: SlurmPoller,
        clock: Clock,
        remove: Callable[[Sequence[str]], Awaitable[SlurmFailure | None]],
        guards: Mapping[str, Guard],
        told: Told,
    ) -> None:
        self._poller = poller
        self._clock = clock
        self._remove = remove
        self._guards = guards
        self._told = told
        self._answers: dict[str, Answer] = {}
        self._size = RECORDS_PER_REQUEST

    async def carry_out(self, write: DeleteNodes) -> dict[str, Answer]:
        """An answer for each of them."""
        left: Sequence[str] = write.nodes
        while left:
            try:
                facts = await self._poller.read_now()
            except SlurmFailure as failure:
                self._note(for_all(left, Verdict.NOT_SENT, f"held back, because {failure}"))
                break
            nodes = facts.nodes if isinstance(facts, Snapshot) else {}
            send, answers = screen(wire.replace(write, nodes=tuple(left)), nodes)
            self._note(answers)
            await self._while_fresh(send)
            left = [name for name in send if name not in self._answers]
        return self._answers

    async def _while_fresh(self, names: Sequence[str]) -> None:
        """One part after the other, until what was read is too old, or some of a part were refused."""
        if is_old(self._poller, self._clock):
            self._note(for_all(names, Verdict.LATE, TOO_SLOW))
            return
        size = self._size
        for start in range(0, len(names), size):
            if is_old(self._poller, self._clock) or size != self._size:
                return
            await self._part(self._unopposed(names[start : start + size]))

    def _unopposed(self, names: Sequence[str]) -> list[str]:
        against = opposed(names, self._guards, self._poller)
        self._note(against)
        return [name for name in names if name not in against]

    async def _part(self, names: Sequence[str]) -> None:
        """One request. Refused for some, slurmctld has removed the others: who is left goes one by one.

        Who is not known to it was not looked at by it either: that is no fence, and the pod stays for now.
        """
        failure = await self._remove(names) if names else None
        if failure is None:
            self._note(for_all(names, Verdict.DONE))
        elif is_about_some(failure) and len(names) > 1:
            self._size = 1
        else:
            self._note(dict.fromkeys(names, answer_to(failure)))

    def _note(self, answers: Mapping[str, Answer]) -> None:
        if answers:
            self._answers |= answers
            self._told(self._answers)
