"""Who wrote which fields of an object, and how another program's fields become ours.

An apply only takes away what the same applier wrote. What the Slinky operator wrote would stay for ever
beside ours: `maxUnavailable` beside `minAvailable`, an old volume beside the new one. So its fields are made
ours first, and the next apply takes away those that we do not want.
"""

from collections.abc import Mapping, Sequence
from typing import Any

OURS = "slurm-operator"
# What other operators, Go programs without a name of their own, are called: by their file. The second
# one is Soperator's.
THEIRS = ("manager", "slurm_operator")


def has_theirs(managed_fields: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the Slinky operator wrote something of it, other than its status."""
    return any(_is_theirs(entry) for entry in managed_fields)


def taken_over(managed_fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The same with its fields among those that we applied."""
    theirs = [entry for entry in managed_fields if _is_theirs(entry)]
    ours = [entry for entry in managed_fields if _is_applied(entry)]
    others = [entry for entry in managed_fields if entry not in theirs and entry not in ours]
    fields: Mapping[str, Any] = {}
    for entry in (*theirs, *ours):
        fields = _union(fields, entry.get("fieldsV1") or {})
    newest = (*theirs, *ours)[-1]
    return [*others, {**newest, "manager": OURS, "operation": "Apply", "fieldsV1": fields}]


def _is_theirs(entry: Mapping[str, Any]) -> bool:
    writer, operation, subresource = _writer(entry)
    return writer in THEIRS and (operation, subresource) == ("Update", "")


def _is_applied(entry: Mapping[str, Any]) -> bool:
    return _writer(entry) == (OURS, "Apply", "")


def _writer(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    shared = {key: _union(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}
