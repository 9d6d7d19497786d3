"""What to tell about each JailedConfig: its two conditions, before and after a pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slurm_operator.agents.sconfig.decide import Hold, Step, Wait, Write, is_owed
from slurm_operator.agents.sconfig.files import Batch, Cause, Fate, Result
from slurm_operator.agents.sconfig.groups import ACTIONS_COMPLETED, FILES_WRITTEN, Group, Member
from slurm_operator.api.shared.conditions import Condition, Truth
from slurm_operator.conditions import Reason
from slurm_operator.plan.conditions import false, true, unknown

# By the name of the JailedConfig. One that is not in here keeps the conditions that it has.
Conditions = Mapping[str, tuple[Condition, Condition]]


@dataclass(frozen=True)
class Reconfigured:
    """What became of a reconfigure: what went wrong, or nothing."""

    trouble: str = ""


def first_seen(group: Group) -> Conditions:
    """For those who have no conditions yet."""
    message = "The writer has not looked at this JailedConfig yet."
    both = unknown(FILES_WRITTEN, Reason.INIT, message), unknown(ACTIONS_COMPLETED, Reason.INIT, message)
    return {member.name: both for member in group.members if not member.config.conditions}


def starting(step: Step) -> Conditions:
    """Before the first byte is written: should we end in the middle, the next writer knows what is owed."""
    if isinstance(step, Wait):
        return first_seen(step.group)
    if not isinstance(step, Write):
        return {}
    files = false(FILES_WRITTEN, Reason.REFRESH, "The files are being written.")
    actions = false(ACTIONS_COMPLETED, Reason.REFRESH, "The files are being written; Slurm reads them then.")
    return {member.name: (files, actions) for member in step.group.active}


def finished(step: Step, batch: Batch | None = None, reconfigured: Reconfigured | None = None) -> Conditions:
    """After the pass: `batch` of a Write, `reconfigured` of a group that was to be read by Slurm."""
    if isinstance(step, Wait):
        return {}
    results = _results(step, batch)
    has_changed = batch is not None and batch.changed_anything
    is_pending = reconfigured is None and (
        is_owed(step.group) or (has_changed and step.group.wants_reconfigure)
    )
    return {
        member.name: _conditions(step.group, member, results, reconfigured, is_pending=is_pending)
        for member in step.group.members
    }


def _results(step: Step, batch: Batch | None) -> Mapping[str, Result]:
    """What became of the files that were looked at or written; the others hold what is wanted."""
    if isinstance(step, Hold):
        return step.looked
    return {result.path: result for result in batch.results} if batch is not None else {}


def _conditions(
    group: Group,
    member: Member,
    results: Mapping[str, Result],
    reconfigured: Reconfigured | None,
    *,
    is_pending: bool,
) -> tuple[Condition, Condition]:
    files = _files_written(group, member, results)
    return files, _actions_completed(group, member, files, reconfigured, is_pending=is_pending)


def _files_written(group: Group, member: Member, results: Mapping[str, Result]) -> Condition:
    if member.trouble is not None:
        return false(FILES_WRITTEN, member.trouble.reason, _with_notes(member.trouble.message, member))
    own = [results[file.path] for file in member.files if file.path in results]
    missing = [result for result in own if result.fate not in (Fate.UNCHANGED, Fate.WRITTEN)]
    if not missing:
        count = len(member.files)
        message = f"{count} file{'s' * (count != 1)} of ConfigMap {member.config.config_map}"
        message += f" {'is' if count == 1 else 'are'} in the shared root."
        return true(FILES_WRITTEN, Reason.SUCCESS, _with_notes(message, member))
    worst = next((result for result in missing if result.is_trouble), missing[0])
    return false(FILES_WRITTEN, _reason(worst), _with_notes(_told(group, worst), member))


_REASONS: Final = {
    Cause.BAD_PATH: Reason.PATH_REFUSED,
    Cause.FULL: Reason.ROOT_FULL,
    Cause.READ_ONLY: Reason.ROOT_READ_ONLY,
    Cause.NOT_PERMITTED: Reason.WRITE_FAILED,
    Cause.FAULT: Reason.WRITE_FAILED,
    Cause.OTHER_FILE: Reason.NOT_WRITTEN,
}


def _reason(result: Result) -> Reason:
    return _REASONS[result.cause] if result.cause is not None else Reason.NOT_WRITTEN


def _told(group: Group, result: Result) -> str:
    if result.is_trouble:
        return f"{result.message} It is tried again automatically; Slurm goes on with the files that it has."
    if result.message:
        return result.message
    names = ", ".join(member.name for member in group.blockers) or "other files"
    return (
        f"Not written: group {group.key} is written as a whole and waits for {names}. "
        "See the conditions there."
    )


def _actions_completed(
    group: Group,
    member: Member,
    files: Condition,
    reconfigured: Reconfigured | None,
    *,
    is_pending: bool,
) -> Condition:
    if is_pending and not member.is_left_out:
        message = "Slurm has not read all files of the group yet; it does when all of them are written."
        return false(ACTIONS_COMPLETED, Reason.REFRESH, message)
    if files.status is not Truth.TRUE:
        return false(ACTIONS_COMPLETED, Reason.NOT_WRITTEN, "The files are not written; see FilesWritten.")
    if reconfigured is not None and reconfigured.trouble:
        message = f"{reconfigured.trouble} It is tried again automatically."
        return false(ACTIONS_COMPLETED, Reason.RECONFIGURE_FAILED, message)
    if reconfigured is not None:
        return true(ACTIONS_COMPLETED, Reason.SUCCESS, "Slurm has read the files.")
    return _nothing_to_do(group, member)


def _nothing_to_do(group: Group, member: Member) -> Condition:
    if not group.wants_reconfigure:
        reason = Reason.SUCCESS if group.is_aggregated else Reason.MISSING_ACTION
        return true(ACTIONS_COMPLETED, reason, "No update action is asked for.")
    before = member.config.condition(ACTIONS_COMPLETED)
    if before is not None and before.status is Truth.TRUE and before.reason == Reason.SUCCESS:
        return before  # What happened then is still true.
    return true(ACTIONS_COMPLETED, Reason.SUCCESS, "The files were there already; Slurm need not read them.")


def _with_notes(message: str, member: Member) -> str:
    return " ".join((message, *member.notes))
