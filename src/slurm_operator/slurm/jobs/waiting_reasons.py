"""Why a job waits, in Slurm's word for it, and what that word means to people."""

from typing import NamedTuple


class Meaning(NamedTuple):
    """What the word says, and what can be done about it. `waits`: it starts in its turn."""

    says: str
    advice: str
    waits: bool = False


_HELD = Meaning("somebody put it on hold", "Whoever holds it can release it: scontrol release JOB.")
_LIMIT = Meaning(
    "jobs that run or are pending already reach a limit of its QOS or account",
    "It starts when one of those ends; or an administrator raises the limit with sacctmgr.",
    waits=True,
)

# The words of 26.05, without those that only pass by while a job starts.
_MEANINGS: dict[str, Meaning] = {
    "Resources": Meaning(
        "the nodes that it needs are busy, and it is the next one in line",
        "It starts when enough is free, or sooner with more workers.",
        waits=True,
    ),
    "Priority": Meaning(
        "jobs with a higher priority are ahead of it",
        "It starts in its turn: see sprio JOB and squeue --start JOB.",
        waits=True,
    ),
    "Dependency": Meaning("it waits for another job to end", "See which: scontrol show job JOB.", waits=True),
    "BeginTime": Meaning("it is not to start before a time that it names", "It starts then.", waits=True),
    "Licenses": Meaning(
        "all of the licences that it asks for are taken", "It starts when some are given back.", waits=True
    ),
    "Reservation": Meaning("its reservation has not begun", "It starts with the reservation.", waits=True),
    "JobHeldUser": Meaning("its owner holds it", "Its owner can release it: scontrol release JOB."),
    "JobHeldAdmin": Meaning(
        "an administrator holds it", "Only an administrator can release it: scontrol release JOB."
    ),
    "JobHoldMaxRequeue": Meaning(
        "it was requeued too often and is held now", "See why its nodes failed, then: scontrol release JOB."
    ),
    "DependencyNeverSatisfied": Meaning(
        "the job that it waits for ended in a way that it does not accept",
        "It never starts: cancel it, or change its dependency with scontrol update.",
    ),
    "BadConstraints": Meaning(
        "no node of the cluster has what it asks for",
        "Ask for less, or for other features: scontrol show job JOB says what, sinfo -N -l what there is.",
    ),
    "PartitionNodeLimit": Meaning(
        "it asks for more nodes than its partition has or allows",
        "Ask for fewer nodes, another partition, or more workers in the NodeSet.",
    ),
    "PartitionTimeLimit": Meaning(
        "it asks for more time than its partition allows",
        "Ask for less time: scontrol update JobId=JOB TimeLimit=…",
    ),
    "PartitionDown": Meaning(
        "its partition is down", "An administrator sets it up again: scontrol update Partition=… State=UP"
    ),
    "PartitionInactive": Meaning(
        "its partition takes no jobs, because it is being removed from the configuration",
        "Move the job to another partition: scontrol update JobId=JOB Partition=…",
    ),
    "PartitionConfig": Meaning(
        "it asks for something that its partition can never give",
        "Ask for less, or for another partition: scontrol show partition says what it has.",
    ),
    "ReqNodeNotAvail": Meaning(
        "a node that it insists on is down, drained or reserved",
        "Let it run elsewhere, or see why that node is away: kubectl slurm explain node/NAME.",
    ),
    "NodeDown": Meaning("a node that it needs is down", "See why: kubectl slurm explain node/NAME."),
    "InvalidAccount": Meaning("its account does not exist", "Name one that does: sacctmgr show assoc."),
    "InvalidQOS": Meaning(
        "its QOS does not exist, or is not for this account", "Name another: sacctmgr show qos."
    ),
    "AccountNotAllowed": Meaning(
        "its account may not use this partition", "Use another account or partition."
    ),
    "QOSNotAllowed": Meaning("its QOS may not be used in this partition", "Use another QOS or partition."),
    "MaxArrayTasks": _LIMIT,
    "Cleaning": Meaning(
        "what an earlier run left behind is being cleaned up", "It continues automatically.", waits=True
    ),
    "launch_failed_requeued_held": Meaning(
        "it failed to start on its node, and is held so that it does not fail again",
        "Fix the node, then: scontrol release JOB.",
    ),
}


def meaning(reason: str) -> Meaning | None:
    """What a job's reason means; None for a word that we do not know."""
    word = reason.partition(",")[0].strip().strip("()")
    if word in _MEANINGS:
        return _MEANINGS[word]
    if "Held" in word or "Hold" in word:
        return _HELD
    return _LIMIT if word.startswith(("QOS", "Assoc")) and ("Max" in word or "Grp" in word) else None
