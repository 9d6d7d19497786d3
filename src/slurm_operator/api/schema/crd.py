"""From kinds to CustomResourceDefinitions."""

from typing import Any, ClassVar, Final, Protocol

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Field, fields_of, prop
from slurm_operator.api.schema.openapi import Schema, describe, schema, undescribed
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta

READY_PATH: Final = '.status.conditions[?(@.type=="Ready")].status'
REASON_PATH: Final = '.status.conditions[?(@.type=="Ready")].reason'


class Column(wire.Record):
    """A column of `kubectl get`; priority 1 shows with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    priority: int = 0


AGE: Final = Column(name="AGE", path=".metadata.creationTimestamp", type="date", description="How old it is.")


class Definition(wire.Record):
    """What a kind's CRD says besides its schema. `also_served` are older versions with the same schema.

    `older_defaults` are fields, by their path, that have another default in those.
    """

    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    age: Column = AGE
    has_scale: bool = False
    selector_path: str = ".status.selector"
    also_served: tuple[str, ...] = ()
    older_defaults: dict[str, Any] = {}


class Resource(Protocol):
    """What every kind of ours has."""

    KIND: ClassVar[Kind]
    CRD: ClassVar[Definition]

    @property
    def metadata(self) -> Meta: ...


METADATA: Final[Any] = prop("Name, labels, annotations.", default=Meta())
READY: Final = Column(name="READY", path=READY_PATH, description="Whether everything works.")
STATUS: Final = Column(name="STATUS", path=REASON_PATH, description="Why it is ready or not.", priority=1)


def crd(cls: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    kind, definition = cls.KIND, cls.CRD
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            # Uninstalling the chart must not take every cluster with it.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": list(definition.short_names),
                "categories": ["slurm"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                _version(cls, kind, kind.version, definition),
                *(_version(cls, kind, version, definition) for version in definition.also_served),
            ],
        },
    }


def _version(cls: type, kind: Kind, version: str, definition: Definition) -> dict[str, Any]:
    is_newest = version == kind.version
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": definition.selector_path,
    }
    body = root_schema(cls)
    warning = f"{kind.group}/{version} {kind.kind} still works; write {kind.api_version} in new manifests"
    return {
        "name": version,
        "served": True,
        "storage": is_newest,
        **({} if is_newest else {"deprecated": True, "deprecationWarning": warning}),
        # Two described versions of Cluster would not fit into what `kubectl apply` keeps in an annotation.
        "schema": {"openAPIV3Schema": body if is_newest else _older(undescribed(body), definition)},
        "subresources": {"status": {}, **({"scale": scale} if definition.has_scale else {})},
        "additionalPrinterColumns": [_column(column) for column in (*definition.columns, definition.age)],
    }


def _older(body: Schema, definition: Definition) -> Schema:
    """The schema of an older version. Where nobody says anything, the default of the whole object stays."""
    for path, value in definition.older_defaults.items():
        field = body
        for word in path.split("."):
            field = field["properties"][word]
        field["default"] = value
    return body


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
        "description": column.description,
        "priority": column.priority,
    }


def root_schema(cls: type) -> Schema:
    """The schema of a whole object, with the fields that every object has."""
    body = schema(cls)
    fields = {field.name: field for field in fields_of(cls)}
    status = fields["status"]
    envelope = {
        "apiVersion": {
            "type": "string",
            "description": "The API group and version this manifest is written for.",
        },
        "kind": {"type": "string", "description": "The kind of object."},
    }
    body["properties"] = {
        **envelope,
        **body["properties"],
        # The API server knows the metadata of all objects itself and refuses to be told.
        "metadata": {"type": "object"},
        "status": {
            "description": describe(status),
            **schema(status.type, defaults=False),
            **_unseen(cls, status),
        },
    }
    return {"description": doc(cls), **body}


def _unseen(cls: type, status: Field) -> Schema:
    """What an object says that no operator has looked at yet, so that `helm --wait` and others wait for one.

    They take an object without a status for one that is ready. Kubernetes adds this when the object is read.
    Of the second group not every kind has somebody who would write a status.
    """
    kind: Kind | None = getattr(cls, "KIND", None)
    is_looked_at = kind is not None and kind.group == names.GROUP
    has_generation = any(field.name == "observedGeneration" for field in fields_of(status.type))
    return {"default": {"observedGeneration": -1}} if is_looked_at and has_generation else {}


def doc(cls: type) -> str:
    """A model's docstring with its lines joined into paragraphs."""
    paragraphs = (cls.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
