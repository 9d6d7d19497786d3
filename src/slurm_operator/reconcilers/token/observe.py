"""Choose the facts about one Token: its signing key, and the Secret it asked for."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_operator.api.shared import keys
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared.dependencies import with_shared_keys

# What we note on the Secret about the token in it, so that nobody has to read the token to know. The digest
# of the key tells its readers no more than the token does, which is signed with that key.
ISSUED_AT = "token.slinky.slurm.net/issued-at"
EXPIRES_AT = "token.slinky.slurm.net/expires-at"
USERNAME = "token.slinky.slurm.net/username"
KEY_DIGEST = "token.slinky.slurm.net/key-digest"


@dataclass(frozen=True)
class Issued:
    """The token that the Secret holds, by what we noted when we signed it."""

    at: datetime
    until: datetime
    username: str
    key_digest: str


@dataclass(frozen=True)
class Seen:
    token: Token
    key: SecretHandle | None
    key_problem: str
    secret: Secret | Unread | None
    issued: Issued | None

    @property
    def lifetime(self) -> timedelta:
        return self.token.spec.lifetime


def observe(key: ObjectKey, world: World) -> Seen | None:
    token = world.get(Token, key.namespace, key.name)
    if token is None:
        return None
    secret = world.secret(key.namespace, token.secret_name)
    handle, problem = signing_key(token, world)
    has_token = isinstance(secret, Secret) and token.secret_key in secret.digests
    return Seen(
        token=token,
        key=handle,
        key_problem=problem,
        secret=secret,
        issued=issued_in(secret) if isinstance(secret, Secret) and has_token else None,
    )


def signing_key(token: Token, world: World) -> tuple[SecretHandle | None, str]:
    """The key to sign with, or what is wrong with it, in words for the Token's owner."""
    namespace = token.metadata.namespace
    ref = keys.signing_key(token.spec) or controllers_key(token, world)
    if ref is None:
        name = token.spec.controller_ref.name if token.spec.controller_ref is not None else ""
        return None, f"There is no Controller {name!r} in namespace {namespace!r} to take the signing key of."
    where = f"Secret {ref.name!r} in namespace {namespace!r}"
    match world.secret(namespace, ref.name):
        case None:
            return None, f"There is no {where}. The token is signed as soon as there is one."
        case Unread(why=why):
            return None, f"{where} could not be read: {why}."
        case Secret(digests=digests) if ref.key not in digests:
            entries = ", ".join(sorted(digests)) or "none"
            return None, f"{where} has no entry {ref.key!r} (it has: {entries}). Correct spec.jwtKeyRef.key."
        case Secret(digests=digests):
            digest = digests[ref.key]
            return SecretHandle(namespace=namespace, name=ref.name, key=ref.key, digest=digest), ""


def controllers_key(token: Token, world: World) -> SecretKey | None:
    """The signing key of the Controller that the Token names."""
    if token.spec.controller_ref is None:
        return None
    controller = world.get(Controller, token.metadata.namespace, token.spec.controller_ref.name)
    return key_secrets.signing_key(with_shared_keys(controller, world)) if controller is not None else None


def issued_in(secret: Secret) -> Issued | None:
    """What we noted about the token; None when the Secret was not written by us."""
    notes = secret.metadata.annotations
    at, until = moment(notes.get(ISSUED_AT, "")), moment(notes.get(EXPIRES_AT, ""))
    if at is None or until is None or not {USERNAME, KEY_DIGEST} <= notes.keys():
        return None
    return Issued(at=at, until=until, username=notes[USERNAME], key_digest=notes[KEY_DIGEST])
