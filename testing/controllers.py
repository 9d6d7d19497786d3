"""Controllers and what surrounds them, as worlds: for tables of manifests and of decisions."""

from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Secret
from testing.rings import ring_secret
from testing.world import HandmadeWorld

NS = "demo"
NAME = "slurm"
KEY = ObjectKey(NS, NAME)
MODELS = {model.KIND.kind: model for model in (Accounting, Controller, LoginSet, NodeSet, RestApi)}


def thing(kind: str, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> Any:
    """One of our kinds, as it comes from the API server."""
    meta = {
        "name": name,
        "namespace": NS,
        "uid": f"uid-of-{kind.lower()}-{name}",
        "generation": 1,
        **metadata,
    }
    return codec.read(MODELS[kind], {"metadata": meta, "spec": spec or {}})


def controller(spec: dict[str, Any] | None = None, **metadata: Any) -> Controller:
    whole = {"slurmctld": {"image": "slurmctld:26.05"}, **(spec or {})}
    made = thing("Controller", NAME, whole, **metadata)
    assert isinstance(made, Controller)
    return made


def files(name: str, data: dict[str, str], binary: dict[str, str] | None = None) -> ConfigMap:
    return ConfigMap(metadata=Meta(name=name, namespace=NS), data=data, binary_data=binary or {})


def secret(name: str, **digests: str) -> Secret:
    named = {key.replace("_", "."): value for key, value in digests.items()}
    return Secret(metadata=Meta(name=name, namespace=NS), digests=named)


def world(*things: Any, keys: bool = True) -> HandmadeWorld:
    """These objects in one namespace, and the keys that are made when nobody names any, with their ring."""
    made = HandmadeWorld()
    for one in things:
        if isinstance(one, ConfigMap | Secret):
            made.named[type(one), ObjectKey(NS, one.metadata.name)] = one
        else:
            made.things.append(one)
    for one in [one for one in made.things if isinstance(one, Controller)] if keys else []:
        owner = one.spec.accounting or one.metadata.name
        for found in (
            secret(f"{owner}-auth-slurm", slurm_key="k1"),
            secret(f"{owner}-auth-jwt", jwt_key="j1"),
            ring_secret(NS, f"{owner}-auth-slurm", Ring(signs="k1")),
        ):
            made.named.setdefault((Secret, ObjectKey(NS, found.metadata.name)), found)
    return made


def child(manifest: Manifest, *, uid: str = "", **more: Any) -> Child:
    """An object of ours as it is after it was applied."""
    metadata = manifest["metadata"]
    meta = {"uid": uid or f"uid-of-{metadata['name']}", "generation": 1, "resourceVersion": "1", **metadata}
    body = {**manifest, **more, "metadata": meta}
    return Child(metadata=codec.read(Meta, meta), body=body)


def put(made: HandmadeWorld, manifest: Manifest, **more: Any) -> None:
    """The object into the world, in the place of one with the same name."""
    kind = kinds.kind_of(manifest)
    name = manifest["metadata"]["name"]
    others = [c for c in made.children_.get(kind, []) if c.metadata.name != name]
    made.children_[kind] = [*others, child(manifest, **more)]
