"""Helm's own record of a release: which chart, which values people gave it, and what it contains.

Values may be passwords. Only their names leave this module.
"""

import base64
import binascii
import gzip
import io
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.kube.client import Client
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest

_DEPLOYED: Final = {"labelSelector": "owner=helm,status=deployed"}
_CRD: Final = re.compile(
    r"^kind: CustomResourceDefinition\s*$.*?^  name: [\"']?([a-z0-9.]+)", re.MULTILINE | re.DOTALL
)

# A record of a release is a few hundred kilobytes; nobody needs one that unpacks to more than this.
_MOST_BYTES: Final = 64 << 20


class Release(wire.Record):
    """One release as Helm has deployed it."""

    name: str
    namespace: str
    chart: str
    version: str
    values: tuple[str, ...] = ()  # Paths of what people said, such as `operator.replicas`.
    crds: tuple[str, ...] = ()  # Those in its manifest.


async def releases(client: Client) -> tuple[Release, ...]:
    """Every release that is deployed and can be read. Raises KubeError."""
    listed = await client.request("GET", kinds.SECRET.path(), params=_DEPLOYED)
    found = (release_of(one) for one in listed["items"] if one.get("type") == "helm.sh/release.v1")
    return tuple(one for one in found if one is not None)


def release_of(secret: Manifest) -> Release | None:
    """What a Secret of Helm's says; None when it is no record that we can read."""
    try:
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            record = wire.decode_any(file.read(_MOST_BYTES))
        about = record["chart"]["metadata"]
        return Release(
            name=record["name"],
            namespace=record["namespace"],
            chart=about["name"],
            version=about["version"],
            values=tuple(paths(record.get("config") or {})),
            crds=tuple(_CRD.findall(record.get("manifest") or "")),
        )
    except (KeyError, TypeError, OSError, EOFError, ValueError, binascii.Error, wire.DecodeError):
        return None


def paths(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Where something is said, without what."""
    for name, value in sorted(values.items()):
        path = f"{above}.{name}" if above else name
        if isinstance(value, dict) and value:
            yield from paths(value, path)
        else:
            yield path


def unread(release: Release) -> dict[str, str]:
    """Values that our chart of the same name has no place for, or another one: what becomes of each."""
    tree = known_values().get(release.chart)
    if tree is None:
        return {}
    found = (_judged(path.split("."), tree) for path in release.values)
    return dict(one for one in found if one is not None)


def _judged(words: list[str], tree: Any) -> tuple[str, str] | None:
    for depth, word in enumerate(words, start=1):
        tree = tree.get(word, tree.get("*"))
        if isinstance(tree, str):
            return ".".join(words[:depth]), tree
        if tree is None:
            return ".".join(words[:depth]), "is not known"
        if tree is True:
            return None
    return None


def known_values() -> dict[str, Any]:
    """The trees of values that our charts know, as they are in the charts themselves."""
    text = resources.files(__package__).joinpath("known_values.json").read_bytes()
    found: dict[str, Any] = wire.decode_any(text)
    return found
