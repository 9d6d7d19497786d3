"""Revisions: what workers are made from, as the user meant it: only a change of mind replaces them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.shared.worker_parts import WorkerSsh
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.builders.parts import RELEASE_LABELS
from slurm_operator.manifests.compare.meaning import EMPTY_COUNTS, meant
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import their_hash

# The parts of a spec that a worker is made from; the rest is about how many there are and how they go.
INTENT = (
    "template",
    "slurmd",
    "logfile",
    "ssh",
    "extraConf",
    "ordinalPadding",
    "oversubscribeNode",
    "records",
    "configSource",
    "supervisor",
)

# Those that say nothing with their default, and were not there once.
_UNSAID = {"records": "registered", "configSource": "configless"}

# Those of them that are laid over containers of ours, in the words of Kubernetes.
_LAID_OVER = ("slurmd", "logfile")
_OF_CHARTS = {*RELEASE_LABELS, names.APP_PART_OF}
_NO_SSH = codec.plain(WorkerSsh())

# On revisions of ours: they keep what the user wrote exactly. Those with 1 have no empty map at all.
INTENT_NOTE = "slinky.slurm.net/intent"
_WITHOUT_EMPTIES, _NOTED = "1", "2"


@dataclass(frozen=True)
class Revision:
    """One state of the intent, by the hash that pods carry as a label."""

    hash: str
    number: int
    is_new: bool
    collisions: int = 0  # How often its hash had to be changed, because another intent has it.
    former: Child | None = None  # It was meant before, and others since: the user went back to it.
    theirs: str = ""  # What the Slinky operator calls it; workers carry that too.
    names: frozenset[str] = frozenset()  # Every hash under which a revision is there that means the same.


def current(nodeset: NodeSet, there: Sequence[Child]) -> Revision:
    """The revision of the spec as it is. One that means the same keeps its hash, whoever made it."""
    spec = codec.plain(nodeset.spec)
    intended = intent(spec, amounts=False)
    newest = max((_number(child) for child in there), default=0)
    theirs, same = their_hash(nodeset), [child for child in there if _is_of(child, spec)]
    if same:
        child = max(same, key=_number)
        former = child if _number(child) < newest else None
        known = frozenset(_hash(one, nodeset) for one in same)
        number = _number(child)
        return Revision(
            _hash(child, nodeset), number, is_new=False, former=former, theirs=theirs, names=known
        )
    taken = {_hash(child, nodeset) for child in there}
    collisions = next(n for n in itertools.count() if _hashed(intended, n) not in taken)
    made = _hashed(intended, collisions)
    return Revision(
        made, newest + 1, is_new=True, collisions=collisions, theirs=theirs, names=frozenset({made})
    )


def revision_of(pod: Pod, current: Revision, kept: str = "") -> str:
    """The hash of what a worker was made from: that of the current revision when it means the same.

    A worker of the Slinky operator has its label only, and one of ours has both. What another operator
    made was made from nothing that we know: it counts as current while the NodeSet says so, by `kept`.
    """
    labels = pod.metadata.labels
    if kept and pod.metadata.annotations.get(names.POD_TAKEN_OVER) == kept:
        return current.hash
    ours, theirs = labels.get(names.LABEL_REVISION, ""), labels.get(names.LABEL_HASH, "")
    if {ours, theirs} & current.names or (not ours and theirs == current.theirs):
        return current.hash
    return ours or theirs


def _is_of(child: Child, spec: Mapping[str, Any]) -> bool:
    """Whether this revision means the same, as far as whoever wrote it kept what was meant."""
    note = child.metadata.annotations.get(INTENT_NOTE)
    if note is None:
        return intent(_stored(child), loose=True) == intent(spec, loose=True)
    empties = note != _WITHOUT_EMPTIES
    return intent(_stored(child), empties=empties) == intent(spec, empties=empties)


def changed_intent(
    nodeset: NodeSet, there: Sequence[Child], revision: str
) -> tuple[Manifest, Manifest] | None:
    """What workers of a revision were made from, and what they are made from now; None if it is forgotten."""
    child = next((one for one in there if _hash(one, nodeset) == revision), None)
    if child is None:
        return None
    return intent(_stored(child)), intent(codec.plain(nodeset.spec))


def intent(
    spec: Mapping[str, Any], *, loose: bool = False, empties: bool = True, amounts: bool = True
) -> Manifest:
    """What the user meant: writing out what is so anyway, as typed clients do, is no change.

    The Slinky operator dropped each `false` and `0` that a user wrote; `loose` compares with what it kept.
    """
    said = dict(spec)
    for field in _LAID_OVER:
        said[field] = meant(spec.get(field), empties=empties, amounts=amounts)
    if isinstance(template := spec.get("template"), Mapping):
        said["template"] = {
            **template,
            "metadata": _without_chart(template.get("metadata")),
            "spec": meant(template.get("spec"), empties=empties, amounts=amounts),
        }
    if isinstance(ssh := spec.get("ssh"), Mapping):
        said["ssh"] = {**_NO_SSH, **meant(ssh)}
    return _bared(said, loose, empties and not loose)


def _without_chart(metadata: Any) -> Any:
    """Labels of a chart say nothing about a worker. Slinky's chart puts them on templates, ours does not."""
    if not isinstance(metadata, Mapping) or not isinstance(labels := metadata.get("labels"), Mapping):
        return metadata
    return {**metadata, "labels": {key: value for key, value in labels.items() if key not in _OF_CHARTS}}


def as_written(spec: Mapping[str, Any]) -> Manifest:
    """What the user wrote, for whoever compares with it later."""
    return _bared(spec, False, True)


def _bared(spec: Mapping[str, Any], loose: bool, empties: bool) -> Manifest:
    said = {field: spec.get(field) for field in INTENT if spec.get(field) != _UNSAID.get(field, "")}
    bare = {field: _bare(value, loose, empties) for field, value in said.items()}
    return {field: value for field, value in bare.items() if not _is_blank(value, True)}


def _bare(value: Any, loose: bool, empties: bool) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _bare(inner, loose, empties) for key, inner in value.items() if key != "$patch"}
        return {
            key: inner
            for key, inner in kept.items()
            if not _is_blank(inner, loose) or (empties and inner == {} and key in EMPTY_COUNTS)
        }
    if isinstance(value, list | tuple):
        return [_bare(item, loose, empties) for item in value]
    return value


def _is_blank(value: Any, loose: bool) -> bool:
    return value is None or value == {} or value == [] or (loose and value in ("", 0, False))


def manifest(nodeset: NodeSet, revision: Revision) -> Manifest:
    """The ControllerRevision that remembers this intent."""
    labels = {
        **identity.owner(nodeset).bare_labels,
        names.LABEL_REVISION: revision.hash,
        names.LABEL_HASH: revision.theirs,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{nodeset.metadata.name}-{revision.hash}",
            "namespace": nodeset.metadata.namespace,
            "labels": labels,
            "annotations": {INTENT_NOTE: _NOTED},
            "ownerReferences": [owner_reference(nodeset.KIND, nodeset.metadata)],
        },
        "revision": revision.number,
        "data": {"spec": as_written(codec.plain(nodeset.spec))},
    }


def is_called_like(child: Child, nodeset: NodeSet) -> bool:
    """Labels and name are those of a revision of this NodeSet, whoever owns it."""
    labels, name = child.metadata.labels, nodeset.metadata.name
    return (
        belonging.part(labels) == ("slurmd", name)
        and child.metadata.name == f"{name}-{labels.get(names.LABEL_REVISION)}"
    )


def is_found(child: Child) -> bool:
    """Whether our watch shows it: one of the Slinky operator has no label of ours."""
    return names.LABEL_REVISION in child.metadata.labels


def labelled(child: Child, nodeset: NodeSet) -> PatchObject:
    """From now on our watch shows it. What the Slinky operator looks at stays as it is."""
    path = f"/metadata/labels/{names.LABEL_REVISION}"
    has_labels = bool(child.metadata.labels)
    label = {names.LABEL_REVISION: _hash(child, nodeset)}
    return PatchObject(
        kind=kinds.CONTROLLER_REVISION,
        key=key_of(child),
        uid=child.metadata.uid,
        operations=(
            {"op": "add", "path": path, "value": label[names.LABEL_REVISION]}
            if has_labels
            else {"op": "add", "path": "/metadata/labels", "value": label},
        ),
        reason=Reason.ADOPTED,
        message=f"workers go on with revision {child.metadata.name} of the Slinky operator",
        is_housekeeping=True,
    )


def renewal(former: Child, there: Sequence[Child]) -> PatchObject:
    """A revision that the user went back to is the newest again, and the last to be forgotten."""
    number = max(map(_number, there)) + 1
    return PatchObject(
        kind=kinds.CONTROLLER_REVISION,
        key=key_of(former),
        uid=former.metadata.uid,
        operations=({"op": "replace", "path": "/revision", "value": number},),
        reason=Reason.ROLLED_BACK,
        message=f"back to {former.metadata.name}, as revision {number}",
    )


def surplus(nodeset: NodeSet, there: Sequence[Child], in_use: set[str]) -> list[Child]:
    """Former revisions beyond the history limit that no worker has any more, oldest first."""
    idle = [child for child in sorted(there, key=_number) if _hash(child, nodeset) not in in_use]
    return idle[: max(0, len(idle) - nodeset.spec.revision_history_limit)]


def _stored(child: Child) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = (child.body.get("data") or {}).get("spec") or {}
    return spec


def _number(child: Child) -> int:
    return int(child.body.get("revision") or 0)


def _hash(child: Child, nodeset: NodeSet) -> str:
    """As its workers have it. The Slinky operator may have put the whole name into its own label."""
    label = child.metadata.labels.get(names.LABEL_REVISION) or child.metadata.labels.get(names.LABEL_HASH)
    return (label or child.metadata.name).removeprefix(f"{nodeset.metadata.name}-")


def _hashed(meant: Manifest, collisions: int) -> str:
    """The hash of an intent; two intents that happen to have the same one differ in their count."""
    return digest([meant, collisions] if collisions else meant)[:10]
