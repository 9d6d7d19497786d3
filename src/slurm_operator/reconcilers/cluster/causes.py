"""Why a Cluster is not what it should be: the one part that is the cause, in that part's own words."""

from collections.abc import Iterator

from slurm_operator.api.schema.explicit_fields import explicit_fields
from slurm_operator.plan import failing
from slurm_operator.plan.actions import Apply, Create
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.cluster.desired import chosen_isolation, is_persistent
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.reconcilers.shared.composed import PART_TYPES, Part, State, state, under_way
from slurm_operator.slurm.snapshot import Unreachable

ISOLATION = "Isolation"
PERSISTENT = "Persistent"

# What the user has to fix before anything continues; other waits end without the user.
_STUCK = {"SpecRefused", "NameTaken", "FormerPart", "SecretNotFound", "SecretEntryNotFound", "SecretUnread"}


def conditions(seen: Seen, plan: Plan, outcome: Outcome) -> Iterator[Condition]:
    states = [state(part) for part in parts(seen) if not part.metadata.is_terminating]
    yield _ready(seen, plan, states)
    yield _progressing(plan, outcome, states)
    yield failing.degraded(outcome, _degraded(seen, plan, states))
    if not seen.cluster.spec.is_adopted:
        yield _isolation(seen)
        yield _persistent(seen)


def parts(seen: Seen) -> list[Part]:
    """The Cluster's own parts, the one that can be the cause of another's trouble first."""
    return [part for type_ in PART_TYPES for part in seen.own(type_.KIND.kind)]


def _ready(seen: Seen, plan: Plan, states: list[State]) -> Condition:
    if seen.meta.is_terminating:
        return false(READY, "Deleting", "The Cluster is being deleted.")
    for wait in plan.waits:
        if wait.reason in _STUCK:
            return false(READY, wait.reason, wait.message)
    waiting = [one for one in states if not one.is_ready]
    for one in sorted(waiting, key=lambda one: not one.is_degraded):
        return false(READY, one.reason, _counted(one, waiting))
    if _is_being_made(plan):
        return false(READY, "Starting", "Its parts are being made.")
    if isinstance(seen.slurm, Unreachable) and _should_answer(seen):
        return false(READY, "SlurmUnreachable", _unreachable(seen.slurm))
    where = f"Slurm answers at {seen.cluster.spec.server}." if seen.cluster.spec.is_adopted else ""
    return true(READY, "Working", where or "All parts are ready, and Slurm answers.")


def _is_being_made(plan: Plan) -> bool:
    """A part was not there when we looked."""
    return any(isinstance(step, Apply | Create) and step.reason == "Created" for step in plan.actions())


def _should_answer(seen: Seen) -> bool:
    return seen.cluster.spec.is_adopted or seen.cluster.spec.rest_api.replicas > 0


def _counted(cause: State, waiting: list[State]) -> str:
    more = len(waiting) - 1
    others = f" {more} more part{'s are' if more > 1 else ' is'} not ready." if more else ""
    return f"{cause}{others}"


def _progressing(plan: Plan, outcome: Outcome, states: list[State]) -> Condition:
    if outcome.failed:
        held = "".join(f" Besides: {wait.message}" for wait in plan.waits[:1])
        return true(PROGRESSING, "Retrying", f"{failing.retried(outcome)}{held}")
    for wait in plan.waits:
        if wait.reason in _STUCK:
            return false(PROGRESSING, wait.reason, "No changes will be made until this is fixed.")
    for wait in plan.waits:
        return true(PROGRESSING, wait.reason, wait.message)
    for one in states:
        if one.is_progressing:
            return true(PROGRESSING, *under_way(one))
    if _is_being_made(plan):
        return true(PROGRESSING, "Starting", "Its parts are being made.")
    return false(PROGRESSING, "UpToDate")


def _degraded(seen: Seen, plan: Plan, states: list[State]) -> Condition:
    for wait in plan.waits:
        if wait.reason in _STUCK:
            return true(DEGRADED, wait.reason, wait.message)
    for one in states:
        if one.is_degraded:
            return true(DEGRADED, one.reason, str(one))
    is_up = seen.cluster.spec.is_adopted or all(one.is_ready for one in states)
    if is_up and not _is_being_made(plan) and isinstance(seen.slurm, Unreachable) and _should_answer(seen):
        return true(DEGRADED, "SlurmUnreachable", _unreachable(seen.slurm))
    return false(DEGRADED, "AsExpected")


def _unreachable(slurm: Unreachable) -> str:
    return f"Slurm cannot be asked since {slurm.since:%Y-%m-%d %H:%M:%S} UTC: {slurm.why}."


def _isolation(seen: Seen) -> Condition:
    chosen = chosen_isolation(seen)
    meaning = f"isolation {chosen.mode}, {chosen.why}: {chosen.mode.meaning}"
    return true(ISOLATION, str(chosen.mode).capitalize(), meaning)


def _persistent(seen: Seen) -> Condition:
    if is_persistent(seen):
        unseen = " Whether there is a default StorageClass could not be read." if _is_unseen(seen) else ""
        return true(PERSISTENT, "Volume", f"slurmctld's state is on a volume and outlives its pod.{unseen}")
    if seen.cluster.spec.controller.persistence.enabled is False:
        return false(PERSISTENT, "TurnedOff", "As spec asks, slurmctld forgets all jobs with its pod.")
    return false(
        PERSISTENT,
        "NoDefaultStorageClass",
        "There was no default StorageClass when the cluster was created, so slurmctld forgets all jobs with "
        "its pod. For a cluster to keep, create a default StorageClass, or name one in "
        "spec.controller.persistence.storageClassName, and create the Cluster again.",
    )


def _is_unseen(seen: Seen) -> bool:
    """Nobody said whether to use a volume, and nobody may look whether there would be one."""
    given = seen.cluster.spec.controller.persistence
    return seen.has_default_storage is None and not explicit_fields(given)
