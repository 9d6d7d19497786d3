"""Does the live object already have everything we would write? If so, nothing is sent.

Compared as a subset, because the API server adds defaults: every field of `desired` must be in `live`.
Fields that we stop wanting are noticed by the digest annotation, not here.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest

APPLIED_DIGEST = "slinky.slurm.net/applied-digest"

# On StatefulSets and Deployments: the digest of what their pod template was made from.
INPUT_DIGEST = "slinky.slurm.net/input-digest"

# In what is wanted only, and never written: the same digest as earlier versions of this program noted it.
INPUT_DIGEST_AS_WRITTEN = "slinky.slurm.net/input-digest-as-written"

# Beside it, the digest of the template that was built from that: tells a newer builder from a foreign edit.
TEMPLATE_DIGEST = "slinky.slurm.net/template-digest"

# Beside the first, the digest of a template that the Slinky operator made and that we go on with: when it
# makes another one while we are away, that is the one to go on with.
KEPT_TEMPLATE = "slinky.slurm.net/kept-template"

# Fields under which strings are quantities: "1000m" is "1" there, "1024Mi" is "1Gi".
QUANTITY_MAPS = {"limits", "requests", "capacity", "hard", "allocatable"}
QUANTITY_FIELDS = {"sizeLimit", "storage", "divisor"}

# How the API server tells the items of a list apart (x-kubernetes-list-map-keys of the core kinds).
_ITEM_KEYS = ("name", "containerPort", "port", "mountPath", "key", "type", "ip", "uid", "topologyKey")

# A list leaves out what kind its items are, and the values of Secrets are not ours to know: see `children`.
_NOT_COMPARED = {"apiVersion", "kind", "stringData"}

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10) ** 3, "M": Decimal(10) ** 6, "G": Decimal(10) ** 9, "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15, "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10, "Mi": Decimal(2) ** 20, "Gi": Decimal(2) ** 30, "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50, "Ei": Decimal(2) ** 60,
}  # fmt: skip


def stamped(manifest: Manifest) -> Manifest:
    """The manifest with the digest of itself in an annotation, so that a dropped field shows as a change.

    A pod template that follows its input digest is left out: it stays as it is until the input changes.
    """
    annotations = manifest["metadata"].get("annotations", {})
    compared = _without_template(manifest) if INPUT_DIGEST in annotations else manifest
    return _annotated(manifest, {APPLIED_DIGEST: digest(compared)})


def _without_template(manifest: Manifest) -> Manifest:
    return manifest | {"spec": {key: value for key, value in manifest["spec"].items() if key != "template"}}


def settled_template(desired: Manifest, live: Child | None) -> Manifest:
    """A workload whose input is the same keeps the pod template it has.

    A new version of this program may build templates differently; that alone must not restart a daemon. While
    this version builds the one that was applied, it is ours to put back when somebody else has edited it.
    """
    notes = dict(desired["metadata"].get("annotations", {}))
    if INPUT_DIGEST not in notes:
        return desired
    same = {notes[INPUT_DIGEST], notes.pop(INPUT_DIGEST_AS_WRITTEN, notes[INPUT_DIGEST])}
    desired = desired | {"metadata": {**desired["metadata"], "annotations": notes}}
    built = digest(desired["spec"]["template"])
    noted = live.metadata.annotations if live is not None else {}
    is_kept = noted.get(INPUT_DIGEST) in same or _is_inherited(desired, live)
    if live is None or not is_kept:
        return _annotated(desired, {TEMPLATE_DIGEST: built})
    template = live.body["spec"]["template"]
    if _is_theirs(template):
        kept = {KEPT_TEMPLATE: digest(template)}
    elif noted.get(TEMPLATE_DIGEST) == built:
        return _annotated(desired, {TEMPLATE_DIGEST: built})
    else:
        kept = {TEMPLATE_DIGEST: noted[TEMPLATE_DIGEST]} if TEMPLATE_DIGEST in noted else {}
    return _annotated(desired | {"spec": {**desired["spec"], "template": template}}, kept)


def _is_theirs(template: Mapping[str, Any]) -> bool:
    """The Slinky operator built it: it writes name and namespace into a template, and nobody else does."""
    return "namespace" in (template.get("metadata") or {})


def _is_inherited(desired: Manifest, live: Child | None) -> bool:
    """Made by the Slinky operator, for the spec as it is now: its pods go on as they are.

    It left no digest of its input. Images are what people change most, so they tell whether it had kept up.
    """
    if live is None:
        return False
    notes, template = live.metadata.annotations, live.body["spec"]["template"]
    is_seen = bool({INPUT_DIGEST, APPLIED_DIGEST} & notes.keys())
    if is_seen and not (_is_theirs(template) and notes.get(KEPT_TEMPLATE, "") not in ("", digest(template))):
        return False
    ours, theirs = _images(desired["spec"]["template"]), _images(template)
    shared = ours.keys() & theirs.keys()
    return bool(shared) and all(ours[name] == theirs[name] for name in shared)


def _images(template: Mapping[str, Any]) -> dict[str, str]:
    """By the names of their containers."""
    pod = template.get("spec") or {}
    every = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return {container["name"]: container.get("image", "") for container in every}


def _annotated(manifest: Manifest, notes: Mapping[str, str]) -> Manifest:
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), **notes}
    return manifest | {"metadata": {**metadata, "annotations": annotations}}


def changes(desired: Manifest, live: Child | None) -> list[str]:
    """The fields in which `live` lacks something of `desired`; empty when there is nothing to write."""
    if live is None:
        return ["the object"]
    compared = {key: value for key, value in desired.items() if key not in _NOT_COMPARED}
    return list(_differences(compared, live.body, ""))


def _differences(desired: Any, live: Any, path: str) -> Iterator[str]:
    if desired == live:
        return  # As nearly always, and told without a look at every leaf.
    match desired:
        case Mapping():
            yield from _map_differences(desired, live if isinstance(live, Mapping) else {}, path)
        case list() | tuple():
            yield from _list_differences(desired, live if isinstance(live, Sequence) else [], path)
        case None:
            if live is not None:
                yield path
        case _:
            if not _same(desired, live, path):
                yield path


def _map_differences(desired: Mapping[str, Any], live: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in desired.items():
        yield from _differences(value, live.get(key), f"{path}.{key}" if path else key)


def _list_differences(desired: Sequence[Any], live: Sequence[Any], path: str) -> Iterator[str]:
    key = _item_key(desired)
    if key is None:
        if len(desired) != len(live):
            yield path
            return
        for index, (want, have) in enumerate(zip(desired, live, strict=True)):
            yield from _differences(want, have, f"{path}[{index}]")
        return
    have_by_key = {item.get(key): item for item in live if isinstance(item, Mapping)}
    for want in desired:
        yield from _differences(want, have_by_key.get(want[key]), f"{path}[{key}={want[key]}]")


def _item_key(items: Sequence[Any]) -> str | None:
    """The field that names each item, if every item has it with a value of its own."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _ITEM_KEYS:
        values = [item.get(key) for item in items]
        if None not in values and len(set(map(str, values))) == len(values):
            return key
    return None


def _same(desired: Any, live: Any, path: str) -> bool:
    if desired == live:
        return True
    *_, parent, field = ("", *path.split("."))
    if parent in QUANTITY_MAPS or field in QUANTITY_FIELDS:
        return live is not None and quantity(desired) == quantity(live)
    return desired in ("", 0, False) and live is None  # Go leaves out what is zero.


def quantity(text: str | int | float) -> Decimal | str:
    """A Kubernetes quantity as a number; the text itself when it is none."""
    written = str(text)
    number = written.rstrip("numkKMGTPEi")
    scale = _SUFFIXES.get(written[len(number) :])
    try:
        return Decimal(number) * scale if scale is not None else written
    except InvalidOperation:
        return written
