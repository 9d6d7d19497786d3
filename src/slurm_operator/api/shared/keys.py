"""The keys that Slurm's daemons share: the same fields on several kinds."""

from typing import Any, Final, Protocol

from slurm_operator.api.schema.cel import kept_once_set, stays_once_set
from slurm_operator.api.schema.model import Rule, prop
from slurm_operator.api.shared.refs import SecretKey

SLURM_KEY_REF: Final[Any] = prop(
    "Secret with the key that daemons trust each other by (auth/slurm). Left out: one is generated and kept.",
    default=None,
)
JWT_KEY_REF: Final[Any] = prop(
    "Secret with the key that signs tokens (auth/jwt, HS256). Left out: one is generated and kept.",
    default=None,
)
JWT_HS256_KEY_REF: Final[Any] = prop(
    "The older name of jwtKeyRef, which wins if both are set.", default=None, deprecated="use jwtKeyRef"
)
JWKS_KEY_REF: Final[Any] = prop(
    "ConfigMap with a JWKS file, to accept tokens of an identity provider as well.", default=None
)

_JWT_NAME = "self.?jwtKeyRef.name.orValue(self.?jwtHs256KeyRef.name.orValue(''))"
_JWT_KEY = "self.?jwtKeyRef.key.orValue(self.?jwtHs256KeyRef.key.orValue(''))"
_SIGNED = "cannot change: what was signed with the old key would be refused"


# The reference that counts stays what it is; moving it from the old field to the new one is fine.
SIGNING_KEY_STAYS: Final = (
    Rule(
        expression=kept_once_set(_JWT_NAME),
        message=f"jwtKeyRef.name {_SIGNED}",
        path=".jwtKeyRef",
        holds=stays_once_set(lambda spec: _of(signing_key(spec)).name),
    ),
    Rule(
        expression=kept_once_set(_JWT_KEY),
        message=f"jwtKeyRef.key {_SIGNED}",
        path=".jwtKeyRef",
        holds=stays_once_set(lambda spec: _of(signing_key(spec)).key),
    ),
)
KEYS_STAY: Final = (
    *SIGNING_KEY_STAYS,
    Rule(
        expression=kept_once_set("self.?slurmKeyRef.name.orValue('')"),
        message="slurmKeyRef.name cannot change: daemons with the old key would be locked out; "
        "to rotate the key, change the content of the Secret",
        path=".slurmKeyRef",
        holds=stays_once_set(lambda spec: _of(spec.slurm_key_ref).name),
    ),
)


class HasSigningKey(Protocol):
    @property
    def jwt_key_ref(self) -> SecretKey | None: ...
    @property
    def jwt_hs256_key_ref(self) -> SecretKey | None: ...


def signing_key(spec: HasSigningKey) -> SecretKey | None:
    """The reference that counts; None means a generated key."""
    return spec.jwt_key_ref or spec.jwt_hs256_key_ref


def _of(ref: SecretKey | None) -> SecretKey:
    return ref if ref is not None else SecretKey(key="")
