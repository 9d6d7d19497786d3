"""From the files that slurmctld mounts to the files that it has read: reconfigured, verified, or put back."""

from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api.shared.meta import key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests.objects import ContainerStateTerminated
from slurm_operator.plan.actions import Apply, WriteSlurm
from slurm_operator.plan.step import NOTHING, Step, step, wait
from slurm_operator.reconcilers.controller.annotations import (
    CONFIG_KEPT,
    RECONFIGURE_ASKED,
    REFUSED_DIGEST,
    REFUSED_REASON,
)
from slurm_operator.reconcilers.controller.configuration import config_state
from slurm_operator.reconcilers.controller.configuration.files import Files
from slurm_operator.reconcilers.controller.configuration.jobs_at_risk import is_old
from slurm_operator.reconcilers.controller.configuration.pipeline import write_stages
from slurm_operator.reconcilers.controller.configuration.stakes import Stake, at_stake, at_stake_now
from slurm_operator.reconcilers.controller.desired import good_config_map
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_writes
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import Reconfigure

# From the note on the pod to the new files in it; seen to take a second.
ARRIVAL = timedelta(seconds=2)
# A reconfigure that has not shown in what slurmctld reports by then is asked for again.
PATIENCE = timedelta(seconds=10)
# What slurmctld reports of itself is read this seldom; after a start it may be as old.
REPORT_AGE = timedelta(seconds=45)
MOST_TIMES = 6

_SUBJECT = "slurmctld"


def next_step(seen: Seen, now: datetime) -> Step:
    """What makes slurmctld read the files that it mounts, or shows that it has."""
    files = config_state.held(seen)
    if files is None or not seen.pods or seen.controller.spec.external:
        return NOTHING
    if config_state.applied(seen) == files.digest:
        return step(_kept(seen, files))
    crash = crashes(seen)
    if crash and _has_former(seen, files):
        return _put_back(seen, files, f"slurmctld did not start with it: {crash}", now)
    if not _is_awaited(seen, files, now) and (stake := at_stake_now(seen, now)) is not None:
        return _withdrawn(seen, files, stake, now)
    if not isinstance(seen.slurm, Snapshot):
        return _unseen(seen, files, now)
    if not seen.slurm.is_config_known:
        return _unread(seen)
    return _reconfigure(seen, files, now)


def _kept(seen: Seen, files: Files) -> list[Apply]:
    """The write that remembers these files as good. They have arrived: nothing is on its way any more."""
    message = "kept the configuration that slurmctld runs with, to put it back if another one fails"
    return [
        wire.replace(write, reason=CONFIG_KEPT, message=message, is_housekeeping=True)
        for write in missing_writes([good_config_map(seen, files)], seen.live)
    ]


def crashes(seen: Seen) -> str:
    """What a slurmctld that keeps ending with these files said last; empty when none does."""
    for pod in seen.pods:
        status = config_state.slurmctld_of(pod)
        waiting = status.state.waiting if status is not None else None
        if status is not None and waiting is not None and waiting.reason == "CrashLoopBackOff":
            ended = status.last_state.terminated
            if ended is not None and _had_other_files(seen, ended):
                continue  # It is started again, and reads these.
            words = ended.message.strip().splitlines() if ended is not None else []
            return words[-1] if words else f"pod {pod.metadata.name} keeps ending; its log says why"
    return ""


def _had_other_files(seen: Seen, ended: ContainerStateTerminated) -> bool:
    """It began before these files were there, and was not told to read them."""
    files, (asked, _, _) = config_state.held(seen), config_state.asked(seen)
    is_told = files is not None and asked == files.digest
    return not is_told and ended.started_at is not None and ended.started_at <= config_state.held_since(seen)


def _is_awaited(seen: Seen, files: Files, now: datetime) -> bool:
    """slurmctld was told to read them a moment ago, and may have done so."""
    digest, _, last = config_state.asked(seen)
    return digest == files.digest and now < last + PATIENCE


def _withdrawn(seen: Seen, files: Files, stake: Stake, now: datetime) -> Step:
    """Somebody needs the previous files since these were written: they go back until nobody does."""
    former = config_state.good(seen)
    assert former is not None
    is_told = config_state.asked(seen)[0] == files.digest
    may_have_them = is_told and at_stake(seen, files, former, now) is not None
    if config_state.applied(seen) != former.digest or may_have_them or is_old(seen, now):
        return wait(_SUBJECT, stake.reason, stake.message, seconds=2.0, asks_slurm=True)
    writes, sent = write_stages(seen, former, now)
    message = f"took the new configuration back before slurmctld read it. {stake.message}"
    told = [wire.replace(write, reason=Reason.CONFIG_WITHDRAWN, message=message) for write in writes]
    return step(told, sent, seconds=ARRIVAL.total_seconds(), asks_slurm=True)


def _reconfigure(seen: Seen, files: Files, now: datetime) -> Step:
    if not any(config_state.started_at(pod) for pod in seen.pods):
        return NOTHING  # What starts now reads the new files anyway.
    late = [
        pod
        for pod in seen.pods
        if config_state.sent(pod)[0] != files.digest and config_state.is_behind(seen, pod)
    ]
    if late:
        return step(
            config_state.send_files(late, files.digest, now), seconds=ARRIVAL.total_seconds(), asks_slurm=True
        )
    if config_state.restarts_due(seen):
        return NOTHING  # Those pods are replaced instead; see `pods`.
    ready_at = max(
        *(config_state.sent(pod)[1] + ARRIVAL for pod in seen.pods),
        *(
            started + REPORT_AGE
            for pod in seen.pods
            if (started := config_state.started_with_files(seen, pod))
        ),
        config_state.held_since(seen),
    )
    if now < ready_at:
        message = "The new configuration is on its way to slurmctld."
        left = (ready_at - now).total_seconds()
        return wait(_SUBJECT, Reason.CONFIG_ON_ITS_WAY, message, seconds=left, asks_slurm=True)
    return _ask(seen, files, now)


def _ask(seen: Seen, files: Files, now: datetime) -> Step:
    digest, times, last = config_state.asked(seen)
    times = times if digest == files.digest else 0
    if times and now < last + PATIENCE:
        message = "slurmctld was told to read the new configuration; its report is awaited."
        left = (last + PATIENCE - now).total_seconds()
        return wait(_SUBJECT, Reason.VERIFYING, message, seconds=min(left, 2.0), asks_slurm=True)
    if times >= MOST_TIMES:
        return _give_up(seen, files, times, now)
    asking = WriteSlurm(
        controller=key_of(seen.controller),
        write=Reconfigure(),
        reason=Reason.RECONFIGURED,
        message="told slurmctld to read the new configuration",
    )
    said = f"{files.digest} {times + 1} {now.isoformat()}"
    noted = config_state.note(
        seen.pods[0], RECONFIGURE_ASKED, said, Reason.RECONFIGURING, "about to tell slurmctld"
    )
    # Noted first, so that a request which fails counts too, and files that are never taken are put back.
    return step([noted], [asking], seconds=2.0, asks_slurm=True)


def _give_up(seen: Seen, files: Files, times: int, now: datetime) -> Step:
    why = f"slurmctld was told {times} times to read it and goes on with the previous files; its log says why"
    message = f"The configuration is not in force: {why}."
    former = config_state.good(seen)
    if former is None or not _has_former(seen, files):
        return wait(_SUBJECT, Reason.CONFIG_NOT_TAKEN, message)
    if (stake := at_stake(seen, files, former, now)) is not None:
        # What it reports may be old, and people may use what only the new files have.
        message = f"{message} It is not put back to the previous one yet. {stake.message}"
        return wait(
            _SUBJECT, Reason.CONFIG_NOT_TAKEN, message, seconds=PATIENCE.total_seconds(), asks_slurm=True
        )
    return _put_back(seen, files, why, now)


def _put_back(seen: Seen, files: Files, why: str, now: datetime) -> Step:
    former = config_state.good(seen)
    assert former is not None
    reason = f"The configuration was put back to the previous one: {why}. Change it to try again."
    notes = {REFUSED_DIGEST: files.digest, REFUSED_REASON: reason}
    return step(*write_stages(seen, former, now, notes), seconds=ARRIVAL.total_seconds())


def _unseen(seen: Seen, files: Files, now: datetime) -> Step:
    """Nobody can be asked. Files that were verified before need no word; others wait for a slurmrestd."""
    assert not isinstance(seen.slurm, Snapshot)
    if config_state.is_proven(seen):
        return NOTHING
    if not any(config_state.started_at(pod) for pod in seen.pods):
        return Step(asks_slurm=True)  # What starts now reads the new files anyway.
    late = [
        pod
        for pod in seen.pods
        if config_state.sent(pod)[0] != files.digest and config_state.is_behind(seen, pod)
    ]
    if not late and all(config_state.started_with_files(seen, pod) for pod in seen.pods):
        return NOTHING  # It started with them; there is nothing to tell it.
    needs = "" if seen.has_restapi else " A RestApi for this Controller is needed for that."
    message = f"The new files are in place, but slurmctld cannot be told: {seen.slurm.why}.{needs}"
    waiting = wait(_SUBJECT, Reason.CANNOT_RECONFIGURE, message, asks_slurm=True)
    return Step(
        (*step(config_state.send_files(late, files.digest, now)).stages, *waiting.stages), asks_slurm=True
    )


def _unread(seen: Seen) -> Step:
    """Slurm answers, but has not said yet which files slurmctld runs with."""
    if config_state.is_proven(seen):
        return NOTHING
    message = "What slurmctld runs with could not be read yet; it is asked for again."
    return wait(_SUBJECT, Reason.VERIFYING, message, seconds=2.0, asks_slurm=True)


def _has_former(seen: Seen, files: Files) -> bool:
    former = config_state.good(seen)
    return former is not None and former.digest != files.digest
