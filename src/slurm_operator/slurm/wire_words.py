"""Words that are written to Slurm and read from there again, perhaps by another version. They are frozen.

A worker drains for days and a job runs for weeks, so what an older operator wrote is met by a newer one, and
after a downgrade the other way round. A word that is changed here is a drain that nobody lifts any more. New
ones may be added; for one that is to read better there has to be an understanding of the old one, too.
"""

import re
from datetime import UTC, datetime
from typing import Final

# In front of every reason and every note of ours, so that nobody's but ours is ever lifted or rewritten.
OUR_REASON_PREFIX: Final = "slurm-operator: "

# A worker of ours that is asked to end drains itself for this, from its preStop hook or its entry point.
POD_TERMINATING: Final = "PodTerminating"

# ---- The end of a reason: whom it is about

POD: Final = re.compile(r" ?\(pod (?P<uid>[0-9a-f-]{4,36})\)$")
PODS: Final = re.compile(r" ?\(pods made until (?P<until>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\)$")
_UNTIL: Final = "%Y-%m-%dT%H:%M:%SZ"


def about_pod(uid: str) -> str:
    return f" (pod {uid})"


def about_pods(made_until: datetime) -> str:
    return f" (pods made until {made_until.astimezone(UTC):{_UNTIL}})"


def moment(until: str) -> datetime | None:
    """None when there is no such day: then it is nothing that we wrote."""
    try:
        return datetime.strptime(until, _UNTIL).replace(tzinfo=UTC)
    except ValueError:
        return None


# ---- In the text of a drain

# First: in place of the drain stood what Slurm had noted, and when, and that is gone.
WAS_DOWN: Final = "DOWN since the worker before it"


def was_down(text: str) -> str:
    return f"{WAS_DOWN}; {text}"


def being_replaced(revision: str, *, is_ahead: bool = False) -> str:
    """By which revision, and whether alone, to show what that is like."""
    return f"being replaced by revision {revision}{', ahead of the others' if is_ahead else ''}"


# ---- In the admin comment of a job, beside what others wrote there

BETWEEN_NOTES: Final = " | "
NOTICE_OF_LEAVING: Final = re.compile(
    re.escape(OUR_REASON_PREFIX) + r"(?P<node>\S+) is leaving(?:.*? at (?P<at>[\d-]{10} [\d:]{8}) UTC)?"
)
NOTICE_TIME: Final = "%Y-%m-%d %H:%M:%S"
DOES_NOT_START: Final = " does not start: "
NOTE_OF_START: Final = re.compile(re.escape(OUR_REASON_PREFIX) + r"(?P<node>\S+)" + re.escape(DOES_NOT_START))


def notice_of_leaving(slurm_node: str, cause: str, fate: str, at: datetime) -> str:
    """Which worker leaves and why, and what becomes of the job then."""
    said = f"{slurm_node} is leaving ({cause}); this job is {fate} at {at:{NOTICE_TIME}} UTC"
    return OUR_REASON_PREFIX + said


def note_of_start(slurm_node: str, why: str) -> str:
    return f"{OUR_REASON_PREFIX}{slurm_node}{DOES_NOT_START}{why}"


# ---- In the comment of a node

# How one of ours is known: a JSON object with at least these.
COMMENT_KEYS: Final = frozenset({"namespace", "podName", "nodeSetName"})
