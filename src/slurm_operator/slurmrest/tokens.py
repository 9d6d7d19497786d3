"""Slurm's JSON Web Tokens, signed in the process from the shared key."""

import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from jwt.algorithms import HMACAlgorithm
from jwt.api_jws import PyJWS

from slurm_operator import wire
from slurm_operator.slurmrest.errors import SlurmUnauthorised

# Clocks of two machines may differ. A token is valid from a little before it was made, and replaced while
# more than this is left of it: slurmctld accepts it with its clock this far off in either direction.
SKEW = timedelta(seconds=90)

LIFETIME = timedelta(minutes=5)

# Slurm keeps `exp` as a signed 32-bit number.
LATEST_EXPIRY = 2**31 - 2

KeyProvider = Callable[[], bytes]


class Tokens(Protocol):
    """Where a session has its tokens from."""

    def token(self) -> str:
        """One that should be accepted."""
        ...

    def reject(self, token: str) -> None:
        """This one was not accepted."""
        ...


def signed(key: bytes, *, user: str, now: datetime, lifetime: timedelta) -> str:
    """A token that makes its bearer `user` until `now + lifetime`."""
    since = int((now - SKEW).timestamp())
    claims = {
        "sun": user,
        "iss": "slurm-operator",
        "iat": since,
        "nbf": since,
        "exp": min(int((now + lifetime).timestamp()), LATEST_EXPIRY),
        "jti": str(uuid.uuid4()),
    }
    return _JWS.encode(wire.encode(claims), key, algorithm="HS256")


class _BytesAsTheyAre(HMACAlgorithm):
    """Takes every key that slurmctld takes.

    PyJWT refuses what looks like a private key, against mix-ups while checking foreign tokens; but Slurm's
    manual once had people make this shared secret with `openssl genrsa`, and many clusters have such a file.
    """

    def prepare_key(self, key: str | bytes) -> bytes:
        return key if isinstance(key, bytes) else key.encode()

    def check_key_length(self, key: bytes) -> str | None:
        return None


_JWS = PyJWS(algorithms=["HS256"])
_JWS.unregister_algorithm("HS256")
_JWS.register_algorithm("HS256", _BytesAsTheyAre(HMACAlgorithm.SHA256))


class Keys:
    """Several keys, of which the other side takes one: the next is tried when one was not accepted."""

    def __init__(self, first: bytes, *others: bytes) -> None:
        self._keys = deque([first, *others])

    def __call__(self) -> bytes:
        return self._keys[0]

    def turn(self) -> None:
        self._keys.rotate(-1)


class TokenSource:
    """Hands out a token with at least half of its life left. Asks for the key when it signs; b"" is none."""

    def __init__(
        self,
        key: KeyProvider,
        *,
        now: Callable[[], datetime],
        user: str = "slurm",
        lifetime: timedelta = LIFETIME,
    ) -> None:
        self._key = key
        self._now = now
        self._user = user
        self._lifetime = lifetime
        self._token = ""
        self._signed_at: datetime | None = None

    def token(self) -> str:
        now = self._now()
        if self._signed_at is None or not timedelta(0) <= now - self._signed_at < self._lifetime / 2:
            key = self._key()
            if not key:
                raise SlurmUnauthorised("sign a token", "there is no key to sign with")
            self._token = signed(key, user=self._user, now=now, lifetime=self._lifetime)
            self._signed_at = now
        return self._token

    def reject(self, token: str) -> None:
        """`token` was not accepted: the next one is signed again, unless that has happened already."""
        if token == self._token:
            self._signed_at = None
            if isinstance(self._key, Keys):
                self._key.turn()


class ReadyToken:
    """A token that somebody else signed. Another one comes with another connection, not by asking again."""

    def __init__(self, text: str) -> None:
        self._text = text.strip().removeprefix("SLURM_JWT=")  # As `scontrol token` prints it.

    def token(self) -> str:
        if not self._text:
            raise SlurmUnauthorised("log in", "the token is empty")
        if not {"\r", "\n"}.isdisjoint(self._text):
            raise SlurmUnauthorised("log in", "the token has line breaks in it")
        return self._text

    def reject(self, token: str) -> None:
        pass
