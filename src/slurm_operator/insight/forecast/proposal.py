"""What applying a file would lead to: tried on the API server, which keeps nothing, then played through."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.registry import name_of
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.forecast.kubernetes import NEW, OUR_TYPES, Kubernetes
from slurm_operator.insight.forecast.objects import objects as known_objects
from slurm_operator.insight.forecast.outcome import Forecast, forecast
from slurm_operator.insight.forecast.patches import three_way
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import ApiError, Conflict, NotFound
from slurm_operator.kube.request import APPLY_PATCH, JSON, MERGE_PATCH, on_object
from slurm_operator.kube.secret_values import decode_secret
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# What a plan can say something about: our kinds, and what they refer to.
PLANNED: dict[tuple[str, str], Kind] = {
    (kind.group, kind.kind): kind
    for kind in (*(one.kind for one in registry.ALL), kinds.CONFIG_MAP, kinds.SECRET)
}

# A play may ask for names that nobody asked for before; then it is played again with what they are.
_MOST_LOOKS = 8


class BadFile(Exception):  # noqa: N818 - it is the user's to fix
    """The file cannot be planned with: which document, and why."""


class Refused(Exception):  # noqa: N818 - the API server's word
    """The API server would not take this file; its own words."""


def manifests(text: str, namespace: str, file: str = "") -> list[Manifest]:
    """The objects in a file of YAML documents, Lists included, each with its namespace. Raises BadFile."""
    try:
        return _manifests(text, namespace)
    except BadFile as problem:
        raise BadFile(f"{file}: {problem}" if file else str(problem)) from problem


def _manifests(text: str, namespace: str) -> list[Manifest]:
    try:
        documents = [one for one in yaml.safe_load_all(text) if one]
    except yaml.YAMLError as error:
        raise BadFile(f"This is no YAML: {error}") from error
    found: list[Manifest] = []
    for document in documents:
        items = document.get("items", []) if _word(document, "kind") == "List" else [document]
        found += [_placed(item, namespace) for item in items]
    if not found:
        raise BadFile("There is no object in it.")
    return found


def _word(document: Any, key: str) -> str:
    return str(document.get(key, "")) if isinstance(document, Mapping) else ""


def _placed(item: Any, namespace: str) -> Manifest:
    kind = planned_kind(item)
    metadata = item.get("metadata") or {}
    if not metadata.get("name"):
        raise BadFile(f"A {kind.kind} without metadata.name.")
    return {**item, "metadata": {"namespace": namespace, **metadata}}


def _called(kind: Kind) -> str:
    return name_of(kind) if kind.group in registry.ALL.groups else kind.kind


def planned_kind(item: Any) -> Kind:
    """The kind of an object, in the version that the file uses."""
    group, _, version = _word(item, "apiVersion").rpartition("/")
    kind = PLANNED.get((group, _word(item, "kind")))
    if kind is None:
        known = ", ".join(sorted(map(_called, PLANNED.values())))
        what = f"{_word(item, 'kind') or 'something without a kind'} ({_word(item, 'apiVersion')})"
        raise BadFile(f"Nothing is known about {what}; this plans: {known}.")
    return wire.replace(kind, version=version)


class ServerSide(NamedTuple):
    """How `kubectl apply --server-side` is called: as whom, and whether fields of others are taken over."""

    manager: str = "kubectl"
    force: bool = False


async def tried(client: Client, manifest: Manifest, server_side: ServerSide | None = None) -> Manifest:
    """The object as the API server would have it, with its defaults. Nothing is written. Raises Refused."""
    kind, key = planned_kind(manifest), _key(manifest)
    params = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "kubectl-client-side-apply"}
    try:
        live = await _live(client, kind, key)
        if server_side is not None:
            params |= {"fieldManager": server_side.manager, "force": str(server_side.force).lower()}
            request = on_object(
                "apply", "PATCH", kind, key, params=params, body=manifest, content_type=APPLY_PATCH
            )
        elif live is None:
            place = ObjectKey(key.namespace, "")
            request = on_object(
                "create", "POST", kind, place, params=params, body=manifest, content_type=JSON
            )
        else:
            last = wire.decode_any(live["metadata"].get("annotations", {}).get(LAST_APPLIED, "{}"))
            patch = three_way(last, manifest, live)
            request = on_object(
                "patch", "PATCH", kind, key, params=params, body=patch, content_type=MERGE_PATCH
            )
        found: Manifest = wire.decode_any(await client.send(request))
    except Conflict as error:
        raise Refused(f"{kind.kind} {key}: {error.message}") from error
    except ApiError as error:
        raise Refused("\n".join(f"{kind.kind} {key}: {line}" for line in _refusals(error))) from error
    return found if live is not None else _unborn(found)


# How the API server says which fields it does not know: in one long line, behind much else.
_UNKNOWN_FIELD = re.compile(r'(unknown|duplicate) field "([^"]+)"')


def _refusals(error: ApiError) -> list[str]:
    """A line for each field that is wrong; else the server's own words."""
    fields = _UNKNOWN_FIELD.findall(error.message)
    return [f"{what} field {path}" for what, path in fields] or [error.message or str(error)]


async def _live(client: Client, kind: Kind, key: ObjectKey) -> Manifest | None:
    try:
        return await client.get(kind, key)
    except NotFound:
        return None


def _unborn(manifest: Manifest) -> Manifest:
    """The API server gives a uid that it forgets again; ours says that there is none yet."""
    uid = f"{NEW}{_called(planned_kind(manifest))}-{manifest['metadata']['name']}"
    metadata = {**manifest["metadata"], "uid": uid}
    return {**manifest, "metadata": metadata}


def laid_over(picture: Picture, objects: Sequence[Manifest]) -> Picture:
    """The picture as it would be right after these objects were applied."""
    changed = picture.copy()
    for body in objects:
        put(changed, body)
    return changed


def put(picture: Picture, body: Manifest) -> None:
    kind = PLANNED[planned_kind(body).group, body["kind"]]
    if kind in OUR_TYPES:
        picture.put(codec.read(OUR_TYPES[kind], body))
    elif kind == kinds.SECRET:
        secret = decode_secret(memoryview(wire.encode(body)))
        picture.secrets[key_of(secret)] = secret
    else:
        config_map = wire.convert(body, ConfigMap)
        picture.config_maps[key_of(config_map)] = config_map
        if picture.child(kind, *key_of(config_map)) is not None:
            picture.put_child(kind, Child(metadata=codec.read(Meta, body["metadata"]), body=body))


def changes_nothing(picture: Picture, objects: Sequence[Manifest]) -> bool:
    """Whether all of these are there already, just so. Then nothing comes of it, whatever goes on."""
    then = laid_over(picture, objects)
    before, after = known_objects(picture), known_objects(then)
    if before.keys() != after.keys():
        return False
    return all(before[known].body == after[known].body for known in after)


def without(picture: Picture, objects: Sequence[Manifest]) -> Picture:
    """The picture as it would be right after somebody asked to delete these objects."""
    changed = picture.copy()
    kubernetes = Kubernetes(changed)
    for body in objects:
        kubernetes.delete(PLANNED[planned_kind(body).group, body["kind"]], _key(body))
    return changed


async def plan(
    looker: Looker,
    given: Sequence[Manifest],
    *,
    delete: bool = False,
    server_side: ServerSide | None = None,
) -> Forecast:
    """What applying, or deleting, these objects would lead to. Raises Refused."""
    objects = [] if delete else [await tried(looker.client, one, server_side) for one in given]
    sight, found = await looker.look(), Forecast()
    if not delete and changes_nothing(sight.picture, objects):
        return wire.replace(found, unseen=tuple(sight.unseen))
    for _ in range(_MOST_LOOKS):
        then = without(sight.picture, given) if delete else laid_over(sight.picture, objects)
        with sight.as_operator():
            found = forecast(sight.picture, then, looker.program.reconcilers, deletes=delete)
        if not await looker.read_missed(sight):
            break
    return wire.replace(found, unseen=tuple(sight.unseen))


def _key(manifest: Manifest) -> ObjectKey:
    return ObjectKey(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
