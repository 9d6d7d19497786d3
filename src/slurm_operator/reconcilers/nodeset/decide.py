"""What to do next for one NodeSet, and why."""

from datetime import datetime, timedelta

from slurm_operator.api.meta import key_of
from slurm_operator.api.names import WORKERS_FINALIZER
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, Create, DeleteObject, PatchObject, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.nodeset import revisions
from slurm_operator.reconcilers.nodeset.choices import Choices, choose
from slurm_operator.reconcilers.nodeset.drains import keep
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.pod import worker_pod
from slurm_operator.reconcilers.nodeset.retire import retire
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.rollout import replaced


def decide(seen: Seen, now: datetime) -> Plan:
    if seen.nodeset.metadata.is_terminating and WORKERS_FINALIZER not in seen.nodeset.metadata.finalizers:
        return plan()
    revision = revisions.current(seen.nodeset, seen.revisions)
    choices = choose(seen, now)
    leaving = {**choices.leaving, **replaced(seen, choices, revision, now)}
    workers = [
        lane(
            member.slurm_node,
            *(
                retire(member, leaving[member.uid], seen.controller_key, now)
                if member.uid in leaving
                else keep(member, seen, now)
            ),
        )
        for member in seen.members
    ]
    return plan(
        lane("nodeset", _own(seen)),
        _history(seen, revision),
        lane("new workers", _creations(seen, choices, revision)),
        *workers,
        look_again=_look_again(seen),
        waits_on=(seen.controller_key,) if leaving else (),
    )


def _own(seen: Seen) -> list[Action]:
    """The finalizer: there while workers are, gone with the last of them."""
    nodeset = seen.nodeset
    has_it = WORKERS_FINALIZER in nodeset.metadata.finalizers
    if nodeset.metadata.is_terminating and not seen.members:
        left = [name for name in nodeset.metadata.finalizers if name != WORKERS_FINALIZER]
        return [_finalizers(seen, left, "Released", "no worker is left")]
    if not nodeset.metadata.is_terminating and not has_it:
        return [
            _finalizers(
                seen,
                [*nodeset.metadata.finalizers, WORKERS_FINALIZER],
                "Guarded",
                "workers are let go one by one",
            )
        ]
    return []


def _finalizers(seen: Seen, wanted: list[str], reason: str, message: str) -> PatchObject:
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
    )


def _history(seen: Seen, revision: Revision) -> Lane:
    """Remember this revision; forget those beyond the limit that no worker has."""
    if seen.nodeset.metadata.is_terminating:
        return lane("revisions")
    if revision.is_new:
        manifest = revisions.manifest(seen.nodeset, revision)
        message = f"revision {revision.hash}: what workers are made from has changed"
        return lane("revisions", [Create(manifest=manifest, reason="NewRevision", message=message)])
    in_use = {revision.hash, *(member.revision for member in seen.members)}
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


def _creations(seen: Seen, choices: Choices, revision: Revision) -> list[Action]:
    if seen.controller is None:
        if not choices.create:
            return []
        message = (
            f"No Controller {seen.controller_key.name!r} in namespace {seen.controller_key.namespace!r}. "
            "Workers start as soon as there is one; if the name is a typo, make a new NodeSet."
        )
        return [Wait(subject="new workers", reason="ControllerNotFound", message=message)]
    return [
        Create(
            manifest=worker_pod(seen.nodeset, seen.controller, slot, revision.hash),
            reason="ScalingUp",
            message=f"created worker {slot.pod_name}",
        )
        for slot in choices.create
    ]


def _look_again(seen: Seen) -> timedelta | None:
    """Nothing tells us when a worker has been ready for long enough, or an ended one is old enough."""
    waiting = seen.nodeset.spec.min_ready_seconds > 0 or any(m.pod.has_ended for m in seen.members)
    return timedelta(seconds=max(1, seen.nodeset.spec.min_ready_seconds)) if waiting else None
