"""How daemons trust each other, and as whom they run: the same fields on Controller and Accounting."""

from typing import Any, Final

from slurm_operator.api.schema.cel import kept_once_set, matches, stays, stays_once_set, unchanged
from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.shared import names
from slurm_operator.api.shared.pods import Container
from slurm_operator.api.shared.refs import SecretKey


class AuthType(Choice):
    SLURM = "slurm", "auth/slurm: the daemons share a key and need nothing else"
    MUNGE = "munge", "auth/munge: a munged runs beside each daemon; tokens (auth/jwt) work as well"


@model
class Auth:
    """How the daemons of a cluster trust each other."""

    type: AuthType = prop(
        "What they authenticate with. It changes only while the cluster has no workers.",
        default=AuthType.SLURM,
    )
    munge_key_ref: SecretKey | None = prop(
        "Secret with the key of munge. Left out: one is generated and kept.", default=None
    )
    munge: dict[str, Any] = prop(
        "Laid over the munge container. It runs the image of the daemon unless another one is named.",
        default={},
        shape=Container,
    )


@model
class SlurmUser:
    """The user that slurmctld and slurmdbd run as."""

    name: str = prop(
        "Name of the user; the images must know it.",
        default=names.SLURM_USER,
        max_length=32,
        rules=[
            Rule(expression=matches(r"^[a-z_][-a-z0-9_]*$"), message="is the name of a user in /etc/passwd")
        ],
    )
    uid: int = prop("Its user id.", default=names.SLURM_UID, minimum=0)
    gid: int = prop("Its group id.", default=names.SLURM_UID, minimum=0)

    @property
    def security(self) -> dict[str, Any]:
        """As whom a container runs."""
        return {"runAsNonRoot": self.uid != 0, "runAsUser": self.uid, "runAsGroup": self.gid}


AUTH: Final[Any] = prop("How daemons trust each other. Left out: auth/slurm.", default=None)
SLURM_USER: Final[Any] = prop(
    "The user that the daemon runs as (SlurmUser). Left out: slurm, with the ids 401.", default=None
)


_MUNGE_KEY = "self.?auth.mungeKeyRef.{}.orValue('')"

AUTH_STAYS: Final = (
    Rule(
        expression="oldSelf.?auth.type.orValue('slurm') != 'munge' || "
        "self.?auth.type.orValue('slurm') != 'munge' || "
        f"({unchanged(_MUNGE_KEY.format('name'))} && {unchanged(_MUNGE_KEY.format('key'))})",
        message="auth.mungeKeyRef cannot change while daemons use munge: those with the old key would be "
        "locked out, and their jobs lost",
        path=".auth",
        holds=lambda new, old: (
            old is None
            or with_munge(old.auth) is None
            or with_munge(new.auth) is None
            or _munge_key(old.auth) == _munge_key(new.auth)
        ),
    ),
    Rule(
        expression=kept_once_set("self.?auth.mungeKeyRef.name.orValue('')"),
        message="auth.mungeKeyRef.name cannot change: daemons with the old key would be locked out",
        path=".auth",
        holds=stays_once_set(lambda spec: _munge_key_name(spec.auth)),
    ),
    Rule(
        expression=" && ".join(
            (
                unchanged(f"self.?slurmUser.name.orValue('{names.SLURM_USER}')"),
                unchanged(f"self.?slurmUser.uid.orValue({names.SLURM_UID})"),
                unchanged(f"self.?slurmUser.gid.orValue({names.SLURM_UID})"),
            )
        ),
        message="slurmUser cannot change: files on volumes belong to the old user",
        path=".slurmUser",
        holds=stays(lambda spec: spec.slurm_user or SlurmUser()),
    ),
)


def _munge_key_name(auth: Auth | None) -> str:
    return _munge_key(auth)[0]


def _munge_key(auth: Auth | None) -> tuple[str, str]:
    ref = auth.munge_key_ref if auth is not None else None
    return (ref.name, ref.key) if ref is not None else ("", "")


def with_munge(auth: Auth | None) -> Auth | None:
    """How munge is used; None where it is not."""
    return auth if auth is not None and auth.type is AuthType.MUNGE else None


def type_of(auth: Auth | None) -> AuthType:
    return auth.type if auth is not None else AuthType.SLURM
