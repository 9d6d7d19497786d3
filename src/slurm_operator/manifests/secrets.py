"""Secrets without their bytes: handles that name a value and say which version of it was meant.

Plans are recorded, printed and replayed, so they must not carry secret values. A handle stands in for one;
the runtime puts the value in its place in the moment of writing, and refuses when it is no longer the value
that was decided about.
"""

import re
from collections.abc import Iterator

from slurm_operator import wire
from slurm_operator.manifests.meta import Manifest

_OPEN, _CLOSE = "\u27e6", "\u27e7"
_MARK = re.compile(f"{_OPEN}secret ([^ /]+)/([^ /]+)/([^ ]+) ([0-9a-f]*){_CLOSE}")


class SecretHandle(wire.Record):
    """One value of one Secret, at one version."""

    namespace: str
    name: str
    key: str
    digest: str = ""

    @property
    def mark(self) -> str:
        """Stands in a manifest's string where the value will be."""
        return f"{_OPEN}secret {self.namespace}/{self.name}/{self.key} {self.digest}{_CLOSE}"

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name} key {self.key!r}"


def handles(text: str) -> Iterator[SecretHandle]:
    """Every handle marked in a text."""
    for namespace, name, key, digest in _MARK.findall(text):
        yield SecretHandle(namespace=namespace, name=name, key=key, digest=digest)


def handles_in(manifest: Manifest) -> set[SecretHandle]:
    """Every handle marked in a Secret's `stringData`; no other place may have one."""
    return {handle for text in manifest.get("stringData", {}).values() for handle in handles(text)}


def filled(manifest: Manifest, values: dict[SecretHandle, str]) -> Manifest:
    """The manifest with every mark replaced by its value."""

    def fill(text: str) -> str:
        for handle in set(handles(text)):
            text = text.replace(handle.mark, values[handle])
        return text

    return manifest | {"stringData": {key: fill(text) for key, text in manifest["stringData"].items()}}
