"""Reference pages in Markdown, from the same facts as the CRDs."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import UnionType
from typing import Annotated, Any, Final, Union, get_origin

from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.crd import Resource, doc
from slurm_operator.api.schema.model import Choice, Field, Rule, fields_of, is_model, item_type
from slurm_operator.api.schema.openapi import published_default
from slurm_operator.api.shared.pods import AddedContainer, ClaimTemplate, Container, PodSpec
from slurm_operator.api.shared.services import KubeServiceSpec

# Described once on a page of their own; every field of Kubernetes is accepted there anyway.
OVERRIDES: Final = (Container, AddedContainer, PodSpec, ClaimTemplate, KubeServiceSpec)
_TITLES: Final = {
    Container: "Container",
    AddedContainer: "Container in a pod",
    PodSpec: "Pod",
    ClaimTemplate: "PersistentVolumeClaim",
    KubeServiceSpec: "Service",
}
_NAMES: Final = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    datetime: "time",
    timedelta: "duration",
}


def pages(kinds: Registry = registry.ALL) -> dict[str, str]:
    """File name to text of every reference page."""
    by_kind = {_file(cls): _page(cls) for cls in kinds.models}
    return {"index.md": _index(kinds), "overrides.md": _overrides(), **by_kind}


def _file(cls: type[Resource]) -> str:
    """A page per kind, in a folder per API group: two groups may have kinds of the same name."""
    kind = cls.KIND
    return f"{kind.group}/{kind.kind.lower()}.md"


def _index(kinds: Registry) -> str:
    lines = [
        "# Reference",
        "",
        "Written from the same models as the CRDs. `kubectl explain` says the same.",
        "",
    ]
    lines += ["| Kind | What it is |", "|---|---|"]
    lines += [f"| [{one.name}]({_file(one.model)}) | {_cell(_summary(one.model))} |" for one in kinds]
    lines += [
        "",
        "[Overrides](overrides.md) describes what can be laid over pods, containers and Services.",
        "",
    ]
    return "\n".join(lines)


def _summary(cls: type) -> str:
    return doc(cls).split("\n\n")[0]


def _page(cls: type[Resource]) -> str:
    kind, definition = cls.KIND, cls.CRD
    fields = {field.name: field for field in fields_of(cls)}
    versions = ", ".join(f"`{kind.group}/{version}`" for version in (kind.version, *definition.also_served))
    columns = ", ".join(column.name for column in (*definition.columns, definition.age))
    words = ", ".join(f"`{word}`" for word in dict.fromkeys([kind.plural, *definition.short_names]))
    return "\n".join(
        [
            f"# {kind.kind}",
            "",
            doc(cls),
            "",
            f"- API versions: {versions}",
            f"- For kubectl: {words}",
            f"- Columns of `kubectl get`: {columns}",
            "",
            "## spec",
            "",
            *_table(fields["spec"].type),
            "",
            *_refusals(cls, fields["spec"].type),
            "## status",
            "",
            *_plain_table(fields["status"].type),
            "",
        ]
    )


def _overrides() -> str:
    lines = [
        "# Overrides",
        "",
        "Where a field says *laid over*, any field that Kubernetes knows can be set, listed here or not: it "
        "is merged into what the operator makes. Lists are merged by their key, `null` removes. The types of "
        "the fields below are checked when you apply.",
        "",
    ]
    for cls in OVERRIDES:
        lines += [f"## {_TITLES[cls]}", "", doc(cls), "", *_table(cls), ""]
    return "\n".join(lines).replace("(../overrides.md#", "(#")


def _table(cls: type) -> list[str]:
    rows = [
        f"| `{path}` | {_type_name(field)} | {_default(field)} | {_description(field)} |"
        for path, field in _walk(cls, "")
    ]
    return ["| Field | Type | Default | Meaning |", "|---|---|---|---|", *rows]


def _plain_table(cls: type) -> list[str]:
    rows = [
        f"| `{path}` | {_name_of(field.type)} | {_description(field)} |" for path, field in _walk(cls, "")
    ]
    return ["| Field | Type | Meaning |", "|---|---|---|", *rows]


def _walk(cls: type, path: str) -> Iterator[tuple[str, Field]]:
    """Every field under a model with its dotted path; overrides have their own page and are not entered."""
    for field in fields_of(cls):
        here = f"{path}{field.name}"
        yield here, field
        inner = _inner(field)
        if inner is not None:
            yield from _walk(inner, f"{here}[]." if get_origin(field.type) is list else f"{here}.")


def _inner(field: Field) -> type | None:
    """The model below a field, unless it is described on the page of overrides."""
    below = _below(field)
    return None if below is not None and issubclass(below, OVERRIDES) else below


def _below(field: Field) -> type | None:
    for candidate in (field.type, item_type(field.type), field.prop.shape):
        if isinstance(candidate, type) and is_model(candidate):
            return candidate
    return None


def _type_name(field: Field) -> str:
    name = _name_of(field.type)
    return f"{name}, required" if field.prop.is_required else name


def _name_of(type_: Any) -> str:
    if type_ in _NAMES:
        return _NAMES[type_]
    if isinstance(type_, type) and issubclass(type_, Choice):
        return " or ".join(f"`{choice}`" for choice in type_)
    if get_origin(type_) is Annotated:
        return "quantity"
    if get_origin(type_) in (Union, UnionType):
        return "integer or string"
    inner = item_type(type_)
    if inner is None or inner is Any:
        return "object"
    return f"list of {_name_of(inner)}" if get_origin(type_) is list else f"map of {_name_of(inner)}"


def _default(field: Field) -> str:
    default = published_default(field)
    return f"`{json.dumps(default)}`" if default is not None and not is_model(field.type) else ""


def _description(field: Field) -> str:
    facts = field.prop
    parts = [facts.description]
    if isinstance(field.type, type) and issubclass(field.type, Choice):
        parts += [f"`{choice}`: {choice.meaning}" for choice in field.type]
    if facts.deprecated:
        parts.append(f"*Deprecated: {facts.deprecated}.*")
    if facts.immutable:
        parts.append("Cannot change.")
    low, high = facts.minimum, facts.maximum
    if low is not None or high is not None:
        parts.append(
            f"At least {low}." if high is None else f"At most {high}." if low is None else f"{low} to {high}."
        )
    if facts.max_items is not None:
        parts.append(f"At most {facts.max_items} items.")
    titles = [title for cls, title in _TITLES.items() if issubclass(facts.shape or object, cls)]
    parts += [f"See [{title}](../overrides.md#{title.lower().replace(' ', '-')})." for title in titles[:1]]
    return _cell(" ".join(parts))


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ").replace("<", "&lt;").replace(">", "&gt;")


def _refusals(cls: type, spec: type) -> list[str]:
    whole = [(rule.path.lstrip("."), rule) for rule in getattr(cls, "RULES", ())]
    found = [*whole, *((f"spec{path}", rule) for path, rule in _rules_below(spec, ""))]
    if not found:
        return []
    return [
        "What is refused, and in which words:",
        "",
        *(f"- `{path}`: {rule.message}" for path, rule in found),
        "",
    ]


def _rules_below(cls: type, path: str) -> Iterator[tuple[str, Rule]]:
    for rule in getattr(cls, "RULES", ()):
        yield f"{path}{rule.path}", rule
    for field in fields_of(cls):
        here = f"{path}.{field.name}"
        yield from ((here, rule) for rule in field.prop.rules)
        inner = _below(field)
        if inner is not None:
            yield from _rules_below(inner, f"{here}[]" if get_origin(field.type) is list else here)
