"""From the files that the spec asks for to the files that slurmctld mounts: checked, rehearsed, then written.

Whatever is refused on the way never gets into the mounted ConfigMap, so a slurmctld that goes on and one that
is restarted both have the last good files.
"""

import re
from datetime import datetime, timedelta

from slurm_operator.conditions import Reason
from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Action, Apply, Create
from slurm_operator.plan.step import Step, step, wait
from slurm_operator.reconcilers.controller import desired
from slurm_operator.reconcilers.controller.annotations import REFUSED_DIGEST, REFUSED_REASON, WRITTEN_AT
from slurm_operator.reconcilers.controller.annotations import rehearsal as rehearsal_name
from slurm_operator.reconcilers.controller.configuration import config_state, first_start, rehearsal
from slurm_operator.reconcilers.controller.configuration.files import (
    Files,
    Refusal,
    missing,
    refusal,
    wanted_files,
)
from slurm_operator.reconcilers.controller.configuration.jobs_at_risk import leaves_out
from slurm_operator.reconcilers.controller.configuration.stakes import at_stake
from slurm_operator.reconcilers.controller.observe import Seen, once
from slurm_operator.reconcilers.shared.children import missing_writes
from slurm_operator.slurm.snapshot import Snapshot

# How long a rehearsal may take before people are told, and the pause before one that was cut off is repeated.
REHEARSAL_LOOK_SECONDS = 30.0

# Whoever makes a Controller makes its NodeSets in the same moment, and each of them changes the files. The
# first that is seen ends the wait; only a Slurm cluster that begins without workers begins so much later.
NODESETS_FOLLOW_WITHIN = timedelta(seconds=5)

# While jobs are in the way of a change.
JOBS_LOOK_SECONDS = 10.0

_SUBJECT = "configuration"
_NOTES = (WRITTEN_AT, REFUSED_DIGEST, REFUSED_REASON)
_ABOUT_NODE_NAMES = re.compile(
    r"invalid node names?|node names? .*not found|unable to find node", re.IGNORECASE
)


def next_step(seen: Seen, now: datetime) -> Step:
    """What brings the mounted files closer to those that the spec asks for."""
    absent = missing(seen)
    if absent:
        return step([one.wait for one in absent])
    files = wanted_files(seen)
    refused_files = refused(seen)
    if refused_files is not None:
        keep = files.digest if refused_files.reason == Reason.REHEARSAL_REFUSED else ""
        kept = wait(_SUBJECT, refused_files.reason, refused_files.message)
        return Step((*kept.stages, *step(_removals(seen, keep, "it was about other files")).stages))
    if seen.controller.spec.external:
        return step(missing_writes([desired.config_map(seen, files)], seen.live))
    mounted = config_state.held(seen)
    if mounted is not None and mounted.digest == files.digest:
        return _settled(seen, files)
    if first_start.has_been_refused(seen):
        return _rehearse(seen, files, now)  # Without a slurmctld that ever ran nothing is at stake.
    if mounted is not None and seen.unread_nodesets and (dropped := leaves_out(mounted, files)):
        return wait(_SUBJECT, Reason.NODE_SET_UNREADABLE, _unreadable(seen, dropped))
    if mounted is not None and (stake := at_stake(seen, mounted, files, now)) is not None:
        return wait(_SUBJECT, stake.reason, stake.message, seconds=JOBS_LOOK_SECONDS, asks_slurm=True)
    return _first_workers(seen, now) or _rehearse(seen, files, now)


@once
def refused(seen: Seen) -> Refusal | None:
    """Why the files that the spec asks for are not used; None while nothing speaks against them."""
    if missing(seen):
        return None
    files = wanted_files(seen)
    return (
        refusal(seen, files)
        or _not_taken(seen, files)
        or _failed_rehearsal(seen, files)
        or _failed_first_start(seen, files)
    )


def _unreadable(seen: Seen, dropped: list[str]) -> str:
    """For people: one of them may need what would go."""
    return (
        f"The operator does not understand NodeSet {', '.join(seen.unread_nodesets)}, and without it the "
        f"configuration would lose {', '.join(dropped)}. So slurmctld goes on with the previous one. "
        "The log of the operator says what does not decode; correct it, or delete the NodeSet."
    )


def write_stages(
    seen: Seen, files: Files, now: datetime, notes: dict[str, str] | None = None
) -> list[list[Action]]:
    """The stages that put files into place and send them on their way to the pods."""
    manifest = desired.config_map(seen, files, {WRITTEN_AT: now.isoformat(), **(notes or {})})
    changed = missing_writes([manifest], seen.live)
    return [[*changed], [*config_state.send_files(seen.pods, files.digest, now)]]


def _settled(seen: Seen, files: Files) -> Step:
    """Nothing to check any more; only what somebody else did to the ConfigMap is put right."""
    child = config_state.config_child(seen)
    notes = {
        key: child.metadata.annotations[key] for key in _NOTES if child and key in child.metadata.annotations
    }
    writes = missing_writes([desired.config_map(seen, files, notes)], seen.live)
    return step(writes, _removals(seen, "", "its files are in use"))


def _first_workers(seen: Seen, now: datetime) -> Step | None:
    """A moment in which the first NodeSets may come, before the files are tried out without them."""
    made_at = seen.controller.metadata.creation_timestamp
    if seen.workload is not None or seen.nodesets or made_at is None:
        return None
    left = made_at + NODESETS_FOLLOW_WITHIN - now
    if not timedelta(0) < left <= NODESETS_FOLLOW_WITHIN:
        return None  # By a clock that is ahead of ours it may be made minutes from now.
    message = "The NodeSets that are made together with this Controller become part of its configuration."
    return wait(_SUBJECT, Reason.NODE_SETS_MAY_FOLLOW, message, seconds=left.total_seconds())


def _rehearse(seen: Seen, files: Files, now: datetime) -> Step:
    for key in (seen.slurm_key, seen.signing_key):
        if not key.digest:
            return step([])  # The keys say themselves what they lack, and slurmctld starts with none of them.
    if key_ring.ring_of(seen.ring) is None:
        return step([])  # It is on its way, and a pod without it would not start.
    if first_start.is_next(seen):
        return step(*write_stages(seen, files, now))
    name = rehearsal_name(seen.name, files.digest)
    stale = _removals(seen, files.digest, "the configuration changed in the meantime")
    holder = next((child for child in seen.rehearsals if child.metadata.name == name), None)
    if holder is None or holder.metadata.is_terminating:
        message = "testing the new configuration in a throwaway slurmctld before it is used"
        made = Apply(
            manifest=rehearsal.config_map(seen, files),
            reason=Reason.REHEARSING,
            message=message,
            is_housekeeping=True,
        )
        return step(stale, [made] if holder is None else [], seconds=REHEARSAL_LOOK_SECONDS)
    pod = seen.rehearsal_pods.get(name)
    if pod is None:
        made_pod = Create(
            manifest=rehearsal.rehearsal_pod(seen, holder),
            reason=Reason.REHEARSING,
            message=f"started rehearsal {name}",
            is_housekeeping=True,
        )
        return step(stale, [made_pod], seconds=REHEARSAL_LOOK_SECONDS)
    if rehearsal.verdict(pod) is not None:
        return step(
            *write_stages(seen, files, now), _removals(seen, "", "slurmctld takes the new configuration")
        )
    if rehearsal.is_over(pod):
        return _repeat(seen, pod, now)
    told = rehearsal.trouble(pod)
    ending = f": {told}" if told else "."
    message = f"Testing the new configuration with a throwaway slurmctld in pod {name}{ending}"
    reason = Reason.REHEARSAL_STUCK if told else Reason.REHEARSING
    waiting = wait(_SUBJECT, reason, message, seconds=REHEARSAL_LOOK_SECONDS)
    return Step((*step(stale).stages, *waiting.stages), waiting.look_again)


def _repeat(seen: Seen, pod: Pod, now: datetime) -> Step:
    """A rehearsal that was cut off says nothing about the files."""
    created = pod.metadata.creation_timestamp
    age = (now - created).total_seconds() if created is not None else REHEARSAL_LOOK_SECONDS
    if age >= REHEARSAL_LOOK_SECONDS:
        return step(_removals(seen, "", "it was cut off before it could say anything; it is repeated"))
    message = (
        f"The rehearsal in pod {pod.metadata.name} was cut off ({pod.status.reason}); it is repeated soon."
    )
    return wait(_SUBJECT, Reason.REHEARSAL_CUT_OFF, message, seconds=REHEARSAL_LOOK_SECONDS - age)


def _failed_rehearsal(seen: Seen, files: Files) -> Refusal | None:
    pod = seen.rehearsal_pods.get(rehearsal_name(seen.name, files.digest))
    said = rehearsal.verdict(pod) if pod is not None else None
    if said is None or said.is_good:
        return None
    if _ABOUT_NODE_NAMES.search(said.message) and not isinstance(seen.slurm, Snapshot):
        return None  # Workers that registered themselves could not be named to the rehearsal.
    return _rehearsal_refused(said, files)


def _failed_first_start(seen: Seen, files: Files) -> Refusal | None:
    """What slurmctld said to the same files in its own pod, before it would have started there."""
    said = next(
        (words for digest, words in first_start.refusals(seen).values() if digest == files.digest), None
    )
    return _rehearsal_refused(rehearsal.judged(said), files) if said is not None else None


def _rehearsal_refused(said: rehearsal.Verdict, files: Files) -> Refusal:
    message = f"slurmctld does not start with this configuration: {said.message}"
    return Refusal(Reason.REHEARSAL_REFUSED, message, said.file, said.line, files.digest)


def _not_taken(seen: Seen, files: Files) -> Refusal | None:
    """What a running slurmctld did not take, as noted when the previous files were put back."""
    child = config_state.config_child(seen)
    notes = child.metadata.annotations if child is not None else {}
    if not files.digest or notes.get(REFUSED_DIGEST) != files.digest:
        return None
    return Refusal(Reason.CONFIG_PUT_BACK, notes.get(REFUSED_REASON, ""), digest=files.digest)


def _removals(seen: Seen, keep: str, why: str) -> list[Action]:
    """Ends every rehearsal but the one of the digest `keep`."""
    kept = rehearsal_name(seen.name, keep) if keep else ""
    return [
        rehearsal.removal(seen, child, why)
        for child in seen.rehearsals
        if child.metadata.name != kept and not child.metadata.is_terminating
    ]
