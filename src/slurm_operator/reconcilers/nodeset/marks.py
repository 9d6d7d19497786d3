"""Labels and annotations on workers' pods, changed one by one: other people write there too."""

from collections.abc import Iterator, Mapping

from slurm_operator.api.meta import key_of
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset.members import Member

Marks = Mapping[str, str | None]  # None takes a mark away.


def marked(
    member: Member,
    reason: str,
    message: str,
    *,
    labels: Marks | None = None,
    annotations: Marks | None = None,
    is_housekeeping: bool = False,
) -> list[PatchObject]:
    """The write that makes these marks so; nothing when they are."""
    meta = member.pod.metadata
    operations = (
        *_operations("labels", meta.labels, labels or {}),
        *_operations("annotations", meta.annotations, annotations or {}),
    )
    if not operations:
        return []
    return [
        PatchObject(
            kind=kinds.POD,
            key=key_of(member.pod),
            uid=member.uid,
            operations=operations,
            reason=reason,
            message=message,
            is_housekeeping=is_housekeeping,
        )
    ]


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
