"""Every reason for which a worker has to leave, in order of precedence: the first that holds is its cause.

A rule looks at one worker and at what was counted beforehand. Whoever no rule is about stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.reconcilers.nodeset.departures.pinning import pinned_but_unschedulable
from slurm_operator.reconcilers.nodeset.departures.replica_plan import Choices, Surplus, choose
from slurm_operator.reconcilers.nodeset.departures.rollout import replaced
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import outdated
from slurm_operator.reconcilers.nodeset.report import crash_backoff
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import has_no_steps
from slurm_operator.slurm.snapshot import Snapshot


@dataclass(frozen=True)
class Case:
    """What rules know of the NodeSet. Workers `at_rest`, by uid, look as they did in the last pass."""

    seen: Seen
    choices: Choices
    now: datetime
    at_rest: frozenset[str] = frozenset()

    @cached_property
    def unpinned(self) -> Mapping[str, str]:
        """Workers without a machine, by uid, with the one that they were made for and will not get."""
        return pinned_but_unschedulable(self.seen)

    @cached_property
    def resources(self) -> str:
        return resources_digest(self.seen.nodeset)

    @cached_property
    def before_updates(self) -> Mapping[str, Cause]:
        """Who leaves anyway, by uid: beside them so many more may be away."""
        return _by(RULES[:-1], self)

    @cached_property
    def updates(self) -> Mapping[str, Cause]:
        """Who goes now of those that were made from something else; nobody who leaves anyway."""
        choices = replace(self.choices, leaving=self.before_updates)
        return replaced(self.seen, choices, self.seen.revision, self.now)


Rule = Callable[[Case, Worker], Cause | None]


def nodeset_is_deleted(case: Case, worker: Worker) -> Cause | None:
    if not case.seen.nodeset.metadata.is_terminating:
        return None
    return Cause(Leaving.DELETION, f"the NodeSet is {'gone' if case.seen.is_gone else 'being deleted'}")


def is_not_counted(case: Case, worker: Worker) -> Cause | None:
    """The spec asks for fewer, for other numbers or other machines, or for another scaling mode."""
    found = case.choices.surplus.get(worker.uid)
    if found is None:
        return None
    why, of = found
    nodeset = case.seen.nodeset
    leaving = f"leaving NodeSet {nodeset.metadata.name}"
    match why:
        case Surplus.FORMER_MODE:
            return _switched(case)
        case Surplus.TOO_MANY:
            return Cause(Leaving.SCALE_IN, f"{leaving}, which has {nodeset.spec.replicas} workers")
        case Surplus.UNLISTED:
            return Cause(Leaving.SCALE_IN, f"{leaving}, which has no worker of its number any more")
        case Surplus.LISTED_TWICE:
            return Cause(Leaving.SCALE_IN, f"{leaving}, where another worker has its number")
        case Surplus.UNFIT_NODE:
            return Cause(Leaving.NODE_UNFIT, f"Node {of} is no longer one for this NodeSet")
        case Surplus.LOST_NODE:
            return Cause(Leaving.NODE_UNFIT, "its Kubernetes node is gone")
        case Surplus.OTHER_HOSTNAME:
            return Cause(Leaving.HOSTNAME, f"its node is called {of} now")
        case Surplus.NOT_ALONE:
            return Cause(Leaving.DUPLICATE, f"Node {of} has another worker")


def has_ended(case: Case, worker: Worker) -> Cause | None:
    """Its containers ended for good: it makes room for a new one, after a while.

    One of the mode before does not come back under its name, so its record in Slurm goes with it.
    """
    if not worker.pod.has_ended or crash_backoff.due_in(worker, case.seen, case.now) > timedelta(0):
        return None
    is_of_this_mode = worker.mode is case.seen.nodeset.spec.scaling_mode
    return Cause(Leaving.ENDED, "its containers have ended") if is_of_this_mode else _switched(case)


def was_retired(case: Case, worker: Worker) -> Cause | None:
    """Before we were interrupted."""
    return Cause(Leaving.RETIRED, "it was retired before") if worker.is_retired else None


def is_asked_to_end(case: Case, worker: Worker) -> Cause | None:
    return Cause(Leaving.TERMINATING, "its pod was asked to end") if worker.is_terminating else None


def has_the_record_of_another(case: Case, worker: Worker) -> Cause | None:
    if not outdated.has_outdated_record(worker, case.seen.reservation_name):
        return None
    return Cause(Leaving.RESOURCES, "Slurm knows it with the resources of the worker before it")


def is_refused_by_slurm(case: Case, worker: Worker) -> Cause | None:
    if not outdated.is_refused(worker):
        return None
    return Cause(Leaving.RESOURCES, "Slurm refuses what it registered with")


def is_forgotten_by_slurm(case: Case, worker: Worker) -> Cause | None:
    """Slurm knows nothing of it, and somebody saw that no step runs there. One that is back again stays."""
    slurm = worker.slurm
    is_unknown = isinstance(slurm, Snapshot) and worker.slurm_node not in slurm.nodes
    if not (is_unknown and has_no_steps(worker.pod)):
        return None
    return Cause(Leaving.FORGOTTEN, "Slurm has forgotten it, and it does not register again")


def cannot_get_its_node(case: Case, worker: Worker) -> Cause | None:
    name = case.unpinned.get(worker.uid)
    if name is None:
        return None
    return Cause(Leaving.UNPINNED, f"Node {name}, which it was made for, is gone, taken, or no place for it")


def somebody_wants_another(case: Case, worker: Worker) -> Cause | None:
    """Its pod has the annotation, whatever the update strategy and its revision. It goes when it is free.

    Nobody, if the template gives the annotation to every pod: that would never end.
    """
    meta = worker.pod.metadata
    is_asked_for = meta.annotations.get(names.POD_REPLACE) == "true"
    if not is_asked_for or names.POD_REPLACE in case.seen.nodeset.spec.template.metadata.annotations:
        return None
    # With other resources its record in Slurm is made again, as in an update.
    is_same = meta.annotations.get(RESOURCES_DIGEST) == case.resources
    kind = Leaving.UPDATE if is_same else Leaving.RESOURCES
    return Cause(kind, "somebody asked for another pod in its place")


def is_made_from_something_else(case: Case, worker: Worker) -> Cause | None:
    """The last of all: how many go at once depends on who leaves anyway."""
    return case.updates.get(worker.uid)


RULES: Final[tuple[Rule, ...]] = (
    nodeset_is_deleted,
    is_not_counted,
    has_ended,
    was_retired,
    is_asked_to_end,
    has_the_record_of_another,
    is_refused_by_slurm,
    is_forgotten_by_slurm,
    cannot_get_its_node,
    somebody_wants_another,
    is_made_from_something_else,
)

# What these ask of a worker shows in its pod, its machine and its record. None of them was about it before it
# came to rest, so none is until that changes.
OF_LOOKS: Final = frozenset(
    {
        was_retired,
        is_asked_to_end,
        has_the_record_of_another,
        is_refused_by_slurm,
        is_forgotten_by_slurm,
        somebody_wants_another,
    }
)


@dataclass(frozen=True)
class Departures:
    """What the spec asks for, and who leaves, by uid; whoever is not named there stays."""

    choices: Choices
    leaving: Mapping[str, Cause]


def departures(seen: Seen, now: datetime, at_rest: frozenset[str] = frozenset()) -> Departures:
    case = Case(seen, choose(seen), now, at_rest)
    return Departures(
        replace(case.choices, leaving=case.before_updates), {**case.before_updates, **case.updates}
    )


def _by(rules: tuple[Rule, ...], case: Case) -> dict[str, Cause]:
    """The first cause of each worker, by uid."""
    of_all = tuple(rule for rule in rules if rule not in OF_LOOKS)
    found: dict[str, Cause] = {}
    for worker in case.seen.workers:
        for rule in of_all if worker.uid in case.at_rest else rules:
            cause = rule(case, worker)
            if cause is not None:
                found[worker.uid] = cause
                break
    return found


def _switched(case: Case) -> Cause:
    return Cause(Leaving.MODE_SWITCH, f"the NodeSet is in {case.seen.nodeset.spec.scaling_mode} mode now")
