"""What a job's owner is told: a note of ours in the job's admin comment, beside what others wrote there."""

import re
from datetime import datetime

from slurm_operator.slurm.reasons import OUR_REASON_PREFIX, sanitised

_BETWEEN = " | "
_OURS = re.compile(re.escape(OUR_REASON_PREFIX) + r"(\S+) is leaving")


def notice(slurm_node: str, fate: str, at: datetime, cause: str, message: str) -> str:
    """One line, with our name in front: what happens, when, why, and what the cluster's people add to it."""
    said = f"{slurm_node} is leaving ({cause}); this job is {fate} at {at:%Y-%m-%d %H:%M:%S} UTC"
    added = sanitised(message).replace(_BETWEEN, " ")
    return OUR_REASON_PREFIX + said + (f". {added}" if added else "")


def with_notice(comment: str, notice: str) -> str:
    """The comment with this notice in place of an earlier one; an empty one only takes that away."""
    others = [part for part in comment.split(_BETWEEN) if part and not _OURS.match(part)]
    return _BETWEEN.join([*others, *([notice] if notice else [])])


def named_in(comment: str) -> str:
    """The worker that a notice of ours is about; empty when there is none."""
    found = (_OURS.match(part) for part in comment.split(_BETWEEN))
    return next((match[1] for match in found if match), "")
