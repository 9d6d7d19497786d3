"""Why a node drains, and who says so. Slurm keeps one line of text for both, so ours begin with our name."""

import re
from dataclasses import dataclass
from typing import Self

# Every drain of ours starts with this, so that anybody can see who made it and nobody's but ours is lifted.
OUR_REASON_PREFIX = "slurm-operator: "

# slurmctld takes longer ones, but they ruin every table they stand in.
MAX_REASON_CHARACTERS = 256

# What slurmctld and slurmd write by themselves when they drain a node (the texts stand in the daemons of
# 26.05). They are about the slurmd that runs there now: with its pod, they go.
SLURMS_OWN_DRAINS = (
    "Kill task failed",
    "Low CPUs",
    "Low RealMemory",
    "Low TmpDisk",
    "Low socket*core*thread count",
    "Prolog error",
    "Epilog error",
    "batch job complete failure",
    "Duplicate jobid",
)

# And what they write when they set a node down. Where a drain stands beside one of these, somebody else made
# it and gave no reason: slurmctld puts its own words where there are none.
SLURMS_OWN_DOWNS = (
    "Not responding",
    "Node unexpectedly rebooted",
    "reboot timed out",
    "ResumeTimeout reached",
)

_POD = re.compile(r" ?\(pod ([0-9a-f-]{4,36})\)$")


def sanitised(text: str) -> str:
    """`text` on one line: white space becomes spaces, other control characters go."""
    spaced = "".join(" " if char in "\t\r\n" else char for char in text)
    return "".join(char for char in spaced if char.isprintable()).strip()


def our_reason(text: str) -> str:
    """`text` as a reason of ours: marked, on one line, and short enough."""
    return (OUR_REASON_PREFIX + sanitised(text))[:MAX_REASON_CHARACTERS].rstrip()


def is_our_reason(reason: str) -> bool:
    """Whether we set it. An empty reason is somebody else's: we always give one."""
    return reason.startswith(OUR_REASON_PREFIX)


def is_slurms_own_reason(reason: str) -> bool:
    """Whether slurmctld or slurmd wrote it by themselves."""
    return reason.startswith(SLURMS_OWN_DRAINS + SLURMS_OWN_DOWNS)


def is_slurms_own_drain(reason: str) -> bool:
    """Whether slurmctld or slurmd drained the node by themselves, as this reason of a drained node says."""
    return reason.startswith(SLURMS_OWN_DRAINS)


@dataclass(frozen=True, slots=True)
class OurReason:
    """A drain of ours, taken apart: `slurm-operator: ScaleIn: leaving the NodeSet (pod 4f1c...)`.

    The pod's uid tells a drain about this worker from one about an earlier worker of the same name.
    """

    cause: str
    text: str = ""
    pod_uid: str = ""

    def __str__(self) -> str:
        """As it is sent. Where it would be too long, the text gives way, never cause or uid."""
        pod = f" (pod {sanitised(self.pod_uid)})" if self.pod_uid else ""
        head = ": ".join(filter(None, [sanitised(self.cause), sanitised(self.text)]))
        room = MAX_REASON_CHARACTERS - len(OUR_REASON_PREFIX) - len(pod)
        return OUR_REASON_PREFIX + head[:room].rstrip() + pod

    @classmethod
    def read(cls, reason: str) -> Self | None:
        """The parts of a reason that we set; None when somebody else did. Older wordings have no uid."""
        if not is_our_reason(reason):
            return None
        body = reason.removeprefix(OUR_REASON_PREFIX)
        pod = _POD.search(body)
        cause, _, text = body[: pod.start() if pod else None].partition(": ")
        return cls(cause=cause, text=text, pod_uid=pod[1] if pod else "")
