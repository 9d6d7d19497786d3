"""The key ring: every Slurm key that daemons accept, as slurm.jwks, with the one among them that signs.

Pods mount this Secret of ours beside the key that the user has. When that one changes, both are in the ring
for a while, so that no daemon meets another whose key it does not know: the new one comes, then it signs,
then the old one goes. Copies of the keys are in it, because the user's Secret has only the new one by then.
"""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.manifests.builders.parts import secret_file
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle

# On the Secret: digests of the key that signs, of the one that will and of the one that did, and since when.
SIGNS = "slinky.slurm.net/key-signs"
NEXT = "slinky.slurm.net/key-next"
FORMER = "slinky.slurm.net/key-former"
SINCE = "slinky.slurm.net/key-since"

# Where daemons look that get their configuration from slurmctld: they would look beside that otherwise.
ENVIRONMENT: Manifest = {"name": "SLURM_SACK_JWKS", "value": f"/etc/slurm/{names.KEY_RING_FILE}"}


# Where keys are while /etc/slurm is a volume of the user's, and how daemons find them there.
KEYS_DIRECTORY = "/run/slurm-keys"
_KEY_ELSEWHERE: Manifest = {"name": "SLURM_SACK_KEY", "value": f"{KEYS_DIRECTORY}/{names.SLURM_KEY_FILE}"}
_RING_ELSEWHERE: Manifest = {"name": "SLURM_SACK_JWKS", "value": f"{KEYS_DIRECTORY}/{names.KEY_RING_FILE}"}


def directory(source: ConfigSource) -> str:
    """Where the keys of a daemon are mounted."""
    return "/etc/slurm" if source is ConfigSource.CONFIGLESS else KEYS_DIRECTORY


def environment(source: ConfigSource, *, has_ring: bool) -> list[Manifest]:
    """How a daemon finds its keys. With its own files it looks beside them, and they are not there."""
    if source is ConfigSource.CONFIGLESS:
        return [ENVIRONMENT] if has_ring else []
    return [_KEY_ELSEWHERE, *([_RING_ELSEWHERE] if has_ring else [])]


class Ring(wire.Record):
    """Keys by digest. `since` is when it last changed; None once every daemon has read it."""

    signs: str
    next: str = ""
    former: str = ""
    since: datetime | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The one that signs first."""
        return tuple(filter(None, (self.signs, self.next, self.former)))

    @property
    def hash(self) -> str:
        """Changes when a daemon that reads its keys only when it starts has to be restarted."""
        return f"{self.signs}-{self.next}" if self.next else self.signs


def name_of(secret: str) -> str:
    """The ring that goes with the Secret of a Slurm key."""
    return f"{secret}-ring"


def ring_of(secret: Secret | Unread | None) -> Ring | None:
    """What a Secret says of itself; None when it is no whole ring."""
    if not isinstance(secret, Secret):
        return None
    notes = secret.metadata.annotations
    found = Ring(
        signs=notes.get(SIGNS, ""),
        next=notes.get(NEXT, ""),
        former=notes.get(FORMER, ""),
        since=moment(notes.get(SINCE, "")),
    )
    is_whole = bool(found.signs) and {_entry(key) for key in found.keys} <= secret.digests.keys()
    return found if is_whole else None


def manifest(source: SecretHandle, ring: Ring) -> Manifest:
    """The Secret, whose texts are made from the user's key and from the copies that are in it already."""
    name = name_of(source.name)
    copies = {key: _handle(source, name, key) for key in ring.keys}
    keys = [{"kty": "oct", "alg": "HS256", "kid": key, "k": copy.mark} for key, copy in copies.items()]
    keys[0]["use"] = "default"
    notes = {SIGNS: ring.signs, NEXT: ring.next, FORMER: ring.former}
    if ring.since is not None:
        notes[SINCE] = ring.since.isoformat()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": source.namespace,
            "labels": {"app.kubernetes.io/managed-by": "slurm-operator"},
            "annotations": {key: value for key, value in notes.items() if value},
        },
        "type": "Opaque",
        "stringData": {
            names.KEY_RING_FILE: wire.encode_sorted({"keys": keys}).decode(),
            **{_entry(key): copy.mark for key, copy in copies.items()},
        },
    }


def file(secret: str) -> Manifest:
    """The ring of a key as a file in a projected volume."""
    return secret_file(name_of(secret), names.KEY_RING_FILE, names.KEY_RING_FILE)


def optional_file(secret: str) -> Manifest:
    """The same for daemons that may be there before any Controller."""
    source = file(secret)
    return {"secret": {**source["secret"], "optional": True}}


def copy_in(ring: Secret, key: str) -> SecretHandle:
    """Where the copy of a key is: as base64url."""
    meta = ring.metadata
    return SecretHandle(namespace=meta.namespace, name=meta.name, key=_entry(key), form="base64url")


def _entry(key: str) -> str:
    return f"key-{key}"


def _handle(source: SecretHandle, ring: str, key: str) -> SecretHandle:
    if key == source.digest:
        return wire.replace(source, form="base64url")
    return SecretHandle(namespace=source.namespace, name=ring, key=_entry(key))
