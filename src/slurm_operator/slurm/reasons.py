"""Why a node drains, and who says so. Slurm keeps one line of text for both, so ours begin with our name."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from slurm_operator.slurm import wire_words
from slurm_operator.slurm.wire_words import OUR_REASON_PREFIX as OUR_REASON_PREFIX

# slurmctld takes longer ones, but they ruin every table they stand in.
MAX_REASON_CHARACTERS = 256

# What slurmctld and slurmd write when they drain a node (the texts stand in the daemons of
# 26.05). They are about the slurmd that runs there now: with its pod, they go.
SLURMS_OWN_DRAINS = {
    "Kill task failed",
    "Prolog error",
    "Epilog error",
    "batch job complete failure",
    "Duplicate jobid",
}

# Drains of its own, too, that go on with numbers or with the next of them: `gres/gpu count reported lower
# than configured (0 < 4), Low CPUs`.
_TOO_LITTLE = re.compile(
    r"Low (CPUs|RealMemory|TmpDisk|socket\*core\*thread count)\b"
    r"|gres/\S+ count reported lower than configured\b"
)

# How node controllers drain workers, for their Kubernetes node and for local storage that is full. The second
# words are those of releases before 1.23.1. They are about a pod, too: the next one may be somewhere else.
REPLACEMENT_REASONS = (
    "[compute_maintenance] node replacement process",
    "[node_problem] compute_maintenance: node replacement process",
)
REBOOT_REASONS = (
    "[compute_maintenance] node reboot process",
    "[node_problem] compute_maintenance: node reboot process",
)
STORAGE_REASON = "[user_problem] pod_ephemeral_storage"

# And what they write when they set a node down. Where a drain stands beside one of these, somebody else made
# it and gave no reason: slurmctld puts its own words where there are none.
REBOOTED = "Node unexpectedly rebooted"
SLURMS_OWN_DOWNS = (
    "Not responding",
    REBOOTED,
    "reboot timed out",
    "ResumeTimeout reached",
)

# As whom daemons of Slurm set a reason. Where nobody is named it may be theirs.
SLURMS_OWN_USERS = {"", "root", "slurm"}

# Of a node that drains already it says so behind the reason that is there, whoever gave that (seen on 26.05).
_GIVEN_UP = re.compile(rf"(?: : (?:{'|'.join(SLURMS_OWN_DOWNS)}))+$")

# How the operator before us drained a worker that a user had cordoned. All its other drains are of workers
# that it had cordoned itself, for their machine, in whichever words of a human or a Node, or to remove them.
_CORDONED_BY_USER = re.compile(r"slurm-operator: Pod \(\S+\) was cordoned")

# More characters than this are a sentence, and no name of a user.
_LONGEST_NAME = 80


def sanitised(text: str) -> str:
    """`text` on one line: white space becomes spaces, other control characters go."""
    spaced = "".join(" " if char in "\t\r\n" else char for char in text)
    return "".join(char for char in spaced if char.isprintable()).strip()


def is_our_reason(reason: str) -> bool:
    """Whether we set it. An empty reason is somebody else's: we always give one."""
    return reason.startswith(OUR_REASON_PREFIX)


def is_cordoned_by_operator(reason: str) -> bool:
    """Whether the operator before us drained with it a worker that no user had cordoned.

    Ours name a pod, or until when pods were made; that operator's end as they like.
    """
    ours = OurReason.read(reason)
    if (
        ours is None
        or ours.pod_uid
        or ours.made_until is not None
        or ours.cause == wire_words.POD_TERMINATING
    ):
        return False
    return _CORDONED_BY_USER.fullmatch(_bare(reason)) is None


def is_slurms_own_reason(reason: str, set_by: str) -> bool:
    """Whether slurmctld or slurmd wrote it. People use the same words, and add their own."""
    is_down = _bare(reason) in SLURMS_OWN_DOWNS and set_by in SLURMS_OWN_USERS
    return is_down or is_slurms_own_drain(reason, set_by)


def is_slurms_own_drain(reason: str, set_by: str) -> bool:
    """Whether slurmctld or slurmd drained the node, as this reason of a drained node says."""
    is_theirs = _bare(reason) in SLURMS_OWN_DRAINS or _TOO_LITTLE.match(reason) is not None
    return is_theirs and set_by in SLURMS_OWN_USERS


def is_node_controllers_drain(reason: str, set_by: str) -> bool:
    """Whether a controller of Kubernetes nodes drained it, for the place where its pod is."""
    starts = (*REPLACEMENT_REASONS, *REBOOT_REASONS, STORAGE_REASON)
    return reason.startswith(starts) and set_by in SLURMS_OWN_USERS


def author(reason: str, set_by: str) -> tuple[str, str]:
    """Who gave a reason, and what remains of it. Empty is nobody that we know of.

    slurmctld notes `slurm` for everything that comes with a token of that user. Whoever sends such a reason
    puts their own name first, as `kubectl slurm drain` does: `grace: bad NIC`.
    """
    who, colon, why = reason.partition(": ")
    is_signed = set_by in ("", "slurm") and colon and who and why and len(who) <= _LONGEST_NAME
    return (who, why) if is_signed and not is_our_reason(reason) else (set_by, reason)


def given_up_for(reason: str) -> str:
    """What slurmctld said when it last gave the node up, alone or behind what stood there; else nothing."""
    said = reason.rpartition(" : ")[2]
    return said if said in SLURMS_OWN_DOWNS else ""


def _bare(reason: str) -> str:
    """Without what slurmctld said behind it when it gave the node up."""
    return _GIVEN_UP.sub("", reason)


@dataclass(frozen=True, slots=True)
class OurReason:
    """A drain of ours, taken apart: `slurm-operator: ScaleIn: leaving (pods made until 2026-01-01T…)`.

    Its end tells a drain about this worker from one about an earlier worker of the same name. A drain of many
    says until when their pods were made, so that it reads the same for all of them and is one request; where
    more depends on it, the drain names the pod by its uid.
    """

    cause: str
    text: str = ""
    pod_uid: str = ""
    made_until: datetime | None = None

    def __str__(self) -> str:
        """As it is sent. Where it would be too long, the text gives way, never the cause or the end."""
        head = ": ".join(filter(None, [sanitised(self.cause), sanitised(self.text)]))
        end = self._end()
        room = MAX_REASON_CHARACTERS - len(OUR_REASON_PREFIX) - len(end)
        return OUR_REASON_PREFIX + head[:room].rstrip() + end

    def _end(self) -> str:
        if self.made_until is not None:
            return wire_words.about_pods(self.made_until)
        return wire_words.about_pod(sanitised(self.pod_uid)) if self.pod_uid else ""

    def is_about(self, pod_uid: str, made_at: datetime | None) -> bool:
        """Whether this pod was meant, and not one before it. Older wordings do not tell; then it was."""
        if self.made_until is not None:
            return made_at is not None and made_at.replace(microsecond=0) <= self.made_until
        return self.pod_uid in ("", pod_uid)

    @staticmethod
    def read(reason: str) -> "OurReason | None":
        """The parts of a reason that we set; None when somebody else did."""
        return _read(reason) if is_our_reason(reason) else None


@lru_cache(maxsize=4096)
def _read(reason: str) -> OurReason:
    """Hundreds of workers drain with the same reason, and it is read often."""
    body = _bare(reason).removeprefix(OUR_REASON_PREFIX)
    pod, pods = wire_words.POD.search(body), wire_words.PODS.search(body)
    end = pod or pods
    cause, _, text = body[: end.start() if end else None].partition(": ")
    return OurReason(
        cause, text, pod["uid"] if pod else "", wire_words.moment(pods["until"]) if pods else None
    )
