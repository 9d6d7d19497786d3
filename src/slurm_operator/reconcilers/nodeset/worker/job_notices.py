"""What a job's owner is told: a note of ours in the job's admin comment, beside what others wrote there.

A job may run on workers of several NodeSets. Each has a note of its own then, and leaves those of the others.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from slurm_operator.slurm.reasons import sanitised
from slurm_operator.slurm.wire_words import (
    BETWEEN_NOTES,
    NOTICE_OF_LEAVING,
    NOTICE_TIME,
    notice_of_leaving,
)


def notice(slurm_node: str, fate: str, at: datetime, cause: str, message: str) -> str:
    """One line, with our name in front: what happens, when, why, and what the cluster's people add to it."""
    added = sanitised(message).replace(BETWEEN_NOTES, " ")
    return notice_of_leaving(slurm_node, cause, fate, at) + (f". {added}" if added else "")


def with_notice(comment: str, notice: str, replaces: Callable[[str], bool]) -> str:
    """The comment with this notice in place of those about workers that it replaces.

    An empty one only takes them away. Everything else keeps its place, or two of us would move it for ever.
    """
    parts = [(part, NOTICE_OF_LEAVING.match(part)) for part in comment.split(BETWEEN_NOTES) if part]
    earlier = [
        number for number, (_, found) in enumerate(parts) if found is not None and replaces(found["node"])
    ]
    said = [part for number, (part, _) in enumerate(parts) if number not in earlier]
    if notice:
        said.insert(earlier[0] if earlier else len(said), notice)
    return BETWEEN_NOTES.join(said)


def is_ahead(comment: str, slurm_node: str, now: datetime) -> bool:
    """A notice about this worker speaks of a moment to come. Later it says what became of the job."""
    found = (NOTICE_OF_LEAVING.match(part) for part in comment.split(BETWEEN_NOTES))
    return any(it is not None and it["node"] == slurm_node and not _is_over(it["at"], now) for it in found)


def _is_over(at: str | None, now: datetime) -> bool:
    if at is None:
        return False
    try:
        return datetime.strptime(at, NOTICE_TIME).replace(tzinfo=UTC) <= now
    except ValueError:
        return False  # No such moment: somebody else wrote it.
