"""Node affinity that nobody can read: what the API server says of a pod is said of a template that has it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurm_operator.api.schema.problems import Problem

NUMERIC: Final = ("Gt", "Lt")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", *NUMERIC)
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_TERMS = f"nodeAffinity.{REQUIRED}.nodeSelectorTerms"


def is_number(text: str | None) -> bool:
    return text is not None and text.removeprefix("-").isdecimal()


def unreadable(affinity: Any) -> Iterator[Problem]:
    """What of the required node affinity has no meaning, with its place below `affinity`."""
    above = affinity
    for name in ("nodeAffinity", REQUIRED):
        if not isinstance(above, Mapping):
            break
        above = above.get(name) or {}
    terms = (above.get("nodeSelectorTerms") or []) if isinstance(above, Mapping) else None
    if not isinstance(terms, list):
        yield Problem(path=_TERMS, message="has to be a list of terms")
        return
    for index, term in enumerate(terms):
        for name in ("matchExpressions", "matchFields"):
            rules = term.get(name) or [] if isinstance(term, Mapping) else None
            if not isinstance(rules, list):
                yield Problem(path=f"{_TERMS}[{index}].{name}", message="has to be a list of rules")
                continue
            for number, rule in enumerate(rules):
                if complaint := _complaint(rule):
                    yield Problem(path=f"{_TERMS}[{index}].{name}[{number}]", message=complaint)


def _complaint(rule: Any) -> str:
    """What is wrong with one rule; empty when it can be read."""
    if not isinstance(rule, Mapping) or not isinstance(rule.get("key"), str):
        return "needs a key: the name of the label"
    operator, values = rule.get("operator"), rule.get("values") or []
    if operator not in OPERATORS:
        return f"needs an operator: {', '.join(OPERATORS)}"
    if not isinstance(values, list):
        return "values has to be a list"
    if operator in NUMERIC and not (len(values) == 1 and is_number(str(values[0]))):
        return f"{operator} needs one number in values"
    return ""
