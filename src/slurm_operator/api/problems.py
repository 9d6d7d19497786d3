"""What is wrong with a manifest, as data: for the webhook to refuse, for reconcilers to put into a condition.

What a schema or CEL can say stands in the models' props and rules, where the API server enforces it even when
the webhook is away. Here is the rest: what needs another object, the namespace, or only deserves a warning.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from slurm_operator import wire
from slurm_operator.api.model import fields_of, is_model, item_type

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
    for problem in (*deprecations(spec), *spec.problems(old, refs)):
        yield problem.under("spec")


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
