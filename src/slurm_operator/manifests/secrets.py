"""Secrets without their bytes: handles that name a value and say which version of it was meant.

Plans are recorded, printed and replayed, so they must not carry secret values. A handle stands in for one;
the runtime puts the value in its place in the moment of writing, and refuses when it is no longer the value
that was decided about.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from slurm_operator import wire
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.slurm.conf.lines import Pair, UnwritableError, pair_text

# On Secrets that we write: the digest of what we wrote, by which a foreign edit of the values shows.
CONTENT_DIGEST = "slinky.slurm.net/content-digest"

# On Secrets with ssh host keys that we made: what people compare at their first login.
SSH_FINGERPRINTS = "slinky.slurm.net/ssh-fingerprints"

_OPEN, _CLOSE = "\u27e6", "\u27e7"
_MARK = re.compile(f"{_OPEN}secret ([^ /]+)/([^ /]+)/([^ ]+) ([0-9a-f]*) (plain|conf|base64url){_CLOSE}")


class SecretHandle(wire.Record):
    """One value of one Secret, at one version.

    As `conf` it is quoted for a configuration file of Slurm, as `base64url` it may be any bytes.
    """

    namespace: str
    name: str
    key: str
    digest: str = ""
    form: Literal["plain", "conf", "base64url"] = "plain"

    @property
    def mark(self) -> str:
        """Stands in a manifest's string where the value will be."""
        return f"{_OPEN}secret {self.namespace}/{self.name}/{self.key} {self.digest} {self.form}{_CLOSE}"

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name} key {self.key!r}"


def handles(text: str) -> Iterator[SecretHandle]:
    """Every handle marked in a text."""
    for namespace, name, key, version, form in _MARK.findall(text):
        yield SecretHandle(namespace=namespace, name=name, key=key, digest=version, form=form)


def handles_in(manifest: Manifest) -> list[SecretHandle]:
    """Every handle marked in a Secret's `stringData`, once and in order; no other place may have one."""
    found = (handle for text in manifest.get("stringData", {}).values() for handle in handles(text))
    return list(dict.fromkeys(found))


def text_of(handle: SecretHandle, value: bytes) -> str:
    """A value as text, as `filled` wants it. Raises ValueError when it is none and its handle says it is."""
    if handle.form == "base64url":
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
    return value.decode()


def bytes_of(text: bytes) -> bytes:
    """A value again that was written as base64url."""
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def filled(manifest: Manifest, values: dict[SecretHandle, str]) -> Manifest:
    """The manifest with every mark replaced by its value."""

    def fill(text: str) -> str:
        for handle in set(handles(text)):
            text = text.replace(handle.mark, _value_text(handle, values[handle]))
        return text

    return manifest | {"stringData": {key: fill(text) for key, text in manifest["stringData"].items()}}


def _value_text(handle: SecretHandle, value: str) -> str:
    if handle.form != "conf":
        return value
    try:
        # Files often end with a line break that nobody meant to be part of a password.
        return pair_text(Pair("Key", value.rstrip("\r\n"))).partition("=")[2]
    except UnwritableError:
        # Its own message shows the value.
        raise ValueError(
            f"{handle} cannot be written into a configuration file of Slurm: it has line breaks, or "
            "quotes around it or beside spaces"
        ) from None


def content_digest(digests: Mapping[str, str], entries: Iterable[str]) -> str:
    """One digest over those of some entries of a Secret."""
    return digest({entry: digests.get(entry, "") for entry in entries})
