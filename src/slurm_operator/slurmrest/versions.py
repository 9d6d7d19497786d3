"""Which API versions we speak, and what each of them can do.

Slurm serves about four versions at a time, so newer and older ones find a common one here. Where a version
lacks something, the table says what happens instead; nothing is guessed at run time.
"""

from enum import Enum
from typing import NamedTuple

NEWEST_FIRST = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")


class Needs(NamedTuple):
    """Since when there is a call, or a field in its body, and what we do where there is none."""

    since: str
    method: str
    path: str
    instead: str
    field: str = ""


class Capability(Enum):
    """What not every version has. Everything else is in every version of `NEWEST_FIRST`."""

    REQUEUE_JOB = Needs(
        "v0.0.45",
        "GET",
        "/slurm/{version}/job/{job_id}/requeue",
        "the job stays where it is; its owner is told by its admin_comment",
    )
    READ_CONFIG = Needs(
        "v0.0.45",
        "GET",
        "/slurm/{version}/conf",
        "which configuration slurmctld has read is unknown, so it is reconfigured once after each start",
    )
    ADD_NODES = Needs(
        "v0.0.44",
        "POST",
        "/slurm/{version}/new/node/",
        "nodes appear when their slurmd registers",
    )
    SET_TOPOLOGY = Needs(
        "v0.0.43",
        "POST",
        "/slurm/{version}/nodes/",
        "a node keeps the place its slurmd registered with",
        "topology_str",
    )
    RESERVE = Needs(
        "v0.0.43",
        "POST",
        "/slurm/{version}/reservation",
        "scheduled updates do not start, and say so",
    )

    def is_in(self, version: str) -> bool:
        """Newer versions keep what older ones have."""
        return NEWEST_FIRST.index(version) <= NEWEST_FIRST.index(self.value.since)
