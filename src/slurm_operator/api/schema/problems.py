"""What is wrong with a manifest, as data: for the webhook to refuse, for reconcilers to put into a condition.

What a schema or CEL can say stands in the models' props and rules, where the API server enforces it even when
the webhook is away. Here is the rest: what needs another object, the namespace, or only deserves a warning.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from slurm_operator import wire
from slurm_operator.api.schema.model import Field, Rule, fields_of, is_model, item_type

T = TypeVar("T")


class Severity(StrEnum):
    ERROR = "Error"
    WARNING = "Warning"


class Problem(wire.Record):
    """One thing the user has to know: where, what, and how bad."""

    path: str
    message: str
    severity: Severity = Severity.ERROR

    def under(self, path: str) -> "Problem":
        """The same problem, seen from the object that holds this one at `path`."""
        joined = f"{path}{self.path}" if self.path.startswith("[") else f"{path}.{self.path}".rstrip(".")
        return wire.replace(self, path=joined)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def warning(path: str, message: str) -> Problem:
    return Problem(path=path, message=message, severity=Severity.WARNING)


class References(wire.Record):
    """Facts about other objects in the namespace that problems depend on, looked up by whoever asks.

    A name that is missing from a mapping was not looked up; one that maps to None does not exist.
    """

    # ConfigMap -> the keys it has.
    config_maps: Mapping[str, frozenset[str] | None] = {}
    # PersistentVolumeClaim -> its access modes.
    claims: Mapping[str, tuple[str, ...] | None] = {}
    # Slurm's name for a set of nodes -> the other NodeSets of the same Controller that already have it.
    node_set_names: Mapping[str, tuple[str, ...]] = {}
    # Slurm's cluster name -> other Controllers with that name on the same Accounting.
    cluster_names: Mapping[str, tuple[str, ...]] = {}


T_contra = TypeVar("T_contra", contravariant=True)


class HasProblems(Protocol[T_contra]):
    def problems(self, old: T_contra | None, refs: References, /) -> Iterator[Problem]: ...


def spec_problems(spec: HasProblems[T], old: T | None, refs: References) -> Iterator[Problem]:
    """What is wrong with the `spec` of an object, old fields included."""
    for problem in (*deprecations(spec), *broken_rules(spec, old), *spec.problems(old, refs)):
        yield problem.under("spec")


def broken_rules(value: Any, old: Any) -> Iterator[Problem]:
    """Rules of the CRD that do not hold, as far as they can be told without the API server.

    Items of lists are compared with nothing: which one was which before, only the API server says.
    """
    cls: type = type(value)
    yield from _broken(getattr(cls, "RULES", ()), value, old)
    for field in fields_of(cls):
        inner = getattr(value, field.attribute)
        before = getattr(old, field.attribute) if old is not None else None
        for problem in _below(field, inner, before):
            yield problem.under(field.name)


def _below(field: Field, inner: Any, before: Any) -> Iterator[Problem]:
    if inner is None:
        return
    yield from _broken(field.prop.rules, inner, before)
    if is_model(type(inner)):
        yield from broken_rules(inner, before)
    elif isinstance(inner, list) and is_model(item_type(field.type)):
        for index, item in enumerate(inner):
            yield from (problem.under(f"[{index}]") for problem in broken_rules(item, None))
    elif isinstance(inner, dict) and field.prop.shape is not None:
        for part in fields_of(field.prop.shape):
            said = inner.get(part.name)
            if isinstance(said, str):  # Of foreign JSON we have rules for words only.
                yield from (problem.under(part.name) for problem in _broken(part.prop.rules, said, None))


def _broken(rules: Iterable[Rule], value: Any, old: Any) -> Iterator[Problem]:
    for rule in rules:
        if rule.holds is not None and not rule.holds(value, old):
            yield Problem(path=rule.path.removeprefix("."), message=rule.message)


def deprecations(value: Any) -> Iterator[Problem]:
    """A warning for every field that is set although there is something better."""
    cls: type = type(value)
    for field in fields_of(cls):
        inner = getattr(value, field.attribute)
        if field.prop.deprecated and inner != field.prop.default:
            yield warning(field.name, field.prop.deprecated)
        elif is_model(type(inner)):
            yield from (problem.under(field.name) for problem in deprecations(inner))
        elif isinstance(inner, list) and is_model(item_type(field.type)):
            for index, item in enumerate(inner):
                yield from (problem.under(f"{field.name}[{index}]") for problem in deprecations(item))
