"""What a job's owner is told: a note of ours in the job's admin comment, beside what others wrote there."""

import re
from datetime import UTC, datetime

from slurm_operator.slurm.reasons import OUR_REASON_PREFIX, sanitised

_BETWEEN = " | "
_OURS = re.compile(
    re.escape(OUR_REASON_PREFIX) + r"(?P<node>\S+) is leaving(?:.*? at (?P<at>[\d-]{10} [\d:]{8}) UTC)?"
)
_TIME = "%Y-%m-%d %H:%M:%S"


def notice(slurm_node: str, fate: str, at: datetime, cause: str, message: str) -> str:
    """One line, with our name in front: what happens, when, why, and what the cluster's people add to it."""
    said = f"{slurm_node} is leaving ({cause}); this job is {fate} at {at:{_TIME}} UTC"
    added = sanitised(message).replace(_BETWEEN, " ")
    return OUR_REASON_PREFIX + said + (f". {added}" if added else "")


def with_notice(comment: str, notice: str) -> str:
    """The comment with this notice in place of an earlier one; an empty one only takes that away."""
    others = [part for part in comment.split(_BETWEEN) if part and not _OURS.match(part)]
    return _BETWEEN.join([*others, *([notice] if notice else [])])


def named_in(comment: str) -> str:
    """The worker that a notice of ours is about; empty when there is none."""
    found = _found(comment)
    return found["node"] if found is not None else ""


def has_come_true(comment: str, now: datetime) -> bool:
    """The moment that a notice of ours speaks of is over: now it says what became of the job."""
    found = _found(comment)
    if found is None or found["at"] is None:
        return False
    try:
        return datetime.strptime(found["at"], _TIME).replace(tzinfo=UTC) <= now
    except ValueError:
        return False  # No such moment: somebody else wrote it.


def _found(comment: str) -> re.Match[str] | None:
    return next((match for part in comment.split(_BETWEEN) if (match := _OURS.match(part))), None)
