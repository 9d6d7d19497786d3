"""What a change of a key costs: a reconfigure or a restart, which daemons, and whether jobs are hurt.

A reconfigure restarts every daemon in place on the new files (seen on 26.05: slurmds re-execute
themselves), so nearly all keys take effect that way. The exceptions stand here, with where they were learnt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Cost(IntEnum):
    """In order: the cost of several changes is the greatest of them."""

    NOTHING = 0
    RECONFIGURE = 1
    RESTART = 2


class Daemon(StrEnum):
    SLURMCTLD = "slurmctld"
    SLURMD = "slurmd"
    SLURMDBD = "slurmdbd"
    SLURMRESTD = "slurmrestd"
    SACKD = "sackd"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a change of one key needs: which daemons must restart, and what becomes of jobs, if it hurts.

    Jobs that have not started lose nothing by most of them; `loses_queue` says where they do.
    """

    cost: Cost
    learnt: str
    daemons: tuple[Daemon, ...] = ()
    jobs: str = ""
    loses_queue: bool = False


_ALL = (Daemon.SLURMCTLD, Daemon.SLURMD, Daemon.SLURMRESTD, Daemon.SACKD)
_LISTENING = 'slurm.conf(5): "Changes to TCP listening settings will require a daemon restart."'

# What needs more than a reconfigure, or hurts.
EXCEPTIONS: Mapping[str, Mapping[str, Rule]] = {
    "slurm.conf": {
        "SlurmctldPort": Rule(Cost.RESTART, _LISTENING, _ALL),
        "SlurmdPort": Rule(Cost.RESTART, _LISTENING, (Daemon.SLURMD,)),
        "SlurmctldAddr": Rule(Cost.RESTART, _LISTENING, _ALL),
        "CommunicationParameters": Rule(Cost.RESTART, _LISTENING, _ALL),
        "AuthType": Rule(
            Cost.RESTART,
            'slurm.conf(5): "All Slurm daemons and commands must be terminated prior to changing the value"',
            (*_ALL, Daemon.SLURMDBD),
            "running steps are interrupted and cannot finish",
        ),
        "CredType": Rule(
            Cost.RESTART,
            "not documented; kept to the safe side, like AuthType",
            _ALL,
            "running steps are interrupted and cannot finish",
        ),
        "TLSType": Rule(
            Cost.RESTART,
            "not documented; kept to the safe side, like AuthType",
            (*_ALL, Daemon.SLURMDBD),
            "running steps cannot reach slurmctld any more",
        ),
        "SelectType": Rule(
            Cost.RESTART,
            'slurm.conf(5): "When changed, all job information (running and pending) will be lost"',
            (Daemon.SLURMCTLD,),
            "all jobs, running and pending, are lost",
            loses_queue=True,
        ),
        "SwitchType": Rule(
            Cost.RESTART,
            'slurm.conf(5): "All Slurm daemons, commands and running jobs must be restarted or reconfigured"',
            _ALL,
            "running jobs may not be recovered",
        ),
        "StateSaveLocation": Rule(
            Cost.RESTART,
            "seen on 26.05.5: a reconfigure takes it and begins with what is there",
            (Daemon.SLURMCTLD,),
            "all jobs and dynamic nodes are lost where the new place is empty",
            loses_queue=True,
        ),
        "ClusterName": Rule(
            Cost.RESTART,
            "seen on 26.05.5: slurmctld refuses the state of another name (CLUSTER NAME MISMATCH)",
            (*_ALL, Daemon.SLURMDBD),
            "their accounting goes to another cluster",
            loses_queue=True,
        ),
        "SlurmUser": Rule(
            Cost.RESTART,
            "slurm.conf(5): the user slurmctld executes as; a running process keeps its own",
            (Daemon.SLURMCTLD,),
        ),
        "SlurmdUser": Rule(
            Cost.RESTART,
            "slurm.conf(5): the user slurmd executes as; a running process keeps its own",
            (Daemon.SLURMD,),
        ),
        "SlurmdSpoolDir": Rule(
            Cost.RESTART,
            "not documented; kept to the safe side: slurmd keeps the sockets of running steps there",
            (Daemon.SLURMD,),
            "slurmd may not find its running steps again",
        ),
        "PartitionName": Rule(
            Cost.RECONFIGURE,
            "seen on 26.05.5: a reconfigure without a partition ends its jobs at once",
            jobs="jobs of a partition that is gone end at once, running and pending",
            loses_queue=True,
        ),
        "NodeName": Rule(
            Cost.RECONFIGURE,
            'slurm.conf(5), NODE CONFIGURATION: "require restarting or reconfiguring all" daemons',
            jobs="jobs on a node that is gone are ended",
        ),
    },
    "slurmdbd.conf": {
        "DbdPort": Rule(Cost.RESTART, _LISTENING, (Daemon.SLURMDBD,)),
        "DbdAddr": Rule(Cost.RESTART, _LISTENING, (Daemon.SLURMDBD,)),
        "DbdHost": Rule(Cost.RESTART, "not documented; kept to the safe side", (Daemon.SLURMDBD,)),
        "AuthType": Rule(
            Cost.RESTART,
            'slurmdbd.conf(5): "must be terminated prior to changing the value"',
            (Daemon.SLURMDBD,),
        ),
        "SlurmUser": Rule(
            Cost.RESTART,
            "slurmdbd.conf(5): the user it executes as; a running process keeps its own",
            (Daemon.SLURMDBD,),
        ),
        **{
            key: Rule(
                Cost.RESTART,
                "not documented; kept to the safe side: a restarted slurmdbd harms nobody",
                (Daemon.SLURMDBD,),
            )
            for key in [
                "StorageType",
                "StorageHost",
                "StorageBackupHost",
                "StoragePort",
                "StorageLoc",
                "StorageUser",
                "StoragePass",
                "StoragePassScript",
                "StorageParameters",
            ]
        },
    },
    "cgroup.conf": {
        "CgroupSlice": Rule(
            Cost.RESTART,
            'cgroup.conf(5): "requires to stop all the slurmstepd scopes in the node and restart slurmd"',
            (Daemon.SLURMD,),
            "all steps on the node must have ended",
        ),
        "CgroupPlugin": Rule(
            Cost.RESTART,
            "not documented; kept to the safe side: running steps stay in the old hierarchy",
            (Daemon.SLURMD,),
            "slurmd may lose control of its running steps",
        ),
    },
    "gres.conf": {
        "Cores": Rule(
            Cost.RESTART,
            'gres.conf(5): "A restart of the slurmctld is needed for changes to the Cores option"',
            (Daemon.SLURMCTLD,),
        ),
        "CPUs": Rule(Cost.RESTART, "gres.conf(5): the old name of Cores", (Daemon.SLURMCTLD,)),
    },
}

# What a file needs whose changed key is no exception.
OTHERWISE: Mapping[str, Rule] = {
    "slurm.conf": Rule(
        Cost.RECONFIGURE,
        'slurm.conf(5): "take effect upon restart of Slurm daemons, daemon receipt of the SIGHUP signal, or '
        'execution of the command scontrol reconfigure unless otherwise noted"',
    ),
    "slurmdbd.conf": Rule(
        Cost.RECONFIGURE,
        'slurmdbd.conf(5): "upon restart of SlurmDBD or daemon receipt of the SIGHUP signal"',
    ),
    "plugstack.conf": Rule(
        Cost.RECONFIGURE,
        "spank(7): read at each job launch; workers without the file get it by a reconfigure",
    ),
}
_OTHERWISE = Rule(Cost.RECONFIGURE, 'its man page: "or execution of the command scontrol reconfigure"')


def rule(file: str, key: str) -> Rule:
    """What a change of this key needs, whatever the case it is written in."""
    exceptions = {name.lower(): found for name, found in EXCEPTIONS.get(file, {}).items()}
    return exceptions.get(key.lower()) or OTHERWISE.get(file, _OTHERWISE)
