"""Who we are to the API server, and noticing when that changes."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from slurm_operator.kube.auth.tls import ClientCertificate, fingerprint
from slurm_operator.kube.errors import ConfigProblem

# Pairs, because impersonation names every group in a header of its own.
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Identity:
    """Who we are in one moment: headers to send and the certificate to show."""

    headers: Headers = field(default=(), repr=False)
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Where an identity comes from."""

    async def identity(self) -> Identity:
        """The identity for the next request; cheap when nothing changed. Raises ConfigProblem."""
        ...

    def invalidate(self) -> None:
        """The server did not accept it: get a new one next time, if there is a way."""
        ...


@dataclass(frozen=True)
class Fixed:
    """An identity that never changes: a token, a certificate, or nobody."""

    known: Identity = field(default_factory=Identity)

    async def identity(self) -> Identity:
        return self.known

    def invalidate(self) -> None:
        """There is no other."""


class TokenFile:
    """A token in a file that somebody else renews, as the kubelet does for every pod."""

    def __init__(self, path: Path, others: Headers = ()) -> None:
        self._path = path
        self._others = others
        self._read_at: object = None
        self._identity = Identity()

    async def identity(self) -> Identity:
        seen = fingerprint(self._path)
        if seen != self._read_at:
            self._identity = Identity((*self._others, bearer(self._token())))
            self._read_at = seen
        return self._identity

    def invalidate(self) -> None:
        self._read_at = None

    def _token(self) -> str:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigProblem(f"cannot read the token in {self._path}: {error}") from error
        if not token:
            raise ConfigProblem(f"the token file {self._path} is empty")
        return token


@dataclass(frozen=True)
class Impersonating:
    """Somebody else, whom `own` is allowed to be: the API server asks for the right to impersonate."""

    own: Credentials
    user: str
    groups: tuple[str, ...] = ()

    async def identity(self) -> Identity:
        own = await self.own.identity()
        others = (("Impersonate-User", self.user), *(("Impersonate-Group", group) for group in self.groups))
        kept = tuple(pair for pair in own.headers if not pair[0].lower().startswith("impersonate-"))
        return replace(own, headers=(*kept, *others))

    def invalidate(self) -> None:
        self.own.invalidate()


def bearer(token: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {token}")
