"""What a job's owner is told: a note of ours in the job's admin comment, beside what others wrote there.

A job may run on workers of several NodeSets. Each has a note of its own then, and leaves those of the others.
"""

import re
from collections.abc import Callable
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


def with_notice(comment: str, notice: str, replaces: Callable[[str], bool]) -> str:
    """The comment with this notice in place of those about workers that it replaces.

    An empty one only takes them away. Everything else keeps its place, or two of us would move it for ever.
    """
    parts = [(part, _OURS.match(part)) for part in comment.split(_BETWEEN) if part]
    earlier = [
        number for number, (_, found) in enumerate(parts) if found is not None and replaces(found["node"])
    ]
    said = [part for number, (part, _) in enumerate(parts) if number not in earlier]
    if notice:
        said.insert(earlier[0] if earlier else len(said), notice)
    return _BETWEEN.join(said)


def is_ahead(comment: str, slurm_node: str, now: datetime) -> bool:
    """A notice about this worker speaks of a moment to come. Later it says what became of the job."""
    found = (_OURS.match(part) for part in comment.split(_BETWEEN))
    return any(it is not None and it["node"] == slurm_node and not _is_over(it["at"], now) for it in found)


def _is_over(at: str | None, now: datetime) -> bool:
    if at is None:
        return False
    try:
        return datetime.strptime(at, _TIME).replace(tzinfo=UTC) <= now
    except ValueError:
        return False  # No such moment: somebody else wrote it.
