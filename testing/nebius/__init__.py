"""The kinds of slurm.nebius.ai for tests: a table of their fields, and manifests that are accepted or refused."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Manifest = dict[str, Any]
Line = tuple[str, str, list[str]]  # A path, a type and what else is said of it.
Sections = dict[tuple[str, str], list[Line]]


class Fact(NamedTuple):
    """What the table says of one field."""

    type: str
    facts: dict[str, Any]


def fields() -> dict[str, dict[str, Fact]]:
    """Kind to path to facts, with the blocks written out."""
    sections: Sections = {}
    here: list[Line] = []
    for line in (HERE / "fields.txt").read_text().splitlines():
        words = re.findall(r'\S+="[^"]*"|\S+', line) if not line.startswith("#") else []
        if words[:1] in (["block"], ["kind"]):
            here = sections.setdefault((words[0], words[1]), [])
        elif words:
            here.append((words[0], words[1], words[2:]))
    return {
        name: dict(_written_out(lines, sections))
        for (what, name), lines in sections.items()
        if what == "kind"
    }


def _written_out(lines: list[Line], sections: Sections) -> Iterator[tuple[str, Fact]]:
    for path, type_, facts in lines:
        if not type_.startswith("@"):
            yield path, Fact(type_, dict(map(_fact, facts)))
            continue
        prefix = "" if path == "." else f"{path}."
        for inner, fact in _written_out(sections["block", type_[1:]], sections):
            yield prefix + inner, fact


def _fact(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    if not value:
        return name, True
    return name, value.split("|") if name in ("enum", "keys") else json.loads(value)


def described(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Fact]]:
    """What a schema says, in the words of the table; JSON that is passed on is not entered."""
    required = schema.get("required", [])
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        yield here, _described(inner, name in required)
        yield from _below(inner, here)


def _below(schema: dict[str, Any], path: str) -> Iterator[tuple[str, Fact]]:
    if _type(schema) == "list":
        yield f"{path}[]", _described(schema["items"], False)
        yield from _below(schema["items"], f"{path}[]")
    elif _type(schema) == "map/object":
        yield from described(schema["additionalProperties"], f"{path}{{}}")
    elif _type(schema) == "object":
        yield from described(schema, path)


def _described(schema: dict[str, Any], is_required: bool) -> Fact:
    is_object = _type(schema) == "object"
    named = {
        "R": is_required or None,
        "null": schema.get("nullable"),
        "warned": "\nDeprecated: " in schema.get("description", "") or None,
        "filled": (is_object and "default" in schema) or None,
        "default": None if is_object else schema.get("default"),
        "enum": schema.get("enum"),
        "min": schema.get("minimum"),
        "max": schema.get("maximum"),
        "minLength": schema.get("minLength"),
        "maxLength": schema.get("maxLength"),
        "minItems": schema.get("minItems"),
        "pattern": ("pattern" in schema and _type(schema) == "string") or None,
        "rules": "x-kubernetes-validations" in schema or None,
        "keys": schema.get("x-kubernetes-list-map-keys"),
        "set": schema.get("x-kubernetes-list-type") == "set" or None,
        "atomic": schema.get("x-kubernetes-list-type") == "atomic" or None,
    }
    return Fact(_type(schema), {name: value for name, value in named.items() if value is not None})


def _type(schema: dict[str, Any]) -> str:
    if "x-kubernetes-int-or-string" in schema:
        return "quantity" if "pattern" in schema else "intOrString"
    match schema["type"], schema:
        case "string", {"format": "date-time"}:
            return "time"
        case "integer", {"format": str(size)}:
            return size
        case "object", {"additionalProperties": inner}:
            return f"map/{_type(inner)}"
        case "object", {"x-kubernetes-preserve-unknown-fields": True}:
            return "open"
        case "array", _:
            return "list"
        case "boolean", _:
            return "bool"
        case word, _:
            return str(word)


def documents(name: str) -> list[Any]:
    return list(yaml.load_all((HERE / f"{name}.yaml").read_text(), Loader=_LOADER))


def accepted() -> dict[str, Manifest]:
    """The manifests that are accepted, by `Kind/name`."""
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in documents("accepted")}


def warnings_of(thing: Manifest) -> list[str]:
    """What is said to whoever applies the manifest, as its annotation lists it."""
    return str(thing["metadata"].get("annotations", {}).get("warns", "")).splitlines()


def changed(thing: Manifest, changes: dict[str, Any]) -> Manifest:
    """The manifest with other values at some dotted paths; a number is a place in a list, `...` removes."""
    result = copy.deepcopy(thing)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = result
        for name in parents:
            place = place[int(name)] if name.isdecimal() else place.setdefault(name, {})
        if value in (..., "..."):
            place.pop(last, None)
        elif isinstance(place, list):
            place[int(last) :] = [value]
        else:
            place[last] = value
    return result


# Where the table alone does not say which value a field takes.
_VALUES = {
    "accountingStorageTRES": "Mem,VMem",
    "reconfigureWaitTimeout": "9m",
    "maxUnavailable": "7%",
}
_SIMPLE = {
    "string": "7s",
    "intOrString": "7%",
    "quantity": "7Gi",
    "time": "2030-01-01T00:00:00Z",
    # Entries of pods, volumes and mounts need these.
    "open": {"name": "a", "mountPath": "/a", "claimName": "c"},
    "map/string": {"a": "b"},
    "map/quantity": {"cpu": "7"},
}


def filled(kind: str) -> Manifest:
    """An object with a value in every field of the table that is not its default."""
    table = fields()[kind]
    version = "v1" if kind == "SlurmCluster" else "v1alpha1"
    body = _filled(table, "")
    return {"apiVersion": f"slurm.nebius.ai/{version}", "kind": kind, "metadata": {"name": "filled"}, **body}


def _filled(table: dict[str, Fact], prefix: str) -> Manifest:
    own = [path for path in table if path.startswith(prefix) and "." not in path.removeprefix(prefix)]
    return {path.removeprefix(prefix): _value(table, path) for path in own if not path.endswith(("[]", "{}"))}


def _value(table: dict[str, Fact], path: str) -> Any:
    type_, facts = table[path]
    name = path.rpartition(".")[2].removesuffix("[]")
    if type_ == "list":
        return [_value(table, f"{path}[]")]
    if type_ == "object":
        return _filled(table, f"{path}.")
    if type_ == "map/object":
        return {"0": _filled(table, f"{path}{{}}.")}
    if type_ == "bool":
        return not facts.get("default", False)
    if type_ in ("int32", "int64"):
        return max(7, facts.get("min", 0) + 1)
    if "enum" in facts:
        return next((word for word in facts["enum"] if word != facts.get("default")), facts["enum"][0])
    return copy.deepcopy(_VALUES.get(name, _SIMPLE[type_]))


def refused() -> list[Manifest]:
    """Rows of `refused.yaml`: which manifest, what is changed, who refuses it, in which words."""
    [rows] = documents("refused")
    assert isinstance(rows, list)
    return rows
