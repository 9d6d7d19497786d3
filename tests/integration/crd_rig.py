"""What the CRD tests share: our definitions on the real API server, and its answers word for word."""

import copy
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from slurm_local.slurm_cluster import wait_established
from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from testing.control_plane import Plane

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OLD_MANIFESTS = Path(__file__).parent / "v1alpha1"
STOPPED = (
    ", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation]"
)
APPLY = "application/apply-patch+yaml"
MODELS = {cls.KIND.kind: cls for cls in KINDS}


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]
    warnings: list[str]

    @property
    def complaint(self) -> str:
        """What the server has against the object, without its name and the note that it stopped checking."""
        text = self.body.get("message", "").partition(" is invalid: ")[2] if self.status >= 400 else ""
        return text.removeprefix("[").removesuffix(STOPPED) if text.endswith(STOPPED) else text


class Api:
    """The real API server with our CRDs, over one connection."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._connection = plane.caller.connection(timeout_s=30)

    def close(self) -> None:
        self._connection.close()

    def send(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Answer:
        data = None if body is None else wire.encode(body)
        self._connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        return Answer(answer.status, wire.decode_any(text), answer.headers.get_all("Warning") or [])

    def create(self, namespace: str, manifest: dict[str, Any], *, dry_run: bool = False) -> Answer:
        path = collection(manifest).path(namespace) + "?fieldValidation=Strict"
        return self.send("POST", path + ("&dryRun=All" if dry_run else ""), manifest)

    def get(self, namespace: str, manifest: dict[str, Any]) -> Answer:
        return self.send("GET", collection(manifest).path(namespace, manifest["metadata"]["name"]))

    def merge(self, namespace: str, manifest: dict[str, Any], patch: dict[str, Any]) -> Answer:
        """Change the object on the server, or learn why not; nothing is stored."""
        path = collection(manifest).path(namespace, manifest["metadata"]["name"]) + "?dryRun=All"
        return self.send("PATCH", path, patch, "application/merge-patch+json")


def collection(manifest: dict[str, Any]) -> Any:
    kind = MODELS[manifest["kind"]].KIND
    return wire.replace(kind, version=manifest["apiVersion"].rpartition("/")[2])


def install(api: Api) -> dict[str, Answer]:
    """Apply every CRD, wait until the server serves it, and give its answers back."""
    answers = {}
    for cls in KINDS:
        body = crd(cls)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{body['metadata']['name']}"
        answers[cls.KIND.kind] = api.send("PATCH", f"{path}?fieldManager=test&force=true", body, APPLY)
    wait_established(api.plane.kubectl)
    return answers


@pytest.fixture(scope="module")
def api(api_server: Plane) -> Iterator[Api]:
    with closing(Api(api_server)) as api:
        install(api)
        yield api


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def example(name: str) -> dict[str, Any]:
    [manifest] = documents(EXAMPLES / f"{name}.yaml")
    return manifest


def changed(manifest: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the values at some dotted paths replaced; a number is a place in a list, ... removes."""
    result = copy.deepcopy(manifest)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = result
        for name in parents:
            place = place[int(name)] if name.isdecimal() else place.setdefault(name, {})
        if value is ...:
            place.pop(last, None)
        else:
            place[last] = value
    return result


def leaves(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every schema below an object's, with its path; `[]` stands for the items of a list."""
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name), inner
        yield from leaves(inner, (*path, name))
        if "items" in inner:
            yield (*path, name, "[]"), inner["items"]
            yield from leaves(inner["items"], (*path, name, "[]"))
