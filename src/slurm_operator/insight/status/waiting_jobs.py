"""Jobs that wait, by what they wait for, in words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from slurm_operator import wire
from slurm_operator.slurm.jobs.job import SlurmJob


class Pending(wire.Record):
    """Jobs that wait for the same thing."""

    reason: str
    meaning: str
    count: int
    jobs: tuple[int, ...]
    users: tuple[str, ...]


# What Slurm's own one-word reasons mean to the owner of a job (squeue(1), JOB REASON CODES).
_MEANINGS: Mapping[str, str] = {
    "None": "the scheduler has not looked at it yet",
    "Resources": "is next, and waits for enough free nodes, CPUs or memory",
    "Priority": "other jobs have a higher priority",
    "Dependency": "waits for another job to end",
    "DependencyNeverSatisfied": "waits for a job that can no longer end as required; cancel it",
    "JobHeldUser": "held by its owner; release it with `scontrol release JOB`",
    "JobHeldAdmin": "held by an administrator; release it with `scontrol release JOB`",
    "BeginTime": "is not to start before a time its owner set",
    "ReqNodeNotAvail": "needs nodes that are down, drained or reserved",
    "PartitionDown": "its partition takes no jobs to run",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "asks for more nodes than its partition has or allows",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "BadConstraints": "asks for what no node has",
    "Licenses": "waits for licenses",
    "Reservation": "waits for its reservation to begin",
    "NodeDown": "a node it needs is down",
    "InvalidAccount": "names an account that does not exist",
    "InvalidQOS": "names a QOS that does not exist",
}


def meaning(reason: str) -> str:
    """What a reason of Slurm means; nothing when we have no better words."""
    word = re.split(r"[,(]", reason, maxsplit=1)[0].strip()
    if word in _MEANINGS:
        return _MEANINGS[word]
    if word.startswith(("Assoc", "QOS")):
        return "a limit of its account or QOS is used up"
    return ""


def pending(jobs: Iterable[SlurmJob]) -> list[Pending]:
    """Most jobs first."""
    groups: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.state.is_pending:
            groups[job.state_reason or "None"].append(job)
    found = [
        Pending(
            reason=reason,
            meaning=meaning(reason),
            count=len(waiting),
            jobs=tuple(sorted(job.job_id for job in waiting)),
            users=tuple(sorted({job.user or str(job.user_id) for job in waiting})),
        )
        for reason, waiting in groups.items()
    ]
    return sorted(found, key=lambda group: (-group.count, group.reason))
