"""What the reason of a drained Slurm node says, where checks, slurmd or these controllers wrote it.

The first that matches counts. Any other reason is a person's word: it is neither acted on nor lifted. So is a
known text in the middle of a longer one, or one that somebody set by their own name.
"""

import re
from enum import StrEnum
from typing import Final

from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import REBOOT_REASONS, REPLACEMENT_REASONS, SLURMS_OWN_USERS
from slurm_operator.slurm.reasons import STORAGE_REASON as STORAGE_REASON

REPLACEMENT_REASON: Final = REPLACEMENT_REASONS[0]
REBOOT_REASON: Final = REBOOT_REASONS[0]
NODE_PROBLEM: Final = "[node_problem]"
HARDWARE_PROBLEM: Final = "[hardware_problem]"
USER_PROBLEM: Final = "[user_problem]"
_KILL_TASK_FAILED: Final = "Kill task failed"


class Trouble(StrEnum):
    KILL_TASK_FAILED = "KillTaskFailed"
    REPLACEMENT = "Replacement"
    REBOOT = "Reboot"
    NODE_PROBLEM = "NodeProblem"
    STORAGE = "Storage"  # Its user filled the local storage of the worker.
    USER_PROBLEM = "UserProblem"
    HARDWARE_PROBLEM = "HardwareProblem"


# In the order in which they are tried.
_STARTS: Final = (
    (_KILL_TASK_FAILED, Trouble.KILL_TASK_FAILED),
    *((start, Trouble.REPLACEMENT) for start in REPLACEMENT_REASONS),
    *((start, Trouble.REBOOT) for start in REBOOT_REASONS),
    (NODE_PROBLEM, Trouble.NODE_PROBLEM),
    (STORAGE_REASON, Trouble.STORAGE),
    (USER_PROBLEM, Trouble.USER_PROBLEM),
    (HARDWARE_PROBLEM, Trouble.HARDWARE_PROBLEM),
)
_NODE_PROBLEM_FORM: Final = re.compile(r"\[node_problem\] [^\s:][^:]*: \S")


def trouble(record: SlurmNode) -> Trouble | None:
    """What is wrong with a drained node; None where it is not drained, or a person says why."""
    if not record.state.is_drain or record.reason_set_by not in SLURMS_OWN_USERS:
        return None
    if record.reason.startswith(_KILL_TASK_FAILED) and not record.is_drained_by_slurm:
        return None  # A person's own words, which only begin as slurmd's do.
    return next((found for start, found in _STARTS if record.reason.startswith(start)), None)


def is_well_formed(reason: str) -> bool:
    """Whether a `[node_problem]` names its check: `[node_problem] <name>: <details>`."""
    return _NODE_PROBLEM_FORM.match(reason) is not None
