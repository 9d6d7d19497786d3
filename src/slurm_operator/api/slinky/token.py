"""Token: a Slurm JWT in a Secret, kept fresh."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar, Self

from slurm_operator.api.schema.cel import as_duration
from slurm_operator.api.schema.crd import METADATA, READY, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.refs import Reference, SecretKey


@model
class TokenSpec:
    """Which token you want."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *keys.SIGNING_KEY_STAYS,
        Rule(
            expression="has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) || has(self.controllerRef)",
            message="a token needs a key to be signed with: set jwtKeyRef, or controllerRef to borrow one",
            path=".jwtKeyRef",
        ),
    )

    jwt_key_ref: SecretKey | None = keys.JWT_KEY_REF
    jwt_hs256_key_ref: SecretKey | None = keys.JWT_HS256_KEY_REF
    controller_ref: Reference | None = prop(
        "The Controller whose signing key to use when jwtKeyRef is left out.", default=None
    )
    username: str = prop("The Slurm user that the token speaks for.")
    lifetime: timedelta = prop(
        "How long the token is valid, such as 1h.",
        default=timedelta(minutes=15),
        rules=[
            Rule(expression=as_duration("duration(self) >= duration('0s')"), message="cannot be negative")
        ],
    )
    refresh: bool = prop(
        "Whether the token is renewed when 80 % of its life is over. If not, its Secret is immutable.",
        default=True,
    )
    secret_ref: SecretKey | None = prop(
        "Where to put the token. Left out: Secret <name>-jwt-<username>, key SLURM_JWT.", default=None
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        if not self.username:
            yield warning("username", "is empty, so the token speaks for user nobody")


@model
class TokenStatus:
    """What the token is like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    issued_at: datetime | None = prop("When the token was signed.", default=None)
    expires_at: datetime | None = prop("Until when it is valid.", default=None)
    renews_at: datetime | None = prop("When it is renewed next.", default=None)
    secret: str = prop("Secret that holds it.", default="")
    key_digest: str = prop("Always empty; once a digest of the signing key.", default="")


@model
class Token:
    """A Slurm token (JWT) in a Secret, renewed before it runs out."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="Token", plural="tokens")
    CRD: ClassVar[Definition] = Definition(
        short_names=("tokens", "jwt"),
        columns=(
            Column(name="USER", path=".spec.username", description="Slurm user it speaks for."),
            Column(name="IAT", path=".status.issuedAt", type="date", description="When it was signed."),
            READY,
            Column(
                name="EXPIRES", path=".status.expiresAt", description="Until when it is valid.", priority=1
            ),
            Column(name="SECRET", path=".status.secret", description="Secret that holds it.", priority=1),
            STATUS,
        ),
        also_served=("v1alpha1",),
    )

    metadata: Meta = METADATA
    spec: TokenSpec = prop("What you want.")
    status: TokenStatus = prop("How it is; written by the operator.", default=TokenStatus())

    @property
    def secret_name(self) -> str:
        given = self.spec.secret_ref.name if self.spec.secret_ref is not None else ""
        return given or names.token_secret(self.metadata.name, self.spec.username)

    @property
    def secret_key(self) -> str:
        given = self.spec.secret_ref.key if self.spec.secret_ref is not None else ""
        return given or names.TOKEN_KEY

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
