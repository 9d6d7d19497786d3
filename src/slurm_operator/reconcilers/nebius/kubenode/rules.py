"""What is done about each worker of a Kubernetes node: one ordered list, the first rule that fits counts.

A rule is about the reason in Slurm and the conditions of the Kubernetes node that has the worker *now*. So a
worker that came back on another Kubernetes node is judged by that one.
"""

from collections.abc import Callable
from enum import StrEnum, auto
from typing import Final, NamedTuple

from slurm_operator.api.nebius import node_conditions
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen, Tells, Worker
from slurm_operator.reconcilers.nebius.kubenode.troubles import Trouble, is_well_formed
from slurm_operator.slurm.reasons import given_up_for


class Do(StrEnum):
    LEAVE = auto()  # Nothing, or nothing more: whoever drained it lifts it.
    WAIT = auto()  # It goes on when a condition or Slurm says so.
    DRAIN_FOR_REPLACEMENT = auto()
    DRAIN_FOR_REBOOT = auto()
    DRAIN_FOR_STORAGE = auto()
    ASK_FOR_REBOOT = auto()  # It is drained for it: the Kubernetes node is marked when all workers are idle.
    SUSPECT_HARDWARE = auto()  # As above, for another Kubernetes node.
    LIFT = auto()
    COMPLAIN = auto()  # Nobody can tell what is meant; a person has to say.


class Reboot(StrEnum):
    """How far the reboot is that a worker was drained for."""

    NONE = auto()
    ASKED = auto()
    UNDER_WAY = auto()
    DONE = auto()
    NOT_NEEDED = auto()  # The worker has another pod by now, without what hung.
    CANNOT_TELL = auto()


def reboot(worker: Worker, seen: Seen) -> Reboot:
    if worker.trouble not in (Trouble.KILL_TASK_FAILED, Trouble.REBOOT):
        return Reboot.NONE
    degraded, at = seen.mark(node_conditions.DEGRADED), worker.drained_at
    if degraded.is_on:
        return Reboot.UNDER_WAY
    if degraded.tells is Tells.UNKNOWN or at is None:
        return Reboot.CANNOT_TELL
    if worker.has_moved:
        return Reboot.NOT_NEEDED
    if not degraded.is_there:
        return Reboot.ASKED
    if degraded.since is None:
        return Reboot.CANNOT_TELL
    if degraded.since > at:
        return Reboot.DONE
    # slurmctld dates a reason anew when it gives the node up, as it does while that reboots.
    record = worker.record
    is_dated_anew = (
        record is not None and bool(given_up_for(record.reason)) and worker.trouble is Trouble.REBOOT
    )
    return Reboot.CANNOT_TELL if is_dated_anew else Reboot.ASKED


def is_for_reboot(seen: Seen) -> bool:
    """Whether the Kubernetes node is to be rebooted, for the sake of one of its workers."""
    return any(reboot(one, seen) in (Reboot.ASKED, Reboot.UNDER_WAY) for one in seen.workers)


def is_replaced(worker: Worker, seen: Seen) -> bool:
    """Whether the worker was drained for hardware that it does not run on any more."""
    made_at, at = seen.meta.creation_timestamp, worker.drained_at
    return worker.has_moved or (made_at is not None and at is not None and made_at > at)


def is_full(worker: Worker, seen: Seen) -> bool:
    return worker.storage is not None and worker.storage.percent > seen.options.storage_threshold


def has_room(worker: Worker, seen: Seen) -> bool:
    """Known to have; a reading that is missing or old is no room. What else drains it comes first."""
    if seen.call is not Tells.NO or seen.is_being_emptied or is_for_reboot(seen):
        return False
    return worker.storage is not None and worker.storage.percent < seen.options.storage_resume_threshold


Test = Callable[[Worker, Seen], bool]


class Rule(NamedTuple):
    name: str
    fits: Test
    do: Do


def _is(*troubles: Trouble) -> Test:
    return lambda worker, seen: worker.trouble in troubles


def _reboot_is(*steps: Reboot) -> Test:
    return lambda worker, seen: reboot(worker, seen) in steps


def _call_is(tells: Tells) -> Test:
    return lambda worker, seen: seen.call is tells


def _all(*tests: Test) -> Test:
    return lambda worker, seen: all(test(worker, seen) for test in tests)


def _takes_jobs(worker: Worker, seen: Seen) -> bool:
    return worker.takes_jobs


def _marked(type_: str, *tells: Tells) -> Test:
    return lambda worker, seen: seen.mark(type_).tells in tells


_HARDWARE: Final = _is(Trouble.NODE_PROBLEM, Trouble.HARDWARE_PROBLEM)
_SUSPECTED: Final = node_conditions.HARDWARE_SUSPECTED

RULES: Final = (
    Rule("Slurm does not answer, or does not know it", lambda worker, seen: not worker.is_known, Do.WAIT),
    Rule("maintenance, and jobs may start", _all(_call_is(Tells.YES), _takes_jobs), Do.DRAIN_FOR_REPLACEMENT),
    Rule(
        "a worker beside it needs a reboot",
        lambda w, s: w.takes_jobs and is_for_reboot(s),
        Do.DRAIN_FOR_REBOOT,
    ),
    Rule(
        "its local storage is nearly full", lambda w, s: w.takes_jobs and is_full(w, s), Do.DRAIN_FOR_STORAGE
    ),
    Rule("it takes jobs", _takes_jobs, Do.LEAVE),
    Rule("a person, or our own removal, drained it", lambda w, s: w.trouble is None, Do.LEAVE),
    Rule(
        "its local storage has room again",
        lambda w, s: w.trouble is Trouble.STORAGE and has_room(w, s),
        Do.LIFT,
    ),
    Rule("its local storage is still full, or unknown", _is(Trouble.STORAGE), Do.WAIT),
    Rule("the user's own trouble", _is(Trouble.USER_PROBLEM), Do.LEAVE),
    # Replacement
    Rule("maintenance goes on", _all(_is(Trouble.REPLACEMENT), _call_is(Tells.YES)), Do.WAIT),
    Rule(
        "nobody can tell whether it goes on", _all(_is(Trouble.REPLACEMENT), _call_is(Tells.UNKNOWN)), Do.WAIT
    ),
    Rule(
        "the Kubernetes node is still being emptied",
        lambda w, s: (
            w.trouble is Trouble.REPLACEMENT
            and (s.is_being_emptied or not s.mark(node_conditions.MAINTENANCE).is_off)
        ),
        Do.WAIT,
    ),
    Rule("maintenance is over, or was cancelled", _is(Trouble.REPLACEMENT), Do.LIFT),
    # Reboot
    Rule("its reboot is under way", _reboot_is(Reboot.UNDER_WAY), Do.WAIT),
    Rule("nobody can tell whether it rebooted", _reboot_is(Reboot.CANNOT_TELL), Do.COMPLAIN),
    Rule(
        "slurmd's own drain goes with the pod",
        _all(_is(Trouble.KILL_TASK_FAILED), _reboot_is(Reboot.NOT_NEEDED)),
        Do.LEAVE,
    ),
    Rule(
        "rebooted, and still being emptied",
        _all(
            _reboot_is(Reboot.DONE, Reboot.NOT_NEEDED),
            lambda w, s: s.is_being_emptied or s.call is not Tells.NO,
        ),
        Do.WAIT,
    ),
    Rule("rebooted", _reboot_is(Reboot.DONE), Do.LIFT),
    Rule("the worker runs elsewhere by now", _reboot_is(Reboot.NOT_NEEDED), Do.LIFT),
    Rule("maintenance comes first", _all(_reboot_is(Reboot.ASKED), _call_is(Tells.YES)), Do.WAIT),
    Rule("slurmd could not end a task", _is(Trouble.KILL_TASK_FAILED), Do.DRAIN_FOR_REBOOT),
    Rule("drained for a reboot", _is(Trouble.REBOOT), Do.ASK_FOR_REBOOT),
    # Hardware
    Rule("replacement is off", lambda w, s: _HARDWARE(w, s) and not s.options.replaces, Do.LEAVE),
    Rule(
        "it does not say which check failed",
        lambda w, s: (
            w.trouble is Trouble.NODE_PROBLEM and w.record is not None and not is_well_formed(w.record.reason)
        ),
        Do.COMPLAIN,
    ),
    Rule("its hardware is suspected already", _marked(_SUSPECTED, Tells.YES, Tells.UNKNOWN), Do.WAIT),
    Rule(
        "replaced, and still being emptied",
        lambda w, s: is_replaced(w, s) and (s.is_being_emptied or s.call is not Tells.NO),
        Do.WAIT,
    ),
    Rule("it runs on other hardware by now", is_replaced, Do.LIFT),
    Rule("a check calls its hardware broken", _HARDWARE, Do.SUSPECT_HARDWARE),
)


def rule(worker: Worker, seen: Seen) -> Rule:
    return next(one for one in RULES if one.fits(worker, seen))


class Step(NamedTuple):
    """What the rules come to for one worker."""

    worker: Worker
    rule: Rule

    @property
    def do(self) -> Do:
        return self.rule.do

    @property
    def is_about_storage(self) -> bool:
        return self.do is Do.DRAIN_FOR_STORAGE or self.worker.trouble is Trouble.STORAGE


def steps(seen: Seen) -> list[Step]:
    """For each worker; nothing where these rules are switched off."""
    found = [Step(worker, rule(worker, seen)) for worker in seen.workers]
    options = seen.options
    return [
        one for one in found if (options.follows_storage if one.is_about_storage else options.follows_slurm)
    ]
