"""What a new configuration would cost: slurmctld itself, or jobs. While it would cost anything, it waits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slurm_operator.conditions import Reason
from slurm_operator.reconcilers.controller.configuration.config_state import (
    applied,
    good,
    has_begun_with_files,
    held,
)
from slurm_operator.reconcilers.controller.configuration.files import Files
from slurm_operator.reconcilers.controller.configuration.jobs_at_risk import jobs_at_stake, jobs_left_out
from slurm_operator.reconcilers.controller.configuration.places_in_use import places_in_use, places_unseen
from slurm_operator.reconcilers.controller.observe import Seen

PLACES_IN_USE: Final = Reason.PLACES_IN_USE
PLACES_UNSEEN: Final = Reason.PLACES_UNSEEN
JOBS_AT_STAKE: Final = Reason.JOBS_AT_STAKE


@dataclass(frozen=True)
class Stake:
    """Why a configuration waits: one word, and a sentence."""

    reason: Reason
    message: str


def at_stake(seen: Seen, old: Files, new: Files, now: datetime) -> Stake | None:
    """What would be lost if slurmctld took `new` for `old` now; None when nothing would."""
    if message := places_in_use(seen, new):
        return Stake(reason=PLACES_IN_USE, message=message)
    if message := places_unseen(seen, old, new, now):
        return Stake(reason=PLACES_UNSEEN, message=message)
    if message := jobs_at_stake(seen, old, new, now):
        return Stake(reason=JOBS_AT_STAKE, message=message)
    return None


def at_stake_now(seen: Seen, now: datetime) -> Stake | None:
    """What would be lost if slurmctld took the files that it mounts, and does not run with yet, now."""
    former, files, running = good(seen), held(seen), applied(seen)
    if former is None or files is None or files.digest == running or has_begun_with_files(seen):
        return None
    if running and running != former.digest:
        if message := places_in_use(seen, files):
            return Stake(reason=PLACES_IN_USE, message=message)
        message = jobs_left_out(seen, files, now)
        return Stake(reason=JOBS_AT_STAKE, message=message) if message else None
    return at_stake(seen, former, files, now) if files.digest != former.digest else None
