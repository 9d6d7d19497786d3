"""What a worker asks slurmctld, by the commands that are in the image."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

# With no name to resolve or nobody there, a client retries for minutes.
_DEADLINE_S = 15


class Unreachable(Enum):
    """No answer, which says nothing about the node."""

    NO_ANSWER = "no answer from slurmctld"


@dataclass(frozen=True)
class NodeRecord:
    """What slurmctld knows about a node; `known` is False when it has no such node."""

    known: bool
    states: frozenset[str] = frozenset()
    reason: str = ""


def node_record(name: str) -> NodeRecord | Unreachable:
    done = command("scontrol", "--oneliner", "show", "node", name)
    if done is None:
        return Unreachable.NO_ANSWER
    return record_from(done.returncode, done.stdout + done.stderr)


def record_from(code: int, text: str) -> NodeRecord | Unreachable:
    """What `scontrol --oneliner show node` meant."""
    if code == 0 and text.startswith("NodeName="):
        _, has_reason, reason = text.partition(" Reason=")
        states = next(word for word in text.split() if word.startswith("State=")).removeprefix("State=")
        return NodeRecord(True, frozenset(states.split("+")), reason.strip() if has_reason else "")
    if "not found" in text or "Invalid node name" in text:
        return NodeRecord(False)
    return Unreachable.NO_ANSWER


def unfinished_jobs(name: str) -> list[str] | Unreachable:
    """Ids of all jobs that hold the node, suspended and completing ones included."""
    states = "--states=RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED,SIGNALING,RESIZING,STAGE_OUT"
    # Without --all, jobs in hidden partitions are left out.
    done = command("squeue", "--noheader", "--all", "--format=%A", states, f"--nodelist={name}")
    if done is None:
        return Unreachable.NO_ANSWER
    if done.returncode != 0:
        return [] if "Invalid node name" in done.stderr else Unreachable.NO_ANSWER
    return sorted(set(done.stdout.split()))


def command(*argv: str) -> "subprocess.CompletedProcess[str] | None":
    """The finished command; None when it took too long or could not be started.

    A job may have taken every process that the pod may have. And people write comments in any encoding.
    """
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_DEADLINE_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None


def node_name(arguments: Sequence[str], hostname: str) -> str:
    """The name this slurmd registers with: what -N says, else the short host name."""
    for index, word in enumerate(arguments):
        if word == "-N" and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith("-N") and len(word) > 2:
            return word[2:]
    return hostname.partition(".")[0]
