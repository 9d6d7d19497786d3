"""Changing plain objects: JSON patches, and what applying does to the fields that were there."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_operator import wire
from slurm_operator.manifests.meta import Manifest


def bare(thing: object) -> Manifest:
    """An object as the API server would send it: maps and lists, and nothing else."""
    plain: Manifest = wire.decode_any(wire.encode(thing))
    return plain


def patched(document: Manifest, operations: Iterable[Mapping[str, Any]]) -> Manifest:
    """The document after an RFC 6902 patch. Tests are passed over: there is nobody to be overtaken by."""
    changed: Manifest = copy.deepcopy(document)
    for operation in operations:
        if operation["op"] != "test":
            _carry_out(changed, operation)
    return changed


def _carry_out(document: Any, operation: Mapping[str, Any]) -> None:
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    where = document
    for part in path:
        where = where[int(part)] if isinstance(where, list) else where.setdefault(part, {})
    if isinstance(where, list):
        place = len(where) if last == "-" else int(last)
        if operation["op"] in ("remove", "replace"):
            del where[place]
        if operation["op"] != "remove":
            where.insert(place, operation["value"])
    elif operation["op"] == "remove":
        where.pop(last, None)
    else:
        where[last] = operation["value"]


def merged(old: Manifest, new: Manifest, whole: tuple[str, ...] = ()) -> Manifest:
    """`old` with the fields of `new` over it, as deep as there are maps; those in `whole` are replaced."""
    result = dict(old)
    for key, value in new.items():
        there = result.get(key)
        both = isinstance(value, Mapping) and isinstance(there, Mapping)
        result[key] = merged(dict(there), dict(value)) if both and key not in whole and there else value
    return result


def three_way(last: Manifest, new: Manifest, live: Manifest) -> Manifest:
    """The merge patch that `kubectl apply` sends: what the file says, and None for what it no longer says."""
    patch: Manifest = {}
    for key, value in new.items():
        there = live.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            before = last.get(key)
            inner = three_way(dict(before) if isinstance(before, Mapping) else {}, dict(value), dict(there))
            if inner:
                patch[key] = inner
        elif value != there:
            patch[key] = value
    patch.update({key: None for key in last if key not in new and key in live})
    return patch
