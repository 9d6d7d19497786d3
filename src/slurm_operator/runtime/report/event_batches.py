"""Events, gathered while an object is on its way: what is done for one reason is one piece of news.

A Slurm cluster that starts makes its objects one after the other, in as many passes. What people have to know
at once (warnings, drains, deletions) waits for nothing, and takes along what is gathered about its object, so
that the events of an object stand in the order in which things happened.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from slurm_operator.kube.events import Recorder, Regarding
from slurm_operator.plan.actions import (
    Action,
    DeleteDaemonPod,
    DeleteKubeNode,
    DeleteObject,
    DeleteWorker,
    EndWorker,
    Tell,
    WriteSlurm,
    is_housekeeping,
)
from slurm_operator.plan.plan import Failure

# What takes longer than this is told in parts. How far it has come its conditions say all the while.
GATHERED_FOR_SECONDS = 10.0

# An event has room for a thousand letters; the log has a line for each.
TOLD_AT_ONCE = 3

EventType = Literal["Normal", "Warning"]


class Words(NamedTuple):
    """What there is to say for one reason."""

    reason: str
    sentences: tuple[str, ...]
    type: EventType = "Normal"
    at_once: bool = False

    @property
    def note(self) -> str:
        """The first few of the sentences, each once."""
        told = list(dict.fromkeys(self.sentences))
        more = len(told) - TOLD_AT_ONCE
        return "; ".join(told[:TOLD_AT_ONCE]) + (f"; and {more} more of the kind" if more > 0 else "")


class News:
    """Hands events to the recorder: ordinary ones when their object has arrived, and then together."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._gathered: dict[str, _Gathered] = {}  # By uid.

    def tell(self, about: Regarding, words: Words) -> None:
        if words.at_once:
            self.arrived(about.uid)
            self._record(about, words)
            return
        if about.uid not in self._gathered:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(GATHERED_FOR_SECONDS, self.arrived, about.uid)
            self._gathered[about.uid] = _Gathered(about, timer, {})
        by_reason = self._gathered[about.uid].by_reason
        before = by_reason.get(words.reason, Words(words.reason, ()))
        by_reason[words.reason] = words._replace(sentences=before.sentences + words.sentences)

    def flush(self) -> None:
        """Hand over all there is: for the end of a process."""
        for uid in list(self._gathered):
            self.arrived(uid)

    def arrived(self, uid: str) -> None:
        """Nothing more is to come about this object for now: hand over what was gathered."""
        gathered = self._gathered.pop(uid, None)
        if gathered is None:
            return
        gathered.timer.cancel()
        for words in gathered.by_reason.values():
            self._record(gathered.about, words)

    def _record(self, about: Regarding, words: Words) -> None:
        self._recorder.record(about, words.reason, words.note, type_=words.type)


class _Gathered(NamedTuple):
    """What is still to be told about one object."""

    about: Regarding
    timer: asyncio.TimerHandle
    by_reason: dict[str, Words]


def of_pass(done: Iterable[Action], failed: Iterable[Failure]) -> list[Words]:
    """What happened, one for each reason: a thousand new workers are one piece of news, not a thousand."""
    found: dict[tuple[str, EventType], list[Action | Failure]] = {}
    for action in done:
        is_bad = isinstance(action, Tell) and action.warning
        if not is_housekeeping(action):
            found.setdefault((action.reason, "Warning" if is_bad else "Normal"), []).append(action)
    for failure in failed:
        found.setdefault((failure.action.reason, "Warning"), []).append(failure)
    return [_words(reason, type_, told) for (reason, type_), told in found.items()]


def _words(reason: str, type_: EventType, told: Sequence[Action | Failure]) -> Words:
    at_once = type_ == "Warning" or any(isinstance(one, _TOLD_AT_ONCE) for one in told)
    return Words(reason, tuple(map(_sentence, told)), type_, at_once)


# What may end something, or touches Slurm.
_TOLD_AT_ONCE = (DeleteDaemonPod, DeleteKubeNode, DeleteObject, DeleteWorker, EndWorker, Tell, WriteSlurm)


def _sentence(told: Action | Failure) -> str:
    return told.message if not isinstance(told, Failure) else f"{told.action.message}: {told.error}"
