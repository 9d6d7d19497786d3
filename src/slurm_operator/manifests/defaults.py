"""What whoever runs the operator wants on everything that it creates: annotations, and how images are pulled.

It is laid over an object in the moment of writing, so it is no part of a revision or of a digest. A pod
template gets it when it is built for another reason: it never replaces a pod.
"""

from collections.abc import Mapping
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import TEMPLATE_DIGEST
from slurm_operator.manifests.meta import Child, Manifest

# On StatefulSets and Deployments: what their template has of it, to be written again with it.
TEMPLATE_DEFAULTS: Final = "slinky.slurm.net/template-defaults"

WORKLOADS: Final = (kinds.STATEFUL_SET, kinds.DEPLOYMENT)


class Defaults(wire.Record):
    """Both are for what says nothing of its own."""

    image_pull_policy: str = ""
    annotations: dict[str, str] = {}


NO_DEFAULTS: Final = Defaults()


def with_defaults(manifest: Manifest, defaults: Defaults, live: Child | None = None) -> Manifest:
    """The object as it is sent. `live` is the workload of its name, if it is one and there is one.

    Objects of our own kinds stay as they are: their annotations go on to pods, and would replace them.
    """
    kind = kinds.kind_of(manifest)
    if kind.group in registry.GROUPS:
        return manifest
    whole = _annotated(manifest, defaults.annotations)
    if kind == kinds.POD and defaults.image_pull_policy:
        return whole | {"spec": _pulled(whole["spec"], defaults.image_pull_policy)}
    if kind in WORKLOADS or kind == kinds.JOB:
        return _with_template(whole, _noted(live) if _is_kept(manifest, live) else defaults)
    return whole


def _with_template(workload: Manifest, defaults: Defaults) -> Manifest:
    if defaults == NO_DEFAULTS:
        return workload
    template = _annotated(workload["spec"]["template"], defaults.annotations)
    template |= {"spec": _pulled(template["spec"], defaults.image_pull_policy)}
    noted = _annotated(workload, {TEMPLATE_DEFAULTS: wire.encode(defaults).decode()})
    return noted | {"spec": {**workload["spec"], "template": template}}


def _is_kept(workload: Manifest, live: Child | None) -> bool:
    """Whether the pods stay what they are: see `settled_template`."""
    if live is None:
        return False
    ours, noted = workload["metadata"].get("annotations") or {}, live.metadata.annotations
    is_same = TEMPLATE_DIGEST in ours and ours[TEMPLATE_DIGEST] == noted.get(TEMPLATE_DIGEST)
    return is_same or bool(workload["spec"]["template"] == live.body["spec"]["template"])


def _noted(live: Child | None) -> Defaults:
    """What the template was given when it was built. A note that somebody spoilt says nothing."""
    note = live.metadata.annotations.get(TEMPLATE_DEFAULTS, "") if live is not None else ""
    try:
        return wire.decode(note.encode(), Defaults) if note else NO_DEFAULTS
    except wire.DecodeError:
        return NO_DEFAULTS


def _annotated(thing: Manifest, annotations: Mapping[str, str]) -> Manifest:
    if not annotations:
        return dict(thing)
    metadata = thing.get("metadata") or {}
    return {
        **thing,
        "metadata": {**metadata, "annotations": {**annotations, **(metadata.get("annotations") or {})}},
    }


def _pulled(spec: Mapping[str, Any], policy: str) -> Manifest:
    if not policy:
        return dict(spec)
    groups = {name: spec[name] for name in ("initContainers", "containers") if spec.get(name)}
    return {
        **spec,
        **{
            name: [{"imagePullPolicy": policy, **container} for container in containers]
            for name, containers in groups.items()
        },
    }
