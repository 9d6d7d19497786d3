"""What to do next for one NodeSet, and why."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.shared.names import RESERVATION_FINALIZER, WORKERS_FINALIZER
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import (
    Action,
    Create,
    DeleteObject,
    DeleteWorker,
    EndWorker,
    PatchObject,
    Wait,
)
from slurm_operator.plan.order import Order, is_forced, order
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.plan.step import look, soonest
from slurm_operator.reconcilers.nodeset.annotations import ends, marked
from slurm_operator.reconcilers.nodeset.creation import own_service, pod_creation, revisions
from slurm_operator.reconcilers.nodeset.creation.adoption import adopted, adopted_revisions
from slurm_operator.reconcilers.nodeset.creation.pod_creation import arrivals
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.creation.volumes import (
    VOLUME_TERMINATING,
    is_scaled_in,
    left_behind,
    lost_claims,
    retention,
)
from slurm_operator.reconcilers.nodeset.departures import rollout
from slurm_operator.reconcilers.nodeset.departures.maintenance import reservation_actions
from slurm_operator.reconcilers.nodeset.departures.rules import departures
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import registration_check
from slurm_operator.reconcilers.nodeset.records.attributes import traits
from slurm_operator.reconcilers.nodeset.records.created_records import without_pods
from slurm_operator.reconcilers.nodeset.records.leftover_records import stale_record_removals
from slurm_operator.reconcilers.nodeset.report import crash_backoff
from slurm_operator.reconcilers.nodeset.report.pod_conditions import condition_writes, kubernetes_time
from slurm_operator.reconcilers.nodeset.unchanged_cache import Settled
from slurm_operator.reconcilers.nodeset.worker import drain_policy, staying
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause
from slurm_operator.reconcilers.nodeset.worker.left_behind import let_go
from slurm_operator.reconcilers.nodeset.worker.namespace_deletion import keep_protected, release
from slurm_operator.reconcilers.nodeset.worker.protection import protect_again
from slurm_operator.reconcilers.nodeset.worker.removal import Stages, retire
from slurm_operator.reconcilers.nodeset.worker.staying import stages_of_staying_worker
from slurm_operator.reconcilers.nodeset.worker.update_phases import phase_writes, ready_to_go
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.reconcilers.shared.partition_removal import UNREACHABLE
from slurm_operator.safety.gate import PROOF_LIFETIME, Shut, ShutFor, gate
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

A_SECOND = timedelta(seconds=1)

# How soon something is looked at again whose end nobody tells us of: a claim that nobody owns wakes nobody.
ENDS_UNTOLD = {
    ShutFor.OLD_ANSWER: A_SECOND,
    VOLUME_TERMINATING: timedelta(seconds=2),
}

# How soon workers of another Slurm cluster than the NodeSet's are looked at again.
LEFT_LOOK = timedelta(seconds=5)

# So many records and pods go within seconds. Then Slurm is read, and people are told how far it has come.
MOST_GOING = 500

# So many pods are told at once what Slurm says of them. The status of the NodeSet waits for that, and pods
# that changed lead to the next ones.
MOST_NOTED = 250

# The second one is of the operator before us; it stands for the reservation, which the first one covers too.
FINALIZERS = {WORKERS_FINALIZER, RESERVATION_FINALIZER}


def decide(seen: Seen, now: datetime, settled: Settled | None = None) -> Plan:
    """The plan: the same with and without a memory of settled workers, but sooner made with one."""
    own = _decide(seen, now, settled)
    if seen.left_elsewhere is None:
        return own
    return _together(own, _decide(seen.left_elsewhere, now, None), seen.left_elsewhere.controller_key)


def _together(own: Plan, others: Plan, of: ObjectKey) -> Plan:
    """With what is done about workers of another Slurm cluster, whose changes wake nobody here."""
    lanes = [wire.replace(one, name=f"{one.name} of Controller {of.name}") for one in others.lanes]
    waits = [wait for wait in (own.look_again, others.look_again, LEFT_LOOK) if wait is not None]
    return plan(
        *own.lanes, *lanes, look_again=min(waits), waits_on=tuple(sorted({*own.waits_on, *others.waits_on}))
    )


def _decide(seen: Seen, now: datetime, settled: Settled | None) -> Plan:
    if seen.nodeset.metadata.is_terminating and FINALIZERS.isdisjoint(seen.nodeset.metadata.finalizers):
        return plan()
    if forced := ended_by_order(seen):
        return forced
    revision = seen.revision
    settled = settled or Settled()
    at_rest = settled.among(seen)
    found = departures(seen, now, at_rest)
    choices, leaving = found.choices, found.leaving
    # Who deletes a NodeSet without a finalizer leaves its workers behind, and nobody to look after them.
    coming = arrivals(seen, choices, revision) if _is_guarded(seen) else []
    lanes_of_workers = list(_workers(seen, leaving, settled, at_rest, now))
    records = stale_record_removals(seen, choices)
    slots = (*choices.create, *(held.slot for held in choices.held))
    known = without_pods(seen, {slot.hostname for slot in slots}) if _is_guarded(seen) else []
    must_ask = bool(records) and _is_old(seen.slurm, now)  # A job may insist on one of them since.
    steps = (
        look([A_SECOND] if must_ask else [], asks_slurm=must_ask),
        look([A_SECOND] if _leaves_configuration(seen) else []),
        pod_creation.look_again(seen, choices, coming),
        rollout.look_again(seen, now),
        drain_policy.look_again(seen, leaving, now),
        crash_backoff.look_again(seen, now),
        registration_check.look_again(seen.workers, now),
        staying.look_again(seen, now),
        look(_untold([*coming, *lanes_of_workers])),
    )
    return plan(
        # A claim that should stay would go with its NodeSet, so that waits for it.
        lane("nodeset", left_behind(seen.nodeset, seen.workers, seen.followers), _own(seen)),
        _history(seen, revision),
        *adopted(seen),
        lane("service", own_service.writes(seen)),
        *coming,
        *lanes_of_workers,
        *drain_policy.ended_jobs(seen, leaving, now),
        *([] if must_ask else records),
        *known,
        lane("maintenance", reservation_actions(seen, now)),
        look_again=max(again, A_SECOND) if (again := soonest(steps)) is not None else None,
        waits_on=(seen.controller_key,) if leaving or any(one.asks_slurm for one in steps) else (),
    )


def ended_by_order(seen: Seen) -> Plan | None:
    """What is done when a person forces its deletion: every worker ends, with the jobs in it."""
    nodeset = seen.nodeset
    if not (nodeset.metadata.is_terminating and is_forced(nodeset.metadata)):
        return None
    kept = [name for name in nodeset.metadata.finalizers if name not in FINALIZERS]
    released = _finalizers(seen, kept, "Released", f"NodeSet {nodeset.metadata.name}: forced by annotation")
    claims = left_behind(nodeset, seen.workers, seen.followers)
    ordered = [
        (worker, given)
        for worker in seen.workers
        if not worker.is_terminating and (given := order(nodeset.metadata, worker.pod.metadata)) is not None
    ]
    marks = [mark for worker, _ in ordered for mark in ends(worker)]
    ended = [_ended(worker, given) for worker, given in ordered]
    return plan(lane("nodeset", claims, marks, ended, [released]))


def _ended(worker: Worker, given: Order) -> EndWorker:
    return EndWorker(
        key=key_of(worker.pod),
        slurm_node=worker.slurm_node,
        order=given,
        reason="Forced",
        message=f"deleted worker {worker.name} with the jobs in it: a person forced that by annotation",
    )


def _workers(
    seen: Seen, leaving: Mapping[str, Cause], settled: Settled, at_rest: frozenset[str], now: datetime
) -> Iterator[Lane]:
    """Lanes for every worker. No more go at once than can be told about in between."""
    may_go, may_note, at = MOST_GOING, MOST_NOTED, kubernetes_time(now)
    came_to_rest = []
    still = at_rest - leaving.keys()
    for worker in seen.workers:
        if worker.uid in still:
            continue
        cause = leaving.get(worker.uid)
        stages = _steps(worker, seen, cause, now)
        is_going = any(isinstance(action, DeleteWorker) for stage in stages for action in stage)
        if is_going and not may_go:
            yield lane(worker.slurm_node, [_in_turn(worker)])
            continue
        lanes = _lanes(worker, seen, cause, stages, now, is_going=is_going)
        if is_going:
            may_go -= 1
        elif may_note > 0:
            notes = [*condition_writes(worker, at), *_known_to_others(worker, seen)]
            notes += phase_writes(worker, seen, cause)
            may_note -= len(notes)
            lanes += notes
            if not lanes and cause is None:
                came_to_rest.append(worker)
        yield from lanes
    settled.note(seen, still, came_to_rest)


def _known_to_others(worker: Worker, seen: Seen) -> list[Lane]:
    """One that was made without the label by which the operator before us finds it up to date."""
    meta, revision = worker.pod.metadata, seen.revision
    is_known = names.LABEL_HASH in meta.labels or worker.revision != revision.hash
    if (
        is_known
        or names.POD_TAKEN_OVER in meta.annotations
        or worker.is_terminating
        or seen.nodeset.metadata.is_terminating
    ):
        return []
    message = f"{worker.name} is up to date for the operator before us, too"
    label = {names.LABEL_HASH: revision.theirs}
    noted = marked(worker, "Labelled", message, labels=label, is_housekeeping=True)
    return [lane(f"revision of {worker.slurm_node}", noted, is_note=True)]


def _in_turn(worker: Worker) -> Wait:
    message = f"it may go, and does when it is its turn: {MOST_GOING} go at once"
    return Wait(subject=worker.slurm_node, reason="InTurn", message=message)


def _lanes(
    worker: Worker, seen: Seen, cause: Cause | None, stages: Stages, now: datetime, *, is_going: bool
) -> list[Lane]:
    """What becomes of one worker and of its volumes, and what Slurm is told of it while it is there."""
    is_scaled = is_scaled_in(worker, cause, seen.nodeset, is_going=is_going)
    kept = retention(worker, seen.nodeset, seen.claims, is_scaled=is_scaled)
    if is_going:
        return [lane(worker.slurm_node, kept, ready_to_go(worker, seen, cause, stages), *stages)]
    lanes = [lane(worker.slurm_node, *stages)] if stages else []
    again = protect_again(worker, seen, now) if cause is not None else []
    lanes += [lane(f"protection of {worker.slurm_node}", again)] if again else []
    lost = lost_claims(worker, seen.nodeset, seen.claims) if cause is None else []
    lanes += [lane(f"volumes of {worker.slurm_node}", [*lost, *kept])] if lost or kept else []
    return [*lanes, *traits(worker, seen)]


def _steps(worker: Worker, seen: Seen, cause: Cause | None, now: datetime) -> Stages:
    if cause is None:
        return stages_of_staying_worker(worker, seen, now)
    if (seen.is_abandoned or seen.is_cut_off) and isinstance(gate(worker, now), Shut):
        return release(worker) if seen.is_abandoned else keep_protected(worker, seen.controller_key)
    if seen.has_nobody_to_ask and isinstance(gate(worker, now), Shut):
        return let_go(worker)
    return retire(worker, cause, seen.controller_key, now, has_twin=seen.has_twin(worker))


def _is_old(slurm: Snapshot | Unreachable, now: datetime) -> bool:
    return not isinstance(slurm, Snapshot) or not slurm.is_fresh(now, PROOF_LIFETIME)


def _leaves_configuration(seen: Seen) -> bool:
    """slurmctld is about to be told to do without it."""
    return seen.nodeset.metadata.is_terminating and not seen.workers


def _untold(lanes: list[Lane]) -> Iterator[timedelta]:
    """When to look at workers again that wait for something whose end nobody tells us of."""
    waits = (action for one in lanes for action in one.actions() if isinstance(action, Wait))
    return (ENDS_UNTOLD[wait.reason] for wait in waits if wait.reason in ENDS_UNTOLD)


def _is_guarded(seen: Seen) -> bool:
    return seen.nodeset.metadata.is_terminating or WORKERS_FINALIZER in seen.nodeset.metadata.finalizers


def _own(seen: Seen) -> list[Action]:
    """The finalizer: there while workers are, gone with the last of them and the last line in slurm.conf."""
    nodeset = seen.nodeset
    has_it = WORKERS_FINALIZER in nodeset.metadata.finalizers
    if nodeset.metadata.is_terminating and not seen.workers:
        waits = _configured(seen)
        if waits:
            return waits
        left = [name for name in nodeset.metadata.finalizers if name not in FINALIZERS]
        return [_finalizers(seen, left, "Released", "no worker is left")]
    if not nodeset.metadata.is_terminating and not has_it:
        return [
            _finalizers(
                seen,
                [*nodeset.metadata.finalizers, WORKERS_FINALIZER],
                "Guarded",
                "finalizer added: workers are drained before they are removed",
                is_housekeeping=True,
            )
        ]
    return []


def _configured(seen: Seen) -> list[Action]:
    """What keeps it in the configuration. While Slurm is away nothing does: its lines stay without it."""
    stays, name = seen.in_config, seen.nodeset.slurm_name
    if stays is not None and stays.reason != UNREACHABLE:
        return [Wait(subject=name, reason=stays.reason, message=stays.message, jobs=stays.jobs)]
    if seen.is_configured:
        message = (
            f"waiting for Controller {seen.controller_key.name} to take {name} out of slurm.conf; "
            "its conditions say what is in the way"
        )
        return [Wait(subject=name, reason="LeavingConfiguration", message=message)]
    return []


def _finalizers(
    seen: Seen, wanted: list[str], reason: str, message: str, *, is_housekeeping: bool = False
) -> PatchObject:
    meta = seen.nodeset.metadata
    return PatchObject(
        kind=seen.nodeset.KIND,
        key=key_of(seen.nodeset),
        uid=meta.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/metadata/finalizers", "value": wanted},
        ),
        reason=reason,
        message=message,
        is_housekeeping=is_housekeeping,
    )


def _history(seen: Seen, revision: Revision) -> Lane:
    """Take in what nobody owns, remember this revision, forget those beyond the limit that no worker has."""
    if seen.nodeset.metadata.is_terminating:
        return lane("revisions")
    if orphans := adopted_revisions(seen):
        return lane("revisions", orphans)
    if unseen := [
        revisions.labelled(one, seen.nodeset) for one in seen.revisions if not revisions.is_found(one)
    ]:
        return lane("revisions", unseen)
    if seen.unread_revisions:
        return lane("revisions", [_unread(seen)])
    if revision.is_new:
        manifest = revisions.manifest(seen.nodeset, revision)
        message = f"revision {revision.hash}: what workers are made from has changed"
        made = Create(
            manifest=manifest, reason="NewRevision", message=message, is_housekeeping=not seen.revisions
        )
        return lane("revisions", [made])
    if revision.former is not None:
        return lane("revisions", [revisions.renewal(revision.former, seen.revisions)])
    in_use = {revision.hash, *revision.names, *(worker.revision for worker in seen.workers)}
    return lane(
        "revisions",
        [
            DeleteObject(
                kind=kinds.CONTROLLER_REVISION,
                key=key_of(child),
                uid=child.metadata.uid,
                reason="RevisionForgotten",
                message=f"forgot {child.metadata.name}: no worker has it, and the history is full",
            )
            for child in revisions.surplus(seen.nodeset, seen.revisions, in_use)
        ],
    )


def _unread(seen: Seen) -> Wait:
    name = f"{seen.nodeset.metadata.name}-{min(seen.unread_revisions)}"
    message = (
        f"ControllerRevision {name}, which workers were made from, cannot be read. "
        "Workers of it stay as they are until it can"
    )
    return Wait(subject=name, reason="RevisionUnread", message=message)
