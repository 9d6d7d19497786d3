"""Node and job states as Slurm names them: one base state and any number of flags.

The REST API gives a state as a list of words, `["MIXED", "DRAIN"]`. A newer Slurm may use words that are not
listed here: they are carried through, and where one of them could mean a job, we take it that there is one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self


class NodeBase(StrEnum):
    """What a node is doing. One at a time."""

    INVALID = "INVALID"
    UNKNOWN = "UNKNOWN"
    DOWN = "DOWN"
    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    ERROR = "ERROR"
    MIXED = "MIXED"
    FUTURE = "FUTURE"


class NodeFlag(StrEnum):
    """What else is true of a node. Any number at a time."""

    EXTERNAL = "EXTERNAL"
    RESERVED = "RESERVED"
    UNDRAIN = "UNDRAIN"
    CLOUD = "CLOUD"
    RESUME = "RESUME"
    DRAIN = "DRAIN"
    COMPLETING = "COMPLETING"
    NOT_RESPONDING = "NOT_RESPONDING"
    POWERED_DOWN = "POWERED_DOWN"
    FAIL = "FAIL"
    POWERING_UP = "POWERING_UP"
    MAINTENANCE = "MAINTENANCE"
    REBOOT_REQUESTED = "REBOOT_REQUESTED"
    REBOOT_CANCELED = "REBOOT_CANCELED"
    POWERING_DOWN = "POWERING_DOWN"
    DYNAMIC_FUTURE = "DYNAMIC_FUTURE"
    REBOOT_ISSUED = "REBOOT_ISSUED"
    PLANNED = "PLANNED"
    INVALID_REG = "INVALID_REG"
    POWER_DOWN = "POWER_DOWN"
    POWER_UP = "POWER_UP"
    POWER_DRAIN = "POWER_DRAIN"
    POWER_DOWN_ASAP = "POWER_DOWN_ASAP"
    POWER_DOWN_FORCE = "POWER_DOWN_FORCE"
    DYNAMIC_NORM = "DYNAMIC_NORM"
    BLOCKED = "BLOCKED"


class JobBase(StrEnum):
    """How far a job has come. One at a time."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"


class JobFlag(StrEnum):
    """What else is true of a job. Any number at a time."""

    LAUNCH_FAILED = "LAUNCH_FAILED"
    REQUEUED = "REQUEUED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    RESIZING = "RESIZING"
    CONFIGURING = "CONFIGURING"
    COMPLETING = "COMPLETING"
    STOPPED = "STOPPED"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    POWER_UP_NODE = "POWER_UP_NODE"
    REVOKED = "REVOKED"
    REQUEUE_FED = "REQUEUE_FED"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    SIGNALING = "SIGNALING"
    STAGE_OUT = "STAGE_OUT"
    EXPEDITING = "EXPEDITING"


NODE_BASES: frozenset[str] = frozenset(NodeBase)
JOB_BASES: frozenset[str] = frozenset(JobBase)

# A pass asks thousands of nodes for these. To look a word up in its class takes longer than the answer.
_IDLE, _DOWN, _ERROR = NodeBase.IDLE, NodeBase.DOWN, NodeBase.ERROR
_DRAIN, _UNDRAIN, _FAIL = NodeFlag.DRAIN, NodeFlag.UNDRAIN, NodeFlag.FAIL
_NOT_RESPONDING, _INVALID_REG = NodeFlag.NOT_RESPONDING, NodeFlag.INVALID_REG
_UP: frozenset[str] = frozenset({NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED})
_OFF: frozenset[str] = frozenset({NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN})

# An epilog still runs while a node is COMPLETING, and it may be cleaning up the very GPUs the next pod will
# ask for, so to us the node is as busy as ALLOCATED.
BUSY: frozenset[str] = frozenset({NodeBase.ALLOCATED, NodeBase.MIXED, NodeFlag.COMPLETING})

TERMINAL: frozenset[str] = JOB_BASES - {JobBase.PENDING, JobBase.RUNNING, JobBase.SUSPENDED}

# With one of these a job still has something on its nodes, whatever its base state says: CANCELLED+COMPLETING
# is a job whose processes are being killed, PENDING+COMPLETING one that was requeued and is not yet gone.
OCCUPYING: frozenset[str] = frozenset(
    {
        JobFlag.COMPLETING,
        JobFlag.CONFIGURING,
        JobFlag.STOPPED,
        JobFlag.SIGNALING,
        JobFlag.RESIZING,
        JobFlag.STAGE_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class _Words:
    """A set of state words; the two kinds differ in which of them are base states and which are known."""

    words: frozenset[str]

    BASES: ClassVar[frozenset[str]]
    KNOWN: ClassVar[frozenset[str]]

    @classmethod
    def of(cls, *words: str) -> Self:
        """NodeState.of("IDLE", "DRAIN")"""
        return cls.read(words)

    @classmethod
    def read(cls, words: Iterable[str]) -> Self:
        """The list of words as the REST API gives it."""
        return cls(frozenset(word.upper() for word in words))

    def __contains__(self, word: str) -> bool:
        return word in self.words

    def __str__(self) -> str:
        """As `scontrol` writes it, the base state first: IDLE+DRAIN."""
        return "+".join(sorted(self.words, key=lambda word: (word not in self.BASES, word)))

    @property
    def base(self) -> str | None:
        """The base state; None when no word, or more than one, is a base state that we know."""
        bases = self.words & self.BASES
        return next(iter(bases)) if len(bases) == 1 else None

    @property
    def flags(self) -> frozenset[str]:
        """Every word that is not a base state, unknown ones included."""
        return self.words - self.BASES

    @property
    def unknown_words(self) -> frozenset[str]:
        """Words of a Slurm newer than this list."""
        return self.words - self.KNOWN


@dataclass(frozen=True, slots=True)
class NodeState(_Words):
    """The state of one Slurm node."""

    BASES: ClassVar = NODE_BASES
    KNOWN: ClassVar = NODE_BASES | frozenset(NodeFlag)

    @property
    def is_busy(self) -> bool:
        """A job, or the epilog of one, is there. Suspended jobs do not show: only the job list knows them."""
        return not self.words.isdisjoint(BUSY)

    @property
    def is_idle(self) -> bool:
        return _IDLE in self.words and not self.is_busy

    @property
    def is_drain(self) -> bool:
        """No new job will start there, by somebody's wish."""
        return _DRAIN in self.words and _UNDRAIN not in self.words

    @property
    def is_drained(self) -> bool:
        """Drain is set and nothing runs. Without a base state that we know, anything may run."""
        return self.is_drain and not self.is_busy and self.base is not None

    @property
    def is_down(self) -> bool:
        return _DOWN in self.words

    @property
    def is_unresponsive(self) -> bool:
        """slurmctld has not heard from its slurmd for a while; jobs there may well run on."""
        return _NOT_RESPONDING in self.words

    @property
    def is_defunct(self) -> bool:
        """Given up by Slurm, and silent."""
        return self.is_down and self.is_unresponsive

    @property
    def is_failing(self) -> bool:
        return _FAIL in self.words or _ERROR in self.words

    @property
    def is_invalid(self) -> bool:
        """It registered with other resources than its record has; slurmctld drains such a node."""
        return _INVALID_REG in self.words

    @property
    def is_in_maintenance(self) -> bool:
        """A reservation with the MAINT flag holds it now."""
        return NodeFlag.MAINTENANCE in self.words

    @property
    def is_dynamic(self) -> bool:
        """It added itself by `slurmd -Z`; its record can be deleted."""
        return NodeFlag.DYNAMIC_NORM in self.words or NodeFlag.DYNAMIC_FUTURE in self.words

    @property
    def is_powered_off(self) -> bool:
        """Off, or on its way there, by Slurm's power saving."""
        return not self.words.isdisjoint(_OFF)

    @property
    def is_available(self) -> bool:
        """A job may start or run there: up, answering, and wanted."""
        return (
            not self.words.isdisjoint(_UP)
            and not self.is_drain
            and not self.is_unresponsive
            and not self.is_failing
            and not self.is_powered_off
        )


@dataclass(frozen=True, slots=True)
class JobState(_Words):
    """The state of one Slurm job."""

    BASES: ClassVar = JOB_BASES
    KNOWN: ClassVar = JOB_BASES | frozenset(JobFlag)

    @property
    def is_finished(self) -> bool:
        """Nothing of it is left on any node, and nothing will come back.

        A word we do not know may be a flag that says otherwise, so such a job is not finished. slurmctld
        forgets ended jobs after MinJobAge: this can delay a removal, not block it for good.
        """
        return self.base in TERMINAL and self.words.isdisjoint(OCCUPYING) and not self.unknown_words

    @property
    def is_unfinished(self) -> bool:
        """A node it names must stay: everything that is not surely finished, suspended jobs included."""
        return not self.is_finished

    @property
    def is_pending(self) -> bool:
        """It waits, and holds no node yet."""
        return JobBase.PENDING in self.words and self.words.isdisjoint(OCCUPYING) and not self.unknown_words

    @property
    def is_running(self) -> bool:
        return JobBase.RUNNING in self.words

    @property
    def is_suspended(self) -> bool:
        """It holds memory and nodes but no CPU: its node may read IDLE."""
        return JobBase.SUSPENDED in self.words

    @property
    def is_completing(self) -> bool:
        return JobFlag.COMPLETING in self.words

    @property
    def holds_node(self) -> bool:
        """The nodes it names are in its hands now, or may be; a pending job only wishes for some."""
        return self.is_unfinished and not self.is_pending
