"""Which API versions we speak, and what each of them can do.

Slurm serves about four versions at a time, so newer and older ones find a common one here. Where a version
lacks something, the table says what happens instead; nothing is guessed at run time.
"""

from enum import Enum
from typing import NamedTuple

NEWEST_FIRST = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")


class Missing(NamedTuple):
    """Since when there is a call, and what we do where there is none."""

    since: str
    method: str
    path: str
    instead: str


class Capability(Enum):
    """Calls that not every version has. All others are in every version of `NEWEST_FIRST`."""

    REQUEUE_JOB = Missing(
        "v0.0.45",
        "GET",
        "/slurm/{version}/job/{job_id}/requeue",
        "the job stays where it is; its owner is told by its admin_comment",
    )
    READ_CONFIG = Missing(
        "v0.0.45",
        "GET",
        "/slurm/{version}/conf",
        "which configuration slurmctld has read is unknown, so it is reconfigured once after each start",
    )
    ADD_NODES = Missing(
        "v0.0.44",
        "POST",
        "/slurm/{version}/new/node/",
        "nodes appear when their slurmd registers",
    )
    WRITE_RESERVATIONS = Missing(
        "v0.0.44",
        "POST",
        "/slurm/{version}/reservation",
        "scheduled updates do not start, and say so",
    )

    def is_in(self, version: str) -> bool:
        """Newer versions keep what older ones have."""
        return NEWEST_FIRST.index(version) <= NEWEST_FIRST.index(self.value.since)
