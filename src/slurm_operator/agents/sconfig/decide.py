"""What to do about each group now, with the reason. Plain functions: facts in, steps out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slurm_operator.agents.sconfig.files import Batch, Fate, Result, held_back
from slurm_operator.agents.sconfig.groups import ACTIONS_COMPLETED, Group, GroupKey
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.backoff import backoff_seconds
from slurm_operator.conditions import Reason

# A ConfigMap and its JailedConfig change by two requests, a whole group by several: one write for all.
QUIET_SECONDS: Final = 1.0
LONGEST_UNREST_SECONDS: Final = 10.0

# Soperator's own pace.
FIRST_RETRY_SECONDS: Final = 15.0
LONGEST_RETRY_SECONDS: Final = 60.0

# Nobody tells us what is done to files in the root, by users who may.
LOOK_AGAIN_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Pace:
    """How long a group has been as it is, and when it may be tried again after a failure."""

    digest: str
    changed_at: float
    since: float  # The first change that has not been dealt with yet.
    is_settled: bool = False
    failures: int = 0
    retry_at: float = -math.inf

    @property
    def quiet_at(self) -> float:
        return min(self.changed_at + QUIET_SECONDS, self.since + LONGEST_UNREST_SECONDS)


def paced(before: Mapping[GroupKey, Pace], groups: Iterable[Group], now: float) -> dict[GroupKey, Pace]:
    """The pace of the groups that there are. A change of what is wanted ends a back-off."""
    return {group.key: _pace(before.get(group.key), group.digest, now) for group in groups}


def _pace(before: Pace | None, digest: str, now: float) -> Pace:
    if before is not None and before.digest == digest:
        return before
    is_first = before is None or before.is_settled
    return Pace(digest, changed_at=now, since=now if is_first or before is None else before.since)


def succeeded(pace: Pace) -> Pace:
    return replace(pace, is_settled=True, failures=0, retry_at=-math.inf)


def failed(pace: Pace, now: float) -> Pace:
    seconds = backoff_seconds(
        pace.failures, first_seconds=FIRST_RETRY_SECONDS, longest_seconds=LONGEST_RETRY_SECONDS
    )
    return replace(pace, is_settled=True, failures=min(pace.failures + 1, 10), retry_at=now + seconds)


@dataclass(frozen=True)
class Keep:
    """Every file holds what it should, and Slurm has read it."""

    group: Group


@dataclass(frozen=True)
class Write:
    """Write the files that differ, then have Slurm read them if the group asks for that."""

    group: Group
    message: str


@dataclass(frozen=True)
class Reconfigure:
    """Every file holds what it should; Slurm has not read all of them yet."""

    group: Group
    message: str


@dataclass(frozen=True)
class Hold:
    """Nothing is written while a member of the group, or the root, is not in order."""

    group: Group
    looked: Mapping[str, Result]
    message: str


@dataclass(frozen=True)
class Wait:
    """Not yet: more changes may follow, a failure is not long ago, or a ConfigMap was not read yet."""

    group: Group
    until: float
    message: str


Step = Keep | Write | Reconfigure | Hold | Wait


def decide(
    groups: Sequence[Group], looked: Mapping[str, Result], paces: Mapping[GroupKey, Pace], now: float
) -> tuple[Step, ...]:
    """One step for each group."""
    return tuple(_step(group, looked, paces[group.key], now) for group in groups)


def _step(group: Group, looked: Mapping[str, Result], pace: Pace, now: float) -> Step:
    own = {file.path: looked[file.path] for file in group.files}
    if group.unread:
        names = ", ".join(member.config.config_map for member in group.unread)
        return Wait(group, math.inf, f"reading ConfigMap {names}")
    if group.blockers:
        return Hold(group, own, f"waiting for {', '.join(member.name for member in group.blockers)}")
    troubles = [result.message for result in own.values() if result.is_trouble]
    if troubles:
        return Hold(group, {result.path: result for result in held_back(own.values())}, troubles[0])
    differing = [result.path for result in own.values() if result.fate is Fate.DIFFERS]
    if not differing and not is_owed(group):
        return Keep(group)
    if pace.retry_at > now:
        return Wait(group, pace.retry_at, f"trying again in {pace.retry_at - now:.0f} s")
    if not differing:
        return Reconfigure(group, "files were written before, and Slurm has not read them yet")
    if pace.quiet_at > now:
        return Wait(group, pace.quiet_at, "the group was changed just now; more changes may follow")
    return Write(group, f"not as wanted: {', '.join(differing)}")


def is_owed(group: Group) -> bool:
    """Whether Slurm has still to read files of the group.

    This stands in the conditions, which are set before the first byte is written: it outlives the writer.
    """
    return group.wants_reconfigure and any(
        condition.status is Truth.FALSE and condition.reason in (Reason.REFRESH, Reason.RECONFIGURE_FAILED)
        for member in group.active
        if (condition := member.config.condition(ACTIONS_COMPLETED)) is not None
    )


def to_reconfigure(steps: Sequence[Step], batches: Mapping[GroupKey, Batch]) -> tuple[Group, ...]:
    """The groups that are written whole and that Slurm has not read: one reconfigure serves all of them."""
    return tuple(step.group for step in steps if _is_due(step, batches.get(step.group.key)))


def _is_due(step: Step, batch: Batch | None) -> bool:
    match step:
        case Reconfigure():
            return True
        case Write(group=group) if batch is not None and batch.is_complete:
            return group.wants_reconfigure and (batch.changed_anything or is_owed(group))
        case _:
            return False


def look_again_at(steps: Sequence[Step], paces: Mapping[GroupKey, Pace], now: float) -> float:
    """When the next pass is due if nothing changes before."""
    moments = [now + LOOK_AGAIN_SECONDS]
    for step in steps:
        match step:
            case Wait(until=until):
                moments.append(until)
            case Hold(looked=looked) if any(result.is_trouble for result in looked.values()):
                moments.append(now + FIRST_RETRY_SECONDS)
            case Keep() | Write() | Reconfigure() | Hold():
                pass
    moments += [pace.retry_at for pace in paces.values() if pace.retry_at > now]
    return min(moments)
