"""Labels and annotations on workers' pods, changed one by one: other people write there too.

A delete that nobody answers may be carried out a minute later. So each names a version of the pod that is
marked as leaving, and while a job may be there, or before one may come, the mark is taken away: then whatever
was sent, by us or by an operator that has died since, names a version that is no more.
"""

from collections.abc import Iterator, Mapping

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset.workers import Worker

Marks = Mapping[str, str | None]  # None takes a mark away.


def marked(
    worker: Worker,
    reason: Reason,
    message: str,
    *,
    labels: Marks | None = None,
    annotations: Marks | None = None,
    is_housekeeping: bool = False,
) -> list[PatchObject]:
    """The write that makes these marks so; nothing when they are."""
    meta = worker.pod.metadata
    operations = (
        *_operations("labels", meta.labels, labels or {}),
        *_operations("annotations", meta.annotations, annotations or {}),
    )
    if not operations:
        return []
    return [
        PatchObject(
            kind=kinds.POD,
            key=key_of(worker.pod),
            uid=worker.uid,
            operations=operations,
            reason=reason,
            message=message,
            is_housekeeping=is_housekeeping,
        )
    ]


def leaves(worker: Worker, *, for_good: bool = False) -> list[PatchObject]:
    """Marked, before it is deleted. For good: whoever reads it knows that it never takes a job again."""
    then = "leaves for good" if for_good else "is deleted next"
    return marked(
        worker,
        Reason.RETIRED if for_good else Reason.LEAVING,
        f"{worker.slurm_node} is free of jobs and {then}",
        annotations={names.POD_LEAVING: worker.uid, **({names.POD_RETIRED: worker.uid} if for_good else {})},
        is_housekeeping=not for_good,
    )


def ends(worker: Worker) -> list[PatchObject]:
    """Marked, before it is deleted with the jobs in it by a person's order."""
    message = f"{worker.slurm_node} is deleted next, with the jobs in it"
    annotations = {names.POD_LEAVING: worker.uid}
    return marked(worker, Reason.LEAVING, message, annotations=annotations, is_housekeeping=True)


def stays(worker: Worker) -> list[PatchObject]:
    """Unmarked: no delete that was sent before can meet it any more."""
    if names.POD_LEAVING not in worker.pod.metadata.annotations:
        return []
    message = f"{worker.slurm_node} may have jobs: a delete that was sent before is void"
    return marked(worker, Reason.STAYS, message, annotations={names.POD_LEAVING: None}, is_housekeeping=True)


def without_others_cordon(worker: Worker) -> list[PatchObject]:
    """First of all, while the drain still tells whose it was: afterwards it would pass for a user's."""
    message = f"{worker.slurm_node} was cordoned by an earlier operator; re-evaluating why"
    return marked(worker, Reason.UNCORDONED, message, annotations={names.POD_CORDON: None})


def _operations(field: str, there: Mapping[str, str], wanted: Marks) -> Iterator[dict[str, object]]:
    path = f"/metadata/{field}"
    given = {key: value for key, value in wanted.items() if value is not None}
    if given and not there:
        yield {"op": "add", "path": path, "value": given}
        return
    for key, value in sorted(wanted.items()):
        pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if value is None and key in there:
            yield {"op": "remove", "path": pointer}
        elif value is not None and there.get(key) != value:
            yield {"op": "add", "path": pointer, "value": value}
